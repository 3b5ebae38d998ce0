"""Findings of `memory doctor`, with one fault at a time."""

import errno
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli import doctor_checks
from memoryvault.cli.context import Context
from memoryvault.cli.doctor import (
    CHECKS,
    PROBE_LEFT_SECONDS,
    PROBE_NOTE,
    _fault,
    _index,
    _remove_left_probes,
    _round_trip,
    _service,
    _worker,
    examine,
)
from memoryvault.cli.doctor_checks import EVERY_SESSION
from memoryvault.cli.output import how_to
from memoryvault.cli.processes import stop_background
from memoryvault.hooks import install as install_module
from memoryvault.hooks.install import STUB, launcher_in, settings_file_of
from memoryvault.hooks.wiring import WIRINGS, install_for, uninstall_for, wire_actions
from memoryvault.index.client import ServiceUnavailable
from memoryvault.index.drain import BATCH_TEXTS
from memoryvault.index.models import wanted_model
from memoryvault.runtime import hooklog
from memoryvault.runtime.process_lock import ProcessLock, lock_holder
from memoryvault.services.device import SETTINGS_NOTE
from memoryvault.services.health_report import health_report
from memoryvault.services.stores import open_index
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.units import SystemdUser
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.readonly import memory_with_readonly
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.automemory import PROBE_KIND
from memoryvault.vault.marker import Marker, create_marker

SHIPPED_SESSION = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(Sandbox(tmp_path).environment)


def test_before_init_the_missing_vault_is_said_once(context: Context) -> None:
    env = {name: value for name, value in context.env.items() if name not in ("MEMORY_VAULT_PATH", "MEMORY_AUTOSTART")}
    findings = list(examine(Context(env)))
    assert [finding.what for finding in findings if "no vault is set" in finding.detail] == ["vault"]
    assert [finding.what for finding in findings if finding.grade == "fault"] == ["vault"]


def test_a_vault_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)

    def told(command: str) -> Any:
        return json.loads(memory_with_readonly(sandbox.vault, sandbox.environment, command, "--json").stdout)

    faults = {each["what"]: each["detail"] for each in told("doctor") if each["grade"] == "fault"}
    warnings = told("health")["warnings"]
    assert list(faults) == ["vault"]
    assert faults["vault"].startswith(f"{sandbox.vault}: ")
    assert "the vault cannot be written, so nothing is kept: `memory doctor` says why" in warnings


