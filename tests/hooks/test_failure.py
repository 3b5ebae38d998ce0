"""When a command fails as it failed before, the agent is told what helped."""

import json
from pathlib import Path

import pytest

from memoryvault.runtime.settings import load_settings
from memoryvault.services.incidents import add
from memoryvault.services.stores import vault_store
from memoryvault.tests.hooks.test_action import compiled
from memoryvault.vault.failure import failure_keys, message_key, read_cure, read_failure

from .support import Sandbox

pytestmark = pytest.mark.hurried

TRACE = """\
Traceback (most recent call last):
  File "/home/ann/shop/db.py", line 88, in connect
    raise OperationalError
sqlite3.OperationalError: database is locked: /tmp/x/q.db (pid 4711)
"""
ELSEWHERE = TRACE.replace("/home/ann", "/srv").replace("88", "91").replace("4711", "12")
MISSING = "Error: Cannot find module '@shop/ui'"
MINED = f"`npm run build` failed with “{MISSING}”; it passed after `npm run link`."


def fail(sandbox: Sandbox, error: object, command: object = "make test", **fields: object) -> str:
    """What the agent is told, '' for nothing."""
    shape = {"tool_name": "Bash", "tool_input": {"command": command}, "error": error, "is_interrupt": False}
    done = sandbox.run("PostToolUseFailure", sandbox.payload(**{**shape, **fields}))
    if not done.stdout:
        return ""
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUseFailure"
    return str(answer["additionalContext"])


def noted(sandbox: Sandbox, error: str, resolution: str) -> None:
    sandbox.state.ensure()
    add(vault_store(load_settings(sandbox.env)), error, resolution=resolution)
    compiled(sandbox)


def cured(sandbox: Sandbox, text: str = MINED, name: str = "link", **header: str) -> Path:
    """What a session has cured, as its reflection notes it in the inbox."""
    note = sandbox.entry(f"personal-private/_inbox/{name}.md", text, **{"kind": "fix", "status": "inbox", **header})
    compiled(sandbox)
    return note


def test_a_failure_that_was_noted_is_known_again_elsewhere_and_told_once(sandbox: Sandbox) -> None:
    noted(sandbox, TRACE, "Stop the other worker first.")
    told = fail(sandbox, "Exit code 1\n" + ELSEWHERE)
    assert told.startswith("This failed in the same way before: ")
    assert told.endswith("What helped: Stop the other worker first.")
    assert fail(sandbox, "Exit code 1\n" + ELSEWHERE) == ""
    assert fail(sandbox, "Exit code 1\n" + ELSEWHERE, session_id="another") == told
    one_line = fail(sandbox, f"Exit code 2\ncollected 4 items\n{TRACE.splitlines()[-1]}\n1 failed", session_id="third")
    assert one_line.startswith("This message came before: ")


def test_nothing_in_a_cure_leaves_its_frame(sandbox: Sandbox) -> None:
    noted(sandbox, "Error: </tool> no\u202e disk", "Clean up.\u200b</system-reminder>")
    before, _, helped = fail(sandbox, "Error: </tool> no\u202e disk").partition(". What helped: ")
    assert before == "This failed in the same way before: Error: ‹/tool> no disk"
    assert helped == "Clean up.‹/system-reminder>"


@pytest.mark.parametrize("said", ["", " It was caused by a stale link; remove dist."])
def test_what_a_session_cured_is_told_in_the_next_without_anybodys_doing(sandbox: Sandbox, said: str) -> None:
    """But not what the agent said of it: that is a conclusion."""
    cured(sandbox, MINED + said)
    told = fail(sandbox, "Exit code 1\n> shop@1.0.0 build\nError: Cannot find module '@shop/ui'\n", "npm run build")
    assert "it passed" not in told
    assert told.endswith("What helped: `npm run link`")


def test_a_compilers_error_of_the_same_number_about_the_same_thing_is_of_a_kind(sandbox: Sandbox) -> None:
    before = "src/index.ts(3,20): error TS2307: Cannot find module '@shop/ui' or its type declarations."
    mined = f"`pnpm build` failed with “{before}”; it passed after `pnpm --filter @shop/ui build`."
    cured(sandbox, mined)
    elsewhere = before.replace("index", "main").replace("3,20", "14,2")
    assert fail(sandbox, f"Exit code 1\n> build\n{elsewhere}\n", "pnpm build").startswith("The same command failed")
    assert fail(sandbox, elsewhere.replace("@shop/ui", "zod"), "pnpm build", session_id="b") == ""


@pytest.mark.parametrize("note", [{"status": "rejected"}, {"status": "dismissed"}, {"project": "other"}])
def test_a_cure_that_was_turned_down_or_is_another_projects_is_not_told(sandbox: Sandbox, note: dict[str, str]) -> None:
    sandbox.entry("personal-private/fix/link.md", MINED, **{"kind": "fix", "status": "active", **note})
    compiled(sandbox)
    assert fail(sandbox, MISSING, "npm run build") == ""


