"""Forgotten ideas are listed for the user, and nothing is deleted without an answer."""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.pipelines.incubation import Answer, listed
from memoryvault.pipelines.research import receipt_text, with_receipt
from memoryvault.pipelines.review import Approve
from memoryvault.runtime.errors import EntryInvalid, EntryNotFound
from memoryvault.services.ideas.archive import purge_trash, put_away, restore
from memoryvault.services.ideas.incubator import refresh_list
from memoryvault.services.ideas.ledger import IDEA_ARCHIVE, IDEA_TRASH, find_idea, ideas
from memoryvault.services.reviewing import DecisionOutcome, DecisionProblem
from memoryvault.tasks.jobs.dashboard import DASHBOARD, refresh_dashboard
from memoryvault.tasks.jobs.research_child import PURPOSE
from memoryvault.tests.support.files import put
from memoryvault.vault.pending import IDEAS_LIST

from ..review.support import RULE, Bed, said
from .support import IDEA, INCUBATOR, SLUG, old_idea

pytestmark = pytest.mark.slow

ANSWER = """
from memoryvault.pipelines.incubation import Answer
from memoryvault.vault.pending import IDEAS_LIST
from memoryvault.services.reviewing import Reviewer
Reviewer(settings).answer(IDEAS_LIST, {{"one": Answer("{answer}")}}, run="t")
"""

ROTATE = """
from types import SimpleNamespace
from memoryvault.tasks.jobs.upkeep import rotate_handler
job = SimpleNamespace(check_owned=lambda: None, still_owned=lambda: True)
rotate_handler(settings, job)
"""


@pytest.fixture
def one(bed: Bed) -> Path:
    """The note of an idea that nobody came back to for long."""
    return old_idea(bed, "one", 400)


def stale(bed: Bed) -> list[str]:
    return [idea.slug for idea in refresh_list(bed.settings, bed.journal)]


def boxes(bed: Bed) -> list[str]:
    return list(listed(bed.store.read(IDEAS_LIST).body))


def tick(bed: Bed, slug: str, answer: str) -> None:
    """Tick a box as Obsidian does."""
    file = bed.vault / IDEAS_LIST
    before, heading, after = file.read_text("utf-8").partition(f"/{slug}/_index|")
    assert heading
    file.write_text(before + heading + after.replace(f"- [ ] {answer}", f"- [x] {answer}", 1), "utf-8")


@pytest.mark.parametrize("fields", [{}, {"surfaced_at": "2020-03-01T10:00:00Z"}], ids=["new", "of an old session"])
@pytest.mark.parametrize(
    ("months", "days", "asked"), [(6, 0, False), (6, 179, False), (6, 180, True), (1, 29, False), (1, 30, True)]
)
def test_so_many_months_of_thirty_days_after_its_capture_an_idea_is_asked_for(
    bed: Bed, months: int, days: int, asked: bool, fields: dict[str, str]
) -> None:
    old_idea(bed, "one", days, **fields)
    bed.env = {**bed.env, "MEMORY_INCUBATOR_GC_MONTHS": str(months)}
    assert stale(bed) == (["one"] if asked else [])
    assert (bed.vault / IDEAS_LIST).exists() is asked
    assert find_idea(bed.store, "one").status == "incubating"


def test_a_note_without_dates_is_as_old_as_its_file(bed: Bed) -> None:
    path = old_idea(bed, "one", 0, created=None, updated=None)
    assert stale(bed) == []
    year_ago = time.time() - 365 * 86_400
    os.utime(path, (year_ago, year_ago))
    assert stale(bed) == ["one"]


def test_an_edit_in_obsidian_is_coming_back(bed: Bed, one: Path) -> None:
    assert stale(bed) == ["one"]
    one.write_text(one.read_text() + "\nA new thought.\n")
    assert stale(bed) == []
    assert not (bed.vault / IDEAS_LIST).exists(), "nothing is left to ask"


def test_text_written_by_research_does_not_count_as_activity(bed: Bed, one: Path) -> None:
    """Looked at once, then researched: the file is new, the user's text is not."""
    assert stale(bed) == ["one"]
    header, _, body = one.read_text().removeprefix("---\n").partition("---\n")
    body = with_receipt(body, receipt_text("local", {}, [], []))
    one.write_text(f"---\n{header}research: local\n---\n{body}")
    assert stale(bed) == ["one"]
    one.write_text(one.read_text().replace("Something about", "Something more about"))
    assert stale(bed) == []


