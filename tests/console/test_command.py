"""`memory console`: the link, the opened browser, and the end."""

import os
import pty
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from memoryvault.tests.review.support import Bed
from memoryvault.tests.support import forked
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow


@contextmanager
def running(bed: Bed, *arguments: str, env: Mapping[str, str] = {}) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command at a terminal of its own; (process, the terminal's other end). Ends with Ctrl-C and exit code 0."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "memoryvault", "console", *arguments],
        env={**bed.env, **env},
        cwd="/",
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    try:
        yield process, terminal
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=20)
        assert process.returncode == 0, complaints
        assert "Traceback" not in complaints
    finally:
        process.kill()
        process.communicate()
        os.close(terminal)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_enter_prints_another_link_and_both_work(bed: Bed) -> None:
    with running(bed, "--no-browser") as (process, terminal):
        first = line(process)
        os.write(terminal, b"\n")
        second = line(process)
        assert first.split("?")[0] == second.split("?")[0]
        assert first != second
        for link in (first, second):
            with urlopen(link) as answer:
                assert answer.status == 200


def test_it_listens_on_the_loopback_address_alone(bed: Bed) -> None:
    with running(bed, "--no-browser") as (process, _):
        port = int(line(process).split(":")[2].split("/")[0])
        listening = [
            one.split()[1].split(":")
            for table in ("/proc/net/tcp", "/proc/net/tcp6")
            if Path(table).exists()
            for one in Path(table).read_text().splitlines()[1:]
            if one.split()[3] == "0A"
        ]
        assert [address for address, found in listening if int(found, 16) == port] == ["0100007F"]


def test_the_browser_gets_the_link_by_a_file_that_only_the_user_can_read(bed: Bed) -> None:
    told = bed.root / "told"
    browser = bed.root / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {told}.new\nmv {told}.new {told}\n')
    browser.chmod(0o755)
    with running(bed, env={"BROWSER": str(browser), "DISPLAY": ":99"}) as (process, _):
        printed = line(process)
        wait_until(told.exists, "the browser is told")
        address = told.read_text().strip()
        assert address.startswith("file://")
        door = Path(address.removeprefix("file://"))
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert printed.split("?")[0] in door.read_text()
        assert printed.split("?")[1] not in door.read_text(), "each is a link of its own"
    assert not door.exists()


def test_without_a_screen_no_browser_is_looked_for(bed: Bed) -> None:
    with running(bed) as (process, _):
        assert "/enter?token=" in line(process)
    assert list(Path(bed.settings.state.run).glob("*.html")) == []


def test_what_it_cannot_do_is_told_in_one_line(bed: Bed) -> None:
    def refused(code: int, *arguments: str) -> str:
        done = forked.memory(bed.env, "console", "--no-browser", *arguments)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
        return done.stderr.strip()

    assert refused(2, "--port", "80") == "memory: --port 80: give one from 1024 to 65535, or none for a free one"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert refused(1, "--port", str(port)).startswith(f"memory: port {port} of 127.0.0.1 cannot be used")
    bed.vault.rename(bed.root / "elsewhere")
    refused(1)
