"""Compare the drain with a plain `encode`, and time recall over 2,000 entries: `python -m memoryvault.bench.index`.

The recall service is a real process with the real model. Plain encoding runs in this process, with the same model and
texts, in turns with the drain.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, ensure_service
from ..index.drain import drain
from ..index.embedder import DEFAULT_MODEL, load_embedder, locate_model
from ..index.engine import RecallEngine, RecallQuery
from ..index.reconcile import reconcile
from ..index.store import IndexStore
from ..runtime.settings import Settings, load_settings
from ..vault.store import VaultStore

KINDS = ("preferences", "fix", "workflow")
_SYLLABLES = re.findall("..", "bacodefiguhajokilumenopaquirosutavewixoyazu")
_COMMON = re.findall(
    r"\S+",
    "the build fails when tests run on a branch without its config file so we set the flag before each commit "
    "and keep the server logs in one folder until a release is tagged by hand because of the old deploy script",
)


def write_vault(vault: Path, entries: int, seed: int, first: int = 0) -> list[str]:
    """Write notes of 15 to 160 words, common ones and invented names; return a question for every tenth note."""
    choose = random.Random(seed)
    names = ["".join(choose.choices(_SYLLABLES, k=3)) for _ in range(3 * entries // 2)]
    questions = []
    for number in range(first, first + entries):
        words = choose.choices(_COMMON, k=choose.randint(12, 140)) + choose.choices(names, k=choose.randint(3, 20))
        choose.shuffle(words)
        kind = KINDS[number % len(KINDS)]
        path = vault / "personal-private" / kind / f"note-{number:05d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\nkind: {kind}\nstatus: active\ncreated: 2026-01-01\ntags: [{names[number - first]}]\n---\n\n"
        path.write_text(f"{head}# {' '.join(words[:6])}\n\n{' '.join(words)}\n", encoding="utf-8")
        if number % 10 == 0:
            questions.append("how do we handle " + " ".join(choose.sample(words, k=min(6, len(words)))))
    return questions


def made_up_words(choose: random.Random, count: int) -> list[str]:
    """Return words of which two thirds are common and one third invented."""
    names = ["".join(choose.choices(_SYLLABLES, k=3)) for _ in range(count // 3)]
    words = [*choose.choices(_COMMON, k=count - len(names)), *names]
    choose.shuffle(words)
    return words


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=4, help="turns of plain encoding and drain")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mv-bench-") as root:
        print(json.dumps(measure(Path(root), options.entries, options.rounds, options.seed), indent=2))
    return 0


def measure(root: Path, entries: int, rounds: int, seed: int) -> dict[str, Any]:
    vault = root / "MemoryVault"
    environment = {**os.environ, "HOME": str(root), "MEMORY_STATE_DIR": str(root / "state")}
    environment |= {"MEMORY_VAULT_PATH": str(vault), "MEMORY_CONFIG": str(root / "config.toml")}
    settings = load_settings(environment)
    settings.state.ensure()
    vault.mkdir()
    files = VaultStore(vault, settings.state.vault_lock, date.today)
    report: dict[str, Any] = {"entries": entries}
    questions: list[str] = []
    with IndexStore(Path(settings.state.index_db)) as store, RecallClient(settings.state.recall_socket) as client:
        start = time.perf_counter()
        if not ensure_service(settings, 120, wait_for_model=True):
            raise SystemExit("the recall service did not start")
        report["service_cold_start_s"] = round(time.perf_counter() - start, 2)
        pid = client.ping()["pid"]
        try:
            plain = plain_encoder(settings)
            taken: list[tuple[int, float, float]] = []
            indexed = 0.0
            for number in range(rounds):
                questions += write_vault(vault, entries // rounds, seed + number, first=number * (entries // rounds))
                start = time.perf_counter()
                reconcile(store, vault, files.walk)
                indexed += time.perf_counter() - start
                taken.append(one_round(store, client, plain, plain_first=number % 2 == 0))
            start = time.perf_counter()
            reconcile(store, vault, files.walk)
            report["reconcile_all_new_s"] = round(indexed, 2)
            report["reconcile_unchanged_ms"] = round((time.perf_counter() - start) * 1000, 1)
            report |= throughput(taken)
            report["index_mb"] = round(store.stats().size_bytes / 1e6, 1)
            report["service_memory_mb"] = memory_mb(pid)
            report["recall_service"] = latencies(ask_service(client, questions))
        finally:
            client.stop()
    embedder = load_embedder(DEFAULT_MODEL, models_folder=Path(settings.state.models))
    engine = RecallEngine(Path(settings.state.index_db), vault, embedder)
    report["recall_engine"] = latencies(ask_engine(engine, questions))
    engine.close()
    return report


def plain_encoder(settings: Settings) -> Callable[[Sequence[str]], float]:
    """Seconds that one plain SentenceTransformer.encode takes in this process."""
    from sentence_transformers import SentenceTransformer

    location = locate_model(DEFAULT_MODEL, Path(settings.state.models))
    model = SentenceTransformer(str(location.folder), device="cpu", local_files_only=True)
    model.encode(["warm up"], show_progress_bar=False)

    def encode(texts: Sequence[str]) -> float:
        start = time.perf_counter()
        model.encode(list(texts), show_progress_bar=False)
        return time.perf_counter() - start

    return encode


def one_round(
    store: IndexStore, client: RecallClient, plain: Callable[[Sequence[str]], float], *, plain_first: bool
) -> tuple[int, float, float]:
    """(texts, seconds of plain encoding, seconds of the drain) over the texts that are pending now.

    The two take turns in going first: a machine that gets slower or warmer favours neither.
    """
    pending = [text.text for text in store.pending_texts(DEFAULT_MODEL, 1_000_000)]
    random.Random(1).shuffle(pending)
    took = plain(pending) if plain_first else 0.0
    start = time.perf_counter()
    report = drain(store, client.embed, model=DEFAULT_MODEL)
    drained = time.perf_counter() - start
    if report.remaining:
        raise SystemExit(f"the drain left {report.remaining} texts: {report.reason}")
    return len(pending), took if plain_first else plain(pending), drained


def throughput(taken: Sequence[tuple[int, float, float]]) -> dict[str, Any]:
    texts = sum(count for count, _, _ in taken)
    plain, drained = sum(p for _, p, _ in taken), sum(d for _, _, d in taken)
    return {
        "texts": texts,
        "plain_texts_per_s": round(texts / plain, 1),
        "drain_texts_per_s": round(texts / drained, 1),
        "drain_ratio": round(plain / drained, 3),
        "drain_ratio_by_round": [round(p / d, 2) for _, p, d in taken],
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
        **{
            f"stages_p{share:.0f}_ms": {
                stage: round(percentile([t[stage] for _, t, _ in rows if stage in t], share / 100), 2)
                for stage in stages
            }
            for share in (50, 95)
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
