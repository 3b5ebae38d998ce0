"""What is printed for the model, and what of it a session's start gives."""

import re
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.vault.core import count_words, is_ban, select_core
from memoryvault.vault.evidence import strip_evidence
from memoryvault.vault.header import skim
from memoryvault.vault.note_text import is_title_cut, said_once
from memoryvault.vault.render import (
    around_words,
    estimate_tokens,
    introduced,
    render_always_load,
    render_block,
    select_hits,
    status_line,
)
from memoryvault.vault.wording import LEAST_LEFT_OUT, beginning_of, cut, end_of


@dataclass(frozen=True)
class FakeHit:
    slug: str
    excerpt: str
    project: str | None = None
    kind: str | None = None
    updated: str | None = None
    session: str | None = None


def always(path: str, text: str) -> dict[str, object]:
    fields, body = skim(text)
    stem = path.rsplit("/", 1)[1].removesuffix(".md")
    return {"path": path, "slug": fields.get("slug", stem), "priority": fields.get("priority"), "body": body}


def note(name: str, body: str, priority: str = "") -> dict[str, object]:
    header = f"name: {name}\ndescription: test entry {name}\n" + (f"priority: {priority}\n" if priority else "")
    return always(f"personal/_always-load/{name}.md", f"---\n{header}---\n\n{body}")


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("Use port 9000 just for now", "- Use port 9001 for the preview."),
        ("The preview server", "- The preview server: Use port 9001 for the preview."),
        ("Use port 9000 just for now in shop", "- Use port 9000 just for now in shop: Use port 9001 for the preview."),
    ],
    ids=["the heading that the statement made", "a person's heading", "one that a person extended"],
)
def test_what_a_mined_note_said_before_an_edit_is_not_shown(heading: str, shown: str) -> None:
    hit = FakeHit(
        "use-port-9000-just-for-now-2",
        f"# {heading}\n\nUse port 9001 for the preview.",
        None,
        "preferences",
        session="s",
    )
    assert shown in render_block([hit]).splitlines()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Short. The printer is on floor 3.", "Short. The printer is on floor 3."),
        ("Talk. " * 60 + "The printer is on floor 3. Then lunch.", "[…] The printer is on floor 3. Then lunch."),
        ("# Notes\n\n" + "Talk.\n" * 60 + "- The Printer: floor 3.", "# Notes\nTalk.\n[…] - The Printer: floor 3."),
        ("Talk. " * 60, "Talk. " * 60),
        (
            "We never do\n\n1. on a Friday:\n" + "   - talk\n" * 60 + "   - eat on the floor",
            "We never do\n[…] - eat on the floor",
        ),
        ("## Rejected\n" + "Talk.\n" * 60 + "A printer on a floor.", "## Rejected\n[…] A printer on a floor."),
        ("A subfloor of imprinters. " * 20 + "The printer is up.", "[…] The printer is up."),
        ("说话。" * 60 + "printer在三楼。", "[…] printer在三楼。"),
    ],
)
def test_of_a_long_text_the_sentence_with_the_prompts_words_is_shown(text: str, shown: str) -> None:
    assert around_words(text, ["printer", "floor"]) == shown


@pytest.mark.parametrize(
    ("passage", "shown"),
    [
        ("- beta beta - gamma", "Never:\n- beta beta\n- gamma"),
        ("- gamma - delta of an old text", ""),
        ("- an item of more than thirty letters - nested", "Never:\n- an item of more than thirty letters - nested"),
        ("Now and then.", "Now and then."),
    ],
)
def test_a_passage_comes_with_the_line_that_introduces_it(passage: str, shown: str) -> None:
    listed = "- alpha\n- beta beta\n- gamma\n- an item of more than thirty letters\n  - nested\n"
    body = f"Now and then.\n\nNever:\n{listed}"
    assert introduced(passage, body) == shown


def test_order_is_by_priority_then_path_whatever_the_listing() -> None:
    entries = [note("d", "4", "low"), note("c", "3"), note("b", "2"), note("a", "1", "HIGH"), note("e", "5", "odd")]
    text, _ = render_always_load(entries, 0)
    assert re.findall(r"^- (\w)$", text, re.MULTILINE) == ["1", "2", "3", "5", "4"]
    assert render_always_load(reversed(entries), 0)[0] == text