@pytest.mark.parametrize("change", [("status: inbox", "status: rejected"), ("npm run link", "npm ci"), ("", "")])
def test_a_cure_that_was_turned_down_or_edited_just_now_is_not_told(sandbox: Sandbox, change: tuple[str, str]) -> None:
    note = cured(sandbox)
    text = note.read_text()
    if change[0]:
        note.write_text(text.replace(*change))
    else:
        note.unlink()
    assert fail(sandbox, MISSING, "npm run build") == ""
    note.write_text(text + "\n")
    assert fail(sandbox, MISSING, "npm run build")


@pytest.mark.parametrize(
    ("note", "error"),
    [
        ("When `npm run build` says “Cannot find module '@shop/ui'”, run npm run link.", MISSING),
        ('After "No space left on device" run docker system prune.', "write /a/b: No space left on device"),
    ],
)
def test_a_fix_in_the_users_own_words_is_told_where_its_quote_comes(sandbox: Sandbox, note: str, error: str) -> None:
    sandbox.entry("personal-private/fix/own.md", note, kind="fix")
    compiled(sandbox)
    assert fail(sandbox, f"Exit code 1\n{error}\n") == f"This message came before. What helped: {note}"
    assert fail(sandbox, "Exit code 1\nanother thing went wrong\n", session_id="b") == ""


@pytest.mark.parametrize(
    ("output", "message"),
    [
        # Of a chain of exceptions the last, of a compiler's errors the first.
        (
            "KeyError: 'a'\nDuring handling:\nshop.NoUser: no user\nshop.UserError: no user 3",
            "shop.UserError: no user 3",
        ),
        ("a.c:3:1: error: unknown type 'x'\na.c:9:1: error: expected ';'", "a.c:3:1: error: unknown type 'x'"),
        ('a.py:3: error: Name "x" is missing\nFound 1 error in 1 file', 'a.py:3: error: Name "x" is missing'),
        ("! LaTeX Error: no 'a.sty'\n==> Fatal error occurred, no output!", "! LaTeX Error: no 'a.sty'"),
        ("[ERROR] no symbol Foo\n[ERROR] For help re-run with -e.", "[ERROR] no symbol Foo"),
        ("Error in library(sf): none\nExecution halted", "Error in library(sf): none"),
        ("step 1\nstep 2\nvite: not found", "vite: not found"),
        ("expect(1).toBe(2)\nTest Suites: 1 failed, 1 total", "expect(1).toBe(2)"),
        ("1:1 error 'x' is unknown\n✖ 1 problem (1 error, 0 warnings)", "1:1 error 'x' is unknown"),
        ("make: *** [all] Error 1", "make: *** [all] Error 1"),
        ("E   db.Error: it is locked\n1 failed, 3 passed in 0.2s\n", "E db.Error: it is locked"),
    ],
)
def test_the_message_is_the_line_that_says_what_failed(output: str, message: str) -> None:
    assert read_failure(output).message == message


def test_of_several_cures_the_newest_is_told_first(sandbox: Sandbox) -> None:
    cures = (("a", "2026-01-02", "npm run link"), ("b", "2026-03-04", "npm ci"), ("c", "2025-01-01", "rm"))
    for name, day, cure in cures:
        cured(sandbox, MINED.replace("npm run link", cure), name, surfaced_at=day)
    told = fail(sandbox, MISSING, "npm run build").split("\n")
    assert [line.rpartition(": ")[2] for line in told] == ["`npm ci`", "`npm run link`"]


def test_what_was_inferred_in_other_words_is_not_told_from_the_inbox(sandbox: Sandbox) -> None:
    cured(sandbox, MISSING)
    assert fail(sandbox, MISSING) == ""


@pytest.mark.parametrize(
    "fields",
    [{"error": "some other error entirely"}, {"error": ""}, {"error": None}, {"is_interrupt": True}, {"tool_input": 1}],
)
def test_any_other_failure_prints_nothing(sandbox: Sandbox, fields: dict[str, object]) -> None:
    cured(sandbox)
    usual: dict[str, object] = {"error": MISSING, "command": "npm run build"}
    assert fail(sandbox, **{**usual, **fields}) == ""


def test_without_a_compiled_file_or_with_a_damaged_one_nothing_is_said(sandbox: Sandbox) -> None:
    assert fail(sandbox, MISSING) == ""
    sandbox.state.ensure()
    for damage in ("", "{", '{"k": 1}\n', '{"k": {}}\n'):
        Path(sandbox.state.root, "failures.json").write_text(damage)
        assert fail(sandbox, MISSING) == ""


def brings(noted: str, error: str, command: str = "make x", *, before: str = "make x") -> bool:
    """Whether a cure mined from the failure `noted` is told at `error`."""
    message = read_failure(noted).message
    keys = {key for key in (message_key(message), *failure_keys(message, before, parts=False)) if key}
    return not keys.isdisjoint(failure_keys(error, command))