@pytest.mark.parametrize("folder", ["Diary", "_meta", "Work/_inbox", "_archive"])
def test_a_link_from_any_note_of_the_user_is_coming_back(bed: Bed, one: Path, folder: str) -> None:
    """MemoryVault's names for its own folders say nothing about folders of the user's."""
    old_idea(bed, "two", 400)
    note = put(bed.root / folder / "today.md", "I thought of [[_idea-incubator/one/_index|that]] again.")
    assert stale(bed) == ["two"]
    year_ago = time.time() - 365 * 86_400
    os.utime(note, (year_ago, year_ago))
    assert sorted(stale(bed)) == ["one", "two"], "it was linked a year ago and never since"


def test_no_link_that_the_program_wrote_is_one_of_the_user(bed: Bed, one: Path) -> None:
    """In the list of ideas, in the dashboard, and in what research found."""
    (bed.root / "Ideas.md").write_text(
        f"# Ideas\n\n## 2025-01-01: One\nx\nSee deep research: [[MemoryVault/{INCUBATOR}/one/_index.md]]\n"
    )
    refresh_dashboard(bed.store)
    assert "one/_index" in (bed.vault / DASHBOARD).read_text("utf-8")
    other = old_idea(bed, "two", 0).parent
    (other / "related-memoryvault.md").write_text(f"- [[{INCUBATOR}/one/_index]]\n")
    assert stale(bed) == ["one"]


def test_a_recall_is_coming_back_also_when_its_receipt_is_gone(bed: Bed, one: Path) -> None:
    line = {"at": datetime.now(UTC).isoformat(), "hits": [{"path": f"{INCUBATOR}/one/_index.md"}]}
    receipts = Path(bed.settings.state.receipts)
    receipts.write_text(json.dumps(line) + "\n")
    assert stale(bed) == []
    receipts.unlink()
    assert stale(bed) == []


@pytest.mark.parametrize("caller", [PURPOSE, "review"])
def test_a_recall_of_the_programs_own_is_nobodys_coming_back(bed: Bed, one: Path, caller: str) -> None:
    line = {"at": datetime.now(UTC).isoformat(), "caller": caller, "hits": [{"path": f"{INCUBATOR}/one/_index.md"}]}
    Path(bed.settings.state.receipts).write_text(json.dumps(line) + "\n")
    assert stale(bed) == ["one"]


def test_special_files_among_the_notes_block_nothing(bed: Bed, one: Path) -> None:
    """A pipe without a writer, and a device without an end."""
    os.mkfifo(bed.root / "pipe.md")
    (bed.root / "endless.md").symlink_to("/dev/zero")
    code = "import os\nfrom memoryvault.services.ideas.incubator import stale_ideas\n"
    code += "from memoryvault.services.stores import vault_store\n"
    code += "from memoryvault.runtime.settings import load_settings\n"
    code += "s = load_settings(os.environ)\nprint([i.slug for i in stale_ideas(s, vault_store(s))])"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + code], env={**bed.env}, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "['one']\n", done.stderr


def test_keep_restarts_the_clock_in_the_note_itself(bed: Bed, one: Path) -> None:
    assert stale(bed) == ["one"]
    tick(bed, "one", "Keep")
    (done,) = bed.reviewer.apply_notes()
    assert isinstance(done, DecisionOutcome)
    assert done.verdict == "kept"
    assert f"kept: {bed.store.today().isoformat()}" in one.read_text()
    assert not (bed.vault / IDEAS_LIST).exists()
    long_ago = time.time() - 400 * 86_400
    os.utime(one, (long_ago, long_ago))
    for name in ("state.db", "queue.db"):
        (Path(bed.settings.state.root) / name).unlink(missing_ok=True)
    assert stale(bed) == [], "asked for once, on any device"


def test_archive_keeps_the_folder_out_of_recall(bed: Bed, tmp_path: Path) -> None:
    folder = old_idea(bed, "one", 400).parent
    (folder / "research-x.md").write_text("---\nkind: idea\nstatus: incubating\n---\n\nSomething fetched about one.\n")
    (folder / "sketch.png").write_bytes(b"\x89PNG")
    stale(bed)
    (done,) = bed.reviewer.answer(IDEAS_LIST, {"one": Answer.ARCHIVE}, run="t")
    assert done.path == f"{IDEA_ARCHIVE}/one/_index.md"
    assert bed.store.read(done.path).status == "archived"
    assert (bed.vault / IDEA_ARCHIVE / "one/sketch.png").exists()
    assert not folder.exists()
    assert recalled(bed, tmp_path) == []
    assert stale(bed) == []
    restore(bed.journal, "one")
    assert stale(bed) == [], "restored, its clock begins anew"


