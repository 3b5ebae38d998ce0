"""Measure the duration of hooks as whole processes: `python -m memoryvault.bench.hooks`.

Every round runs each row once, with a bare `python -I -S -c pass`, so that a slow moment of the machine affects all
rows alike. Ratios are of medians of one run. The prompts go to a vault of 2,000 entries.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

from ..hooks.install import ACTION_EVENTS, EVENTS, STUB, precompile
from ..index.client import RecallClient, ensure_service
from ..index.drain import drain
from ..index.embedder import DEFAULT_MODEL
from ..index.reconcile import reconcile
from ..index.store import IndexStore
from ..pipelines.triggers import compile_triggers
from ..runtime.errors import MemoryVaultError
from ..runtime.layout import ACTIONS
from ..runtime.settings import Settings, compile_snapshot, load_settings
from ..services.action_index import ActionRule, compile_index
from ..tasks.queue import schema
from ..vault.store import VaultStore
from .index import percentile, write_vault

ALWAYS_LOAD_ENTRIES = 20
WARM_P95_LIMIT_MS = 100.0
PROMPT_LIMIT_MS = 300.0
STOP_RATIO_LIMIT = 2.5
RULES = 1000
"""Number of rules with triggers."""
CALL_RATIO_LIMIT, CALL_P95_LIMIT_MS = 2.5, 60.0


def stub_argv(event: str) -> list[str]:
    """Return what the launcher runs for an event."""
    return [sys.executable, "-I", "-S", str(STUB), event]


@dataclass
class Row:
    """Milliseconds of one kind of run."""

    name: str
    times: list[float] = field(default_factory=list)
    answered: int = 0
    """Runs that printed something for the model."""

    def cells(self, bare: float) -> list[str]:
        median = statistics.median(self.times)
        return [
            self.name,
            str(len(self.times)),
            f"{median:.1f}",
            f"{percentile(self.times, 0.95):.1f}",
            f"{max(self.times):.1f}",
            f"{median / bare:.2f}",
            str(self.answered),
        ]


class Bench:
    """A vault, its state and an environment below `root`; nothing of the user's is touched."""

    def __init__(self, root: Path, entries: int) -> None:
        self.project = root / "project"
        self.transcripts = root / ".claude" / "projects" / "-bench"
        for folder in (self.project, self.transcripts):
            folder.mkdir(parents=True)
        vault = root / "Obsidian" / "MemoryVault"
        self.questions = write_vault(vault, entries, seed=7)
        for number in range(ALWAYS_LOAD_ENTRIES):
            path = vault / "personal-private" / "_always-load" / f"rule-{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"---\nkind: preferences\nstatus: active\n---\n\nRule {number}: {'words ' * 60}\n")
        self.env = {
            "HOME": str(root),
            "PATH": "/usr/bin:/bin",
            "MEMORY_VAULT_PATH": str(vault),
            "MEMORY_STATE_DIR": str(root / "state"),
            "MEMORY_CONFIG": str(root / "config.toml"),
            "MEMORY_AUTOSTART": "false",
        }
        self.settings: Settings = load_settings(self.env)
        self.settings.state.ensure()
        schema.connect(Path(self.settings.state.queue_db), busy_seconds=5, create=True).close()
        compile_snapshot(self.env)
        precompile()
        self._sessions = itertools.count()
        self._asked = itertools.cycle(self.questions)

    def index(self) -> bool:
        """Index the vault, with vectors if the model is here; False without them."""
        settings = self.settings
        files = VaultStore(settings.required_vault_path, Path(settings.state.vault_lock), date.today)
        with IndexStore(Path(settings.state.index_db)) as store:
            reconcile(store, settings.required_vault_path, files.walk)
            if not self.start_service():
                return False
            try:
                with RecallClient(settings.state.recall_socket) as client:
                    drain(store, client.embed, model=DEFAULT_MODEL)
            except MemoryVaultError:
                return False
        return True

    def start_service(self) -> bool:
        """Start the recall service and wait for its model."""
        try:
            return ensure_service(self.settings, 90, wait_for_model=True)
        except MemoryVaultError as error:
            print(f"(the recall service did not start: {error})", file=sys.stderr)
            return False

    def stop_service(self) -> None:
        """Stop it if it runs, and wait until its socket is gone."""
        try:
            with RecallClient(self.settings.state.recall_socket) as client:
                client.stop()
        except MemoryVaultError:
            return
        until = time.monotonic() + 10
        while os.path.exists(self.settings.state.recall_socket) and time.monotonic() < until:
            time.sleep(0.02)

    @contextmanager
    def stopped_service(self) -> Iterator[None]:
        """Stop the service with SIGSTOP, so that it exists and does not answer."""
        with RecallClient(self.settings.state.recall_socket) as client:
            pid = int(client.ping()["pid"])
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def write_rules(self, count: int) -> None:
        """Compile `count` rules as the worker does, for notes that have not changed since."""
        vault = self.settings.required_vault_path
        rules = []
        for number, note in zip(range(count), sorted(vault.rglob("*.md")), strict=False):
            text = f"Never push to branch-{number}; use tool{number} in lib/part{number}/, not npm run job-{number}."
            rule = ActionRule(str(note.relative_to(vault)), text, "12 Nov 2026", "", "")
            stamp = [note.stat().st_mtime_ns, note.stat().st_size]
            named = (f"tool{number}", f"lib/part{number}/", f"npm run job-{number}", f"*.kind{number}")
            rules.append(({**asdict(rule), "stamp": stamp}, compile_triggers(text, named=named)))
        Path(self.settings.state.root, ACTIONS).write_bytes(compile_index(rules))

    def run_call(self, row: Row, command: str) -> None:
        """Run the hook before one call of Bash, in a new session."""
        payload = {
            "session_id": f"bench-{next(self._sessions)}",
            "transcript_path": str(self.transcripts / "x.jsonl"),
            "cwd": str(self.project),
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "a call"},
        }
        self.time(row, stub_argv(ACTION_EVENTS[0]), json.dumps(payload).encode())

    def run(self, row: Row, event: str) -> None:
        """Run one hook in a new session."""
        session = f"bench-{next(self._sessions)}"
        payload = {
            "session_id": session,
            "transcript_path": str(self.transcripts / f"{session}.jsonl"),
            "cwd": str(self.project),
            "source": "startup",
            "notification_type": "idle_prompt",
            "prompt": next(self._asked),
        }
        self.time(row, stub_argv(event), json.dumps(payload).encode())

    def time(self, row: Row, argv: Sequence[str], stdin: bytes = b"") -> None:
        """Run `argv` to its end and record the duration."""
        begun = time.perf_counter()
        done = subprocess.run(argv, input=stdin, env=self.env, cwd=self.project, capture_output=True, check=True)
        row.times.append((time.perf_counter() - begun) * 1000)
        row.answered += bool(done.stdout)


