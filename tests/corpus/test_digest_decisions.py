"""A line of the digest is kept or rejected by its box, by key or by a program: once, and for good."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from memoryvault.cli import digest
from memoryvault.cli.main import main
from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.runtime.errors import EditConflict, EntryInvalid
from memoryvault.services.corpus.digest_decisions import decide_line, decided_lines, lines_to_decide
from memoryvault.services.corpus.settling import DIGEST, Survey, refresh_digest, settle, survey
from memoryvault.services.corpus.store import CorpusStore
from memoryvault.services.ideas.ledger import decided_ideas
from memoryvault.services.indexing import APPLY_KEY
from memoryvault.services.mining import Mined
from memoryvault.tasks.jobs.written_decisions import apply_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.tests.review.support import CHOICE, GUESS, RULE, Bed

from .test_settling import choices, ideas_of_old, keep, settled, statuses

OTHER = replace(GUESS, statement="Seems to work in a dark terminal")


def old_sessions(bed: Bed) -> dict[str, str]:
    """Two lines' keys, by what they say."""
    keep(bed, "s1", GUESS, OTHER)
    settled(bed)
    return {says.partition(": ")[2]: key for key, says in lines_to_decide(bed.store).items()}


def mark(bed: Bed, statement: str, sign: str) -> None:
    line = next(line for line in bed.files()[DIGEST].splitlines() if statement in line)
    bed.edit(DIGEST, line, line.replace("[ ]", f"[{sign}]"))


def worker_looks(bed: Bed) -> None:
    with open_ledger(bed.settings) as ledger:
        job = ledger.enqueue("review.apply", unique_key=APPLY_KEY)
        taken = ledger.take_doorbell(lambda: "test", 30.0)
        assert taken is not None
        Executor(ledger, {"review.apply": apply_handler(bed.settings)}, 30.0).run(taken[1])
        assert ledger.get(job).state == "done"


@pytest.mark.parametrize(("sign", "status"), [("x", "active"), ("-", "rejected")])
def test_a_marked_line_is_carried_out_once_and_does_not_come_again(bed: Bed, sign: str, status: str) -> None:
    old_sessions(bed)
    mark(bed, GUESS.statement, sign)
    worker_looks(bed)
    assert statuses(bed) == {status: 1}
    assert list(lines_to_decide(bed.store).values()) == [f"1× in 1 session (preference): {OTHER.statement}"]
    before = bed.files()
    worker_looks(bed)
    assert bed.files() == before
    keep(bed, "s2", GUESS)
    settled(bed)
    assert statuses(bed) == {status: 1}, "not from another session either"
    assert len(lines_to_decide(bed.store)) == 1


@pytest.mark.parametrize("where", ["inbox", "decided"])
def test_what_was_cut_short_is_ended(bed: Bed, where: str) -> None:
    """A worker may die once the note is written, or once it is decided on, and the box is still ticked."""
    keys = old_sessions(bed)
    mark(bed, GUESS.statement, "x")
    text = bed.files()[DIGEST]
    decide_line(bed.settings, bed.reviewer, keys[GUESS.statement], Approve(), run="review-1")
    if where == "inbox":
        bed.reviewer.undo_last()
        assert statuses(bed) == {"inbox": 1}
    (bed.vault / DIGEST).write_text(text, "utf-8")
    worker_looks(bed)
    assert statuses(bed) == {"active": 1}
    assert decided_lines(bed.store) == {}


def test_what_is_marked_but_not_carried_out_yet_outlives_a_rewriting(bed: Bed) -> None:
    keys = old_sessions(bed)
    mark(bed, GUESS.statement, "x")
    mark(bed, OTHER.statement, "?")
    keep(bed, "s2", replace(GUESS, statement="Short answers are liked late in the evening"))
    refresh_digest(bed.settings, bed.store)
    assert len(lines_to_decide(bed.store)) == 3
    assert decided_lines(bed.store) == {keys[GUESS.statement]: Approve()}
    assert f"- [?] 1× in 1 session (preference): {OTHER.statement} ^" in bed.files()[DIGEST]