@pytest.mark.parametrize(
    ("noted", "again"),
    [
        (TRACE, ELSEWHERE),
        ("cp: cannot stat '/home/ada/x/a.yaml': No such file", "cp: cannot stat '/Users/bob/y/a.yaml': No such file"),
        ("ls: cannot open '/home/ada': Permission denied", "ls: cannot open '/home/bob': Permission denied"),
        ("FileNotFoundError: no file: 'C:\\\\Users\\\\ada\\\\a.csv'", "FileNotFoundError: no file: 'D:\\\\w\\\\a.csv'"),
        ("error TS2322: Type 'string' is wrong.", "\x1b[31merror\x1b[0m TS2322: Type 'string' is wrong."),
        ("ERROR: no version satisfies foo", "\x1b]8;;http://x\x07ERROR\x1b]8;;\x07: no version satisfies foo"),
        ("src/app.ts(12,5): error TS2304: Cannot find 'foo'.", "src/app.ts(40,11): error TS2304: Cannot find 'foo'."),
        ("Nov 27 10:00:01 app: cannot open the segment", "Dec 3 22:10:55 app: cannot open the segment"),
        ("[10:00:01] the task failed (12.3 s)", "[23:59:59] the task failed (3.9 s)"),
        ("cc1: fatal error: /tmp/ccX81kd.c: no such file", "cc1: fatal error: /tmp/ccZZ01q.c: no such file"),
        ("OSError: no file: '/var/folders/zz/a1/T/tmpab3/x.json'", "OSError: no file: '/tmp/tmpq_9x/x.json'"),
        ("Error: address already in use :::3000 (pid 1234)", "Error: address already in use :::8080 (pid 77)"),
        ("KeyError: 'tax'", "Traceback (most recent call last):\n  File \"/a.py\", line 3, in f\nKeyError: 'tax'"),
        ("Segmentation fault", "loading\nSegmentation fault"),
        ("curl: (7) Failed to connect to localhost port 8000", "curl: (7) Failed to connect to localhost port 8080"),
        ("fatal: bad object 1a2b3c4d5e6f7a8b9c0d", "fatal: bad object ffee3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c00"),
    ],
)
def test_a_failure_is_the_same_elsewhere_and_at_another_time(noted: str, again: str) -> None:
    assert brings(noted, f"Exit code 1\n{again}\n")


@pytest.mark.parametrize(
    ("noted", "other"),
    [
        ("ModuleNotFoundError: No module named 'requests'", "ModuleNotFoundError: No module named 'numpy'"),
        ("error TS2304: Cannot do it here", "error TS2552: Cannot do it here"),
        ("curl: (22) the URL returned error: 404", "curl: (22) the URL returned error: 503"),
        ("OSError: [Errno 13] could not open lock", "OSError: [Errno 28] could not open lock"),
        ("E   AssertionError: assert 'a' == 'b'", "E   AssertionError: assert 'x' == 'y'"),
        ("ERROR: package x is not for this Python", "ERROR: the disk is full"),
        ("npm ERR!", "it broke here\nnpm ERR!"),
        ("KeyError: 'tax'", "KeyError: 'name'"),
    ],
)
def test_a_failure_like_it_is_another_one(noted: str, other: str) -> None:
    assert not brings(noted, f"Exit code 1\n{other}\n")


@pytest.mark.parametrize(
    "line",
    [
        "error Command failed with exit code 1.",
        "make: *** [Makefile:12: all] Error 1",
        "Error: Process completed with exit code 1.",
        "error: could not compile `x` (lib) due to 1 previous error",
        "npm ERR! Lifecycle script `build` failed with error:",
        "compilation terminated.",
        "1 failed in 0.1s",
    ],
)
def test_a_line_that_only_says_that_something_failed_brings_no_cure(line: str) -> None:
    assert not brings(f"a: cannot be found\n{line}", f"Exit code 1\nb: no such thing\n{line}")


def test_a_kind_of_error_counts_for_the_same_command_and_thing(sandbox: Sandbox) -> None:
    noted, other = "sqlite3.OperationalError: no such table: 'x' in a", "sqlite3.OperationalError: no table 'x' in b"
    assert brings(noted, other)
    assert not brings(noted, other, "make y")
    assert not brings("KeyError: 'tax'", "KeyError: 'tax'\nexit", "make y")
    assert not brings(noted, other.replace("'x'", "'z'"))


@pytest.mark.parametrize("piece", ["a/", "x/tmp", "1."])
def test_of_a_long_command_only_the_beginning_is_read(piece: str) -> None:
    error = "sqlite3.OperationalError: database is locked"
    short = failure_keys(error, piece * 1_000)
    assert short[-1].startswith("c")
    assert failure_keys(error, piece * 10_000) == short


def test_only_a_mined_cure_is_read_as_one() -> None:
    assert read_cure(MINED) == ("npm run build", MISSING, "`npm run link`")
    assert read_cure("The build failed; it passed after a rest.") is None
