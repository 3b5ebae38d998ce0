"""Hooks start in milliseconds because what they import loads next to nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

import memoryvault

LIGHT = (
    "runtime.days", "runtime.function_words", "runtime.hooklog", "runtime.index_terms", "runtime.interpreter",
    "runtime.layout", "runtime.normal_form", "runtime.safe_text", "runtime.snapshot", "vault.automemory",
    "vault.core", "vault.evidence", "vault.header", "vault.marker", "vault.pending", "vault.project",
    "vault.render", "vault.statuses", "vault.wording",
)  # fmt: skip


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_loads_no_heavy_standard_library_module(module: str) -> None:
    # A bare module with a search path stands in for the package, which importlib's own helpers would
    # need half of the standard library to load.
    code = (
        "import os, sys; package = type(sys)('memoryvault'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['memoryvault'] = package; before = set(sys.modules)\n"
        f"import memoryvault.{module}\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    folder = str(Path(memoryvault.__file__ or "").parent)
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code, folder], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert f"memoryvault.{module}" in loaded
    ours = {"memoryvault.vault", "memoryvault.runtime", *(f"memoryvault.{name}" for name in LIGHT)}
    assert loaded <= {"__future__", "time", *ours}
