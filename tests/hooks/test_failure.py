"""When a command fails as it failed before, the agent is told what helped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoryvault.runtime.settings import load_settings
from memoryvault.services.incidents import add
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.stores import vault_store
from memoryvault.vault.failure import failure_keys, message_key, read_cure

from .support import Sandbox

pytestmark = pytest.mark.hurried

TRACE = """\
Traceback (most recent call last):
  File "/home/ann/shop/db.py", line 88, in connect
    raise OperationalError
sqlite3.OperationalError: database is locked: /tmp/x/q.db (pid 4711)
"""
ELSEWHERE = TRACE.replace("/home/ann", "/srv").replace("88", "91").replace("4711", "12")
MINED = "`npm run build` failed with “Error: Cannot find module '@shop/ui'”; it passed after `npm run link`."


def compiled(sandbox: Sandbox) -> None:
    reconcile_now(load_settings(sandbox.env))


def fail(sandbox: Sandbox, error: object, command: object = "make test", **fields: object) -> str:
    """What the agent is told, '' for nothing."""
    shape = {"tool_name": "Bash", "tool_input": {"command": command}, "error": error, "is_interrupt": False}
    done = sandbox.run("PostToolUseFailure", sandbox.payload(**{**shape, **fields}))
    assert done.returncode == 0
    if not done.stdout:
        return ""
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUseFailure"
    return str(answer["additionalContext"])


def test_a_failure_that_was_noted_is_known_again_elsewhere_and_told_once(sandbox: Sandbox) -> None:
    store = vault_store(load_settings(sandbox.env))
    sandbox.state.ensure()
    add(store, TRACE, resolution="Stop the other worker first.")
    compiled(sandbox)
    told = fail(sandbox, "Exit code 1\n" + ELSEWHERE)
    assert told.startswith("This failed in the same way before: ")
    assert told.endswith("What helped: Stop the other worker first.")
    assert fail(sandbox, "Exit code 1\n" + ELSEWHERE) == ""
    assert fail(sandbox, "Exit code 1\n" + ELSEWHERE, session_id="another") == told


def test_one_of_its_lines_is_enough(sandbox: Sandbox) -> None:
    add_incident = vault_store(load_settings(sandbox.env))
    sandbox.state.ensure()
    add(add_incident, TRACE, resolution="Stop the other worker first.")
    compiled(sandbox)
    told = fail(sandbox, f"Exit code 2\ncollected 4 items\n{TRACE.splitlines()[-1]}\n1 failed in 0.2 s")
    assert told.startswith("This message came before: ")


def test_what_a_session_cured_is_told_in_the_next_without_anybodys_doing(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_inbox/link.md", MINED, kind="fix", status="inbox")
    compiled(sandbox)
    told = fail(sandbox, "Exit code 1\n> shop@1.0.0 build\nError: Cannot find module '@shop/ui'\n", "npm run build")
    assert "it passed" not in told
    assert told.endswith("What helped: `npm run link`")


@pytest.mark.parametrize(
    "note",
    [
        {"status": "rejected"},
        {"status": "dismissed"},
        {"project": "other"},
    ],
)
def test_a_cure_that_was_turned_down_or_is_another_projects_is_not_told(sandbox: Sandbox, note: dict[str, str]) -> None:
    sandbox.entry("personal-private/fix/link.md", MINED, **{"kind": "fix", "status": "active", **note})
    compiled(sandbox)
    assert fail(sandbox, "Error: Cannot find module '@shop/ui'", "npm run build") == ""


@pytest.mark.parametrize("change", [("status: inbox", "status: rejected"), ("npm run link", "npm ci"), ("", "")])
def test_a_cure_that_was_turned_down_or_edited_a_moment_ago_is_not_told(
    sandbox: Sandbox, change: tuple[str, str]
) -> None:
    note = sandbox.entry("personal-private/_inbox/link.md", MINED, kind="fix", status="inbox")
    compiled(sandbox)
    text = note.read_text()
    if change[0]:
        note.write_text(text.replace(*change))
    else:
        note.unlink()
    assert fail(sandbox, "Error: Cannot find module '@shop/ui'", "npm run build") == ""
    note.write_text(text + "\n")
    assert fail(sandbox, "Error: Cannot find module '@shop/ui'", "npm run build")


def test_what_was_inferred_in_other_words_is_not_told_from_the_inbox(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_inbox/x.md", "Error: Cannot find module '@shop/ui'", kind="fix", status="inbox")
    compiled(sandbox)
    assert fail(sandbox, "Error: Cannot find module '@shop/ui'") == ""


@pytest.mark.parametrize(
    "fields",
    [{"error": "some other error entirely"}, {"error": ""}, {"error": None}, {"is_interrupt": True}, {"tool_input": 1}],
)
def test_any_other_failure_prints_nothing(sandbox: Sandbox, fields: dict[str, object]) -> None:
    sandbox.entry("personal-private/fix/link.md", MINED, kind="fix")
    compiled(sandbox)
    usual: dict[str, object] = {"error": "Error: Cannot find module '@shop/ui'", "command": "npm run build"}
    assert fail(sandbox, **{**usual, **fields}) == ""


def test_without_a_compiled_file_or_with_a_damaged_one_nothing_is_said(sandbox: Sandbox) -> None:
    assert fail(sandbox, "Error: Cannot find module '@shop/ui'") == ""
    sandbox.state.ensure()
    for damage in ("", "{", '{"k": 1}\n', '{"k": {}}\n'):
        Path(sandbox.state.root, "failures.json").write_text(damage)
        assert fail(sandbox, "Error: Cannot find module '@shop/ui'") == ""


def test_the_rungs_go_from_sure_to_less_sure() -> None:
    keys = failure_keys("Exit code 1\n" + TRACE, "python app.py")
    assert keys[0].startswith("x")
    assert keys[-1] == "cpython OperationalError"
    assert message_key(TRACE.splitlines()[-1]) in keys
    assert keys[0] == failure_keys(ELSEWHERE, "x")[0]
    assert message_key("npm ERR!") == ""


def test_only_a_mined_cure_is_read_as_one() -> None:
    assert read_cure(MINED) == ("npm run build", "Error: Cannot find module '@shop/ui'", "`npm run link`")
    assert read_cure("The build failed; it passed after a rest.") is None