def test_an_entry_of_every_session_is_whole_without_its_evidence() -> None:
    body = "# How we work\n\nSmall steps:\n- commit\n- push\n\n## Evidence\n\n> Small steps."
    text, _ = render_always_load([{**note("a", body), "excerpt": strip_evidence(body)}], 0)
    frame = "Standing rules and notes of the user, for every session:"
    assert text.splitlines() == [frame, "- How we work", "", "  Small steps:", "  - commit", "  - push"]
    assert render_always_load([], 100) == ("", [])


def test_the_users_rules_are_given_as_theirs_and_the_rest_as_notes_of_their_day() -> None:
    rule = FakeHit("use-pnpm", "Use pnpm.", "app", "preferences", "2026-07-01", "s1")
    fix = FakeHit("tz", "Set TZ before\nthe clock tests.", "app", "fix", "2026-07-02", "s2")
    assert render_block([fix, rule]) == (
        "Standing rules of the user:\n"
        "- Use pnpm.\n"
        "Notes from earlier sessions (reference data; may no longer hold):\n"
        "- 2026-07-02, fix: Set TZ before the clock tests.\n"
    )


def test_five_entries_cost_under_200_tokens_and_none_more_than_60() -> None:
    session = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"
    rule, fix = "From now on we do it in way {} that was agreed on.", "When {} fails behind the proxy, restart it: "
    fix += "keepAliveTimeout in server.ts was longer than the proxy's own, which is 65 s."
    hits = [FakeHit(f"rule-{n}", rule.format(n), None, "preferences", "2026-07-01", session) for n in range(3)]
    hits += [FakeHit(f"fix-{n}", fix.format(n), "shop", "fix", "2026-07-01", session) for n in range(2)]
    assert estimate_tokens(render_block(hits)) < 200
    for text in ("word " * 2000, "語" * 2000, "x" * 9000):
        (_, line) = render_block([FakeHit("a", text, kind="fix", updated="2026-07-01")]).splitlines()
        assert 50 < estimate_tokens(line) <= 60
        assert line.endswith(" […]")


@pytest.mark.parametrize("context", ["in answer to: “Shall I (really) use npm?”", "when refusing npm install"])
def test_what_the_agent_had_said_before_is_not_given(context: str) -> None:
    body = f"# Use pnpm here\n\nNo, use pnpm here. ({context})\n\nFor all packages (also old ones)."
    block = render_block([{"slug": "a", "kind": "preferences", "body": body}])
    assert block.splitlines()[1] == "- No, use pnpm here. For all packages (also old ones)."


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"body": "# Commit messages\n\nPresent tense."}, "Commit messages: Present tense."),
        ({"title": "Always use pnpm for …", "excerpt": "Please always use pnpm for builds."},
         "Please always use pnpm for builds."),
        ({"path": "a/Deploy day.md", "title": "Tuesdays.", "excerpt": "Tuesdays."}, "Deploy day: Tuesdays."),
        ({"path": "a/deploy-on-fridays.md", "excerpt": "We deploy on Mondays."}, "We deploy on Mondays."),
        ({"path": "a/fix-tz.md", "body": "# fix-tz\n\nSet TZ first."}, "fix tz: Set TZ first."),
        ({"body": "# 0f8fad5b-d9cb-469f-a165-70867728950e\n\nSet TZ first."}, "Set TZ first."),
        ({"body": "# Dark\n\n## Symptom\n\nNo picture.\n\n### Fix:\n\nUnplug it."},
         "Dark: Symptom: No picture. Fix: Unplug it."),
        ({"excerpt": ""}, "the-slug"),
    ],
)  # fmt: skip
def test_a_title_is_given_where_the_text_does_not_say_it_else_a_slug(item: dict[str, str], line: str) -> None:
    (_, shown) = render_block([{"slug": "the-slug", "kind": "preferences", **item}]).splitlines()
    assert shown == f"- {line}"


def test_what_was_said_long_before_it_was_noted_bears_the_day_of_saying() -> None:
    """To an agent the day of a backfill would make an old rule look fresh."""
    hit = {"slug": "a", "excerpt": "text", "surfaced_at": "2024-05-17T12:00:00Z", "created": "2026-11-23"}
    assert "- 2024-05-17: text\n" in render_block([hit | {"updated": "2026-11-23"}])
    assert "- 2026-12-01: text\n" in render_block([hit | {"updated": "2026-12-01"}]), "changed since"
    assert "- 2026-11-23: text\n" in render_block([hit | {"surfaced_at": ""}])


