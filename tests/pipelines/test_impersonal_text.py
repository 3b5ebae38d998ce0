"""A paragraph in nobody's voice is, by its look, a text that the user passed on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.corpus import CorpusFigures, Saying, digest_body, patterns_of
from memoryvault.pipelines.likeness import LikenessLimits
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.impersonal_text import in_nobodys_voice, paragraph_at
from memoryvault.pipelines.routing import Thresholds, Tier, tier_of
from memoryvault.vault.turn import Origin, Role, Turn

REVIEW = (
    "The loader should use the existing find_root() helper instead of duplicating the lookup. find_root() makes the "
    "path absolute, which is more robust and consistent with the other modules. Replace the lines with a call to it."
)


def said(text: str, origin: Origin = Origin.PROMPT) -> list[Candidate]:
    return mine([Turn(Role.USER, origin, text, "record", "session", cwd="/home/dev/shop", confirmed=True)])


@pytest.mark.parametrize(
    "text",
    [
        REVIEW,
        "`find_root()` is duplicated in two packages. It could be moved into one of them.",
        "- The parser lacks tests. Consider adding some for empty strings.",
        "The new package is critical, and it is used throughout the code, but it has no tests at all, so adding them "
        "would help to verify what it does with empty strings and separators.",
        "The loader should use the existing helper instead of duplicating the lookup of the root,\nwhich is more solid "
        "by far and consistent with the other modules.",
    ],
)
def test_finished_sentences_in_which_nobody_speaks_were_passed_on(text: str) -> None:
    assert in_nobodys_voice(text)


@pytest.mark.parametrize(
    "text",
    [
        "I think the loader should use the helper. It is more robust.",
        "The loader should use the helper. Can it do that?",
        "No, use the helper. It is there.",
        "Please use the helper of the loader. It is there.",
        "The loader should use our helper. It is there.",
        "the loader should use the helper. it is there.",
        "The loader should use the helper. It is there",
        "The loader should use the helper.",
        "The loader is slow\nThe parser is slow. The lexer is not.",
        "The loader is great 😅. The parser is not.",
        "Always use the helper of the loader. Never duplicate the lookup.",
        "Not now. The helper of the loader should be used. It is there.",
        "Later. The helper of the loader is the place to begin.",
        "Der Lader sollte die Funktion benutzen. Sie ist schon da.",
    ],
)
def test_what_somebody_says_was_typed(text: str) -> None:
    assert not in_nobodys_voice(text)


def test_a_paragraph_ends_at_a_blank_line() -> None:
    text = "One.\nTwo.\n\nThree. Four.\n \nFive."
    at = text.index("Four")
    assert paragraph_at(text, at, at + 5) == "Three. Four."
    assert paragraph_at(text, 0, 4) == "One.\nTwo."
    assert paragraph_at(text, text.index("Five"), len(text)) == "Five."


@pytest.mark.parametrize("answer", ["Not now.", "Not yet.", "Later.", "Never mind.", "OK."])
def test_a_rule_behind_a_short_answer_is_the_users(answer: str) -> None:
    (found,) = said(f"{answer} Never run migrations without a backup.")
    assert found.statement == "Never run migrations without a backup."
    assert tier_of(found)[0] is Tier.HIGH


def test_what_stands_in_such_a_text_is_kept_at_the_lowest_tier_and_told_apart() -> None:
    (found,) = said(REVIEW)
    assert found.from_user, "it is not dropped"
    assert found.passed_on
    assert tier_of(found) == (Tier.LOW, "in what may be a text you passed on")
    (typed,) = said(f"can you please check this: {REVIEW[0].lower()}{REVIEW[1:]}")
    assert not typed.passed_on


@pytest.mark.parametrize("words", [{"standing_rule": True}, {"claimed_rule": True}, {"replaces": "npm"}])
@pytest.mark.parametrize("category", ["preference", "correction", "workflow", "idea"])
def test_nothing_of_it_is_more_than_a_guess(category: str, words: dict[str, object]) -> None:
    (found,) = said(REVIEW)
    assert tier_of(replace(found, category=category, **words))[0] is Tier.LOW  # type: ignore[arg-type]  # keyword options


def test_a_rule_within_such_a_text_is_not_saved_unasked() -> None:
    text = "The guide is explicit about the style of the project. Never use abbreviations. {}"
    assert not any(candidate.standing_rule for candidate in said(text.format("Always write short names.")))
    assert Tier.HIGH in {tier_of(c)[0] for c in said(text.format("Always write short names, please."))}


def test_who_refuses_a_tool_call_types_the_reason() -> None:
    assert not any(candidate.passed_on for candidate in said(REVIEW, Origin.REJECTION))


def test_the_digest_tells_it_apart_until_it_is_said_in_the_users_own_voice() -> None:
    (found,) = said(REVIEW)

    def digest(*candidates: Candidate) -> str:
        sayings = [
            Saying(replace(one, session=f"s{n}", records=(f"r{n}",)), "claude", (float(n), f"s{n}", 0))
            for n, one in enumerate(candidates)
        ]
        held = patterns_of(sayings, LikenessLimits(), Thresholds())
        return digest_body(held, CorpusFigures(1, 0))

    assert f"- [ ] 3× in 3 sessions ({found.category}, shop, in what may be a text you passed on): " in digest(
        found, found, found
    )
    typed = replace(found, passed_on=False)
    assert f"- [ ] **3× in 3 sessions** ({found.category}, shop): " in digest(found, typed, found)