def test_what_is_decided_while_old_sessions_are_settled_is_no_line_again(bed: Bed) -> None:
    keys = old_sessions(bed)
    keep(bed, "s2", CHOICE)
    decided: list[str] = []

    def decide_meanwhile() -> None:
        if not decided:
            decided.append(keys[GUESS.statement])
            decide_line(bed.settings, bed.reviewer, decided[0], Reject(), run="review-1")

    settle(bed.settings, bed.store, decide_meanwhile)
    assert statuses(bed) == {"rejected": 1, "pending": 1}
    assert [line.partition(": ")[2] for line in lines_to_decide(bed.store).values()] == [OTHER.statement]


def test_what_is_decided_while_the_digest_is_rewritten_is_no_line_again(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = old_sessions(bed)
    first = [keys[GUESS.statement]]

    def look(*arguments: Any) -> Survey:
        found = survey(*arguments)
        if first:
            decide_line(bed.settings, bed.reviewer, first.pop(), Reject(), run="review-1")
        return found

    monkeypatch.setattr("memoryvault.services.corpus.settling.survey", look)
    refresh_digest(bed.settings, bed.store)
    assert statuses(bed) == {"rejected": 1}
    assert [line.partition(": ")[2] for line in lines_to_decide(bed.store).values()] == [OTHER.statement]


@pytest.mark.parametrize(("sign", "left"), [("x", {"rejected": 2, "active": 1}), ("-", {"rejected": 3})])
def test_what_is_marked_while_it_is_proposed_is_carried_out(bed: Bed, sign: str, left: dict[str, int]) -> None:
    """The settling puts a line into the review in the moment in which the user decides on it in Obsidian."""
    keep(bed, "s1", *choices(3))
    settled(bed)
    (line,) = lines_to_decide(bed.store).values()
    marked: list[str] = []

    def mark_meanwhile() -> None:
        if not marked:
            marked.append(line.partition(": ")[2])
            mark(bed, marked[0], sign)

    for entry in bed.reviewer.waiting():
        bed.reviewer.decide(entry.path, Reject(), run="review-1")
    settle(bed.settings, bed.store, mark_meanwhile)
    assert statuses(bed) == {"rejected": 2, "pending": 1}
    worker_looks(bed)
    assert statuses(bed) == left
    assert lines_to_decide(bed.store) == {}


def test_what_is_marked_stays_listed_below_the_last_line_too(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    old_sessions(bed)
    last = list(lines_to_decide(bed.store))[-1]
    mark(bed, lines_to_decide(bed.store)[last].partition(": ")[2], "x")
    monkeypatch.setattr("memoryvault.pipelines.corpus.MOST_LINES", 1)
    refresh_digest(bed.settings, bed.store)
    assert list(decided_lines(bed.store)) == [last]
    assert "counted but not listed" not in bed.files()[DIGEST]


def test_a_line_that_would_replace_an_entry_is_left_for_the_review(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody saw in the digest what would go; and it may be what was said since."""
    bed.remember(replace(RULE, session="new", records=("new-1",)))
    keep(bed, "s1", replace(GUESS, statement="Use npm, not pnpm"))
    settled(bed)
    (key,) = lines_to_decide(bed.store)
    assert run(bed, monkeypatch, "--decide", f"^{key}=approve") == 0
    assert capsys.readouterr().out == "left for the review: personal-private/_review/use-npm-not-pnpm.md\n"
    assert statuses(bed) == {"active": 1, "pending": 1}
    assert (
        bed.only("pending").supersedes == bed.store.read("personal-private/preferences/always-use-pnpm-not-npm.md").path
    )
    assert lines_to_decide(bed.store) == {}
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="review-1")
    assert statuses(bed) == {"active": 1, "superseded": 1}


def one_message(bed: Bed, *candidates: Candidate) -> None:
    """An old session in which one message says all of these."""
    found = [replace(each, session="s1", records=("s1-r1",)) for each in candidates]
    store = CorpusStore(bed.settings.state)
    store.keep("claude-s1", 0, 1.0, Mined(tuple(found), 100, 100, 100, 0, False, "claude"))
    store.advance("claude-s1", {"offset": 100, "resume": 100, "size": 100})


def test_of_two_things_in_one_message_each_is_decided_on_by_itself(bed: Bed) -> None:
    """Their record is evidence of both: a no to one took the other out of the review."""
    one_message(bed, CHOICE, GUESS)
    settled(bed)
    (key,) = lines_to_decide(bed.store)
    decide_line(bed.settings, bed.reviewer, key, Reject(), run="review-1")
    assert GUESS.statement in bed.only("rejected").body
    assert CHOICE.statement in bed.only("pending").body
    assert lines_to_decide(bed.store) == {}


def test_what_was_said_in_one_message_with_a_rule_stays_listed_until_it_is_taken_back(bed: Bed) -> None:
    one_message(bed, RULE, GUESS)
    settled(bed)
    before = lines_to_decide(bed.store)
    assert [says.partition(": ")[2] for says in before.values()] == [GUESS.statement]
    refresh_digest(bed.settings, bed.store)
    assert lines_to_decide(bed.store) == before
    (key,) = before
    decide_line(bed.settings, bed.reviewer, key, Approve(), run="review-1")
    bed.edit(f"personal-private/preferences/{RULE_NAME}", RULE.statement, "Always use pnpm here.")
    refresh_digest(bed.settings, bed.store)
    assert lines_to_decide(bed.store) == {}, "what the user has reworded is known by its evidence"
    assert settled(bed).saved == 0


RULE_NAME = "always-use-pnpm-not-npm.md"


def test_many_marked_lines_are_carried_out_by_several_jobs(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a look through the vault, and a job has a minute."""
    old_sessions(bed)
    mark(bed, GUESS.statement, "x")
    mark(bed, OTHER.statement, "x")
    monkeypatch.setattr("memoryvault.tasks.jobs.written_decisions.LINES_SECONDS", 0.0)
    worker_looks(bed)
    assert statuses(bed) == {"active": 1}
    assert len(decided_lines(bed.store)) == 1
    with open_ledger(bed.settings) as ledger:
        assert [job.kind for job in ledger.list(["queued"], kind="review.apply")] == ["review.apply"]
    worker_looks(bed)
    assert statuses(bed) == {"active": 2}
    assert decided_lines(bed.store) == {}


def test_a_decision_is_told_as_done_although_the_digest_is_just_being_edited(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = old_sessions(bed)

    def edited(*_: object) -> None:
        raise EditConflict(f"{DIGEST} was changed since it was read")

    monkeypatch.setattr("memoryvault.services.corpus.digest_decisions.refresh_digest", edited)
    decided = decide_line(bed.settings, bed.reviewer, keys[GUESS.statement], Approve(), run="review-1")
    assert decided.verdict == "approved"


def test_in_no_mode_of_the_review_is_a_line_lost_and_a_full_session_is_no_hindrance(bed: Bed) -> None:
    keys = old_sessions(bed)
    for mode, statement in (("auto", GUESS.statement), ("silent", OTHER.statement)):
        settings = replace(
            bed.settings,
            memory=replace(bed.settings.memory, review_mode=mode),
            reflection=replace(bed.settings.reflection, session_entries=1),
        )
        decided = decide_line(settings, bed.reviewer, keys[statement], Reject(), run="review-1")
        assert decided.verdict == "rejected"
    assert statuses(bed) == {"rejected": 2}


@pytest.mark.parametrize(("decision", "archived"), [(Approve(), 0), (Reject(), 1)])
def test_an_idea_goes_to_the_incubator_or_into_its_archive(bed: Bed, decision: Approve | Reject, archived: int) -> None:
    keep(bed, "s1", *ideas_of_old(5))
    settled(bed)
    before = statuses(bed)["incubating"]
    key = next(iter(lines_to_decide(bed.store)))
    decide_line(bed.settings, bed.reviewer, key, decision, run="review-1")
    assert statuses(bed)["incubating"] == before + 1 - archived
    assert statuses(bed).get("archived", 0) == archived
    refresh_digest(bed.settings, bed.store)
    assert key not in lines_to_decide(bed.store)


def test_a_decision_can_be_taken_back(bed: Bed) -> None:
    keys = old_sessions(bed)
    decide_line(bed.settings, bed.reviewer, keys[GUESS.statement], Reject(), run="review-1")
    bed.reviewer.undo_last()
    assert statuses(bed) == {"inbox": 1}, "it waits, where the user sees it"


def test_an_idea_that_was_approved_is_the_decision_that_is_taken_back(bed: Bed) -> None:
    keys = old_sessions(bed)
    keep(bed, "s2", *ideas_of_old(5))
    settled(bed)
    decide_line(bed.settings, bed.reviewer, keys[GUESS.statement], Reject(), run="review-1")
    key = next(key for key, says in lines_to_decide(bed.store).items() if "(idea" in says)
    decided = decide_line(bed.settings, bed.reviewer, key, Approve(), run="review-2")
    assert decided.path in decided_ideas(bed.settings, bed.store)
    taken_back = bed.reviewer.undo_last()
    assert taken_back is not None
    assert [change.path for change in taken_back.changes] == [decided.path]
    assert decided.path not in decided_ideas(bed.settings, bed.store), "it waits in the incubator"
    assert statuses(bed)["rejected"] == 1, "the decision before it stands"


def test_a_line_of_another_machine_leaves_the_digest_as_it_is(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    old_sessions(bed)
    line = "- [x] 1× in 1 session (preference): Said on another machine. ^0a1b2c3d"
    file = bed.vault / DIGEST
    file.write_text(f"{file.read_text('utf-8').rstrip()}\n{line}\n", "utf-8")
    before = bed.files()
    worker_looks(bed)
    assert bed.files() == before
    assert [record.getMessage() for record in caplog.records if "^0a1b2c3d" in record.getMessage()] == [
        "^0a1b2c3d: its decision could not be carried out; `memory review --digest` says why when it is decided there"
    ]
    with pytest.raises(EntryInvalid, match="another machine mined it"):
        decide_line(bed.settings, bed.reviewer, "0a1b2c3d", Approve(), run="review-1")


def run(bed: Bed, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    for name, value in {**bed.env, "MEMORY_RESEARCH_NETWORK": "false"}.items():
        monkeypatch.setenv(name, value)
    return main(["review", *arguments])


def test_in_a_terminal_one_key_decides_on_each(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old_sessions(bed)
    pressed = iter("xauasq")
    monkeypatch.setattr(digest, "read_key", lambda prompt: next(pressed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert run(bed, monkeypatch, "--digest") == 0
    told = capsys.readouterr().out
    assert statuses(bed) == {"active": 1}
    assert told.count("approved: personal-private/preferences/") == 2
    assert "took back: approved" in told
    assert told.endswith("\nthis review: 1 approved, 1 skipped; left: 1 line\n"), "as the review of what waits ends"


def test_a_program_decides_by_the_key(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old_sessions(bed)
    assert run(bed, monkeypatch, "--digest", "--json") == 0
    one, other = json.loads(capsys.readouterr().out)
    assert run(bed, monkeypatch, "--decide", f"{one['key']}=approve", "--decide", f"{other['key']}=reject") == 0
    assert statuses(bed) == {"active": 1, "rejected": 1}
    assert run(bed, monkeypatch, "--decide", f"{one['key']}=supersede x") == 2
    assert run(bed, monkeypatch, "--decide", "^0a1b2c3d=approve") == 1
    told = "memory: ^0a1b2c3d: it is no line of _meta/corpus-digest.md, or another machine mined it\n"
    assert capsys.readouterr().err.endswith(told)
    assert run(bed, monkeypatch, "--digest", "--undo") == 2
    again = decide_line(bed.settings, bed.reviewer, one["key"][1:], Approve(), run="r")
    assert again.verdict == "decided before"
