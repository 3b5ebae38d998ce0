"""A worker for tests: `python -m ... STATE [--forever] [--lease SECONDS] [--slow SECONDS]`.

Each job has one effect, keyed: the file `effects/<key>`, created exclusively.  `attempts.log` has one
line per attempt, `repeated.log` one per effect that was found to have happened already.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from memoryvault.runtime.errors import MemoryVaultError
from memoryvault.runtime.killpoint import kill_point, kill_point_environment
from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue import supervisor
from memoryvault.tasks.queue.job import RunningJob
from memoryvault.tasks.queue.kinds import Json
from memoryvault.tasks.queue.worker import Worker, WorkerContext

from .support import POLICIES


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("state", type=Path)
    parser.add_argument("--child", metavar="KEY")
    parser.add_argument("--forever", action="store_true")
    parser.add_argument("--lease", type=float, default=10.0)
    parser.add_argument("--drain", type=float, default=10.0)
    parser.add_argument("--slow", type=float, default=0.0)
    options = parser.parse_args()
    if options.child:
        return child(options.state, options.child, options.slow)
    (options.state / "effects").mkdir(exist_ok=True)

    def effect(job: RunningJob) -> Mapping[str, Json] | None:
        note(options.state / "attempts.log", f"{job.id} {job.attempt}")
        if options.slow:
            time.sleep(options.slow)
        kill_point("before-effect")
        if not job.still_owned():
            return None
        cause(options.state, str(job.args.get("key", job.id)))
        kill_point("after-effect")
        return {"pid": os.getpid()}

    def in_child(job: RunningJob) -> Mapping[str, Json] | None:
        note(options.state / "attempts.log", f"{job.id} {job.attempt}")
        argv = [sys.executable, "-m", __spec__.name, str(options.state)]
        argv += ["--child", str(job.args.get("key", job.id)), "--slow", str(options.slow)]
        result = job.run_child(argv, env={"PATH": os.environ["PATH"], **kill_point_environment()})
        if result.returncode != 0:
            raise RuntimeError(f"child ended with {result.returncode}: {result.stderr[-200:]}")
        return None

    context = WorkerContext(
        StatePaths(options.state),
        lease_seconds=options.lease,
        drain_seconds=options.drain,
        poll_seconds=0.2,
        policies=POLICIES,
        schedules=(),
    )
    worker = Worker(context, {"effect": effect, "child": in_child, "single": effect, "urgent": effect})
    try:
        if options.forever:
            return worker.run_forever()
        print(worker.run_until_idle(12.0))
    except MemoryVaultError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def child(state: Path, key: str, slow: float) -> int:
    supervisor.watch_parent()
    write(state / "child.pid", str(os.getpid()))
    time.sleep(slow)
    kill_point("mid-child")
    cause(state, key)
    return 0


def cause(state: Path, key: str) -> None:
    try:
        os.close(os.open(state / "effects" / key, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        note(state / "repeated.log", key)


def note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def write(path: Path, text: str) -> None:
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").rename(path)


if __name__ == "__main__":
    sys.exit(main())
