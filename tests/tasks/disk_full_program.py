"""Run with a small file system at `sys.argv[1]`: fill it, work, make room, work again."""

import os
import sys
import time
from pathlib import Path

from memoryvault.runtime.settings import load_settings
from memoryvault.tests.acceptance.test_the_loop import record_session
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.tasks.support import make_due


def main(place: Path, root: Path) -> int:
    sandbox = ForkedSandbox(root, {"MEMORY_STATE_DIR": str(place), "MEMORY_SESSION_QUIET_SECONDS": "0"})
    queue_db = load_settings(sandbox.environment).state.queue_db
    sandbox.memory("service", "worker", "--until-idle")
    record_session(sandbox)
    with (place / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 65536)
        except OSError:
            pass
        while True:
            try:
                ballast.write(b"x")
            except OSError:
                break
    full = sandbox.run("service", "worker", "--until-idle", "--timeout", "8")
    print(full.stdout, full.stderr, file=sys.stderr)
    print("full:", "Traceback" in full.stderr)
    os.unlink(place / "ballast")
    until = time.monotonic() + 60
    while not any(path.is_file() for path in sandbox.vault.rglob("*.md")) and time.monotonic() < until:
        make_due(queue_db, "reflect.session")  # What was put off would be in half a minute.
        after = sandbox.run("service", "worker", "--until-idle")
        print(after.stdout, after.stderr, file=sys.stderr)
    print("after:", after.returncode, "Traceback" in after.stderr)
    states = {job["kind"]: job["state"] for job in sandbox.json("jobs", "list")}
    print("reflected:", states.get("reflect.session"), any("tuesday" in path.read_text().lower()
                                                           for path in sandbox.vault.rglob("*.md")))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
