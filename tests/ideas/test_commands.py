"""`memory idea`, `memory promote` and the list of old ideas, as people, programs and a real worker use them."""

import json
import shutil
from pathlib import Path

import pytest

from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.hurry import patience
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
INCUBATOR = "personal-private/_idea-incubator"
OLD = (
    "---\nkind: idea\nstatus: incubating\ncreated: 2020-01-01\nupdated: 2020-01-01\n---\n\n# {slug}\n\nAbout {slug}.\n"
)
SUMMARY = "A page that shows retries. Its token is ghp_" + "x7Qm2Vt9Lr4Kd8Zc1Nw6Hb3Yf5Pj0SgTuEaO"  # made up
LIST = "personal-private/_review/ideas-nobody-came-back-to.md"
APPLY_SECONDS = 10.0


def old(sandbox: Sandbox, *slugs: str) -> None:
    for slug in slugs:
        put(sandbox.vault / INCUBATOR / slug / "_index.md", OLD.format(slug=slug))


def test_an_idea_is_written_at_once_listed_shown_and_promoted(sandbox: Sandbox) -> None:
    written = sandbox.json("idea", "Retry page", SUMMARY)
    assert (written["slug"], written["new"], written["appended"]) == ("retry-page", True, True)
    ideas_file = sandbox.vault.parent / "Ideas.md"
    assert "ghp_" not in ideas_file.read_text("utf-8") + Path(written["path"]).read_text("utf-8")
    (listed,) = sandbox.json("idea", "list")
    assert (listed["slug"], listed["in_ideas_file"], listed["status"]) == ("retry-page", True, "incubating")
    assert "A page that shows retries." in sandbox.memory("idea", "show", "retry-page")
    assert sandbox.json("idea", "Retry page", SUMMARY)["new"] is False
    promoted = sandbox.json("idea", "promote", "retry-page")
    assert (promoted["promoted"], promoted["ideas_annotation"]) == (True, "written")
    assert sandbox.json("idea", "list") == []


def test_a_title_that_the_user_wrote_stands_in_the_list_as_it_is(sandbox: Sandbox) -> None:
    sandbox.memory("idea", "So, a parser?", "So, a parser? No. A regex will do.")
    listed = (sandbox.vault.parent / "Ideas.md").read_text("utf-8")
    assert "So, a parser?\n" in listed.split("## ")[-1]


