"""The drain against a plain `encode`, and recall over 2,000 entries: `python -m memoryvault.bench.index`.

The recall service is a real process with the real model. Plain encoding runs in this process with the
same model over the same texts, before and after the drain, so that a machine that slows down is seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, ensure_service
from ..index.drain import drain
from ..index.embedder import DEFAULT_MODEL, load_embedder
from ..index.engine import RecallEngine, RecallQuery
from ..index.reconcile import reconcile
from ..index.store import IndexStore
from ..vault.settings import Settings, load_settings
from ..vault.store import VaultStore

SERVE = (
    "import os; from memoryvault.index.service import ServiceConfig, serve; "
    "from memoryvault.vault.settings import load_settings; "
    "serve(ServiceConfig.from_settings(load_settings(os.environ)))"
)
KINDS = ("preferences", "fix", "workflow")
_SYLLABLES = re.findall("..", "bacodefiguhajokilumenopaquirosutavewixoyazu")
_COMMON = re.findall(
    r"\S+",
    "the build fails when tests run on a branch without its config file so we set the flag before each commit "
    "and keep the server logs in one folder until a release is tagged by hand because of the old deploy script",
)


def write_vault(vault: Path, entries: int, seed: int) -> list[str]:
    """Notes of 15 to 160 words, common ones and made-up names; returns one question per tenth note."""
    choose = random.Random(seed)
    names = ["".join(choose.choices(_SYLLABLES, k=3)) for _ in range(3 * entries // 2)]
    questions = []
    for number in range(entries):
        words = choose.choices(_COMMON, k=choose.randint(12, 140)) + choose.choices(names, k=choose.randint(3, 20))
        choose.shuffle(words)
        kind = KINDS[number % len(KINDS)]
        path = vault / "personal-private" / kind / f"note-{number:05d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nkind: {kind}\nstatus: active\ncreated: 2026-01-01\ntags: [{names[number]}]\n---\n\n"
        path.write_text(f"{head}# {' '.join(words[:6])}\n\n{' '.join(words)}\n", encoding="utf-8")
        if number % 10 == 0:
            questions.append("how do we handle " + " ".join(choose.sample(words, k=min(6, len(words)))))
    return questions


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--plain-texts", type=int, default=300, help="texts of the plain encoding, each time")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mv-bench-") as root:
        print(json.dumps(measure(Path(root), options.entries, options.plain_texts, options.seed), indent=2))
    return 0


def measure(root: Path, entries: int, plain_texts: int, seed: int) -> dict[str, Any]:
    vault = root / "MemoryVault"
    questions = write_vault(vault, entries, seed)
    environment = {**os.environ, "HOME": str(root), "MEMORY_STATE_DIR": str(root / "state")}
    environment |= {"MEMORY_VAULT_PATH": str(vault), "MEMORY_CONFIG": str(root / "config.toml")}
    settings = load_settings(environment)
    settings.state.ensure()
    files = VaultStore(vault, settings.state.vault_lock, date.today)
    report: dict[str, Any] = {"entries": entries}
    with IndexStore(Path(settings.state.index_db)) as store:
        start = time.perf_counter()
        reconcile(store, vault, files.walk)
        report["reconcile_first_s"] = round(time.perf_counter() - start, 2)
        start = time.perf_counter()
        reconcile(store, vault, files.walk)
        report["reconcile_again_ms"] = round((time.perf_counter() - start) * 1000, 1)
        report |= drain_against_plain(store, settings, plain_texts)
        report["index_bytes"] = store.stats().size_bytes
    with RecallClient(settings.state.recall_socket) as client:
        report["recall_service"] = latencies(ask_service(client, questions))
        client.stop()
    embedder = load_embedder(DEFAULT_MODEL, models_folder=Path(settings.state.models))
    engine = RecallEngine(Path(settings.state.index_db), vault, embedder)
    report["recall_engine"] = latencies(ask_engine(engine, questions))
    engine.close()
    return report


def drain_against_plain(store: IndexStore, settings: Settings, plain_texts: int) -> dict[str, Any]:
    """Texts per second of the drain through the service, and of SentenceTransformer.encode here."""
    from sentence_transformers import SentenceTransformer

    from ..index.embedder import locate_model

    location = locate_model(DEFAULT_MODEL, Path(settings.state.models))
    model = SentenceTransformer(str(location.folder), device="cpu", local_files_only=True)
    pending = store.pending_texts(DEFAULT_MODEL, 1_000_000)
    sample = [text.text for text in random.Random(1).sample(pending, min(plain_texts, len(pending)))]

    def plain() -> float:
        start = time.perf_counter()
        model.encode(sample, show_progress_bar=False)
        return len(sample) / (time.perf_counter() - start)

    model.encode(sample[:8], show_progress_bar=False)
    start = time.perf_counter()
    if not ensure_service(settings, 60, wait_for_model=True, command=[sys.executable, "-I", "-c", SERVE]):
        raise SystemExit("the recall service did not start")
    cold = time.perf_counter() - start
    before = plain()
    with RecallClient(settings.state.recall_socket) as client:
        pid = client.ping()["pid"]
        start = time.perf_counter()
        done = drain(store, client.embed, model=DEFAULT_MODEL).processed
        drained = done / (time.perf_counter() - start)
    after = plain()
    return {
        "service_cold_start_s": round(cold, 2),
        "texts": done,
        "plain_texts_per_s": [round(before, 1), round(after, 1)],
        "drain_texts_per_s": round(drained, 1),
        "drain_ratio": round(drained / statistics.mean((before, after)), 3),
        "service_memory_mb": memory_mb(pid),
    }


def ask_service(client: RecallClient, questions: Sequence[str]) -> Iterator[tuple[float, Mapping[str, float], bool]]:
    client.recall(questions[0])
    for question in questions:
        start = time.perf_counter()
        answer = client.recall(question, k=5, cwd="/", render=True, budget_ms=200)
        took = (time.perf_counter() - start) * 1000
        yield took, answer["timings_ms"], bool(answer["degraded"])


def ask_engine(engine: RecallEngine, questions: Sequence[str]) -> Iterator[tuple[float, Mapping[str, float], bool]]:
    engine.recall(RecallQuery(questions[0]))
    for question in questions:
        start = time.perf_counter()
        result = engine.recall(RecallQuery(question + " "))
        yield (time.perf_counter() - start) * 1000, result.timings_ms, bool(result.degraded)


def latencies(answers: Iterator[tuple[float, Mapping[str, float], bool]]) -> dict[str, Any]:
    """Median and p95 in milliseconds, whole and by stage, and how many answers were degraded."""
    rows = list(answers)
    stages = sorted({stage for _, timings, _ in rows for stage in timings})
    return {
        "questions": len(rows),
        "p50_ms": round(percentile([took for took, _, _ in rows], 0.5), 1),
        "p95_ms": round(percentile([took for took, _, _ in rows], 0.95), 1),
        "degraded": sum(degraded for _, _, degraded in rows),
        "stages_p50_ms": {
            stage: round(percentile([t[stage] for _, t, _ in rows if stage in t], 0.5), 2) for stage in stages
        },
    }


def memory_mb(pid: int) -> dict[str, int] | None:
    """Resident and peak memory of a process; None where /proc is not there."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    return {"now": int(fields["VmRSS"].split()[0]) // 1024, "peak": int(fields["VmHWM"].split()[0]) // 1024}


if __name__ == "__main__":
    sys.exit(main())
