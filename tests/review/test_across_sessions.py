"""A statement of several sessions is one memory; a reversal is not kept beside its opposite."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.bench.reflection import MODELS
from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.likeness import (
    Relation,
    code_names,
    relation,
    statement_of,
    wording_of,
    wording_of_saying,
)
from memoryvault.pipelines.review import Approve
from memoryvault.services.known_memories import VaultMemories
from memoryvault.services.triaging import run_triage
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault.evidence import NOT_CONFIRMED_TAG
from memoryvault.vault.store import VaultStore

from .support import CHOICE, GUESS, RULE, Bed, make_bed, said

SQUASH = "In this repo, never squash commits."


def of(project: str, session: str, statement: str = SQUASH) -> Candidate:
    return said(RULE, session, statement, scope="project", project=project)


def found(statement: str, record: str, session: str = "s1") -> Candidate:
    """A problem that an agent found."""
    fix = replace(GUESS, category="fix", statement=statement, excerpt=statement, role="assistant", records=(record,))
    return replace(fix, session=session, scope="project", project="shop")


def lost_jobs() -> list[Candidate]:
    """Three findings of one session about one problem."""
    hows = ("when it is tried again", "of the lowest priority", "after it has expired")
    return [found(f"`drainQueue` loses a job {how}.", f"r{number}") for number, how in enumerate(hows)]


def test_the_same_said_after_another_question_is_one_memory(bed: Bed) -> None:
    saying = "let's keep functions short so they stay readable"
    for n, asked in enumerate(("Shall I split it in 3 parts?", "Anything else?", "Do I not need a helper?")):
        guess = replace(GUESS, statement=f"{saying} (in answer to: “{asked}”)", excerpt=saying, records=(f"r{n}",))
        bed.remember(replace(guess, session=f"s{n}"))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("pending", 3)


def test_few_words_are_told_apart_by_what_they_answer() -> None:
    one, other = (
        wording_of_saying(f"that one is wrong (in answer to: “{said}”)") for said in ("The port?", "The icon?")
    )
    assert relation(one, other) is not Relation.SAME


def test_the_statement_of_a_note_is_its_first_paragraph() -> None:
    assert statement_of("# A title\n\nOne\nsentence.\n\n**Why:** x") == "One sentence."
    assert statement_of("Just text.") == "Just text."
    assert statement_of("# Only a title") == "Only a title"


def test_the_same_in_three_sessions_goes_to_review_with_all_the_evidence(bed: Bed) -> None:
    bed.remember(said(GUESS, "a"))
    bed.remember(said(GUESS, "b", "the release report reads well as a bullet list!"))
    assert bed.only("inbox").occurrences == 2
    bed.remember(said(GUESS, "c"))
    entry = bed.only("pending")
    assert entry.path == "personal-private/_review/release-report-reads-well-bullet-list.md"
    assert entry.occurrences == 3
    assert [source.session for source in entry.sources] == ["a", "b", "c"]
    assert len(bed.files()) == 1


def test_records_at_the_same_place_of_two_files_are_two(bed: Bed) -> None:
    # Codex gives them no ids, and the first prompts of one project's sessions begin at the same byte.
    for session in ("a", "b", "c"):
        bed.remember(replace(GUESS, session=session, records=("line:190",)))
    assert bed.only("pending").occurrences == 3
    assert bed.remember(replace(GUESS, session="b", records=("line:190",))).counts == {"known": 1}


def test_a_copy_of_a_record_is_known_in_whatever_session(bed: Bed) -> None:
    record = "5f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"
    for session in ("a", "b"):
        bed.remember(replace(GUESS, session=session, records=(record,)))
    assert bed.only("inbox").occurrences == 1


def test_beginning_of_a_fork_is_no_further_evidence(bed: Bed) -> None:
    bed.remember(replace(GUESS, session="a", records=("line:190",)))
    fork = replace(GUESS, session="b", records=("line:438",), forked_from=("a",))
    assert bed.remember(fork).counts == {"known": 1}
    assert bed.only("inbox").occurrences == 1
    bed.remember(replace(fork, statement="never commit generated files", category="correction"))
    assert len(bed.entries()) == 2, "what was said in the fork alone is kept"


def test_three_times_in_one_session_is_no_pattern(bed: Bed) -> None:
    for number in range(4):
        words = GUESS.statement + "!" * number
        bed.remember(replace(GUESS, statement=words, records=(f"r{number}",)))
    assert bed.only("inbox").occurrences == 4


def test_findings_of_a_session_about_one_problem_are_one_note(bed: Bed) -> None:
    symptom = found("Nothing is printed because `drainQueue` returns before the lock is released.", "r1")
    other = found("The build fails since `MAX_SIZE` is read from the wrong file.", "r2")
    cause = found("The cause: drainQueue() compares ids as text, so 10 comes before 9.", "r3")
    elsewhere = found("`drainQueue` never sees a job of priority 0.", "r4", session="s2")
    counts = bed.remember(symptom, other, cause, elsewhere).counts
    assert counts == {"inboxed": 3, "strengthened": 1}
    (note,) = [entry for entry in bed.entries() if "compares ids as text" in entry.body]
    assert statement_of(note.body) == symptom.statement
    assert [record for source in note.sources for record in source.records] == ["r1", "r3"]
    assert note.occurrences == 1
    files = bed.files()
    assert bed.remember(symptom, other, cause, elsewhere).counts == {"known": 4}
    assert bed.files() == files
    # Also what it finds out later, in a reading of its own.
    assert bed.remember(found("Fixed by having drain_queue sort by number.", "r5")).counts == {"strengthened": 1}
    assert len(bed.entries()) == 3


def test_one_session_s_findings_are_no_pattern(bed: Bed) -> None:
    for finding in lost_jobs():
        bed.remember(finding)
    note = bed.only("inbox")
    assert note.occurrences == 1
    # Nor does a second session make one of them, before or after what else the first one finds.
    bed.remember(found(note.title, "r3", "s2"))
    bed.remember(found("`drainQueue` sorts its jobs as text.", "r4"))
    note = bed.only("inbox")
    assert [(source.session, source.records) for source in note.sources] == [
        ("s1", ("r0", "r1", "r2", "r4")),
        ("s2", ("r3",)),
    ]
    bed.remember(found(note.title, "r5", "s3"))
    assert bed.only("pending").occurrences == 3


@pytest.mark.parametrize("name", ["GitHub", "PostgreSQL", "macOS", "`run()`"])
def test_fixes_that_share_the_name_of_a_product_or_an_everyday_call_are_two(bed: Bed, name: str) -> None:
    bed.remember(found(f"The upload failed because {name} wants a newer token.", "r1"))
    bed.remember(found(f"Dates were off by a day: the time zone was never told to {name}.", "r2"))
    assert [entry.occurrences for entry in bed.entries()] == [1, 1]


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_decided_finding_does_not_come_back(bed: Bed, decision: str) -> None:
    bed.remember(*lost_jobs())
    bed.decide_in_note(bed.only("inbox").path, decision)
    bed.reviewer.apply_notes()
    files = bed.files()
    (decided,) = bed.entries()
    assert decided.effective_status == {"approve": "active", "reject": "rejected"}[decision]
    assert bed.remember(*lost_jobs()).counts == {"known": 3}
    assert bed.files() == files
    # What is found out later is news, as it says something else than what was decided on; also record 1 of another one.
    assert bed.remember(found("`drainQueue` never wakes up its caller.", "r9")).counts == {"inboxed": 1}
    assert bed.remember(found("`drainQueue` locks out all of its readers.", "r1", "s2")).counts == {"inboxed": 1}


@pytest.mark.parametrize("unit", ["a_", "aB", "`a", "aB.", "a()", "a", "not a, ", "instead of ", "prefer a "])
@pytest.mark.parametrize("reads", [code_names, wording_of.__wrapped__])
def test_a_statement_is_taken_apart_in_linear_time(unit: str, reads: Callable[[str], object]) -> None:
    assert_linear(lambda length: lambda: reads((unit * length)[:length]), 40_000)


def test_another_wording_of_the_user_is_quoted_once_in_the_note_that_it_strengthens(bed: Bed) -> None:
    first, second = "Always run the tests before committing", "please always run tests before you commit"
    for session, statement in (("a", first), ("b", second), ("c", second), ("d", first)):
        bed.remember(said(RULE, session, statement))
    note = bed.only("active")
    assert note.occurrences == 4
    assert (statement_of(note.body), note.body.count(f"> {first}"), note.body.count(f"> {second}")) == (first, 1, 1)


def test_statement_in_a_second_project_becomes_general(bed: Bed) -> None:
    bed.remember(said(GUESS, "a", scope="project", project="shop"))
    bed.remember(said(GUESS, "b", scope="project", project="admin"))
    waiting = bed.only("inbox")
    assert (waiting.project, waiting.group, waiting.occurrences) == (None, "personal-private", 2)
    bed.remember(said(RULE, "c", "Always sign commits", scope="project", project="shop"))
    bed.remember(said(RULE, "d", "Always sign commits", scope="project", project="admin"))
    held = bed.only("active")
    assert (held.path, held.project) == ("personal-private/preferences/always-sign-commits.md", None)


def test_a_rejection_is_remembered_also_in_other_words_and_without_any_state(bed: Bed) -> None:
    bed.remember(said(CHOICE, "a"))
    proposal = bed.only("pending").path
    bed.decide_in_note(proposal, "reject")
    bed.reviewer.apply_notes()
    rejected = bed.files()
    for name in Path(bed.settings.state.root).rglob("*"):
        if name.is_file():
            name.unlink()
    bed.remember(said(CHOICE, "b"), said(CHOICE, "c", "no, please use pnpm instead of npm"))
    assert bed.files() == rejected


def test_the_reversal_of_a_rule_is_proposed_and_replaces_it_once_approved(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    old = bed.only("active").path
    for session in ("b", "c", "d"):
        bed.remember(said(RULE, session, "Actually, always use npm, not pnpm."))
    proposal = bed.only("pending")
    assert (proposal.supersedes, proposal.occurrences) == (old, 3)
    assert "It would replace" in proposal.body
    assert bed.only("active").path == old, "until then it holds, however often the other is said"
    bed.decide_in_note(proposal.path, "approve")
    bed.reviewer.apply_notes()
    now, then = bed.only("active"), bed.only("superseded")
    assert "use npm, not pnpm" in now.body
    assert "It would replace" not in now.body
    assert (now.supersedes, then.superseded_by) == (then.path, now.path)
    assert then.path.startswith(f"personal-private/_archive/{old}.")
    assert not bed.store.exists(old)
    assert len(bed.files()) == 2


@pytest.mark.parametrize("category", ["fact", "workflow"])
def test_a_rule_that_was_taken_for_another_kind_is_reversed_too(bed: Bed, category: str) -> None:
    bed.remember(said(RULE, "a", category=category))
    bed.remember(said(RULE, "b", "Actually, always use npm, not pnpm."))
    assert bed.only("pending").supersedes == bed.only("active").path


def test_reversal_of_a_general_rule_is_general(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    bed.remember(said(RULE, "b", "Actually, always use npm, not pnpm.", scope="project", project="admin"))
    proposal = bed.only("pending")
    assert proposal.supersedes == bed.only("active").path
    bed.decide_in_note(proposal.path, "approve")
    bed.reviewer.apply_notes()
    assert bed.only("active").path.startswith("personal-private/")


ANSWER = "Add the agent name to the logging of hooks (in answer to: “Rewind doesn't use logging, shall it?”)"


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        pytest.param(
            of("shop", "a", RULE.statement), of("admin", "b", "Always use npm, not pnpm."), id="another project"
        ),
        pytest.param(
            said(RULE, "a"), of("admin", "b", "In this repo always use npm, not pnpm."), id="an exception for a project"
        ),
        pytest.param(
            said(RULE, "a", "Always add the shop number to any invoice"),
            said(RULE, "b", ANSWER),
            id="an answer to a question of the agent",
        ),
    ],
)
def test_what_is_no_reversal_stands_beside_the_rule(bed: Bed, rule: Candidate, other: Candidate) -> None:
    bed.remember(rule)
    bed.remember(other)
    assert [(entry.supersedes, entry.effective_status) for entry in bed.entries()] == [(None, "active")] * 2


def test_a_persons_edit_survives_another_occurrence(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    path = bed.only("active").path
    bed.edit(path, "## Evidence", "My own remark.\n\n## Evidence")
    bed.edit(path, "status: active", "status: active # mine\nmood: good")
    bed.remember(said(RULE, "b"))
    text = bed.files()[path]
    assert "My own remark." in text
    assert "status: active # mine" in text
    assert "mood: good" in text
    assert bed.only("active").occurrences == 2


def test_a_note_whose_frontmatter_cannot_be_edited_stops_nothing(bed: Bed) -> None:
    bed.remember(said(RULE, "a"))
    path = bed.only("active").path
    header = "kind: preferences\nstatus: active\noccurrences: &x\n  1\nother: *x\n"
    (bed.vault / path).write_text(f"---\n{header}---\n\nAlways use pnpm, not npm.\n", "utf-8")
    done = bed.remember(said(RULE, "b"), said(RULE, "b", "Never commit on a Friday"))
    assert done.counts["saved"] == 1


@pytest.mark.parametrize("mode", ["interactive", "auto", "silent"])
def test_the_mode_says_where_a_pattern_goes(tmp_path: Path, mode: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    for session in ("a", "b", "c"):
        bed.remember(said(GUESS, session))
    (entry,) = bed.entries()
    assert entry.effective_status == {"interactive": "pending", "auto": "inbox", "silent": "active"}[mode]
    assert entry.occurrences == 3


@pytest.mark.slow
@pytest.mark.model
def test_what_is_said_in_other_words_strengthens_the_note_and_another_value_is_asked_about(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path / "sandbox")
    bed = Bed(tmp_path, {**sandbox.environment, "MEMORY_REFLECTION_SECOND_MODEL": "true"})
    bed.settings.state.ensure()
    Path(bed.settings.state.models).rmdir()
    Path(bed.settings.state.models).symlink_to(MODELS)
    bed.remember(said(RULE, "a", "Never deploy on a Friday."))
    with sandbox.recall_service():
        bed.remember(said(RULE, "b", "deployments on fridays are forbidden"))
        bed.remember(said(RULE, "c", "Always deploy on Fridays."))
    assert bed.only("active").occurrences == 2
    assert bed.only("pending").supersedes == bed.only("active").path


# An occurrence is identified by its words and its time, not by the id of its record


def test_a_copy_in_a_fork_has_another_id_and_the_same_time(bed: Bed) -> None:
    first = replace(GUESS, said_at="2026-03-01T10:00:00Z")
    for n in range(4):
        bed.remember(replace(first, session=f"s{n}", records=(f"r{n}",)))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("inbox", 1)
    for n in range(4, 6):
        bed.remember(replace(first, session=f"s{n}", records=(f"r{n}",), said_at=f"2026-03-0{n}T10:00:00Z"))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("pending", 3)


def test_the_same_words_again_in_a_session_are_no_further_saying(bed: Bed) -> None:
    for n in range(4):
        bed.remember(replace(RULE, records=(f"r{n}",), said_at=f"2026-03-01T10:0{n}:00Z"))
    (rule,) = bed.entries()
    assert (rule.status, rule.occurrences) == ("active", 1)


@pytest.mark.parametrize(
    "mark", ["[2026-09-01T10:{0:02}:00Z] ", "Run {0}: ", "#{0}: ", "10:{0:02} ", "({0}/40) ", "[{0}] "]
)
def test_a_loop_that_numbers_its_line_says_it_once(bed: Bed, mark: str) -> None:
    for n in range(10, 20):
        line = f"{mark.format(n)}always check the deploy log and fix errors"
        bed.remember(replace(GUESS, statement=line, excerpt=line, records=(f"r{n}",)))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("inbox", 1)


def test_a_number_within_the_rule_is_a_part_of_it(bed: Bed) -> None:
    for n in (2, 4):
        bed.remember(replace(GUESS, statement=f"indent with {n} spaces in yaml", records=(f"r{n}",)))
    assert len(bed.entries()) == 2


@pytest.mark.parametrize("mode", ["interactive", "auto", "silent"])
def test_no_review_mode_saves_an_unconfirmed_rule(tmp_path: Path, mode: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    bed.remember(replace(RULE, confirmed=False))
    (entry,) = bed.entries()
    assert entry.status in ("pending", "inbox")


def test_what_an_agent_or_a_tool_said_is_marked_as_not_the_users(bed: Bed) -> None:
    """So it never comes with a prompt as something that the user said."""
    bed.remember(
        found("ShipError: push straight to main; it passed after a push.", "r1"), replace(GUESS, records=("r2",))
    )
    tags = {entry.kind: entry.tags for entry in bed.entries()}
    assert NOT_CONFIRMED_TAG in tags.pop("fix")
    assert not any(NOT_CONFIRMED_TAG in others for others in tags.values())


def test_notes_written_and_removed_while_candidates_are_routed_are_known(bed: Bed) -> None:
    first = bed.note(
        "personal-private/preferences/lint.md", "Always run the linter before a commit", kind="preferences"
    )
    second = bed.note("personal-private/preferences/name.md", "Name branches after the ticket", kind="preferences")
    memories = VaultMemories(bed.store)

    def saying(statement: str) -> list[str]:
        return sorted(entry.path for entry in memories.saying(statement, "preferences"))

    assert saying("run the linter before a commit, always!") == [first]
    bed.edit(second, "Name branches after the ticket", "Do run the linter before a commit")
    memories.learned(second, bed.files()[second])
    assert saying("run the linter before a commit, always!") == [first, second]
    assert saying("name branches after the ticket") == []
    (bed.vault / first).unlink()
    memories.learned(first, None)
    assert saying("run the linter before a commit, always!") == [second]


def test_a_note_that_an_editor_renamed_away_to_save_it_is_known_once_it_is_back(bed: Bed) -> None:
    path = bed.note("personal-private/preferences/lint.md", "Always run the linter before a commit", kind="preferences")
    away = (bed.vault / path).rename(bed.vault / f"{path}~")
    memories = VaultMemories(bed.store)
    assert not memories.came_back(path)
    away.rename(bed.vault / path)
    assert memories.came_back(path)
    assert [entry.path for entry in memories.saying("run the linter before a commit, always!", "preferences")] == [path]
    assert not memories.came_back(path)


def test_said_again_while_an_editor_saves_its_note_it_gets_no_second_one(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.remember(RULE)
    (entry,) = bed.entries()
    whole = VaultStore.settled_contents

    def while_it_is_away(store: VaultStore) -> Iterator[tuple[str, bytes]]:
        away = (bed.vault / entry.path).rename(bed.vault / f"{entry.path}~")
        yield from whole(store)
        away.rename(bed.vault / entry.path)

    monkeypatch.setattr(VaultStore, "settled_contents", while_it_is_away)
    bed.remember(said(RULE, "s7"))
    assert [(one.path, one.occurrences) for one in bed.entries()] == [(entry.path, 2)]


# A statement about "this" project in two projects is a rule for each of them, and for no other


NOTE = "preferences/never-squash-commits.md"


@pytest.mark.parametrize("statement", [SQUASH, "We never mock the clock here.", "Our app always answers in JSON."])
def test_each_of_two_projects_has_its_own_note_which_is_strengthened_in_its_project(bed: Bed, statement: str) -> None:
    for project, session in (("shop", "a"), ("blog", "b"), ("blog", "c")):
        bed.remember(of(project, session, statement))
    assert {entry.project: entry.occurrences for entry in bed.entries()} == {"shop": 1, "blog": 2}


def test_said_for_everything_it_is_a_note_of_its_own(bed: Bed) -> None:
    """The other one goes on saying "this repo", which a third project must not read of itself."""
    bed.remember(of("shop", "a"))
    bed.remember(said(RULE, "b", "Never squash commits."))
    assert {entry.project for entry in bed.entries()} == {"shop", None}


def test_rejected_for_one_project_it_can_be_said_of_another(bed: Bed) -> None:
    path = bed.note(f"personal-projects/shop/{NOTE}", SQUASH, kind="preferences", status="dismissed", project="shop")
    bed.remember(of("shop", "a"))
    assert [entry.path for entry in bed.entries()] == [path]
    bed.remember(of("blog", "b"))
    assert sorted(entry.project or "" for entry in bed.entries()) == ["blog", "shop"]


def test_a_note_that_the_user_moved_to_another_project_is_not_written_again(bed: Bed) -> None:
    bed.remember(of("shop", "a"))
    there = bed.vault / "personal-projects" / "web" / NOTE
    there.parent.mkdir(parents=True)
    (bed.vault / "personal-projects" / "shop" / NOTE).rename(there)
    bed.edit(f"personal-projects/web/{NOTE}", "project: shop", "project: web")
    bed.remember(of("shop", "a"))
    assert [entry.project for entry in bed.entries()] == ["web"]


def test_triage_does_not_merge_them(bed: Bed) -> None:
    for project in ("shop", "blog"):
        fields = {"kind": "preferences", "status": "inbox", "project": project}
        bed.note(f"personal-private/_inbox/{project}.md", SQUASH, **fields)
    assert run_triage(bed.settings, bed.reviewer) == []


# A project folder that links out of the vault is neither read nor written; no statement is lost by it


@pytest.mark.parametrize("candidate", [RULE, CHOICE], ids=["a rule", "an approved proposal"])
def test_what_is_said_of_that_project_is_kept_among_the_users_own_and_is_the_projects(
    bed: Bed, tmp_path: Path, candidate: Candidate
) -> None:
    elsewhere = tmp_path / "another disk" / "shop"
    elsewhere.mkdir(parents=True)
    (bed.vault / "personal-projects").mkdir(exist_ok=True)
    (bed.vault / "personal-projects" / "shop").symlink_to(elsewhere)
    bed.remember(replace(candidate, scope="project", project="shop"))
    if candidate is CHOICE:
        bed.reviewer.decide(bed.only("pending").path, Approve(), run="r1")
    entry = bed.only("active")
    assert entry.path.startswith("personal-private/preferences/")
    assert entry.project == "shop"
    assert not [*elsewhere.iterdir()]


def test_a_link_to_another_folder_of_the_vault_is_used(bed: Bed) -> None:
    (bed.vault / "work" / "shop").mkdir(parents=True)
    (bed.vault / "personal-projects").mkdir(exist_ok=True)
    (bed.vault / "personal-projects" / "shop").symlink_to(bed.vault / "work" / "shop")
    bed.remember(replace(RULE, scope="project", project="shop"))
    assert [path for path in bed.files() if path.startswith("work/shop/preferences/")]