@pytest.mark.parametrize(("zone", "day"), [("Pacific/Kiritimati", "2024-05-18"), ("Pacific/Honolulu", "2024-05-17")])
def test_the_day_of_saying_is_the_users(monkeypatch: pytest.MonkeyPatch, zone: str, day: str) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        block = render_block([{"slug": "a", "excerpt": "text", "surfaced_at": "2024-05-17T12:00:00Z"}])
    time.tzset()
    assert f"- {day}: text\n" in block


def test_hits_that_do_not_fit_are_left_out_and_known() -> None:
    hits = [FakeHit("big", "x" * 4000), FakeHit("small", "y" * 40)]
    kept = select_hits(hits, 50)
    assert [hit.slug for hit in kept] == ["small"]
    assert select_hits([hits[0]], 50) == []


def test_the_output_cannot_be_taken_for_json_nor_drive_a_terminal() -> None:
    block = render_block([FakeHit("{a}\nb", '{"x": 1}\x1b[2J\x07\x9b2J')])
    assert not block.startswith("{")
    assert '- {"x": 1}[2J2J\n' in block
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", block)


def test_nothing_that_names_an_entry_drives_a_terminal_either() -> None:
    """A file's name and a property are as free as a body."""
    evil = "x\x1b]0;t\x07\x9b2Jy\x7f"
    hit = FakeHit(evil, "", evil, evil, evil, evil)
    entry = {"path": evil, "slug": evil, "priority": evil, "body": evil}
    loaded, _ = render_always_load([entry, {**entry, "body": evil * 9000}], 100)
    for text in (render_block([hit]), loaded, status_line([evil])):
        assert "x]0;t2Jy" in text
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


# A note as its reader sees it: each thing once


EVIDENCE = "## Evidence\n\nProposed because: it was said twice.\n\n"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("# Use pnpm\n\nUse pnpm.\n\n" + EVIDENCE + "> use pnpm\n\nSession a", EVIDENCE + "Session a"),
        ("Use pnpm.\n\n" + EVIDENCE + "> No, use pnpm", EVIDENCE + "> No, use pnpm"),
        ("# Use pnpm\n\nUse pnpm instead of npm.\n\n> Use pnpm instead\n> of npm.", "Use pnpm instead of npm."),
        ("# Another heading\n\nUse it.", "# Another heading\n\nUse it."),
        ("# Use pnpm", ""),
    ],
)
def test_what_only_repeats_the_title_or_the_statement_is_left_out(body: str, left: str) -> None:
    assert said_once(body, "Use pnpm") == left
    mine = "Use pnpm.\n\nMy remark.\n\nUse pnpm."
    assert said_once(mine, "Tools") == mine, "words of the user below are kept whatever they repeat"


def test_a_title_that_is_the_statement_cut_off_is_left_out() -> None:
    title = "If the disk is full, stop …"
    body = f"# {title}\n\nif the disk is full, stop and\ntell me.\n\n## Evidence\n\nSession a"
    assert is_title_cut(body, title)
    assert not is_title_cut("# Use pnpm …\n\nUse npm.", "Use pnpm …")
    assert not is_title_cut("# Use pnpm\n\nUse pnpm instead.", "Use pnpm")


# Evidence is for the reader of a note; recall sees what stands before it


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("Ship on Tuesdays.\n\n## Evidence\n\n> we ship on Tuesdays\n", "Ship on Tuesdays."),
        ("Evidence shows it.\n\n### Evidence of more\n", "Evidence shows it.\n\n### Evidence of more\n"),
        ("## Evidence\n\n> only that\n", ""),
    ],
)
def test_what_stands_before_the_evidence_is_kept(body: str, kept: str) -> None:
    assert strip_evidence(body) == kept


# A text that is too long for its line says so, and stops at a word


