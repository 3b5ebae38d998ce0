"""How commands print: what goes to people."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryvault.cli.doctor import CHECKS
from memoryvault.cli.output import with_home
from memoryvault.runtime.lock import hold_lock
from memoryvault.runtime.settings import load_settings
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.worker import REPORT_SECONDS
from memoryvault.tests.corpus.sessions import RULE, old_session
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import wait_until


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("see /home/me/notes/a.md", "see ~/notes/a.md"),
        ("/home/me/notes", "~/notes"),
        ("memory init --vault '/home/me/my notes'", "memory init --vault '/home/me/my notes'"),
        ("/home/media/film and /mnt/home/me/x", "/home/media/film and /mnt/home/me/x"),
    ],
)
def test_home_is_a_tilde_in_a_path_that_is_not_quoted(monkeypatch: pytest.MonkeyPatch, said: str, shown: str) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert with_home(said) == shown


def test_a_terminal_is_told_the_home_folder_by_a_tilde_and_a_pipe_in_full(
    vault: Path, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    for at_terminal, way in ((True, "seen"), (False, "piped")):
        monkeypatch.setattr("sys.stdout.isatty", lambda at=at_terminal: at)
        for line in (
            ["save", "preferences", f"tabs-{way}", "--body", f"Always use tabs: {way}."],
            ["evolve", f"tabs-{way}", f"Always use spaces: {way}.", "agreed"],
            ["idea", f"A bot that waters the plants {way}"],
            ["idea", "show", f"bot-that-waters-the-plants-{way}"],
            ["vault", "incident", "add", "--body", f"uv fails behind the proxy {way}"],
            ["vault", "topics", "write", f"deploy-{way}", "--project", "shop", "--type", "project",
             "--description", "How", "--body", "Tag, then push."],
        ):  # fmt: skip
            told = memory(*line)
            assert (f"~/{vault.name}/" in told.out) == at_terminal, told
            assert (str(vault) in told.out) != at_terminal, told
            assert str(vault) not in told.err
    assert str(vault) in memory("save", "preferences", "short", "--body", "Keep answers short.", "--json").out


def test_an_entry_is_named_by_its_printed_path(vault: Path, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    monkeypatch.setenv("HOME", str(vault.parent))
    memory("save", "preferences", "tabs", "--body", "Always use tabs.")
    path = f"~/{vault.name}/personal-private/preferences/tabs.md"
    memory("show", path)
    memory("evolve", path, "Always use spaces.", "agreed")
    assert "there is no entry" in memory("show", f"~/{vault.name}/personal-private/preferences/none.md", code=1).err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TABS", "there is no entry TABS; did you mean tabs-not-spaces?"),
        ("tab-not-space", "there is no entry tab-not-space; did you mean tabs-not-spaces?"),
        ("smal-commits", "there is no entry smal-commits; did you mean small-commits?"),
        ("no such thing", "there is no entry 'no such thing': `memory list` shows what there is"),
    ],
)
def test_a_name_that_no_entry_has_is_told_with_one_like_it(vault: Path, memory: Command, name: str, said: str) -> None:
    memory("save", "preferences", "tabs-not-spaces", "--body", "Always use tabs.")
    memory("save", "preferences", "small-commits", "--always", "--body", "Always make small commits.")
    for command in ("show", "guard", "always"):
        assert said in memory(command, name, code=1).err


# Progress of long commands is shown at a terminal only


AT_MOST_SECONDS = 20.0
"""Less than a command waits for the vault's lock, which tests take from it."""


