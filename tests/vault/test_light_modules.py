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


def loaded_by(code: str) -> set[str]:
    # A bare module with a search path stands in for the package, which importlib's own helpers would
    # need half of the standard library to load.
    bare = (
        "import os, sys; package = type(sys)('memoryvault'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['memoryvault'] = package; before = set(sys.modules)\n"
        f"{code}\nprint(*sorted(set(sys.modules) - before))"
    )
    folder = str(Path(memoryvault.__file__ or "").parent)
    run = subprocess.run([sys.executable, "-I", "-S", "-c", bare, folder], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_loads_no_heavy_standard_library_module(module: str) -> None:
    loaded = loaded_by(f"import memoryvault.{module}")
    assert f"memoryvault.{module}" in loaded
    ours = {"memoryvault.vault", "memoryvault.runtime", *(f"memoryvault.{name}" for name in LIGHT)}
    assert loaded <= {"__future__", "time", *ours}


def test_ascii_loads_no_table_of_normal_forms() -> None:
    compared = "from memoryvault.runtime.normal_form import normal_form; normal_form({!r})"
    assert "unicodedata" not in loaded_by(compared.format("plain"))
    assert "unicodedata" in loaded_by(compared.format("ä"))
