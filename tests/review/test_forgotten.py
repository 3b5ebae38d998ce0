"""No word of a deleted, dismissed or scrubbed note is left in the state folder."""

import json
import logging
import os
import signal
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.index.store import IndexStore
from memoryvault.runtime import killpoint
from memoryvault.runtime.errors import EditConflict
from memoryvault.services.entry_decisions import dismiss
from memoryvault.services.evolving import evolve
from memoryvault.services.forgetting import deleted_by_user, forget_deleted
from memoryvault.services.journal import Change
from memoryvault.services.reviewing import Reviewer
from memoryvault.services.tombstones import NOTE as TAKEN_BACK
from memoryvault.services.undoing import Selector
from memoryvault.tasks.jobs.upkeep import rotate_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.job import RunningJob
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tasks.queue.records import Claim
from memoryvault.tasks.queue.worklog import JsonLines
from memoryvault.tests.review.support import GUESS, RULE, Bed, said
from memoryvault.tests.support.files import put
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.vault.entry import parse_entry
from memoryvault.vault.scrubbed import Scrubbed

WORDS = ("zelthump", "mokkespr")
"""As the full-text index cuts them."""
TEXT = "The zelthumper of the mokkespratting service listens."
NOTE = Scrubbed(f"---\nkind: preference\nstatus: active\n---\n\n# A rule\n\n{TEXT}\n")
PATH = "personal-private/preferences/zelthumper-rule.md"


def places(folder: Path, words: tuple[str, ...] = WORDS) -> set[str]:
    """Names of files of which a byte sequence is one of the words."""
    found = set()
    for file in folder.rglob("*"):
        if file.is_file() and any(word.encode() in file.read_bytes().lower() for word in words):
            found.add(file.name)
    return found


@pytest.mark.slow
def test_no_byte_of_the_state_folder_holds_a_word_of_what_was_forgotten(tmp_path: Path) -> None:
    sandbox: Sandbox = ForkedSandbox(tmp_path)
    deleted = Path(sandbox.memory("save", "reference", "zelthumper-port", "--body", TEXT).strip())
    dismissed = Path(sandbox.memory("save", "preference", "deploy", "--body", "Always use brimfozzle here.").strip())
    scrubbed = Path(sandbox.memory("save", "reference", "vpn", "--body", "Of the network.").strip())
    scrubbed.write_text(scrubbed.read_text("utf-8") + "\npassword: Quellwart77Vz\n", "utf-8")
    sandbox.memory("service", "worker", "--until-idle")
    assert sandbox.json("recall", "zelthumper")["hits"]
    sandbox.hook("UserPromptSubmit", {"session_id": "s1", "cwd": str(tmp_path), "prompt": "where is the zelthumper?"})
    state = sandbox.root / "state"
    assert {"index.db", "receipts.jsonl"} <= places(state)
    assert places(state, ("brimfozzl",))
    assert places(state, ("quellwart77vz",))

    deleted.unlink()
    sandbox.memory("dismiss", "--yes", str(dismissed))
    sandbox.memory("vault", "scrub", "--apply")
    sandbox.memory("service", "worker", "--until-idle")
    assert places(state) == set()
    assert places(state, ("quellwart77vz",)) == set()
    assert places(state, ("brimfozzl",)) == set()
    sandbox.memory("review", "--undo", "deploy")
    sandbox.memory("service", "worker", "--until-idle")
    assert sandbox.json("recall", "brimfozzle")["hits"]


def test_no_ended_job_names_a_deleted_note_or_idea(bed: Bed) -> None:
    idea = "personal-private/_idea-incubator/zelthumper-zürich/_index.md"
    with open_ledger(bed.settings) as ledger:
        ids = [
            ledger.enqueue(
                "research.idea", {"slug": "zelthumper-zürich"}, unique_key="research.idea:zelthumper-zürich"
            ),
            ledger.enqueue("research.idea", {"slug": "zelthumper-zürich-2"}),
        ]
        for _ in ids:
            claim = ledger.take(lambda: "me", 60)
            assert claim is not None
            ledger.complete(claim, {"path": PATH, "of": claim.args} if claim.unique_key else {"nothing": claim.args})
        assert "queue.db" in {name.removesuffix("-wal") for name in places(Path(bed.settings.state.root))}
    forget_deleted(bed.settings, bed.store, [PATH, idea])
    with open_ledger(bed.settings) as ledger:
        first, other = map(ledger.get, ids)
    assert "zelthump" not in f"{first}"
    assert other.args == {"slug": "zelthumper-zürich-2"}, "another idea"
    assert places(Path(bed.settings.state.root), ("zelthumper-rule", 'zürich"')) == set()


