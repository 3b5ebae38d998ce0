"""Machines with addresses of their own on a network of their own: Linux's network namespaces.

Nothing of it is seen on the host: each namespace is held by a process, and is gone with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryvault.tests.tasks.support import wait_until

SERVER_ADDRESS = "10.77.0.1"
NETWORK = "10.77.0.0/24"


def why_not() -> str | None:
    """Why this machine has none; None if it has."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    missing = [program for program in ("unshare", "nsenter", "ip") if shutil.which(program) is None]
    if missing:
        return f"network namespaces need {missing[0]}"
    try:
        with lan(1):
            return None
    except (subprocess.CalledProcessError, AssertionError):
        return "network namespaces are not allowed here"


class Lan:
    """A switch with the server's address, and machines 0, 1, … behind a cable each."""

    def __init__(self) -> None:
        self._holders: list[subprocess.Popen[bytes]] = []
        self._switch = self._hold()
        self._machines: list[int] = []
        for line in (
            "link set lo up",
            "link add br0 type bridge",
            f"addr add {SERVER_ADDRESS}/24 dev br0",
            "link set br0 up",
        ):
            self._ip(self._switch, line)

    def close(self) -> None:
        """The end of all namespaces."""
        for holder in self._holders:
            holder.kill()
            holder.wait()

    def add_machine(self) -> int:
        """Its number."""
        pid, number = self._hold(), len(self._machines)
        self._ip(self._switch, f"link add v{number} type veth peer name eth0 netns {pid}")
        self._ip(self._switch, f"link set v{number} master br0")
        self._ip(self._switch, f"link set v{number} up")
        for line in ("link set lo up", f"addr add 10.77.0.{number + 2}/24 dev eth0", "link set eth0 up"):
            self._ip(pid, line)
        self._machines.append(pid)
        return number

    def unplug(self, number: int) -> None:
        """No packet passes; neither side is told."""
        self._ip(self._switch, f"link set v{number} nomaster")

    def plug(self, number: int) -> None:
        """Undo `unplug`."""
        self._ip(self._switch, f"link set v{number} master br0")

    def throttle(self, number: int, rate: str) -> bool:
        """A slow cable towards the machine, as in `400kbit`; False where the kernel cannot."""
        shaping = ["tc", "qdisc", "replace", "dev", f"v{number}", "root"]
        done = subprocess.run(
            [*self._in(self._switch), *shaping, "tbf", "rate", rate, "burst", "4kb", "latency", "400ms"],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def within(self, number: int) -> list[str]:
        """The beginning of a command that runs on the machine."""
        return self._in(self._machines[number])

    def within_switch(self, uid: int, gid: int) -> list[str]:
        """The beginning of a command that runs where the server is, as that user."""
        return ["nsenter", "-t", str(self._switch), "-n", "-S", str(uid), "-G", str(gid), "--"]

    def _hold(self) -> int:
        holder = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self._holders.append(holder)
        own, its = Path("/proc/self/ns/net"), Path(f"/proc/{holder.pid}/ns/net")
        wait_until(lambda: os.readlink(its) != os.readlink(own) or holder.poll() is not None, "it has a namespace")
        assert holder.poll() is None, "unshare is not allowed"
        return holder.pid

    @staticmethod
    def _in(pid: int) -> list[str]:
        return ["nsenter", "-t", str(pid), "-n", "--"]

    def _ip(self, pid: int, line: str) -> None:
        subprocess.run([*self._in(pid), "ip", *line.split()], check=True, capture_output=True)


@contextmanager
def lan(machines: int) -> Iterator[Lan]:
    """A network with so many machines."""
    made = Lan()
    try:
        for _ in range(machines):
            made.add_machine()
        yield made
    finally:
        made.close()
