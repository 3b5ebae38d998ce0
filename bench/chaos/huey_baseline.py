"""The same load on plain huey: its own SQLite storage, its own consumer, the same transcripts and the same child.

A task mines one transcript
in a child and then has its effect, the file `effects/<session>`.  huey gets every chance: it syncs each
write (its default), retries five times, and the file system forgives a second effect, which is counted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from huey import SqliteHuey
from huey.consumer import Consumer

from ...services.mining import MiningRequest

RETRIES = 5
# Imported, not run as __main__: huey names a task after its module.
CONSUMER = "import sys; from memoryvault.bench.chaos.huey_baseline import main; sys.exit(main(sys.argv[1:]))"


def application(folder: Path) -> tuple[SqliteHuey, object]:
    """The huey application in this folder, and its task."""
    huey = SqliteHuey("plain", filename=str(folder / "huey.db"), results=False, timeout=20)

    @huey.task(retries=RETRIES, name="reflect")  # type: ignore[untyped-decorator]
    def reflect(session: str) -> None:
        request = MiningRequest(str(folder / "transcripts" / f"{session}.jsonl"), "claude")
        done = subprocess.run(
            [sys.executable, "-m", "memoryvault.services.mining"],
            input=json.dumps(asdict(request)).encode(),
            env={"PATH": os.environ["PATH"], "MEMORY_STATE_DIR": str(folder)},
            cwd="/",
            capture_output=True,
            check=True,
        )
        json.loads(done.stdout)
        try:
            os.close(os.open(folder / "effects" / session, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            with (folder / "doubled.log").open("a") as file:
                file.write(session + "\n")

    return huey, reflect


@dataclass(frozen=True)
class PlainVerdict:
    """What plain huey made of it."""

    kills: int
    jobs: int
    lost: int
    doubled: int
    orphans: int


def run_plain(folder: Path, transcripts: list[Path], kills: int, chance: random.Random) -> PlainVerdict:
    """Enqueue a job per transcript; kill the consumer again and again; then let it finish undisturbed."""
    for name in ("transcripts", "effects"):
        (folder / name).mkdir(parents=True)
    sessions = []
    for path in transcripts:
        (folder / "transcripts" / path.name).write_bytes(path.read_bytes())
        sessions.append(path.stem)
    huey, reflect = application(folder)
    for session in sessions:
        reflect(session)  # type: ignore[operator]
    done = orphans = 0
    while done < kills and huey.pending_count():
        consumer = _start(folder)
        time.sleep(chance.uniform(0.6, 2.0))
        before = _of(folder) - {consumer.pid}
        consumer.send_signal(chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        consumer.wait()
        done += 1
        time.sleep(0.05)
        orphans += len(before & _of(folder))
    consumer = _start(folder)
    until = time.monotonic() + 120
    seen, quiet_since = -1, time.monotonic()
    while time.monotonic() < until and time.monotonic() - quiet_since < 3.0:
        count = len(os.listdir(folder / "effects"))
        if count != seen or huey.pending_count() or huey.scheduled_count():
            seen, quiet_since = count, time.monotonic()
        time.sleep(0.1)
    consumer.kill()
    consumer.wait()
    huey.storage.close()
    doubled = folder / "doubled.log"
    return PlainVerdict(
        kills=done,
        jobs=len(sessions),
        lost=len(sessions) - len(os.listdir(folder / "effects")),
        doubled=len(doubled.read_text().splitlines()) if doubled.exists() else 0,
        orphans=orphans,
    )


def _start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CONSUMER, str(folder)],
        env={"PATH": os.environ["PATH"], "MEMORY_STATE_DIR": str(folder)},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _of(folder: Path) -> set[int]:
    """Processes that carry the folder in their environment or command."""
    done = subprocess.run(["ps", "axeww", "-o", "pid=,stat=,command="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in done.stdout.splitlines() if str(folder) in line]
    return {int(row[0]) for row in rows if not row[1].startswith("Z") and int(row[0]) != os.getpid()}


def main(argv: list[str]) -> int:
    """The consumer."""
    huey, _ = application(Path(argv[0]))
    Consumer(huey, workers=2, periodic=True, worker_type="thread", backoff=1.0, initial_delay=0.1).run()
    return 0