def measure(bench: Bench, rounds: int, *, only_calls: bool = False) -> list[Row]:
    """Return all rows, the bare interpreter first. `only_calls`: leave out the prompts."""
    bare = Row("bare `python -I -S -c pass`")
    rows: dict[str, Row] = {event: Row(event) for event in EVENTS if event != "UserPromptSubmit"}

    def bare_run() -> None:
        bench.time(bare, [sys.executable, "-I", "-S", "-c", "pass"])

    for _ in range(rounds):
        bare_run()
        for event, row in rows.items():
            bench.run(row, event)

    def prompts(name: str, count: int) -> Row:
        row = Row(f"UserPromptSubmit, {name}")
        for _ in range(count):
            bare_run()
            bench.run(row, "UserPromptSubmit")
        return row

    bench.write_rules(RULES)
    calls = {
        f"PreToolUse, {RULES} rules, none matches": "python -m pytest -q tests/test_menu.py && git status --short",
        f"PreToolUse, {RULES} rules, told": "npm run job-500",
    }
    for name, command in calls.items():
        rows[name] = Row(name)
        for _ in range(rounds):
            bare_run()
            bench.run_call(rows[name], command)
    measured = [bare, *rows.values()]
    if only_calls:
        return measured
    if bench.index():
        prompts("warm-up", 3)
        measured.append(prompts("service warm", rounds))
        with bench.stopped_service():
            measured.append(prompts("service stopped (SIGSTOP)", max(rounds // 3, 5)))
        bench.stop_service()
    measured.append(prompts("service absent, FTS5", rounds))
    return measured


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a markdown table."""
    bare = statistics.median(rows[0].times)
    head = ["whole process", "runs", "p50 ms", "p95 ms", "max ms", "× bare", "answered"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *(row.cells(bare) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdicts(rows: Sequence[Row]) -> Mapping[str, bool]:
    """Return the targets, and whether this run met them."""
    named = {row.name: row for row in rows}
    bare = statistics.median(rows[0].times)
    checks: dict[str, Callable[[], bool]] = {
        f"Stop at most {STOP_RATIO_LIMIT} × bare (p50)": lambda: (
            statistics.median(named["Stop"].times) <= STOP_RATIO_LIMIT * bare
        ),
        f"every prompt within {PROMPT_LIMIT_MS:.0f} ms": lambda: all(
            max(row.times) <= PROMPT_LIMIT_MS for row in rows if row.name.startswith("UserPromptSubmit")
        ),
    }
    call = named[f"PreToolUse, {RULES} rules, none matches"]
    checks[f"before a call at most {CALL_RATIO_LIMIT} × bare (p50)"] = lambda: (
        statistics.median(call.times) <= CALL_RATIO_LIMIT * bare
    )
    checks[f"before a call p95 at most {CALL_P95_LIMIT_MS:.0f} ms"] = lambda: (
        percentile(call.times, 0.95) <= CALL_P95_LIMIT_MS
    )
    if "UserPromptSubmit, service warm" in named:
        checks[f"warm prompt p95 at most {WARM_P95_LIMIT_MS:.0f} ms"] = lambda: (
            percentile(named["UserPromptSubmit, service warm"].times, 0.95) <= WARM_P95_LIMIT_MS
        )
    return {name: check() for name, check in checks.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and the targets; return 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only-calls", action="store_true", help="leave the prompts out")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mv-bench-") as root:
        bench = Bench(Path(root), options.entries)
        try:
            rows = measure(bench, options.rounds, only_calls=options.only_calls)
        finally:
            bench.stop_service()
    met = verdicts(rows)
    print(table(rows))
    print()
    for name, passed in met.items():
        print(f"- {name}: {'met' if passed else 'MISSED'}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
