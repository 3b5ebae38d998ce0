"""Recall over 1,000, 20,000 and 100,000 entries: `python -m memoryvault.bench scale [--sizes N …]`.

For each size: the index is built; built again in a process that is killed half way, and resumed; then the real
service answers whole hooks one after the other, and an engine in this process answers alone. Last come 20 hooks
started together: with nothing else going on, while 5,000 more entries are embedded, and with a disk that does
not answer (the notes were changed and whoever opens one waits, see dead_disk.py). See corpus.py for what the notes
and their vectors are made of. Without MEMORYVAULT_DATA the sentences are made up as well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ..hooks.install import precompile
from ..index.client import RecallClient, ensure_service
from ..index.drain import drain
from ..index.embedder import DEFAULT_MODEL, Embedder, load_embedder
from ..index.engine import RecallEngine, RecallQuery
from ..index.reconcile import reconcile
from ..index.store import IndexStore
from ..runtime.settings import Settings, compile_snapshot, load_settings
from ..tasks.queue import schema
from ..vault.store import VaultStore
from .corpus import Sample, embed_some, make_up_rest, sentences, write_notes
from .dead_disk import unanswered
from .hooks import stub_argv
from .index import latencies, memory_mb, percentile

SIZES = (1_000, 20_000, 100_000)
AT_ONCE = 20
BURSTS = 4
DRAINED = 5_000
PROMPT_LIMIT_MS, START_LIMIT_MS = 300.0, 500.0
HOOK_GOAL = (20_000, 80.0)
ENGINE_GOAL = (100_000, 80.0)
MEMORY_GOAL = (20_000, 650)


@dataclass
class Hooks:
    """Whole hook processes of one kind."""

    name: str
    times: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    """Milliseconds that each measured itself, from the start of its interpreter."""
    answered: int = 0
    cut: int = 0
    """Runs that their own watchdog ended."""
    partial: int = 0
    late: dict[str, int] = field(default_factory=dict)

    def cells(self) -> list[str]:
        late = ", ".join(f"{what} {count}" for what, count in sorted(self.late.items())) or "–"
        own = (f"{percentile(self.own, 0.95):.0f}", f"{max(self.own):.0f}") if self.own else ("–", "–")
        figures = [
            f"{percentile(self.times, 0.5):.0f}",
            f"{percentile(self.times, 0.95):.0f}",
            f"{max(self.times):.0f}",
        ]
        return [self.name, str(len(self.times)), *figures, *own, str(self.answered), str(self.cut), late]


HOOKS_HEAD = [
    "whole process",
    "runs",
    "p50 ms",
    "p95",
    "max",
    "own p95",
    "own max",
    "answered",
    "cut off",
    "what was missing",
]


class Bed:
    """A vault of `entries` notes with its state below `root`."""

    def __init__(self, root: Path, said: Sequence[str], entries: int) -> None:
        self.project = root / "project-3"
        self.transcripts = root / ".claude" / "projects" / "-bench"
        self.vault = root / "Obsidian" / "MemoryVault"
        for folder in (self.project, self.transcripts, self.vault):
            folder.mkdir(parents=True)
        self.said = said
        self.entries = entries
        self.questions = write_notes(self.vault, said, entries)
        self.env = {
            "HOME": str(root),
            "PATH": "/usr/bin:/bin",
            "MEMORY_VAULT_PATH": str(self.vault),
            "MEMORY_STATE_DIR": str(root / "state"),
            "MEMORY_CONFIG": str(root / "config.toml"),
            "MEMORY_AUTOSTART": "false",
        }
        self.settings: Settings = load_settings(self.env)
        self.settings.state.ensure()
        schema.connect(Path(self.settings.state.queue_db), busy_seconds=5, create=True).close()
        compile_snapshot(self.env)
        precompile()
        self._sessions = 0

    @property
    def index_db(self) -> Path:
        return Path(self.settings.state.index_db)

    def reconcile(self) -> float:
        """Index all changed notes; return the seconds."""
        return _reconcile(self.vault, self.index_db)

    def killed_and_resumed(self) -> dict[str, float]:
        """Rebuild the index in a process that is killed half way; return the seconds before and after."""
        argv = [sys.executable, "-m", "memoryvault.bench.scale", "--reconcile", str(self.vault), str(self.index_db)]
        begun = time.perf_counter()
        child = subprocess.Popen(argv)
        while child.poll() is None:
            time.sleep(0.05)
            if self.index_db.exists() and _indexed(self.index_db) >= self.entries // 2:
                child.send_signal(signal.SIGKILL)
                break
        child.wait()
        took = time.perf_counter() - begun
        kept = _indexed(self.index_db)
        rest = self.reconcile()
        if _indexed(self.index_db) != self.entries:
            raise SystemExit("the resumed rebuild lost entries")
        return {"killed_after_s": round(took, 1), "kept": kept, "resumed_s": round(rest, 1)}

    def prompt(self) -> bytes:
        self._sessions += 1
        session = f"bench-{self._sessions}"
        payload = {
            "session_id": session,
            "transcript_path": str(self.transcripts / f"{session}.jsonl"),
            "cwd": str(self.project),
            "source": "startup",
            "prompt": self.questions[self._sessions % len(self.questions)],
        }
        return json.dumps(payload).encode()

    def run(self, into: Hooks, event: str, count: int, at_once: int = 1) -> None:
        """Run `count` hooks, `at_once` at a time, and read their own figures from the log."""
        log = Path(self.settings.state.log_file)
        before = len(log.read_text().splitlines()) if log.exists() else 0
        argv = stub_argv(event)

        def one(payload: bytes) -> tuple[float, bool]:
            begun = time.perf_counter()
            done = subprocess.run(argv, input=payload, env=self.env, cwd=self.project, capture_output=True, check=True)
            return (time.perf_counter() - begun) * 1000, bool(done.stdout)

        with ThreadPoolExecutor(at_once) as pool:
            for _ in range(count // at_once):
                for took, printed in pool.map(one, [self.prompt() for _ in range(at_once)]):
                    into.times.append(took)
                    into.answered += printed
        for line in log.read_text().splitlines()[before:]:
            said = json.loads(line)
            if said.get("hook") != event:
                continue
            into.own.append(float(said["duration_ms"]))
            into.cut += said.get("result") == "time budget exceeded"
            for what in str(said.get("degraded") or "").split("; "):
                if what:
                    into.late[what] = into.late.get(what, 0) + 1

    @contextmanager
    def service(self) -> Iterator[RecallClient]:
        if not ensure_service(self.settings, 120, wait_for_model=True):
            raise SystemExit("the recall service did not start")
        with RecallClient(self.settings.state.recall_socket) as client:
            try:
                yield client
            finally:
                client.stop()
                until = time.monotonic() + 10
                while os.path.exists(self.settings.state.recall_socket) and time.monotonic() < until:
                    time.sleep(0.05)

    @contextmanager
    def draining(self) -> Iterator[None]:
        """Add DRAINED entries, which the service embeds while the block runs."""
        write_notes(self.vault / "more", self.said, DRAINED, seed=11)
        self.reconcile()
        stop = threading.Event()

        def work() -> None:
            with IndexStore(self.index_db) as store, RecallClient(self.settings.state.recall_socket) as client:
                drain(store, client.embed, model=DEFAULT_MODEL, should_stop=stop.is_set)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(2)
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def dead_disk(self) -> AbstractContextManager[int]:
        """Change every note, and let opening it block."""
        return unanswered(sorted(self.vault.rglob("*.md")))


def _reconcile(vault: Path, index_db: Path) -> float:
    files = VaultStore(vault, index_db.with_name("vault.lock"), date.today)
    begun = time.perf_counter()
    with IndexStore(index_db) as store:
        reconcile(store, vault, files.walk)
    return time.perf_counter() - begun


def _indexed(index_db: Path) -> int:
    with IndexStore(index_db) as store:
        return store.stats().entries


def measure(
    root: Path, said: Sequence[str], embedder: Embedder, sample: Sample | None, entries: int, rounds: int
) -> tuple[dict[str, Any], list[Hooks], Sample]:
    """Return (figures, rows of hooks, the embedded sample) for one size."""
    bed = Bed(root, said, entries)
    figures: dict[str, Any] = {"entries": entries, "rebuild_s": round(bed.reconcile(), 1)}
    for suffix in ("", "-wal", "-shm"):
        Path(f"{bed.index_db}{suffix}").unlink(missing_ok=True)
    figures |= bed.killed_and_resumed()
    with IndexStore(bed.index_db) as store:
        sample = sample or embed_some(store, embedder)
        make_up_rest(store, sample)
        store.put_in_force(DEFAULT_MODEL)
        figures["passages"] = store.stats().chunks
        figures["index_mb"] = round(store.stats().size_bytes / 1e6, 1)
    engine = RecallEngine(bed.index_db, bed.vault, embedder, keep_vectors=True)
    try:
        figures["engine"] = latencies(ask(engine, bed.questions))
    finally:
        engine.close()
    rows: list[Hooks] = []

    def hooks(name: str, event: str, count: int, at_once: int = 1) -> None:
        rows.append(Hooks(f"{entries:,}: {name}"))
        bed.run(rows[-1], event, count, at_once)

    begun = time.perf_counter()
    with bed.service() as client:
        figures["first_semantic_answer_s"] = round(_first_answer(client, bed.questions[0]) - begun, 2)
        bed.run(Hooks("warm-up"), "UserPromptSubmit", 5)
        time.sleep(1)
        hooks("prompts one by one", "UserPromptSubmit", rounds)
        figures["service_memory_mb"] = memory_mb(client.ping()["pid"])
        hooks(f"{AT_ONCE} prompts at once", "UserPromptSubmit", BURSTS * AT_ONCE, AT_ONCE)
        hooks(f"{AT_ONCE} session starts at once", "SessionStart", BURSTS * AT_ONCE, AT_ONCE)
        with bed.draining():
            hooks("prompts one by one, a drain running", "UserPromptSubmit", rounds // 2)
            hooks(f"{AT_ONCE} prompts at once, a drain running", "UserPromptSubmit", BURSTS * AT_ONCE, AT_ONCE)
        with bed.dead_disk():
            hooks("prompts one by one, the disk dead", "UserPromptSubmit", rounds // 2)
            hooks(f"{AT_ONCE} prompts at once, the disk dead", "UserPromptSubmit", BURSTS * AT_ONCE, AT_ONCE)
    return figures, rows, sample


def _first_answer(client: RecallClient, question: str) -> float:
    while client.recall(question, floor=False)["degraded"]:
        time.sleep(0.02)
    return time.perf_counter()


def ask(engine: RecallEngine, questions: Sequence[str]) -> Iterator[tuple[float, Mapping[str, float], bool]]:
    """Ask as a hook does, with the vectors in memory."""
    engine.recall(RecallQuery(questions[0]))
    assert engine._matrices is not None
    engine._matrices.wait_until_filled(60)
    for question in questions:
        begun = time.perf_counter()
        result = engine.recall(RecallQuery(question + " ", project="project-3", is_prompt=True))
        yield (time.perf_counter() - begun) * 1000, result.timings_ms, bool(result.degraded)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


FIGURES: tuple[tuple[str, Callable[[dict[str, Any]], object]], ...] = (
    ("passages", lambda f: f["passages"]),
    ("index, MB", lambda f: f["index_mb"]),
    ("indexed anew, s", lambda f: f["rebuild_s"]),
    ("killed after, s", lambda f: f["killed_after_s"]),
    ("entries that were kept", lambda f: f["kept"]),
    ("the rest after that, s", lambda f: f["resumed_s"]),
    ("start to first semantic answer, s", lambda f: f["first_semantic_answer_s"]),
    ("service, MB (peak)", lambda f: "{now} ({peak})".format(**(f["service_memory_mb"] or {"now": "–", "peak": "–"}))),
    ("engine p50, ms", lambda f: f["engine"]["p50_ms"]),
    ("engine p95, ms", lambda f: f["engine"]["p95_ms"]),
    *(
        (
            f"– {stage}, p50 (p95)",
            lambda f, s=stage: "{} ({})".format(
                *(f["engine"][k].get(s, "–") for k in ("stages_p50_ms", "stages_p95_ms"))
            ),
        )
        for stage in ("refine", "keyword", "embed", "dense", "evidence", "fuse", "check")
    ),
)


def verdicts(figures: Sequence[Mapping[str, Any]], rows: Sequence[Hooks]) -> dict[str, bool]:
    """Return the goals that this run can judge, and whether they were met."""
    said: dict[str, bool] = {}
    for each in figures:
        if each["entries"] == ENGINE_GOAL[0]:
            said[f"engine p95 at {ENGINE_GOAL[0]:,} at most {ENGINE_GOAL[1]:.0f} ms"] = (
                each["engine"]["p95_ms"] <= ENGINE_GOAL[1]
            )
        if each["entries"] == MEMORY_GOAL[0] and each["service_memory_mb"]:
            said[f"service at {MEMORY_GOAL[0]:,} at most {MEMORY_GOAL[1]} MB"] = (
                each["service_memory_mb"]["peak"] <= MEMORY_GOAL[1]
            )
    for row in rows:
        if row.name == f"{HOOK_GOAL[0]:,}: prompts one by one":
            said[f"whole hook p95 at {HOOK_GOAL[0]:,} at most {HOOK_GOAL[1]:.0f} ms"] = (
                percentile(row.times, 0.95) <= HOOK_GOAL[1]
            )
    ends = [(max(row.own), START_LIMIT_MS if "session" in row.name else PROMPT_LIMIT_MS) for row in rows if row.own]
    said["every hook within its limit by its own clock"] = all(most <= limit for most, limit in ends)
    first, last = figures[0], figures[-1]
    grown = last["entries"] / first["entries"]
    for name, value in (("index", "index_mb"), ("rebuild", "rebuild_s")):
        said[f"the {name} grows at most linearly"] = last[value] <= 1.3 * grown * max(first[value], 0.1)
    said["the engine's p95 grows at most linearly"] = last["engine"]["p95_ms"] <= grown * first["engine"]["p95_ms"]
    return said


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables and the goals; return 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=100, help="prompts one by one")
    parser.add_argument("--folder", type=Path, help="where the vaults are made (default: the temporary folder)")
    parser.add_argument("--reconcile", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.reconcile:
        _reconcile(*options.reconcile)
        return 0
    data = os.environ.get("MEMORYVAULT_DATA")
    said = sentences(Path(data) if data else None)
    embedder = load_embedder(DEFAULT_MODEL, models_folder=Path("/nonexistent"), threads=1)
    figures: list[dict[str, Any]] = []
    rows: list[Hooks] = []
    sample: Sample | None = None
    # The sample is as large as the first vault that can give it, so the largest is measured first.
    for entries in sorted(options.sizes, reverse=True):
        with tempfile.TemporaryDirectory(prefix="mv-scale-", dir=options.folder, ignore_cleanup_errors=True) as root:
            found, hooks, sample = measure(Path(root), said, embedder, sample, entries, options.rounds)
        print(json.dumps(found), *(row.cells() for row in hooks), sep="\n", file=sys.stderr, flush=True)
        figures.insert(0, found)
        rows = hooks + rows
    print(
        table(
            ["entries", *(f"{each['entries']:,}" for each in figures)],
            [[name, *(str(get(each)) for each in figures)] for name, get in FIGURES],
        )
    )
    print()
    print(table(HOOKS_HEAD, [row.cells() for row in rows]))
    print()
    met = verdicts(figures, rows)
    for name, passed in met.items():
        print(f"- {name}: {'met' if passed else 'MISSED'}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
