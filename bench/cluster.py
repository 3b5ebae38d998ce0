"""A PostgreSQL server of one's own, for tests and measurements: a temporary cluster, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

BINARIES = tuple(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
"""Debian's, which are not in the path."""
SERVERS_USER = "postgres"
"""Debian's package makes it; the server refuses to run as root."""


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl; None where PostgreSQL is not installed."""
    found = shutil.which("initdb")
    folders = (*BINARIES, Path(found).resolve().parent) if found else BINARIES
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@dataclass
class Cluster:
    """`conninfo()` of a database schema that nobody else uses; `restart` and `stop` as an administrator would."""

    folder: Path
    bin: Path
    user: str | None
    options: tuple[str, ...] = ()
    """Further settings, as in `ssl=on`."""
    port: int = 5432
    """In the name of the socket; and on the addresses, if `listen_addresses` is among the options."""
    within: tuple[str, ...] = ()
    """Put before the commands, as in `nsenter …`; it then also takes on the server's user."""

    def _run(self, *argv: str) -> None:
        command, user = [*self.within, *argv], None if self.within else self.user
        done = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{argv[0]}: {done.stderr}{done.stdout}")

    def create(self) -> None:
        """A new cluster: whoever reaches the socket is its owner, over TCP a password is asked for."""
        ways = ("--auth-local=trust", "--auth-host=scram-sha-256")
        self._run(str(self.bin / "initdb"), "-D", str(self.folder / "data"), *ways, "-N", "-U", "owner")

    def start(self) -> None:
        settings = ("listen_addresses=", "fsync=off", "max_connections=60", f"port={self.port}", *self.options)
        options = " ".join([f"-k {self.folder}", *(f"-c {setting}" for setting in settings)])
        log = str(self.folder / "log")
        self._run(str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run(str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def processor_seconds(self) -> float | None:
        """Of connections that have ended; None where the system does not say."""
        pid = (self.folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0]
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return None
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    @property
    def socket(self) -> str:
        """The path of the UNIX socket that it listens on."""
        return f"{self.folder}/.s.PGSQL.{self.port}"

    def through(self, conninfo: str, port: int) -> str:
        """The same by way of a port of this machine."""
        return conninfo.replace(f"host={self.folder} port={self.port}", f"host=127.0.0.1 port={port}")

    def conninfo(self, schema: str | None = None) -> str:
        """For libpq, into a new schema (or that one)."""
        import psycopg

        name = schema or f"s{uuid.uuid4().hex[:12]}"
        base = f"host={self.folder} port={self.port} user=owner dbname=postgres"
        if schema is None:
            with psycopg.connect(base, autocommit=True) as conn:
                conn.execute(f"CREATE SCHEMA {name}".encode())
        return f"{base} options='-c search_path={name}'"


@contextmanager
def cluster(
    *options: str,
    port: int = 5432,
    files: Mapping[str, Path] = MappingProxyType({}),
    hba: str = "",
    within: tuple[str, ...] = (),
) -> Iterator[Cluster]:
    """A running server; it is gone afterwards. `files` are copied into its folder, for its eyes only; `hba` is a line
    on who may come from where."""
    found = binaries()
    if found is None:
        raise RuntimeError("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="mv-pg-"))
    user = SERVERS_USER if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    made = Cluster(
        folder, found, user, tuple(option.replace("FOLDER", str(folder)) for option in options), port, within
    )
    try:
        made.create()
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"{hba}\n")
        for name, source in files.items():
            (folder / name).write_bytes(source.read_bytes())
            (folder / name).chmod(0o600)
            if user is not None:
                shutil.chown(folder / name, user)
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])