def test_an_archive_that_holds_one_of_that_name_holds_both(bed: Bed) -> None:
    for number in (1, 2):
        old_idea(bed, "one", 400, fingerprint=f"f{number}")
        done = put_away(bed.journal, "one", Answer.ARCHIVE, run="t", actor="idea")
        assert done.path == f"{IDEA_ARCHIVE}/one{'-2' if number == 2 else ''}/_index.md"


def recalled(bed: Bed, tmp_path: Path) -> list[str]:
    """What a recall of incubating ideas finds after the index is updated."""
    with IndexStore(tmp_path / "index.db") as index:
        reconcile(index, bed.vault, bed.store.walk)
    with closing(RecallEngine(tmp_path / "index.db", bed.vault, None)) as engine:
        query = RecallQuery("Something about one", k=5, statuses=frozenset({"active", "incubating"}))
        return [hit.path for hit in engine.recall(query).hits]


def test_delete_removes_the_index_rows_and_can_be_undone_for_thirty_days(bed: Bed, one: Path, tmp_path: Path) -> None:
    text = one.read_text()
    assert recalled(bed, tmp_path) == [f"{INCUBATOR}/one/_index.md"]
    stale(bed)
    bed.reviewer.answer(IDEAS_LIST, {"one": Answer.DELETE}, run="t")
    assert not one.parent.exists()
    assert recalled(bed, tmp_path) == []
    with IndexStore(tmp_path / "index.db") as index:
        assert not [row for row in index.files() if "/one/" in row]
    assert purge_trash(bed.store) == 0
    assert restore(bed.journal, "one").verdict == "restored"
    assert "Something about one." in one.read_text()
    assert one.read_text().splitlines()[:3] == text.splitlines()[:3]
    assert sorted(bed.files()) == [f"{INCUBATOR}/one/_index.md"], "the note that kept it from coming back is gone"
    assert recalled(bed, tmp_path) == [f"{INCUBATOR}/one/_index.md"]


@pytest.mark.parametrize(("days", "purged"), [(29, 0), (30, 1)])
def test_after_thirty_days_the_trash_is_emptied(bed: Bed, one: Path, days: int, purged: int) -> None:
    done = put_away(bed.journal, "one", Answer.DELETE, run="t", actor="idea")
    today = bed.store.today()
    bed.edit(done.path, f"deleted: {today.isoformat()}", f"deleted: {(today - timedelta(days=days)).isoformat()}")
    assert purge_trash(bed.store) == purged
    assert (bed.vault / IDEA_TRASH / "one").exists() is not purged
    if purged:
        with pytest.raises(EntryNotFound):
            restore(bed.journal, "one")


def test_idea_dragged_into_the_trash_stays_for_thirty_days(bed: Bed, one: Path) -> None:
    """Its files are old; when it was put there is not known."""
    trashed = bed.vault / IDEA_TRASH / "one"
    trashed.parent.mkdir(parents=True)
    (bed.vault / INCUBATOR / "one").rename(trashed)
    (trashed.parent / "no-note").mkdir()
    for folder in (trashed, trashed.parent / "no-note"):
        os.utime(folder, (1, 1))
    assert (purge_trash(bed.store), purge_trash(bed.store)) == (0, 0)
    assert bed.store.read(f"{IDEA_TRASH}/one/_index.md").extra["deleted"] == bed.store.today().isoformat()
    assert trashed.exists()
    assert (trashed.parent / "no-note").exists()


def test_an_idea_whose_deletion_was_interrupted_is_not_gone_at_once(bed: Bed) -> None:
    """Killed once the folder lies in the trash, before its note says since when."""
    folder = old_idea(bed, "one", 400).parent
    os.utime(folder, (1, 1))
    stale(bed)
    assert bed.run_python(ANSWER.format(answer="delete"), "journal-applied") == -9
    assert bed.run_python(ROTATE) == 0
    assert not bed.journal.is_interrupted
    assert bed.store.read(f"{IDEA_TRASH}/one/_index.md").extra["deleted"] == bed.store.today().isoformat()
    assert restore(bed.journal, "one").path == f"{INCUBATOR}/one/_index.md"


