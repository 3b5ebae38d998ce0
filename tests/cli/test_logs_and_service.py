"""`memory service logs` and `memory service`, as a user calls them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.runtime import hooklog


@pytest.fixture
def log_file(sandbox: Sandbox) -> Path:
    assert sandbox.memory("service", "logs") == ""
    return sandbox.state / "log" / "memoryvault.log"


def test_the_newest_lines_come_last_whatever_file_they_are_in(sandbox: Sandbox, log_file: Path) -> None:
    hooklog.append(f"{log_file}.20260101", "info", "hook", name="Old")
    hooklog.append(str(log_file), "info", "hook", name="Stop", ms=3.5)
    hooklog.append(str(log_file), "warning", "tasks.worker", message="took over")
    lines = sandbox.memory("service", "logs").splitlines()
    assert "name=Old" in lines[0]
    assert "name=Stop ms=3.5" in lines[1]
    assert "took over" in lines[2]


def test_lines_are_chosen_by_level_and_event(sandbox: Sandbox, log_file: Path) -> None:
    hooklog.append(str(log_file), "info", "hook", name="Stop")
    hooklog.append(str(log_file), "error", "tasks.worker", message="broken")
    assert sandbox.memory("service", "logs", "--event", "hook").count("\n") == 1
    only = sandbox.memory("service", "logs", "--level", "warning", "--json")
    assert [json.loads(line)["message"] for line in only.splitlines()] == ["broken"]


def test_a_torn_line_is_left_out(sandbox: Sandbox, log_file: Path) -> None:
    log_file.write_text('{"time": "2026-')
    assert sandbox.memory("service", "logs") == ""


@pytest.mark.slow
def test_following_survives_a_rotation(sandbox: Sandbox, log_file: Path) -> None:
    hooklog.append(str(log_file), "info", "hook", name="Before")
    process = subprocess.Popen(
        [sys.executable, "-m", "memoryvault", "service", "logs", "-f"],
        env=sandbox.environment,
        cwd=sandbox.root,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "Before" in process.stdout.readline()
        time.sleep(0.5)
        hooklog.append(str(log_file), "info", "hook", name="Last")
        os.rename(log_file, f"{log_file}.20260101")
        hooklog.append(str(log_file), "info", "hook", name="First")
        assert "Last" in process.stdout.readline()
        assert "First" in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_the_service_is_installed_looked_at_and_removed(sandbox: Sandbox, tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    script = binaries / ("launchctl" if sys.platform == "darwin" else "systemctl")
    script.write_text('#!/bin/sh\ncase "$*" in *is-active*) exit 3;; print*) exit 1;; esac\n')
    script.chmod(0o755)
    sandbox.settings = {"PATH": f"{binaries}:{os.environ.get('PATH', os.defpath)}"}
    assert sandbox.run("service", "status").returncode == 1
    installed = json.loads(sandbox.memory("service", "install", "--json"))
    assert installed["changed"]
    assert Path(installed["definition"]).is_file()
    removed = json.loads(sandbox.memory("uninstall", "--json"))
    assert removed["service_removed"]
    assert not Path(installed["definition"]).exists()
