"""A command imports no heavy module that it does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.cli.main import COMMANDS
from memoryvault.tasks.jobs.wiring import HANDLERS
from memoryvault.tasks.queue.kinds import POLICIES

HEAVY = (
    "numpy", "onnxruntime", "torch", "httpx", "httpcore", "feedparser", "trafilatura", "watchdog", "huey", "starlette",
    "uvicorn", "pydantic", "memoryvault.pipelines.reading.ngrams",
)  # fmt: skip
"""What takes 20 to 200 milliseconds, our own miner's patterns included."""
SERVE = {
    "console": "starlette, uvicorn, huey",
    "service mcp": "pydantic, starlette, uvicorn",
    "service worker": "huey",
    "service up": "huey",
}
"""Commands that stay, and what they serve with."""


def imported_by(code: str) -> list[str]:
    """Which of the heavy modules a program has imported at its end."""
    told = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_no_command_that_ends_by_itself_imports_what_it_may_not_need() -> None:
    modules = sorted({module for name, (module, *_) in COMMANDS.items() if name not in SERVE})
    assert imported_by("\n".join(f"import memoryvault.cli.{module}" for module in modules)) == []


@pytest.mark.parametrize("name", SERVE)
def test_a_command_that_stays_imports_what_it_serves_with_and_nothing_else(name: str) -> None:
    module, *_ = COMMANDS[name]
    assert set(imported_by(f"import memoryvault.cli.{module}")) <= set(SERVE[name].split(", "))


def test_a_worker_does_not_import_what_only_its_children_and_few_of_its_jobs_need() -> None:
    code = "from memoryvault.tasks.jobs.wiring import build_worker"
    assert imported_by(code) == ["huey"]
    assert imported_by("import memoryvault.index.watcher") == ["watchdog"]


def test_the_index_is_opened_with_its_vectors_and_without_numpy(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from memoryvault.index.database import *\n"
        f"assert has_vectors(open_writer(Path({str(tmp_path / 'index.db')!r})))\n"
        f"assert has_vectors(open_reader(Path({str(tmp_path / 'index.db')!r})))"
    )
    assert imported_by(code) == []


def test_each_kind_has_a_handler() -> None:
    assert set(HANDLERS) == set(POLICIES) - {"spool.ingest"}, "the spool is taken in by the worker itself"
