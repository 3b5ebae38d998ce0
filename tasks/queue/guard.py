"""Run a foreign command so that it dies with our worker: `python -I -S guard.py FD command argument...`.

The guard leads the process group. FD is the read end of a pipe that the worker holds open; when it closes,
the worker is gone, and the guard kills the group. For our own children `supervisor.watch_parent` does it.
"""

import os
import signal
import sys
import threading


def main(argv):  # type: ignore[no-untyped-def]
    fd, command = int(argv[1]), argv[2:]

    def watch() -> None:
        while os.read(fd, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    os.set_inheritable(fd, False)
    os.environ.pop("MEMORY_PARENT_FD", None)
    try:
        child = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        os._exit(127)
    threading.Thread(target=watch, daemon=True).start()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv)  # type: ignore[no-untyped-call]
