"""The table of rules and the project's own lines: every row finds what it is for, and ordinary lines stay."""

from __future__ import annotations

import random
import re

import pytest

from memoryvault.bench.scrub import Line, own_lines, own_score
from memoryvault.pipelines.scrub import Policy, findings, scrub
from memoryvault.pipelines.secret_rules import INTRODUCED, SHAPES, Rule
from memoryvault.pipelines.seed_phrases import WORDS_FILE


@pytest.mark.parametrize("rule", [*SHAPES, *INTRODUCED], ids=lambda rule: rule.example)
def test_each_rule_finds_what_it_is_for(rule: Rule) -> None:
    text, secret = re.sub("[⟦⟧]", "", rule.example), re.findall("⟦(.+?)⟧", rule.example, re.DOTALL)[0]
    known = text if rule in SHAPES else text.lower()
    assert any(sign in known for sign in rule.signs)
    match = rule.pattern.search(text)
    assert match is not None
    start, end = rule.span(match)
    assert text[start:end] == secret
    assert rule.check(match, secret)
    assert secret.strip() not in scrub(text, Policy.SECRETS)


@pytest.mark.parametrize("half", ["A", "B"])
def test_secrets_in_the_projects_own_lines_are_redacted_and_ordinary_lines_stay(half: str) -> None:
    result = own_score(line for line in own_lines() if line.half == half)
    assert result.secrets > 100
    assert result.others > 200
    assert result.recall >= 0.95
    assert result.false_positive_rate <= 0.01


def test_a_line_is_clean_only_when_all_of_its_secrets_are_gone() -> None:
    assert not Line("password: hunter22, or zz", ("hunter22", "zz")).is_clean
    assert Line("password: hunter22", ("hunter22",)).is_clean


WORDS = WORDS_FILE.read_text("ascii").split()


@pytest.mark.parametrize("between", [" ", ", ", "\n", '", "', " 7. "])
@pytest.mark.parametrize("before", ["", "my wallet: ", "In the end of the long report it says this to all of us:\n"])
def test_a_wallet_phrase_is_redacted_anywhere_in_a_text(between: str, before: str) -> None:
    for number in range(50):
        phrase = between.join(random.Random(number).choices(WORDS, k=12))
        assert phrase not in scrub(f"{before}{phrase}\nand it works.", Policy.SECRETS)


def test_words_of_the_wallet_list_in_a_sentence_or_in_order_stay() -> None:
    for text in ("\n".join(WORDS), "please change the system that you use to move any file when the user is away"):
        assert findings(text, Policy.SECRETS) == ()


@pytest.mark.parametrize("prefix", ["brv_", "glorp-", "vxq_live_"])
def test_a_digest_after_letters_that_are_no_word_is_a_key(prefix: str) -> None:
    for number in range(50):
        key = prefix + "".join(random.Random(number).choices("0123456789abcdef", k=32))
        assert key.removeprefix(prefix) not in scrub(f"use {key} for it")
        assert "live" in prefix or findings(f"see {key}.png") == ()