def test_deleted_idea_is_not_proposed_again(bed: Bed) -> None:
    bed.remember(IDEA)
    put_away(bed.journal, SLUG, Answer.DELETE, run="t", actor="idea")
    bed.remember(IDEA, said(IDEA, "s2"))
    assert list(ideas(bed.store)) == []
    assert bed.reviewer.waiting() == [], "its question went with it"


LIST = "# Mine\n\n## 2026-01-02: One\nSaid.\nSee deep research: [[MemoryVault/{}/_index.md]]\n\n## My own\n"


@pytest.mark.parametrize("answer", [Answer.ARCHIVE, Answer.DELETE])
def test_the_link_in_the_list_follows_the_idea_and_comes_back(bed: Bed, one: Path, answer: Answer) -> None:
    """Obsidian makes an empty idea of a link that leads nowhere, as one into the trash does once that is emptied.
    Whatever is done, nothing else changes in the list."""
    ideas_path = bed.root / "Ideas.md"
    ideas_path.write_text(LIST.format(f"{INCUBATOR}/one"))
    stale(bed)
    before = bed.files()
    bed.reviewer.answer(IDEAS_LIST, {"one": answer}, run="t")
    deleted = LIST.replace("[[MemoryVault/{}/_index.md]]", f"`MemoryVault/{IDEA_TRASH}/one/_index.md` (deleted)")
    archived = LIST.format(f"{IDEA_ARCHIVE}/one")
    assert ideas_path.read_text() == (archived if answer is Answer.ARCHIVE else deleted)
    ideas_path.write_text(ideas_path.read_text() + "Typed since.\n")
    bed.reviewer.undo_last()
    assert bed.files() == before
    assert ideas_path.read_text() == LIST.format(f"{INCUBATOR}/one") + "Typed since.\n"
    ideas_file = bed.settings.ideas_path
    put_away(bed.journal, "one", answer, run="t", actor="idea", ideas_file=ideas_file)
    restore(bed.journal, "one", ideas_file=ideas_file)
    assert ideas_path.read_text() == LIST.format(f"{INCUBATOR}/one") + "Typed since.\n"
    ideas_path.write_text(LIST.replace(".md]]", "|mine]]").format(f"{INCUBATOR}/one"))
    put_away(bed.journal, "one", Answer.DELETE, run="t", actor="idea", ideas_file=ideas_file)
    assert "[[" not in ideas_path.read_text(), "also as the user wrote it anew"


@pytest.mark.parametrize(("answer", "verdict"), [(Answer.ARCHIVE, "archived"), (Answer.DELETE, "deleted")])
def test_asking_for_what_is_put_away_tells_how_to_restore_it(bed: Bed, one: Path, answer: Answer, verdict: str) -> None:
    put_away(bed.journal, "one", answer, run="t", actor="idea")
    told = f"the idea one was {verdict} on {bed.store.today()}: `memory idea restore one` brings it back"
    with pytest.raises(EntryNotFound, match=told):
        find_idea(bed.store, "one")


def test_later_of_two_ideas_with_one_name_gets_its_link_back(bed: Bed, one: Path) -> None:
    """The section of an earlier one stays for ever, its name is free again once the trash is emptied."""
    earlier = LIST.format(f"{IDEA_TRASH}/one")
    ideas_path = bed.root / "Ideas.md"
    ideas_path.write_text(earlier + LIST.format(f"{INCUBATOR}/one"))
    put_away(bed.journal, "one", Answer.DELETE, run="t", actor="idea", ideas_file=ideas_path)
    restore(bed.journal, "one", ideas_file=ideas_path)
    assert ideas_path.read_text() == earlier + LIST.format(f"{INCUBATOR}/one")


def test_a_list_that_cannot_be_written_does_not_keep_an_answer_from_being_carried_out(bed: Bed, one: Path) -> None:
    ideas_path = bed.root / "Ideas.md"
    ideas_path.write_text(LIST.format(f"{INCUBATOR}/one"))
    ideas_path.chmod(0o444)
    done = put_away(bed.journal, "one", Answer.ARCHIVE, run="t", actor="idea", ideas_file=ideas_path)
    assert bed.store.read(done.path).status == "archived"
    assert not bed.journal.is_interrupted


