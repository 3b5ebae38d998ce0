"""How fast transcripts become memories: `python -m memoryvault.bench.throughput [DATA]`.

DATA (or MEMORYVAULT_DATA) is the folder with `sessions.tar.gz`. Processor time of one process, in MB of transcript a
second; parsing every line as JSON is the measure beside it. Then a session that is mined while it grows, and, with
`--gigabytes`, one of that size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import groupby
from pathlib import Path

from ..pipelines.candidate import Candidate
from ..pipelines.mining import Miner
from ..pipelines.mining.agent_message import AgentMessage
from ..pipelines.mining.classifier import packaged
from ..pipelines.mining.features import message
from ..pipelines.mining.sentences import sentences
from ..pipelines.scrub import scrub
from ..sources.transcripts.claude import ClaudeReader, transcript_files
from ..sources.transcripts.lines import complete_lines, parse_object
from ..tasks.mining import MiningRequest, mine_transcript
from ..tasks.remembering import remember
from ..vault.settings import load_settings
from ..vault.store import VaultStore
from ..vault.turn import Origin, Turn
from .sessions import session_lines

ROUNDS = 7
TURNS = 400
TURN_BYTES = 125_000
CHILD = [sys.executable, "-m", "memoryvault.tasks.mining_child"]
PEAK = """
import os, resource, sys, time
from memoryvault.tasks.mining import MiningRequest, mine_transcript
mined = mine_transcript(MiningRequest(sys.argv[1], "claude"))
peak = 0
if os.path.exists("/proc/self/status"):  # Linux counts into ru_maxrss what the parent had when it forked.
    (peak,) = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(mined.mined_until, time.process_time(), peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@dataclass
class Stages:
    """Processor seconds by stage, in the order they were measured."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add what passes inside."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def best_of(rounds: int, action: Callable[[], None]) -> float:
    """The least of several processor times: the others were disturbed."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def parse_alone(paths: Sequence[Path]) -> None:
    """The measure: every line as JSON, by the parser of the standard library."""
    for path in paths:
        for line in complete_lines(path):
            with suppress(ValueError):
                json.loads(line.data)


def parse_alone_by_orjson(paths: Sequence[Path]) -> None:
    """The same by the parser that the readers use."""
    for path in paths:
        for line in complete_lines(path):
            parse_object(line.data)


def mine_all(paths: Sequence[Path]) -> None:
    """All that the worker's child does, but for starting it."""
    for path in paths:
        mine_transcript(MiningRequest(str(path), "claude"))


def stages_of(paths: Sequence[Path], root: Path) -> Stages:
    """Each stage over all sessions, its input made ready before."""
    stages = Stages()
    read: list[list[Turn]] = []
    with stages.measure("read lines, parse those that may matter, build turns"):
        for path in paths:
            read.append(list(ClaudeReader(path)))
    turns = [turn for session in read for turn in session]
    spoken = [turn for turn in turns if turn.is_users_words or turn.origin is Origin.ASSISTANT]
    of_agent, heads = packaged()["agent-fix"], (packaged()["durable"], packaged()["idea"])
    with stages.measure("cut messages into sentences"):
        for turn in spoken:
            sentences(turn)
    with stages.measure("features and classifier"):
        for turn in spoken:
            said = message(turn) if turn.is_users_words else AgentMessage(turn)
            for head in heads if turn.is_users_words else (of_agent,):
                if not said.is_beyond(head):
                    said.probability(head)
    found: list[Candidate] = []
    with stages.measure("all of mining"):
        for session in read:
            found.extend(Miner().run(session))
    with stages.measure("scrub the candidates"):
        found = [
            replace(item, statement=scrub(item.statement) or "[removed]", excerpt=scrub(item.excerpt)) for item in found
        ]
    environment = {"HOME": str(root), "MEMORY_STATE_DIR": str(root / "state"), "MEMORY_VAULT_PATH": str(root / "vault")}
    settings = load_settings({**environment, "MEMORY_CONFIG": str(root / "config.toml")})
    settings.state.ensure()
    (root / "vault").mkdir()
    store = VaultStore(root / "vault", settings.state.vault_lock, date.today)
    with stages.measure("route and write"), store.lock():
        remember(tuple(found), store, settings, host="claude")
    sentences_seconds = stages.seconds.pop("cut messages into sentences")
    features_seconds = stages.seconds.pop("features and classifier") - sentences_seconds
    mining_seconds = stages.seconds.pop("all of mining")
    rest = mining_seconds - sentences_seconds - features_seconds
    reading, scrubbing, writing = stages.seconds.items()
    return Stages(
        dict(
            [
                reading,
                ("cut messages into sentences", sentences_seconds),
                ("features and classifier", features_seconds),
                ("rules and what the tools show", rest),
                scrubbing,
                writing,
            ]
        )
    )


def whole_path(paths: Sequence[Path], root: Path) -> None:
    """Tables for the sessions in an archive."""
    size = sum(path.stat().st_size for path in paths)
    parse_alone(paths[:1])
    mine_all(paths[:1])
    measured = (parse_alone, parse_alone_by_orjson, mine_all)
    rounds = [[best_of(1, partial(action, paths)) for action in measured] for _ in range(ROUNDS)]
    parsing, quick_parsing, mining = (min(times) for times in zip(*rounds, strict=True))
    stages = stages_of(paths, root)
    path_seconds = mining + stages.seconds["route and write"]
    print(f"{len(paths)} sessions, {size / 1e6:.0f} MB; processor time of one process, best of {ROUNDS} in turns.\n")
    print("| what | MB/s | sessions/s | of parsing alone | of parsing by orjson |\n|---|---|---|---|---|")
    for name, seconds in (
        ("every line parsed as JSON by the standard library, nothing else", parsing),
        ("the same by orjson, which the readers use", quick_parsing),
        ("read, mined and scrubbed", mining),
        ("the whole path, written to a vault", path_seconds),
    ):
        rate = f"{size / 1e6 / seconds:.0f} | {len(paths) / seconds:.0f}"
        print(f"| {name} | {rate} | {parsing / seconds:.0%} | {quick_parsing / seconds:.0%} |")
    total = sum(stages.seconds.values())
    print("\n| stage | seconds | share |\n|---|---|---|")
    for name, seconds in stages.seconds.items():
        print(f"| {name} | {seconds:.2f} | {seconds / total:.0%} |")
    print(f"\nThe bottleneck: {max(stages.seconds, key=lambda name: stages.seconds[name])}.\n", flush=True)


def start_up_seconds(folder: Path, rounds: int = 5) -> float:
    """Wall time of the worker's child for a transcript without a line."""
    empty = folder / "empty.jsonl"
    empty.write_bytes(b"")
    request = MiningRequest(str(empty), "claude").to_json()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        # The child leaves when its parent's end of this pipe is closed; it is closed when the child is done.
        subprocess.run(CHILD, input=request, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def stepwise_seconds(path: Path, turns: Sequence[Sequence[bytes]]) -> float:
    """Processor time of mining a session after each of its turns; writing the turns does not count."""
    path.write_bytes(b"")
    seconds, offset, context, last_agent = 0.0, 0, 0, 0
    for turn in turns:
        with path.open("ab") as file:
            file.writelines(turn)
        start = time.process_time()
        mined = mine_transcript(MiningRequest(str(path), "claude", offset, context, last_agent))
        seconds += time.process_time() - start
        offset, context, last_agent = mined.mined_until, mined.context_offset, mined.last_agent_offset
    return seconds


def growing(folder: Path, rounds: int = 5) -> None:
    """A session mined after each of its turns, against one pass over the whole: the best of as many rounds of both,
    in turns."""
    path = folder / "growing.jsonl"
    turns = [
        [line for _, line in turn] for _, turn in groupby(session_lines(TURNS, TURN_BYTES), key=lambda item: item[0])
    ]
    stepwise_seconds(path, turns)
    measured = [(stepwise_seconds(path, turns), best_of(1, partial(mine_all, [path]))) for _ in range(rounds)]
    stepwise, once = (min(times) for times in zip(*measured, strict=True))
    size = path.stat().st_size
    print(
        f"A session of {size / 1e6:.0f} MB in {len(turns)} turns, mined after each; best of {rounds} rounds of both:\n"
    )
    print("| | processor seconds |\n|---|---|")
    print(f"| one pass over the whole | {once:.2f} |\n| {len(turns)} steps | {stepwise:.2f} |")
    print(f"| ratio | {stepwise / once:.2f} |")
    print(f"| start of the child process, wall time, for each step beside it | {start_up_seconds(folder):.2f} |\n")
    path.unlink()


def huge(folder: Path, gigabytes: float) -> None:
    """Speed and memory of a child on one very long session."""
    path = folder / "huge.jsonl"
    with path.open("wb") as file:
        for _, line in session_lines(round(gigabytes * 1000), 1_000_000):
            file.write(line)
    size = path.stat().st_size
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    path.unlink()
    _, seconds, peak = done.stdout.split()
    megabytes = int(peak) / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
    print(f"A session of {size / 1e9:.2f} GB: {float(seconds):.0f} s, {megabytes:.0f} MB of memory at most.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.throughput", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=os.environ.get("MEMORYVAULT_DATA"))
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the huge session; 0 leaves it out")
    options = parser.parse_args(arguments)
    archive = Path(options.data) / "sessions.tar.gz" if options.data else None
    if archive is None or not archive.is_file():
        print("bench.throughput: name the folder with sessions.tar.gz, or set MEMORYVAULT_DATA", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mv-bench-") as folder:
        root = Path(folder)
        with tarfile.open(archive) as tar:
            tar.extractall(root / "sessions", filter="data")
        whole_path(list(transcript_files(root / "sessions")), root)
        growing(root)
        if options.gigabytes:
            huge(root, options.gigabytes)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
