"""A rule that the user states outright in another language than English is proposed; a report is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.foreign_language import may_state_foreign_rule
from memoryvault.pipelines.foreign_wording import LANGUAGES
from memoryvault.pipelines.likeness import LikenessLimits, is_same, wording_of
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.foreign_rules import foreign_rule
from memoryvault.pipelines.mining.sentences import sentences
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault.turn import Origin, Role, Turn

SAMPLES: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("rules_in_other_languages.json").read_text("utf-8")
)
RULES = [rule for samples in SAMPLES.values() for rule in samples["rules"]]
REPORTS = [report for samples in SAMPLES.values() for report in samples["not"]]


def prompt(text: str, origin: Origin = Origin.PROMPT) -> Turn:
    return Turn(
        role=Role.USER, origin=origin, text=text, record="r1", session="s1", cwd="/home/dev/shop", confirmed=True
    )


def proposed(text: str, origin: Origin = Origin.PROMPT) -> list[Candidate]:
    return [found for found in mine([prompt(text, origin)]) if found.claimed_rule or found.standing_rule]


def test_there_are_samples_of_each_language() -> None:
    assert len(SAMPLES) == len(LANGUAGES) == 15


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_stated_outright_is_proposed_and_never_saved_unasked(rule: str) -> None:
    [found] = proposed(rule)
    assert found.statement == rule, "in the user's own words, without context that it does not need"
    assert not found.standing_rule
    assert tier_of(found)[0] is Tier.MEDIUM
    assert found.reason.startswith("has the form of a rule in ")


@pytest.mark.parametrize("report", REPORTS)
def test_a_question_a_report_or_an_order_for_this_moment_is_no_rule(report: str) -> None:
    assert proposed(report) == []


@pytest.mark.parametrize(
    "text",
    [
        "Nie laufen die Tests durch.",
        "Ab jetzt laufen die Tests durch.",
        "Künftig soll die Funktion Fehler ausführen.",
        "Siempre usa npm en vez de pnpm, no entiendo por qué.",
        "Gebruik je altijd npm.",
        "Всегда меняет файл после запуска.",
        "脚本总是使用 npm 安装依赖。",
        "这个测试永远不能通过。",
        "常に赤くて困る、助けて。",
        "테스트가 항상 통과해.",
        "Artık testleri çalıştır.",
    ],
)
def test_what_looks_like_an_order_and_tells_of_something_is_no_rule(text: str) -> None:
    assert proposed(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "以后提交之前一定要先运行测试。",
        "今后部署之前请先运行数据库备份。",
        "以后请不要把数据库密码写进说明。",
        "コミットする前は必ずテストを実行してください。",
        "커밋하기 전에는 항상 테스트를 실행하세요.",
    ],
)
def test_a_rule_for_before_something_tells_of_no_earlier_time(text: str) -> None:
    assert len(proposed(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "之前我们总是用 npm 安装依赖。",
        "我之前说以后都要用 pnpm。",
        "据说今后要使用 pnpm。",
        "前は常に npm を使うようにしてください。",
        "전에는 항상 npm으로 설치하도록 해.",
    ],
)
def test_what_held_earlier_is_no_rule(text: str) -> None:
    assert proposed(text) == []


@pytest.mark.parametrize("text", ["Nie pushen!", "记住：部署。", "必ず書いて。"])
def test_too_few_words_are_no_rule(text: str) -> None:
    assert proposed(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Der Kollege schreibt:\nImmer alle Commits squashen.",
        "„Immer alle Commits squashen“, steht da.",
        "```\nImmer alle Commits squashen.\n```",
        "田中さんの指示：\n必ずテストを実行してください。",
        "同事写道“以后都用中文写提交信息”",
    ],
)
def test_somebody_elses_words_are_no_rule(text: str) -> None:
    assert proposed(text) == []


def test_the_examples_of_the_review_page_are_proposed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "review.md").read_text("utf-8")
    table = page.split("## In other languages\n")[1].split("\n\n")[1]
    examples = re.findall(r'"(.+?)"', table)
    assert len(examples) == 7
    assert [len(proposed(example)) for example in examples] == [1] * 7


def test_the_reason_names_the_language_and_the_form() -> None:
    [found] = proposed("Ab jetzt immer pnpm statt npm benutzen.")
    assert found.reason == "has the form of a rule in German, from now on"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "Danke. Der Build ist grün. Ab jetzt immer pnpm statt npm benutzen.",
            "Ab jetzt immer pnpm statt npm benutzen.",
        ),
        ("谢谢。以后都用中文写提交信息。现在继续。", "以后都用中文写提交信息。"),
        ("ありがとう！今後は pnpm を使ってください。次に進んで。", "今後は pnpm を使ってください。"),
    ],
)
def test_a_rule_among_other_sentences_is_proposed_alone(text: str, rule: str) -> None:
    assert [found.statement for found in proposed(text)] == [rule]


def test_chinese_and_japanese_marks_end_sentences_without_a_blank() -> None:
    turn = prompt("“好的。”然后呢？请继续！「はい。」次 v1.2 。")
    assert [part.text for part in sentences(turn)] == ["“好的。”", "然后呢？", "请继续！", "「はい。」", "次 v1.2 。"]
    assert all(turn.text[part.start : part.end] == part.text for part in sentences(turn))


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("A partir de ahora usa pnpm en lugar de npm.", "personal"),
        ("In diesem Repo ab jetzt immer pnpm benutzen.", None),
        ("Ab jetzt in diesem Repo immer pnpm benutzen.", "project"),
        ("今後はこのプロジェクトでは pnpm を使ってください。", "project"),
    ],
)
def test_a_rule_of_this_project_is_filed_with_it_and_any_other_with_the_user(text: str, scope: str | None) -> None:
    assert [found.scope for found in proposed(text)] == ([scope] if scope else [])


def test_what_is_typed_when_refusing_a_tool_call_is_a_correction() -> None:
    [found] = proposed("Nie auf main pushen!", Origin.REJECTION)
    assert found.category == "correction"


@pytest.mark.parametrize(
    ("rule", "opposite"),
    [
        ("Ab jetzt Tests vor dem letzten Commit ausführen.", "Ab jetzt Tests nicht vor dem letzten Commit ausführen."),
        ("Впредь всегда запускай тесты перед коммитом.", "Впредь всегда не запускай тесты перед коммитом."),
        ("Bundan sonra testleri commit öncesi çalıştır.", "Bundan sonra testleri commit öncesi çalıştırma."),
    ],
)
def test_a_rule_and_its_opposite_are_never_merged(rule: str, opposite: str) -> None:
    one, other = wording_of(rule), wording_of(opposite)
    assert not is_same(one, other, 1.0, LikenessLimits())
    assert is_same(one, wording_of(rule.rstrip(".") + "!"), 1.0, LikenessLimits())


def test_english_is_left_alone() -> None:
    assert not may_state_foreign_rule("Always run the linter before committing. Never push to main!")
    assert foreign_rule("Always run the linter before committing.") is None


@pytest.mark.parametrize("unit", ["immer ", "n'", "ne jamais ", "tu dois ", "总是", "請,", "bitte, ", "nie pushen "])
def test_a_long_sentence_takes_no_longer_than_its_length(unit: str) -> None:
    assert_linear(lambda size: lambda: foreign_rule((unit * size)[:size]), 320)
