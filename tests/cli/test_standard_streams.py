"""Commands with standard streams that are closed or full, as cron, service managers and agents' shells leave them."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.tests.support.sandbox import Sandbox

SAVED = ("save", "preferences", "tabs", "--body", "Indent with tabs.")
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
    "list": (0, ""),
    "recall tabs": (0, ""),
    "vault reindex": (0, ""),
    "doctor": (0, ""),
    "skills watchlist": (0, ""),
    "service worker --until-idle": (0, ""),
}
"""By the command: its exit code with a closed standard input, and a word of what it says on stderr."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """With an entry, a proposal that waits, and something more to propose."""
    sandbox = Sandbox(tmp_path_factory.mktemp("streams"))
    for name, rule in (("proposed", "Always run the linter before a commit."), ("repository", "Never push to main.")):
        (sandbox.root / name).mkdir()
        (sandbox.root / name / "CLAUDE.md").write_text(f"# Rules\n\n- {rule}\n", "utf-8")
    sandbox.memory(*SAVED)
    sandbox.memory("import", "seed", str(sandbox.root / "proposed"), "--yes")
    return sandbox


def run(sandbox: Sandbox, redirection: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command with its streams as a shell has them after `redirection`."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "memoryvault", *arguments],
        input=stdin,
        env=sandbox.environment,
        cwd=sandbox.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", WITHOUT_INPUT)
def test_a_closed_standard_input_is_an_empty_one_and_no_terminal(sandbox: Sandbox, line: str) -> None:
    code, said = WITHOUT_INPUT[line]
    done = run(sandbox, "<&-", *line.format(repository=sandbox.root / "repository").split())
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "line", ["list", "idea Dashboard Retries", "recall tabs --json", "vault scrub --stdin", "service mcp"]
)
def test_a_closed_output_takes_what_is_written_to_it(sandbox: Sandbox, line: str, redirection: str) -> None:
    done = run(sandbox, redirection, *line.split())
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
def test_a_full_output_is_an_error_of_one_line(sandbox: Sandbox, line: str) -> None:
    done = run(sandbox, ">/dev/full", *line.split(), stdin="Indent with tabs.\n" * 10_000)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == ["memory: cannot write the output: No space left on device"]
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.slow
def test_the_exit_code_shows_an_error_that_cannot_be_printed(sandbox: Sandbox) -> None:
    for redirection, line in (
        (">/dev/full 2>/dev/full", "list"),
        ("2>/dev/full", "save"),
        ("2>/dev/full", "recall x -k 0"),
    ):
        assert run(sandbox, redirection, *line.split()).returncode == 1


@pytest.mark.parametrize("line", ["list", "config show --reference"])
def test_a_reader_that_went_away_is_no_failure(sandbox: Sandbox, line: str) -> None:
    piped = f"{{ {sys.executable} -m memoryvault {line}; echo $? >&2; }} | true"
    ended = subprocess.run(
        ["/bin/sh", "-c", piped], env=sandbox.environment, cwd=sandbox.root, capture_output=True, text=True, check=False
    )
    assert ended.stderr == "0\n"