@pytest.mark.parametrize("line", ["idea show x", "idea restore x", "promote idea x"])
def test_an_idea_that_is_not_there_is_told_in_one_line(sandbox: Sandbox, line: str) -> None:
    done = sandbox.run(*line.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert " idea x" in done.stderr.splitlines()[-1]


def test_the_answers_of_a_program(sandbox: Sandbox) -> None:
    old(sandbox, "one", "two", "three")
    assert sorted(idea["slug"] for idea in sandbox.json("idea", "gc")) == ["one", "three", "two"]
    assert sorted(sandbox.json("review")[0]["ideas"]) == ["one", "three", "two"]
    assert [sandbox.json("idea", *words)["verdict"] for words in (("keep", "one"), ("delete", "two"))] == [
        "kept",
        "deleted",
    ]
    assert [idea["slug"] for idea in sandbox.json("idea", "gc")] == ["three"]
    away = [idea for idea in sandbox.json("idea", "list", "--all") if idea["status"] == "deleted"]
    assert [idea["slug"] for idea in away] == ["two"]
    assert sandbox.json("idea", "restore", "two")["verdict"] == "restored"


def test_a_decision_on_the_whole_list_is_refused_before_another_is_carried_out(sandbox: Sandbox) -> None:
    old(sandbox, "one")
    sandbox.memory("idea", "gc")
    tabs = put_note(sandbox.vault, "personal-private/_review/tabs.md", kind="preferences", status="pending")
    sandbox.refused("review", "--decide", "tabs=approve", "--decide", "ideas-nobody-came-back-to=approve", code=2)
    assert tabs.exists()


def review_of(sandbox: Sandbox, *slugs: str, gone: str = "") -> Terminal:
    """A review in which the list of these old ideas waits, and the folder of one may be gone."""
    old(sandbox, *slugs)
    sandbox.memory("idea", "gc")
    if gone:
        shutil.rmtree(sandbox.vault / INCUBATOR / gone)
    terminal = Terminal(sandbox, ["review"])
    # The first review with an idea asks for the network, once; no answer is no.
    terminal.expect("[y/N]")
    terminal.write("\n")
    return terminal


def test_one_key_for_each_idea(sandbox: Sandbox) -> None:
    terminal = review_of(sandbox, "a", "b", "c", "d")
    terminal.expect("4 ideas that nobody came back to")
    for key, said in (("k", "kept: "), ("a", "archived: "), ("x", "press one of"), ("d", "deleted: ")):
        terminal.press(key, said)
    terminal.press("\r", "this review: 1 kept, 1 archived, 1 deleted, 1 skipped; left: 1 question about ideas\r\n")
    assert terminal.close() == 0
    assert (sandbox.vault / INCUBATOR / "_archive/b").is_dir()
    assert (sandbox.vault / INCUBATOR / "_archive/_trash/c").is_dir()
    assert (sandbox.vault / INCUBATOR / "d").is_dir(), "what is skipped is kept"
    assert "/d/_index" in (sandbox.vault / LIST).read_text("utf-8")


def test_undo_steps_back_through_the_answers_about_ideas(sandbox: Sandbox) -> None:
    terminal = review_of(sandbox, "a", "b", "c")
    for key, said in (("d", "deleted: "), ("s", "\n"), ("u", "2 ideas that nobody came back to"), ("u", "took back: ")):
        terminal.press(key, said)
    terminal.expect("3 ideas that nobody came back to")
    assert (sandbox.vault / INCUBATOR / "a").is_dir()
    for key in "aaa":
        terminal.press(key, "archived: ")
    assert terminal.close() == 0
    assert {folder.name for folder in (sandbox.vault / INCUBATOR / "_archive").iterdir()} == {"a", "b", "c"}


def test_undo_steps_back_through_an_idea_whose_folder_is_gone(sandbox: Sandbox) -> None:
    terminal = review_of(sandbox, "a", "b", "c", gone="b")
    for key, said in (("d", "deleted: "), ("a", "1 idea that"), ("u", "2 ideas that"), ("u", "3 ideas that")):
        terminal.press(key, said)
    assert (sandbox.vault / INCUBATOR / "a").is_dir()
    terminal.press("q", "nothing decided")
    assert terminal.close() == 0


@pytest.mark.hurried
def test_a_box_ticked_in_the_note_is_carried_out_by_a_running_worker(sandbox: Sandbox) -> None:
    old(sandbox, "one", "two")
    sandbox.memory("jobs", "schedule", "run", "incubator-gc")
    with sandbox.process("service", "worker"):
        path = sandbox.vault / LIST
        wait_until(path.exists, "it is asked")
        path.write_text(path.read_text("utf-8").replace("- [ ] Archive", "- [x] Archive", 1), "utf-8")
        wait_until(lambda: "[x]" not in path.read_text("utf-8"), "it is done", APPLY_SECONDS * patience())
        assert [folder.name for folder in (sandbox.vault / INCUBATOR / "_archive").iterdir()] == ["one"]
        assert "/two/_index" in path.read_text("utf-8")


@pytest.mark.parametrize("mode", ["interactive", "silent"])
def test_a_session_with_an_idea_goes_through_the_worker(tmp_path: Path, mode: str) -> None:
    """Hooks, mining, research offline, the list: outside MemoryVault/ only Ideas.md changes, in silent mode."""
    sandbox = ForkedSandbox(tmp_path, settings={"MEMORY_REVIEW_MODE": mode})
    home = sandbox.vault.parent
    (home / "Ideas.md").write_bytes(b"# Mine\r\n\r\nno end")
    put(home / "Notes" / "charges.md", "How charges are retried, and how often.")
    old(sandbox, "one")
    session = "7d1e0000-0000-4000-8000-000000000001"
    lines = (ROOT / "demo" / "session.jsonl").read_text("utf-8")
    transcript = sandbox.transcript(session, lines)
    payload = {"session_id": session, "transcript_path": str(transcript), "cwd": str(tmp_path)}
    sandbox.hook("SessionEnd", {**payload, "reason": "other"})
    sandbox.memory("jobs", "schedule", "run", "incubator-gc")
    sandbox.memory("service", "worker", "--until-idle")
    text = (home / "Ideas.md").read_bytes()
    assert (home / "Notes" / "charges.md").read_text() == "How charges are retried, and how often."
    kinds = {idea["slug"]: idea["in_ideas_file"] for idea in sandbox.json("idea", "list")}
    assert len(kinds) == 2
    waiting = {one["kind"] for one in sandbox.json("review")}
    if mode == "interactive":
        assert text == b"# Mine\r\n\r\nno end"
        assert waiting >= {"idea-surface", "incubator-gc"}
    else:
        assert text.startswith(b"# Mine\r\n\r\nno end\r\n\r\n## 20")
        assert sorted(kinds.values()) == [False, True]
        assert waiting == {"incubator-gc"}
    assert any((sandbox.vault / INCUBATOR).glob("*/related-memoryvault.md")), "it was looked up meanwhile"
    sandbox.memory("undo", "--yes", "--session", str(json.loads(lines.splitlines()[0])["sessionId"]))
    assert (home / "Ideas.md").read_bytes() == b"# Mine\r\n\r\nno end"
    assert [folder.name for folder in (sandbox.vault / INCUBATOR).iterdir() if any(folder.iterdir())] == ["one"]