@pytest.mark.parametrize(
    ("text", "characters", "shown"),
    [
        ("one two three four five six seven eight", 12, "one two …"),
        ("one two, three four five six seven eight", 9, "one two …"),  # No comma before the mark.
        ("one two three four five six seven eight", 13, "one two three …"),  # A word that ends there is kept.
        # The mark would hardly shorten it.
        ("we could also add it to logging, right?", 24, "we could also add it to logging, right?"),
        (" two\n lines ", 100, "two lines"),
        ("." * 99, 40, "." * 40 + " …"),  # Of a word longer than the line something is left.
        ("see https://example.org/" + "a" * 60, 40, "see https://example.org/" + "a" * 16 + " …"),
    ],
)
def test_a_long_text_ends_at_a_word_with_a_mark(text: str, characters: int, shown: str) -> None:
    assert cut(text, characters) == shown


@given(st.text(alphabet="ab ,.\n", max_size=80), st.integers(4, 60))
def test_a_cut_text_is_a_beginning_and_never_much_longer_than_asked(text: str, characters: int) -> None:
    line, shown = " ".join(text.split()), cut(text, characters)
    assert line.startswith(shown.removesuffix(" …"))
    assert shown.endswith(" …") == (shown != line)
    assert len(shown) <= characters + LEAST_LEFT_OUT


@given(st.text(alphabet='ab \n"', max_size=80), st.integers(1, 60))
def test_no_word_is_cut_in_two_but_one_that_fills_all_of_the_room(text: str, characters: int) -> None:
    words = text.replace('"', " ").split()
    for part in (beginning_of(text, characters), end_of(text, characters)):
        left = part.replace('"', " ").split()
        assert len(part) <= max(characters, 0)
        assert set(left) <= set(words) or len(left) == 1
    assert text.startswith(beginning_of(text, characters))
    assert text.endswith(end_of(text, characters))


def test_a_text_without_blanks_between_its_words_fills_the_room() -> None:
    """Of such a text all was dropped but what a blank divides from it."""
    told = "端口已经被占用，因此数据库连接失败。" * 50
    assert beginning_of(f"错误 {told}", 300) == f"错误 {told}"[:300]
    assert end_of(f"{told}\n", 300) == f"{told}\n"[-300:]
    assert beginning_of(f"{told[:18]}sk-1234567890 {told}", 25) == told[:18]
    assert end_of(f"{told}sk-1234567890{told[:18]}", 24) == told[:18]


def test_the_end_begins_with_a_line_if_one_is_near() -> None:
    lines = "x " * 100
    assert end_of(f"password: hunter2\n{lines}", len(lines) + 8) == lines, "not with a value without its name"
    assert end_of(f"password: hunter2 {lines}", len(lines) + 4) == f" {lines}"


# Which always-load entries a session's start gives, and in what order


def entry(path: str, body: str, project: str = "", occurrences: int = 1, priority: str = "") -> dict[str, object]:
    return {"path": path, "body": body, "project": project, "occurrences": occurrences, "priority": priority}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("# Tests\n\nPlease don't touch the fixtures.", True),
        ("You must not edit generated code.", True),
        ("No trailing whitespace.", True),
        ("Avoid classes.", True),
        ("Don’t amend pushed commits.", True),
        ("Use pnpm, not npm.", False),
        ("Nothing else matters.", False),
        ("# Never\n", False),
    ],
)
def test_a_ban_is_recognised_by_its_negation(text: str, is_one: bool) -> None:
    assert is_ban(text) is is_one


def test_the_order_is_owner_then_bans_then_confirmations() -> None:
    entries = [
        entry("p-ban", "Never b.", "shop", 9),
        entry("u-once", "Do a."),
        entry("u-often", "Do b.", occurrences=4),
        entry("u-ban", "Never a."),
        entry("p-first", "Do c.", "shop", priority="high"),
    ]
    kept, left_out = select_core(entries, 0)
    assert [one["path"] for one in kept] == ["p-first", "u-ban", "u-often", "u-once", "p-ban"]
    assert left_out == []


def test_the_budget_counts_words_of_the_rule_and_not_its_evidence() -> None:
    quoted = entry("a", "Keep it short.\n\n## Evidence\n\n" + "word " * 500)
    long = entry("b", "word " * 60)
    kept, left_out = select_core([quoted, long], 50)
    assert ([one["path"] for one in kept], [one["path"] for one in left_out]) == (["a"], ["b"])


def test_a_text_without_spaces_is_not_one_word() -> None:
    assert count_words("短く答えてください" * 10) > 20