def line_of_a_hook(context: Context, ago: timedelta, **fields: object) -> None:
    path = Path(context.state.log_file)
    hooklog.append(
        str(path), "info", "hook", **{"host": "claude", "hook": "Stop", "duration_ms": 3.0, "result": "ok"} | fields
    )
    *rest, last = path.read_text().splitlines()
    stamp = (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    path.write_text("\n".join([*rest, f'{{"time": "{stamp}"' + last[last.index(",") :]]) + "\n")


def test_a_fresh_vault_is_in_order(context: Context) -> None:
    found = [doctor_checks.vault_and_disk(context), doctor_checks.permissions(context)]
    found += [doctor_checks.sync_clients(context), doctor_checks.other_devices(context)]
    found += [doctor_checks.ending_transcripts(context), doctor_checks.login_service(context)]
    assert [each for each in found if each.grade != "ok"] == []


def test_what_is_not_searched_is_named(context: Context, tmp_path: Path) -> None:
    """A link out of the vault is not followed, so neither is the folder of a project on another disk."""
    elsewhere = tmp_path / "disk" / "shop"
    elsewhere.mkdir(parents=True)
    put(context.vault / "personal-projects" / "a.md").with_name("shop").symlink_to(elsewhere)
    found = _index(context)
    assert found.grade == "note"
    assert found.detail.endswith(f"; not searched: personal-projects/shop (a link to {elsewhere})")
    assert found.todo == "move into the vault what is meant to be found: links out of it are not followed"


def test_a_worker_that_gives_no_sign_of_life_is_a_fault(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was stopped by Ctrl-Z in its terminal: it keeps its lock, and no hook starts another."""
    monkeypatch.setattr("memoryvault.tasks.queue.ledger.time.sleep", lambda seconds: None)
    lock = ProcessLock(context.state.worker_lock)
    assert lock.acquire()
    with open_ledger(context.settings) as ledger:
        ledger.beat(os.getpid())
    assert _worker(context).grade == "ok"
    with closing(sqlite3.connect(context.state.queue_db)) as connection, connection:
        connection.execute("UPDATE worker_state SET beat_at = beat_at - 300")
    found = _worker(context)
    assert (found.grade, found.todo[:11]) == ("fault", "`kill -CONT")
    assert found.todo.endswith("`memory service up` starts another"), "no session of an agent knows of it"
    assert found.detail.startswith(f"process {os.getpid()} has not responded for 30")
    warnings = health_report(context.settings, time.time(), lambda _: True, count_entries=False).warnings
    assert f"the worker (process {os.getpid()}) has not responded for 5 minutes: `memory doctor`" in warnings
    lock.release()


def test_without_hooks_doctor_does_not_promise_that_a_session_starts_a_worker(context: Context) -> None:
    context = Context({**context.env, "MEMORY_AUTOSTART": "true"})
    install_for("claude", context.settings)
    assert _worker(context).todo == "the next session starts it, or `memory service up`"
    assert "starts the worker" in doctor_checks.login_service(context).detail
    by_hand = Context({**context.env, "MEMORY_AUTOSTART": "false"})
    assert _worker(by_hand).todo == "`memory service up`"
    uninstall_for("claude", context.settings)
    assert (_worker(context).detail, _worker(context).todo) == ("does not run", "`memory service up`")
    assert doctor_checks.login_service(context).detail == "none"
    hooks = doctor_checks.hooks_wired(context)
    assert (hooks.grade, hooks.todo) == ("note", "run `memory init`")
    assert hooks.detail.startswith("no agent is wired")
    assert doctor_checks.last_hook(context).todo == ""
    install_for("codex", context.settings)
    assert _worker(context).todo.startswith("the next session starts it"), "of any agent"
    assert doctor_checks.hooks_wired(context).detail == "not in Claude Code's settings"


@pytest.mark.slow
def test_a_service_that_was_started_for_the_test_stays_only_where_hooks_will_ask_it(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    context = Context(sandbox.environment)
    try:
        assert "came back" in _round_trip(context).detail
        assert list(sandbox.vault.rglob("*.md")) == [], "nothing is left of it"
        assert lock_holder(context.state.recall_lock) is None
        install_for("claude", context.settings)
        assert "came back" in _round_trip(context).detail
        running = lock_holder(context.state.recall_lock)
        assert running is not None
        uninstall_for("claude", context.settings)
        assert "came back" in _round_trip(context).detail
        assert lock_holder(context.state.recall_lock) == running, "it ran before"
    finally:
        stop_background(context.state, "recall")


@pytest.mark.slow
@pytest.mark.model
def test_the_round_trip_does_not_wait_for_passages_that_others_wait_for(tmp_path: Path) -> None:
    """Embedding what was just migrated or pasted takes minutes; who runs doctor asks whether it works."""
    sandbox = Sandbox(tmp_path)
    notes = BATCH_TEXTS + 1
    for number in range(notes):
        put_note(sandbox.vault, f"personal-private/notes/n{number}.md", f"# Note {number}\n\nText.", kind="notes")
    context = Context(sandbox.environment)
    with sandbox.recall_service():
        found = _round_trip(context)
    assert (found.grade, found.detail) == (
        "ok",
        f"saved, asked in its own words, came back, deleted; {notes} passages have no vector yet",
    )
    assert found.todo == "`memory health` shows how far that is"
    with open_index(context.settings) as index:
        assert index.pending_count(wanted_model(context.settings)) == notes, "none is embedded for the test"


def test_the_note_of_a_doctor_that_was_killed_is_removed_by_the_next(context: Context) -> None:
    ages = {"probe-old": PROBE_LEFT_SECONDS + 60, "probe-of-one-that-runs": 1, "probe-edited": PROBE_LEFT_SECONDS + 60}
    for name, age in ages.items():
        said = "Mine now." if name == "probe-edited" else PROBE_NOTE
        note = put_note(context.vault, f"personal-private/{PROBE_KIND}/{name}.md", said, kind=PROBE_KIND)
        os.utime(note, (time.time() - age,) * 2)
    _remove_left_probes(context)
    assert sorted(note.stem for note in context.vault.rglob("*.md")) == ["probe-edited", "probe-of-one-that-runs"]


def test_a_recall_service_that_hangs_is_named_and_not_ended(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryvault.cli.doctor.SERVICE_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("memoryvault.index.client._start", lambda *_: None)
    context.state.ensure()
    hangs = (
        "import fcntl, os, sys, time; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX); "
        "print(os.getpid(), file=lock, flush=True); print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", hangs, context.state.recall_lock]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"held\n"
        try:
            with pytest.raises(ServiceUnavailable, match=f"`kill -9 {service.pid}` ends it"):
                _service(context).__enter__()
            assert service.poll() is None
        finally:
            service.kill()


def test_a_recall_service_that_does_not_come_up_is_named(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryvault.cli.doctor.ensure_service", lambda *_, **__: False)
    with pytest.raises(ServiceUnavailable, match="start it with `memory service serve`"):
        _service(context).__enter__()


def test_hooks_that_the_agents_settings_switch_off_are_a_fault(context: Context) -> None:
    install_for("claude", context.settings)
    file = settings_file_of(context.settings)
    file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": True}))
    finding = doctor_checks.hooks_wired(context)
    assert (finding.grade, finding.detail) == ("fault", "Claude Code's setting disableAllHooks is on")
    assert finding.todo


@pytest.mark.parametrize(
    ("error", "todo"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/v/a.md"), "give your account the right"),
        (OSError(errno.ENOSPC, "No space left on device", "/v/a.md"), "free some space"),
        (OSError(errno.EIO, "Input/output error", "/v/a.md"), how_to("troubleshooting")),
    ],
)
def test_an_error_of_the_system_is_reported_with_what_to_do(error: OSError, todo: str) -> None:
    found = _fault("index", error)
    assert (found.grade, found.detail) == ("fault", f"/v/a.md: {error.strerror}")
    assert todo in found.todo


def test_a_state_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    found = ForkedSandbox(tmp_path).diagnosis()
    assert "Errno" not in str(found)
    assert found["vault"]["grade"] == "fault"
    assert f"({tmp_path / 'state'}: there is a file where a folder is wanted)" in found["vault"]["detail"]
    assert "MEMORY_STATE_DIR" in found["vault"]["detail"]


def test_a_full_disk_is_a_fault(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "LOW_DISK_BYTES", 2**60)
    assert doctor_checks.vault_and_disk(context).grade == "fault"


def test_a_file_that_others_can_read_is_a_fault(context: Context) -> None:
    stop = Path(context.state.stop_file)
    stop.touch()  # Empty, it is no secret: it has the mode that the user's umask gives.
    os.chmod(stop, 0o644)
    assert doctor_checks.permissions(context).grade == "ok"
    stop.write_text("because of the release\n")
    assert doctor_checks.permissions(context).grade == "fault"
    stop.unlink()
    path = Path(context.state.log_file)
    path.touch()
    os.chmod(path, 0o644)
    found = doctor_checks.permissions(context)
    assert found.grade == "fault"
    assert str(path) in found.detail
    assert "chmod" in found.todo


@pytest.mark.parametrize(
    ("ago", "fields", "grade", "detail"),
    [
        (timedelta(days=8), {}, "note", "none in 7 days"),
        (timedelta(minutes=3), {"hook": "UserPromptSubmit"}, "ok", "UserPromptSubmit 3 min ago, ok"),
        (timedelta(minutes=3), {"result": "error"}, "fault", "Stop 3 min ago"),
        (timedelta(minutes=3), {"result": "no payload"}, "fault", "Stop 3 min ago"),
    ],
    ids=["a week ago", "well", "failed", "could not read the agent"],
)
def test_last_hook_is_judged(context: Context, ago: timedelta, fields: dict[str, str], grade: str, detail: str) -> None:
    line_of_a_hook(context, ago + timedelta(hours=5))
    line_of_a_hook(context, ago, **fields)
    found = doctor_checks.last_hook(context)
    assert (found.grade, found.detail[: len(detail)]) == (grade, detail)


@pytest.mark.parametrize(
    ("came", "absent"),
    [(("SessionStart", "Stop"), "UserPromptSubmit"), (("Stop",), "no User"), (("SessionEnd",), "no Stop")],
)
@pytest.mark.parametrize(("host", "other"), [("claude", "codex"), ("gemini", "claude")])
def test_an_event_that_never_came_is_a_fault(
    context: Context, came: tuple[str, ...], absent: str, host: str, other: str
) -> None:
    for event in came * 3:
        line_of_a_hook(context, timedelta(minutes=3), hook=event, host=host)
    assert doctor_checks.last_hook(context).grade == "ok", "nothing is wired that should bring more"
    install_for(host, context.settings)
    install_for(other, context.settings)
    for event in EVERY_SESSION:
        line_of_a_hook(context, timedelta(minutes=1), hook=event, host=other)
    found = doctor_checks.last_hook(context)
    assert found.grade == "fault"
    assert absent in found.detail
    assert f"3 {came[-1]}" in found.detail
    assert WIRINGS[host].title in found.detail
    for event in EVERY_SESSION:
        line_of_a_hook(context, timedelta(minutes=1), hook=event, host=host)
    assert doctor_checks.last_hook(context).grade == "ok"


def test_a_tool_hook_that_never_ran_is_a_fault(context: Context, tmp_path: Path) -> None:
    """Of the other events each has come. Sessions that began before the hooks were wired tell nothing."""
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
    said = {"type": "assistant", "uuid": "a", "message": {"role": "assistant", "content": [call]}}
    transcript = put(tmp_path / "session.jsonl", f"{json.dumps(said)}\n")
    install_for("claude", context.settings)
    wire_actions("claude", context.settings, on=True)
    for event in EVERY_SESSION:
        line_of_a_hook(context, timedelta(minutes=1), hook=event)
    context.state.ensure()
    for began, grade in (("2001", "ok"), ("2999", "fault")):
        for number in range(3):
            marker = Marker(f"{began}-{number}", f"{began}-01-01T00:00:00Z", "s", str(transcript), host="claude")
            create_marker(context.state.markers, marker)
        found = doctor_checks.last_hook(context)
        assert found.grade == grade
    assert found.detail == "no PreToolUse of Claude Code in 7 days, but 3 sessions ran commands"


def test_hooks_of_another_python_are_fine(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = tmp_path / "venv" / "lib" / running / "site-packages" / "memoryvault"
    package.parent.mkdir(parents=True)
    package.symlink_to(STUB.parents[1])
    for module in (install_module, doctor_checks):
        monkeypatch.setattr(module, "STUB", package / "hooks" / "stub.py")
    install_for("claude", context.settings)
    assert doctor_checks.hooks_wired(context).grade == "ok"
    launcher = Path(launcher_in(context.settings.state_root))
    launcher.write_text(launcher.read_text().replace(f"/{running}/", "/python3.9/"))
    assert doctor_checks.hooks_wired(context).grade == "ok"


def test_a_synced_vault_without_a_named_device_is_noted(context: Context) -> None:
    (context.vault.parent / ".stfolder").mkdir()
    found = doctor_checks.other_devices(context)
    assert (found.grade, socket.gethostname() in found.todo) == ("note", True)
    put_note(context.vault, SETTINGS_NOTE, device="some-other-machine")
    found = doctor_checks.other_devices(context)
    assert found.grade == "ok"
    assert found.detail.startswith("some-other-machine, not this device")


def test_sessions_that_will_be_deleted_unread_are_noted(context: Context, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".claude" / "projects" / "-home-dev"
    transcript = put(folder / "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11.jsonl", SHIPPED_SESSION.read_bytes())
    assert doctor_checks.ending_transcripts(context).grade == "ok"
    os.utime(transcript, (time.time() - 26 * 86_400,) * 2)
    found = doctor_checks.ending_transcripts(context)
    assert found.grade == "note"
    assert "deletes 1 within 7 days" in found.detail
    assert "reflect corpus" in found.todo


def test_copies_of_a_sync_client_are_named(context: Context) -> None:
    copy = put(context.vault / "personal-private/preferences/tabs.sync-conflict-20260101-101010-ABCDEFG.md")
    found = doctor_checks.sync_clients(context)
    assert found.grade == "note"
    assert copy.name in found.detail


def test_the_line_of_a_header_that_cannot_be_read_is_named(context: Context) -> None:
    folder = put_note(context.vault, "personal-private/fix/sound.md", kind="fix").parent
    put_note(context.vault, "Templates/note.md", created="{{date:YYYY-MM-DD}}")
    assert dict(CHECKS)["headers"](context).grade == "ok"
    put_note(folder, "daily.md", "# {{title}}", kind="fix")
    found = dict(CHECKS)["headers"](context)
    assert (found.grade, found.detail.rpartition(": ")[2]) == ("ok", "personal-private/fix/daily.md")
    (folder / "huge.md").write_text("x" * 8_100_000)
    found = dict(CHECKS)["headers"](context)
    assert found.grade == "note"
    assert found.detail.startswith("personal-private/fix/huge.md is larger than 8 MB; ")
    assert found.detail.endswith("fill them in: personal-private/fix/daily.md")
    (folder / "huge.md").unlink()
    put_note(folder, "short.md", kind="fix", title="Deploys: the short way")
    put_note(folder, "slip.md", status="dismised")
    put_note(folder, "also-short.md", kind="fix", title="Builds: the short way")
    put_note(folder, "merge.md", "<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> topic", kind="fix")
    found = dict(CHECKS)["headers"](context)
    assert found.grade == "note"
    assert "fix/short.md, line 3: title: Deploys: the short way" in found.detail
    assert "fix/also-short.md, line 3: title: Builds: the short way" in found.detail
    assert "fix/merge.md, line 5: <<<<<<< HEAD" in found.detail
    slip = "status 'dismised' in personal-private/fix/slip.md is none of ours; did you mean dismissed?"
    assert slip in found.detail
    assert found.detail.endswith("fill them in: personal-private/fix/daily.md")


@pytest.mark.model
def test_a_model_that_no_library_can_load_is_noted(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    found = dict(CHECKS)["model"](context)
    assert found.grade == "note"
    assert "tokenizers" in found.detail


@contextmanager
def no_room(sandbox: Sandbox) -> Iterator[None]:
    """Nothing can be put into it: a folder that is none."""
    away = sandbox.vault.rename(sandbox.root / "elsewhere")
    sandbox.vault.write_text("")
    yield
    sandbox.vault.unlink()
    away.rename(sandbox.vault)


@contextmanager
def written_otherwise(path: Path, old: str, new: str) -> Iterator[None]:
    """Without `old`, the whole file is `new`."""
    text = path.read_text("utf-8")
    path.write_text(text.replace(old, new) if old else new, "utf-8")
    yield
    path.write_text(text, "utf-8")


def agent_settings(sandbox: Sandbox) -> Path:
    return settings_file_of(Context(sandbox.environment).settings)


def launcher_of(sandbox: Sandbox) -> Path:
    return Path(launcher_in(sandbox.root / "state"))


@contextmanager
def a_launcher_that_may_not_be_run(sandbox: Sandbox) -> Iterator[None]:
    launcher_of(sandbox).chmod(0o600)
    yield
    launcher_of(sandbox).chmod(0o700)


def a_hook_that_fails(sandbox: Sandbox) -> AbstractContextManager[None]:
    return written_otherwise(launcher_of(sandbox), "-I -S", "-I -S -m no_such_library")


def hooks_of_a_gone_python(sandbox: Sandbox) -> AbstractContextManager[None]:
    return written_otherwise(launcher_of(sandbox), sandbox.python, "/gone/python")


def a_hook_is_missing(sandbox: Sandbox) -> AbstractContextManager[None]:
    return written_otherwise(agent_settings(sandbox), '"SessionEnd"', '"SessionEnds"')


def settings_of_the_agent_are_broken(sandbox: Sandbox) -> AbstractContextManager[None]:
    return written_otherwise(agent_settings(sandbox), "", '{"hooks": // mine\n}')


@contextmanager
def a_dead_service(sandbox: Sandbox) -> Iterator[None]:
    path = put(SystemdUser(sandbox.environment).definition, "[Unit]\n")
    yield
    path.unlink()


@contextmanager
def a_newer_queue(sandbox: Sandbox) -> Iterator[None]:
    with closing(sqlite3.connect(sandbox.state / "queue.db")) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 999")
        yield
        connection.execute(f"PRAGMA user_version = {version}")


def set_up_at(root: Path) -> Sandbox:
    sandbox = ForkedSandbox(root)
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault), "--history-days", "0")
    return sandbox


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """With its recall service, which doctor else starts for each time it is asked; whoever harms it mends it."""
    sandbox = set_up_at(tmp_path_factory.mktemp("set-up"))
    with sandbox.recall_service():
        yield sandbox


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (no_room, "vault"),
        (hooks_of_a_gone_python, "hooks"),
        (a_launcher_that_may_not_be_run, "hooks"),
        (a_hook_that_fails, "hooks"),
        (a_hook_is_missing, "hooks"),
        (settings_of_the_agent_are_broken, "hooks"),
        (a_dead_service, "service"),
        (a_newer_queue, "queue"),
    ],
)
def test_each_fault_is_found_says_what_to_do_and_ends_with_1(
    set_up: Sandbox, harm: Callable[[Sandbox], AbstractContextManager[None]], what: str
) -> None:
    """The command itself, on a vault that was set up and harmed in one place."""
    with harm(set_up):
        finds_no_fault_but(what, set_up)


def a_model_that_is_not_here(sandbox: Sandbox) -> None:
    with (sandbox.root / "config.toml").open("a") as config:
        config.write('[embedding]\nmodel = "nobody/nothing"\n')


def no_service_can_be_started(sandbox: Sandbox) -> None:
    (sandbox.state / "log" / "serve.stderr").unlink(missing_ok=True)
    (sandbox.state / "log" / "serve.stderr").mkdir(mode=0o700)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "what"), [(a_model_that_is_not_here, "model"), (no_service_can_be_started, "round trip")]
)
def test_service_faults_are_found_where_none_runs(tmp_path: Path, harm: Callable[[Sandbox], None], what: str) -> None:
    sandbox = set_up_at(tmp_path)
    harm(sandbox)
    finds_no_fault_but(what, sandbox)


def finds_no_fault_but(what: str, sandbox: Sandbox) -> None:
    findings = sandbox.diagnosis()
    assert [about for about, found in findings.items() if found["grade"] == "fault"] == [what], findings
    assert findings[what]["todo"] or "memory init" in findings[what]["detail"], findings[what]
