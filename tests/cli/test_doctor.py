"""What doctor says when one thing around us is not as it should be."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.cli import surroundings
from memoryvault.cli.context import Context
from memoryvault.cli.finding import Finding
from memoryvault.demo.sandbox import Sandbox
from memoryvault.vault import hooklog


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(Sandbox(tmp_path).environment)


def line_of_a_hook(context: Context, ago: timedelta, **fields: object) -> None:
    path = Path(context.state.log_file)
    hooklog.append(str(path), "info", "hook", **{"hook": "Stop", "ms": 3.0, "result": "ok", **fields})
    *rest, last = path.read_text().splitlines()
    stamp = (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    path.write_text("\n".join([*rest, f'{{"time": "{stamp}"' + last[last.index(",") :]]) + "\n")


@pytest.mark.parametrize(
    "check",
    [surroundings.vault_and_disk, surroundings.permissions, surroundings.clock, surroundings.sync_clients],
)
def test_a_fresh_vault_is_in_order(context: Context, check: Callable[[Context], Finding]) -> None:
    assert check(context).grade == "ok"


def test_a_full_disk_is_a_fault(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "LOW_DISK_BYTES", 2**60)
    assert surroundings.vault_and_disk(context).grade == "fault"


def test_a_file_that_others_can_read_is_a_fault(context: Context) -> None:
    path = Path(context.state.log_file)
    path.touch()
    os.chmod(path, 0o644)
    found = surroundings.permissions(context)
    assert found.grade == "fault"
    assert str(path) in found.detail
    assert "chmod" in found.todo


def test_a_clock_that_was_set_back_is_told(context: Context) -> None:
    line_of_a_hook(context, timedelta(hours=-2))
    found = surroundings.clock(context)
    assert found.grade == "note"
    assert "ahead" in found.detail


def test_no_hook_in_a_week_is_told(context: Context) -> None:
    line_of_a_hook(context, timedelta(days=8))
    found = surroundings.last_hook(context)
    assert (found.grade, found.detail) == ("note", "none in 7 days")


def test_the_last_hook_is_named_with_its_age_and_result(context: Context) -> None:
    line_of_a_hook(context, timedelta(hours=5))
    line_of_a_hook(context, timedelta(minutes=3), hook="UserPromptSubmit")
    assert surroundings.last_hook(context).detail.startswith("UserPromptSubmit 3 minutes ago, ok")


def test_a_hook_that_failed_last_is_a_fault(context: Context) -> None:
    line_of_a_hook(context, timedelta(minutes=3), result="error")
    assert surroundings.last_hook(context).grade == "fault"


@pytest.mark.parametrize(
    "name",
    ["tabs.sync-conflict-20260101-101010-ABCDEFG.md", "tabs (Ada's conflicted copy 2026-01-01).md"],
)
def test_copies_of_a_sync_client_are_named(context: Context, name: str) -> None:
    folder = context.vault / "personal-private" / "preferences"
    folder.mkdir(parents=True)
    (folder / name).write_text("x")
    found = surroundings.sync_clients(context)
    assert found.grade == "note"
    assert name in found.detail