def test_boxes_are_carried_out_one_by_one_and_the_rest_goes_on_waiting(bed: Bed) -> None:
    for number, slug in enumerate(("one", "two", "three", "four")):
        old_idea(bed, slug, 400 - number)
    assert stale(bed) == ["one", "two", "three", "four"]
    tick(bed, "one", "Archive")
    tick(bed, "three", "Delete")
    assert stale(bed) == ["one", "two", "three", "four"]
    assert "[x]" in bed.files()[IDEAS_LIST], "a ticked list is not written anew"
    verdicts = [done.verdict for done in bed.reviewer.apply_notes() if isinstance(done, DecisionOutcome)]
    assert verdicts == ["archived", "deleted"]
    assert boxes(bed) == ["two", "four"]
    assert bed.reviewer.apply_notes() == []


def test_a_word_in_the_properties_or_an_approval_is_no_answer_to_a_list(bed: Bed, one: Path) -> None:
    old_idea(bed, "two", 400)
    stale(bed)
    bed.decide_in_note(IDEAS_LIST, "keep")
    (problem,) = bed.reviewer.apply_notes()
    assert isinstance(problem, DecisionProblem)
    assert "tick a box" in problem.problem
    with pytest.raises(EntryInvalid):
        bed.reviewer.decide(IDEAS_LIST, Approve(), run="t")
    tick(bed, "one", "Archive")
    (done,) = bed.reviewer.apply_notes()
    assert isinstance(done, DecisionOutcome)
    assert done.verdict == "archived"
    assert boxes(bed) == ["two"]
    assert bed.reviewer.apply_notes() == []


def test_two_boxes_for_one_idea_are_no_answer(bed: Bed, one: Path) -> None:
    stale(bed)
    tick(bed, "one", "Keep")
    tick(bed, "one", "Delete")
    (problem,) = bed.reviewer.apply_notes()
    assert isinstance(problem, DecisionProblem)
    assert "more than one box" in problem.problem
    assert find_idea(bed.store, "one").status == "incubating"


def test_an_idea_that_is_gone_leaves_the_list(bed: Bed, one: Path) -> None:
    stale(bed)
    one.unlink()
    assert bed.reviewer.answer(IDEAS_LIST, {"one": Answer.DELETE}, run="t") == []
    assert not (bed.vault / IDEAS_LIST).exists()


@pytest.mark.parametrize("answer", ["keep", "archive", "delete"])
@pytest.mark.parametrize(
    "point",
    ["journal-pending", "vault-before-rename", "vault-before-rename@2", "journal-applied", "journal-applied@2",
     "journal-recorded"],
)  # fmt: skip
def test_killed_at_any_step_an_answer_is_given_or_not(bed: Bed, one: Path, answer: str, point: str) -> None:
    old_idea(bed, "two", 300)
    stale(bed)
    before = bed.files()
    assert bed.run_python(ANSWER.format(answer=answer), point) == -9
    bed.journal.recover()
    if boxes(bed) == ["one", "two"]:
        assert bed.files() == before
        bed.reviewer.answer(IDEAS_LIST, {"one": Answer(answer)}, run="t")
    assert boxes(bed) == ["two"]
    places = {"keep": one.parent, "archive": bed.vault / IDEA_ARCHIVE / "one", "delete": bed.vault / IDEA_TRASH / "one"}
    assert [name for name, folder in places.items() if folder.exists()] == [answer]


@pytest.mark.parametrize("point", ["journal-pending", "journal-applied"])
@pytest.mark.parametrize("linked", [IDEA_ARCHIVE, INCUBATOR])
def test_a_folder_that_became_a_link_outside_holds_up_no_answer(bed: Bed, one: Path, point: str, linked: str) -> None:
    bed.remember(RULE)
    stale(bed)
    assert bed.run_python(ANSWER.format(answer="archive"), point) == -9
    (bed.vault / IDEA_ARCHIVE).mkdir(exist_ok=True)
    (bed.vault / linked).rename(bed.root / "elsewhere")
    (bed.vault / linked).symlink_to(bed.root / "elsewhere")
    bed.journal.recover()
    assert not bed.journal.is_interrupted
    assert len([*(bed.root / "elsewhere").rglob("_index.md")]) == (linked == INCUBATOR or point == "journal-applied")
    bed.remember(said(RULE, "s2"))
    assert max(entry.occurrences for entry in bed.entries()) == 2
