"""PgBouncer before a test's PostgreSQL, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psycopg

from memoryvault.bench.cluster import SERVERS_USER, Cluster

from .programs import required

Mode = Literal["session", "transaction"]
PORT = 6432
CONNECTIONS = 3
"""To the server, for each database: fewer than ask."""
START_SECONDS = 10.0


@dataclass(frozen=True)
class Pooler:
    """A PgBouncer that runs, and the cluster behind it."""

    folder: Path
    cluster: Cluster
    mode: Mode

    def conninfo(self) -> str:
        """Of a database of its own, by way of the pooler."""
        name = f"d{uuid.uuid4().hex[:12]}"
        behind = f"host={self.cluster.folder} port={self.cluster.port} user=owner dbname=postgres"
        with psycopg.connect(behind, autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name}".encode())
        return f"host={self.folder} port={PORT} user=owner dbname={name}"


def program() -> str:
    """Where it is."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    return required(found, "PgBouncer is not installed")


@contextmanager
def pgbouncer(cluster: Cluster, mode: Mode) -> Iterator[Pooler]:
    """It runs in a folder of the cluster's and is gone afterwards."""
    command = program()
    folder = Path(tempfile.mkdtemp(prefix=f"pooler-{mode}-", dir=cluster.folder))
    (folder / "users").write_text('"owner" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host={cluster.folder} port={cluster.port}\n"
        f"[pgbouncer]\nunix_socket_dir = {folder}\nlisten_port = {PORT}\nauth_type = trust\n"
        f"auth_file = {folder}/users\npool_mode = {mode}\ndefault_pool_size = {CONNECTIONS}\n"
    )
    if cluster.user is not None:
        for path in (folder, folder / "users", folder / "ini"):
            shutil.chown(path, SERVERS_USER)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([command, folder / "ini"], user=cluster.user, cwd="/", stdout=log, stderr=log)
    try:
        socket = folder / f".s.PGSQL.{PORT}"
        ends = time.monotonic() + START_SECONDS
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.02)
        yield Pooler(folder, cluster, mode)
    finally:
        process.send_signal(signal.SIGTERM)  # At once; SIGINT would wait for those who are connected.
        process.wait(START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)