def rows(text: str) -> list[str]:
    """The lines as they stand when they are written: of a line that was written again its last state."""
    return [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("at", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
def test_doctor_tells_each_finding_when_it_has_it(sandbox: Sandbox, at: Callable[[], tuple[int, int]]) -> None:
    sandbox.memory("jobs", "list")
    *before, last = [what for what, _ in CHECKS]
    assert last == "round trip"
    with hold_lock(sandbox.state / "run" / "vault.lock"):
        doctor = Terminal(sandbox, ("doctor",), at)
        doctor.expect("stay on this machine", AT_MOST_SECONDS)
        doctor.expect("\n", AT_MOST_SECONDS)
        head, *told = rows(doctor.text)
        assert doctor.process.poll() is None
        assert head.split() == ["what", "found"]
        assert [line[6:22].strip() for line in told if not line.startswith("testing")][: len(before)] == before
        if at is pty.openpty:
            doctor.expect("testing: round trip", AT_MOST_SECONDS)
        doctor.process.kill()
    assert ("testing" in doctor.text) == (at is pty.openpty)


# ---- the worker that is waited for

WORKER = ("service", "worker", "--until-idle", "--timeout", "120")


@pytest.fixture
def backfill(sandbox: Sandbox) -> Sandbox:
    for number in range(3):
        old_session(sandbox.projects / "-home-dev-shop", number, RULE)
    sandbox.memory("reflect", "corpus", "--execute")
    return sandbox


@pytest.mark.slow
def test_a_worker_that_is_waited_for_shows_at_a_terminal_what_it_is_at(backfill: Sandbox) -> None:
    with hold_lock(backfill.state / "run" / "vault.lock"):
        worker = Terminal(backfill, WORKER)
        worker.expect("3 jobs left", AT_MOST_SECONDS)
        assert worker.process.poll() is None
        assert "\n" not in worker.text, "one line, written again"
    worker.rest()
    *kept, last = rows(worker.text)
    assert last == "", "nothing is left of it"
    assert not [line for line in kept if "working" in line]
    counts = next(line.split()[0] for line in kept if " done" in line)
    assert [line.split()[0] for line in kept] == ["memory:", counts]


@pytest.mark.slow
def test_scripts_and_logs_do_not_see_that(backfill: Sandbox) -> None:
    with hold_lock(backfill.state / "run" / "vault.lock"):
        worker = Terminal(backfill, WORKER, os.pipe)
        wait_until(lambda: running(backfill) == ["reflect.corpus"], "it waits for the lock")
        time.sleep(2 * REPORT_SECONDS)
    text = worker.rest()
    assert "working" not in text
    assert "\r" not in text


def running(sandbox: Sandbox) -> list[str]:
    return [job["kind"] for job in sandbox.json("jobs", "list", "--state", "running")]


def test_a_worker_that_ends_names_what_lists_the_jobs_that_wait_for_their_time(sandbox: Sandbox) -> None:
    sandbox.memory("jobs", "list")
    with open_ledger(load_settings(sandbox.environment)) as ledger:
        ledger.enqueue("research.idea", {"slug": "a"}, delay_seconds=3600)
    (line,) = sandbox.memory(*WORKER).splitlines()
    assert line.endswith("1 delayed (`memory jobs list`)")


def test_a_worker_whose_time_is_over_says_that_something_is_left(sandbox: Sandbox) -> None:
    sandbox.memory("jobs", "list")
    done = sandbox.run(*WORKER[:3], "--timeout", "0")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("memory: it ended before all was done")


# Commands with standard streams that are closed or full, as cron, service managers and agents' shells leave them


NO_TERMINAL = "terminal"
NO_TEXT = "text"
NO_REPORT = "the report is empty"
WITHOUT_INPUT = {
    "save fix kettle": (2, NO_TEXT),
    "evolve tabs --reason because": (2, NO_TEXT),
    "vault topics write deploy --type project --description Deploying": (2, NO_TEXT),
    "vault incident add": (2, NO_REPORT),
    "vault incident find": (2, NO_REPORT),
    "init": (2, NO_TERMINAL),
    "review": (2, NO_TERMINAL),
    "undo --last": (2, NO_TERMINAL),
    "import seed {repository}": (0, "nothing was written; --yes"),
    "vault inbox triage": (0, ""),
    "config model use nobody/nothing": (2, NO_TERMINAL),
    "vault scrub --stdin": (0, ""),
    "service mcp": (0, ""),
    "recall tabs": (0, ""),
    "doctor": (0, ""),
    "service worker --until-idle": (0, ""),
}
"""By the command: its exit code with a closed standard input, and a word of what it says on stderr."""


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """With an entry, a proposal that waits, and something more to propose."""
    streams = Sandbox(tmp_path_factory.mktemp("streams"))
    for name, rule in (("proposed", "Always run the linter before a commit."), ("repository", "Never push to main.")):
        (streams.root / name).mkdir()
        (streams.root / name / "CLAUDE.md").write_text(f"# Rules\n\n- {rule}\n", "utf-8")
    streams.memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    streams.memory("import", "seed", str(streams.root / "proposed"), "--yes")
    return streams


def run(streams: Sandbox, redirection: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command with its streams as a shell has them after `redirection`."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "memoryvault", *arguments],
        input=stdin,
        env=streams.environment,
        cwd=streams.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", WITHOUT_INPUT)
def test_a_closed_standard_input_is_an_empty_one_and_no_terminal(streams: Sandbox, line: str) -> None:
    code, said = WITHOUT_INPUT[line]
    done = run(streams, "<&-", *line.format(repository=streams.root / "repository").split())
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "line", ["list", "idea add Dashboard Retries", "recall tabs --json", "vault scrub --stdin", "service mcp"]
)
def test_a_closed_output_takes_what_is_written_to_it(streams: Sandbox, line: str, redirection: str) -> None:
    done = run(streams, redirection, *line.split())
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_what_is_opened_later_takes_the_place_of_no_closed_stream(tmp_path: Path) -> None:
    """A note or a database with the number of standard output would get what a child prints."""
    code = (
        "import os, subprocess, sys\n"
        "from memoryvault.cli.standard_streams import open_closed_streams\n"
        "open_closed_streams()\n"
        f"file = open({str(tmp_path / 'note')!r}, 'w+')\n"
        "assert file.fileno() > 2\n"
        "assert sys.stdin.read() == '' and not sys.stdin.isatty()\n"
        "print('lost'), print('lost', file=sys.stderr, flush=True)\n"
        "child = 'import os; [os.fstat(number) for number in range(3)]; print(1)'\n"
        "file.write(str(subprocess.run([sys.executable, '-c', child]).returncode))\n"
    )
    command = ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert (tmp_path / "note").read_text("utf-8") == "0"


@pytest.mark.parametrize(
    "line", ["list", "list --json", "recall tabs", "--help", "vault scrub --stdin", "config show --reference"]
)
def test_a_full_output_is_an_error_of_one_line(streams: Sandbox, line: str) -> None:
    done = run(streams, ">/dev/full", *line.split(), stdin="Indent with tabs.\n" * 10_000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == ["memory: cannot write the output: No space left on device"]
    assert ("Traceback" in done.stderr, "Exception" in done.stderr) == (False, False)


@pytest.mark.slow
def test_the_exit_code_shows_an_error_that_cannot_be_printed(streams: Sandbox) -> None:
    for redirection, line in ((">/dev/full 2>/dev/full", "list"), ("2>/dev/full", "recall x -k 0")):
        assert run(streams, redirection, *line.split()).returncode == 1


@pytest.mark.parametrize("line", ["list", "config show --reference"])
def test_a_reader_that_went_away_is_no_failure(streams: Sandbox, line: str) -> None:
    piped = f"{{ {sys.executable} -m memoryvault {line}; echo $? >&2; }} | true"
    ended = subprocess.run(
        ["/bin/sh", "-c", piped], env=streams.environment, cwd=streams.root, capture_output=True, text=True, check=False
    )
    assert ended.stderr == "0\n"