def test_a_database_that_was_set_aside_as_damaged_goes_with_the_first_note_that_is_forgotten(bed: Bed) -> None:
    root = Path(bed.settings.state.root)
    root.mkdir(parents=True, exist_ok=True)
    for name in ("index.db.damaged-20260101T000000Z", "queue.db.damaged-20260101T000000Z", "state.db.damaged-2-wal"):
        (root / name).write_bytes(b"\x00" + TEXT.encode())
    forget_deleted(bed.settings, bed.store, [PATH])
    assert places(root) == set()


def test_nothing_is_forgotten_with_the_note_of_what_was_taken_back(bed: Bed) -> None:
    aside = put(Path(bed.settings.state.root) / "state.db.damaged-20260101T000000Z", "")
    bed.remember(said(RULE, "a"))
    bed.remember(said(GUESS, "b"))
    bed.undo.carry_out(Selector(last=True))
    acts = bed.journal.acts()
    (bed.vault / TAKEN_BACK).unlink()
    assert forget_deleted(bed.settings, bed.store, []) == 0
    assert (bed.journal.acts(), aside.exists()) == (acts, True)


def test_what_a_kill_left_is_forgotten_with_the_next_upkeep(bed: Bed) -> None:
    bed.journal.commit([Change(PATH, None, NOTE)], run="reflect:1", actor="reflection", what="a zelthumper-rule")
    put(Path(bed.settings.state.log) / "worker.jsonl", f'{{"message": "read {PATH}"}}\n')
    (bed.vault / PATH).unlink()
    if not (child := os.fork()):
        killpoint.arm({"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "forget"})
        forget_deleted(bed.settings, bed.store, [PATH])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert places(Path(bed.settings.state.root)) == {"changes.jsonl", "worker.jsonl"}
    with open_ledger(bed.settings) as ledger:
        ledger.enqueue("logs.rotate")
        claim = ledger.take(lambda: "me", 60)
        assert isinstance(claim, Claim)
        done = rotate_handler(bed.settings, RunningJob(ledger, claim, {}, POLICIES["logs.rotate"]))
    assert done["forgotten"] == 1
    assert places(Path(bed.settings.state.root)) == set()


@pytest.mark.parametrize("status", ["dismissed", "rejected", None])
def test_the_index_file_keeps_no_word_of_a_note_that_is_gone_or_dismissed(tmp_path: Path, status: str | None) -> None:
    with IndexStore(tmp_path / "index.db") as index:
        for number in range(20):
            index.upsert_entry(parse_entry(f"a/n{number}.md", b"Other words of a note."), mtime_ns=1, size=1)
        index.upsert_entry(parse_entry("a/rule.md", NOTE.encode()), mtime_ns=1, size=1)
        assert places(tmp_path)
        if status is None:
            index.remove("a/rule.md")
        else:
            note = NOTE.replace("active", status).encode()
            index.upsert_entry(parse_entry("a/rule.md", note), mtime_ns=2, size=2)
        assert index.overwrite_removed()
        assert places(tmp_path) == set()
        assert index.integrity_problems() == []


def test_the_journal_forgets_what_the_user_deleted_and_keeps_what_the_program_removed(bed: Bed) -> None:
    other = "personal-private/preferences/other.md"
    waiting = "personal-private/_inbox/zelthumper-rule.md"
    bed.journal.commit([Change(waiting, None, NOTE)], run="reflect:1", actor="reflection", what="a zelthumper-rule")
    moved = [Change(waiting, NOTE, None), Change(PATH, None, NOTE), Change(other, None, Scrubbed("Other."))]
    bed.journal.commit(moved, run="triage:1", actor="triage", what="put in order: zelthumper-rule")
    assert deleted_by_user(bed.journal, [waiting, PATH]) == frozenset()
    assert forget_deleted(bed.settings, bed.store, [waiting]) == 0
    assert places(Path(bed.settings.state.root)) == {"changes.jsonl"}

    (bed.vault / PATH).unlink()
    assert forget_deleted(bed.settings, bed.store, [PATH]) == 1
    assert places(Path(bed.settings.state.root)) == set()
    assert [[change.path for change in act.changes] for act in bed.journal.acts()] == [[other]]


def test_the_journal_forgets_a_replaced_text_whose_archived_note_was_deleted(bed: Bed) -> None:
    bed.journal.commit([Change(PATH, None, NOTE)], run="reflect:1", actor="reflection", what="a rule")
    strengthened = Scrubbed(f"{NOTE}Once more.\n")
    bed.journal.commit([Change(PATH, NOTE, strengthened)], run="reflect:2", actor="reflection", what="once more")
    archived = evolve(bed.store, bed.journal, PATH, Scrubbed("Another text."), Scrubbed("changed"))
    assert places(Path(bed.settings.state.root), ("mokkespr",)) == {"changes.jsonl"}

    (bed.vault / archived).unlink()
    assert forget_deleted(bed.settings, bed.store, [archived]) == 1
    assert places(Path(bed.settings.state.root), ("mokkespr",)) == set()
    assert [[change.path for change in act.changes] for act in bed.journal.acts()] == [[PATH]]


@pytest.mark.parametrize("name", ["the-rule", "zürich", 'the "zürich"', "the  zürich"])
def test_logs_and_receipts_name_a_deleted_note_no_longer_and_every_other_as_before(bed: Bed, name: str) -> None:
    path, kept = f"personal-private/fix/{name}.md", f"personal-private/fix/{name}-2.md"
    put(bed.vault / kept, "Other.")
    log = logging.getLogger("memoryvault.tests.forgotten")
    told = log.makeRecord(log.name, logging.WARNING, "", 0, "%s cannot be read", (path,), None)
    JsonLines(bed.settings.state.log_file, lambda line: None).emit(told)
    receipts = Path(bed.settings.state.receipts)
    receipts.write_text(json.dumps({"hits": [{"path": path}, {"path": kept}]}, ensure_ascii=False), "utf-8")
    forget_deleted(bed.settings, bed.store, [path])
    assert json.loads(Path(bed.settings.state.log_file).read_text("utf-8"))["message"] == "forgotten cannot be read"
    assert json.loads(receipts.read_text("utf-8")) == {"hits": [{"path": "forgotten"}, {"path": kept}]}


@pytest.mark.parametrize("edit", [("listens", "waits"), ("", "")])
def test_a_dismissed_note_is_put_back_as_it_is_now_unless_edited(bed: Bed, edit: tuple[str, str]) -> None:
    bed.journal.commit([Change(PATH, None, NOTE)], run="reflect:1", actor="reflection", what="a rule")
    reviewer = Reviewer(bed.settings, bed.store)
    dismiss(reviewer, PATH)
    journal = Path(bed.settings.state.root, "journal", "changes.jsonl").read_text("utf-8")
    assert "listens" not in journal
    file = bed.vault / PATH
    file.write_text(dismissed := file.read_text("utf-8").replace(*edit), "utf-8")
    if edit[0]:
        with pytest.raises(EditConflict):
            reviewer.undo_last(path=PATH)
        assert file.read_text("utf-8") == dismissed
    else:
        reviewer.undo_last(path=PATH)
        assert file.read_text("utf-8") == NOTE


def test_a_dismissed_note_whose_folder_became_a_link_out_of_the_vault_hides_no_act(bed: Bed) -> None:
    bed.journal.commit([Change(PATH, None, NOTE)], run="reflect:1", actor="reflection", what="a rule")
    reviewer = Reviewer(bed.settings, bed.store)
    dismiss(reviewer, PATH)
    folder, elsewhere = (bed.vault / PATH).parent, bed.root / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert [act.actor for act in bed.journal.acts()] == ["reflection", "review"]
    last = reviewer.last_decision()
    assert last is not None
    assert [change.path for change in last.changes] == [PATH]
