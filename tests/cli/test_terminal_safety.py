"""No text of a note, a transcript or a file's name controls the terminal."""

import ast
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.cli.terminal import read_line
from memoryvault.cli.terminal_safety import PlainText, plain
from memoryvault.tests.sources.records import older
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
DRIVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TITLE = "\x1b]0;pwned\x07"
HOSTILE = f"{TITLE}\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2A\x1b[2K\x9b2J \u202esdrawkcab\rOVER\x08\x7f"


@given(st.text(st.characters()))
def test_whatever_is_written_comes_out_as_text(text: str) -> None:
    out = io.StringIO()
    assert PlainText(out).write(text) == len(text)
    assert not DRIVES.search(out.getvalue())
    assert not any("\ud800" <= c <= "\udfff" for c in out.getvalue())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_says_the_same_string_afterwards(text: str) -> None:
    assert json.loads(plain(json.dumps([text], ensure_ascii=False))) == [text]


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"])))
def test_ordinary_text_of_any_script_is_left_alone(text: str) -> None:
    assert plain(f"{text}\tx\r\ny\n") in (f"{text}\tx\ny\n", f"{text}\tx\r\ny\n".replace("\r\n", "\n"))


def test_what_a_stream_cannot_encode_ends_no_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from memoryvault.cli.terminal_safety import *; disarm_streams(); print('né\\udcff')"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"n\\xe9\\udcff\n"


@pytest.mark.slow
def test_no_command_writes_past_the_two_streams() -> None:
    """But `scrub --stdin`, which gives a pipe back what came out of one."""
    past = {
        f"{folder}/{path.name}"
        for folder in ("cli", "services", "tasks", "index")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if re.fullmatch(r"sys\.std(out|err)\.(buffer|stream)|sys\.__std(out|err)__", source := _source(node))
        or re.match(r"os\.write\([12],", source)
    }
    assert past == {"cli/terminal_safety.py"}
    callers = {
        path.name
        for path in (ROOT / "cli").glob("*.py")
        if re.search(r"import .*\bwrite_bytes\b", path.read_text("utf-8"))
    }
    assert callers == {"scrub.py"}


def _source(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Call) else ""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A vault, a log and a session that are full of escape sequences, in every place where text may stand."""
    sandbox = ForkedSandbox(tmp_path_factory.mktemp("hostile"))
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault), "--history-days", "0")
    private = sandbox.vault / "personal-private"

    def note(place: str, front: str, body: str = f"The kettle {HOSTILE} whistles.") -> None:
        put(private / place, f"---\n{front}\n---\n\n# Kettle {HOSTILE}\n\n{body}\n")

    quoted = json.dumps(HOSTILE)
    front = f"kind: preferences\nstatus: {{}}\ntags: [{quoted}]\nproject: ''\nsource: {quoted}"
    note("preferences/kettle.md", front.format("active"))
    note(f"preferences/name{TITLE.replace('/', '')}.md", front.format("active"))
    note("_review/kettle-review.md", front.format("pending"))
    note("_inbox/kettle-inbox.md", front.format("inbox"))
    note("_idea-incubator/kettle/_index.md", front.replace("preferences", "idea").format("incubating"))
    note("_skill-watchlist/a/kettle.md", front.replace("preferences", "skill-pattern").format("pending"))
    note("preferences/kettle (conflicted copy 2026-01-01).md", front.format("active"), f"Mine {HOSTILE} is other.")
    topic = "personal-projects/shop/memory/kettle.md"
    put_note(sandbox.vault, topic, f"# Kettle {HOSTILE}\n\nText {HOSTILE}.", kind="topic")
    with (sandbox.state / "log" / "memoryvault.log").open("a") as log:
        line = {"time": "2026-01-01T00:00:00Z", "level": "info", "event": HOSTILE, "path": HOSTILE}
        log.write(json.dumps(line) + "\n")
    said = older(1, f"From now on, always whistle the kettle {HOSTILE} twice.", sessionId="s1")
    sandbox.transcript("s1", json.dumps(said) + "\n")
    with (sandbox.root / "config.toml").open("a") as config:
        config.write("[research]\nnetwork = false\n")
    sandbox.memory("vault", "reindex")
    return sandbox


COMMANDS = (
    ("list", "--status", "all"),
    ("list", "--include-inbox", "--json"),
    ("recall", "kettle whistles", "--all-projects"),
    ("recall", f"kettle {HOSTILE[:5]}"),
    ("recall", "kettle whistles", "--all-projects", "--json"),
    ("vault", "inspect"),
    ("review", "--list"),
    ("review", "--list", "--json"),
    ("review", "--decide", f"{HOSTILE}=approve"),
    ("vault", "inbox", "list"),
    ("vault", "inbox", "triage", "--dry-run"),
    ("idea", "list"),
    ("idea", "show", "kettle"),
    ("skills", "watchlist"),
    ("vault", "topics", "list", "--project", "shop"),
    ("vault", "topics", "read", "kettle", "--project", "shop"),
    ("reflect", "--session", "SESSION", "--dry-run"),
    ("service", "logs"),
    ("service", "logs", "--json"),
    ("jobs", "list"),
    ("doctor",),
    ("health",),
    ("vault", "scrub"),
    ("vault", "incident", "find", HOSTILE),
    ("undo", "--of", HOSTILE),
    (HOSTILE,),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda arguments: " ".join(arguments)[:30].encode("ascii", "ignore")
)
def test_no_command_hands_an_escape_sequence_on(hostile: Sandbox, arguments: tuple[str, ...]) -> None:
    (session,) = hostile.projects.rglob("s1.jsonl")
    argv = [str(session) if word == "SESSION" else word.replace("\x00", "") for word in arguments]
    done = hostile.run(*argv)
    assert done.stdout + done.stderr
    assert not DRIVES.search(done.stdout.replace("\r\n", "\n") + done.stderr)


@pytest.mark.slow
def test_a_review_at_a_terminal_shows_them_written_out(hostile: Sandbox) -> None:
    """On a terminal of its own, where a sequence that comes through would be carried out."""
    terminal = Terminal(hostile, ["review"], TERM="xterm")
    terminal.press("s")
    terminal.press("s")
    terminal.rest()
    assert terminal.close() == 0
    assert "\\u001b]0;pwned" in terminal.text, terminal.text
    assert not DRIVES.search(terminal.text.replace("\r\n", "\n")), terminal.text


def test_the_end_of_input_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" y \n"))
    assert [read_line("go ahead? "), read_line("go ahead? ")] == ["y", ""]
