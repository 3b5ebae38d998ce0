"""Which links the shared queue is trusted to: what a server must prove, and what is never sent, said or shown."""

from __future__ import annotations

import logging
import shutil
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres.connection import Address, LinkRefused
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tests.support.certificates import Authority, authority
from memoryvault.tests.support.postgres import Cluster, cluster, free_port
from memoryvault.tests.tasks.support import POLICIES

PASSWORD = "geheimnis-4711"
FAR = "db.example"


def parameters(url: str) -> Mapping[str, str]:
    return Address(url)._named


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://memory@/memory",
        "postgresql://memory@/memory?host=/var/run/postgresql",
        "postgresql://memory@localhost/memory",
        "postgresql://memory@127.0.0.1:5433/memory",
        "postgresql://memory@[::1]/memory",
    ],
)
def test_on_this_machine_no_certificate_is_asked_for(url: str) -> None:
    assert "sslmode" not in parameters(url)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://memory@{FAR}/memory",
        f"postgresql://memory@localhost,{FAR}/memory",
        "postgresql://memory@localhost/memory?hostaddr=192.0.2.7",
        "postgresql://memory@db.example/memory?hostaddr=127.0.0.1",
        "postgresql://memory@192.0.2.7/memory",
        "postgresql:///?service=memory",
    ],
)
def test_a_server_elsewhere_must_prove_who_it_is(url: str) -> None:
    assert parameters(url)["sslmode"] == "verify-full"


@pytest.mark.parametrize("mode", ["allow", "prefer"])
def test_a_mode_that_may_fall_back_to_plain_text_is_refused(mode: str) -> None:
    with pytest.raises(LinkRefused, match=f"sslmode={mode}, which may send everything unencrypted"):
        Address(f"postgresql://memory@{FAR}/memory?sslmode={mode}")


@pytest.mark.parametrize("mode", ["disable", "require", "verify-ca"])
def test_a_weaker_link_is_the_users_own_word_and_gets_no_password_in_clear(mode: str) -> None:
    found = parameters(f"postgresql://memory@{FAR}/memory?sslmode={mode}")
    assert (found["sslmode"], found["require_auth"]) == (mode, "!password")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://memory:{PASSWORD}%zz@{FAR}/memory",
        f"postgresql://memory:{PASSWORD} x@{FAR}/memory",
        f"postgresql://memory:{PASSWORD}@[{FAR}/memory",
        f"postgresql://memory@{FAR}/memory?geheim={PASSWORD}",
        f"postgresql://memory:{PASSWORD}@{FAR}/memory?sslmode=prefer",
        f"postgresql://memory:{PASSWORD}@{FAR}/memory?sslmode=bogus",
        f"postgresql://memory:{PASSWORD}@127.0.0.1:port/memory",
        f"postgresql://memory:{PASSWORD}@127.0.0.1:1/memory",
    ],
)
def test_no_error_quotes_the_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(QueueUnavailable) as caught:
        PostgresLedger(url, policies=POLICIES)
    assert PASSWORD not in f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert "\n" not in str(caught.value)


# ---- servers that are not what they should be


@contextmanager
def listener(answer: bytes) -> Iterator[tuple[int, bytearray]]:
    """Says `answer` to whoever connects and keeps what it is told."""
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.settimeout(2.0)
                    try:
                        heard.extend(client.recv(4096))
                        client.sendall(answer)
                        while data := client.recv(4096):
                            heard.extend(data)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            server.shutdown(socket.SHUT_RDWR)
    thread.join(5.0)


NO_TLS = b"N"
ASK_FOR_THE_PASSWORD = b"R" + struct.pack("!ii", 8, 3)


def test_a_server_that_strips_tls_gets_neither_name_nor_password() -> None:
    with listener(NO_TLS) as (port, heard), pytest.raises(QueueUnavailable, match="SSL"):
        PostgresLedger(f"postgresql://memory:{PASSWORD}@{FAR}:{port}/memory?hostaddr=127.0.0.1", policies=POLICIES)
    assert PASSWORD.encode() not in heard
    assert b"memory" not in heard


def test_on_a_plain_link_an_impostor_that_asks_for_the_password_does_not_get_it() -> None:
    with listener(ASK_FOR_THE_PASSWORD) as (port, heard), pytest.raises(QueueUnavailable):
        PostgresLedger(
            f"postgresql://memory:{PASSWORD}@{FAR}:{port}/memory?hostaddr=127.0.0.1&sslmode=disable", policies=POLICIES
        )
    assert b"memory" in heard
    assert PASSWORD.encode() not in heard


def test_no_variable_of_the_environment_chooses_server_or_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    with listener(NO_TLS) as (port, heard):
        for name, value in {
            "PGHOSTADDR": "127.0.0.1", "PGPORT": str(port), "PGSSLMODE": "disable", "PGPASSFILE": "/nowhere",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        with pytest.raises(QueueUnavailable):
            PostgresLedger(f"postgresql://memory:{PASSWORD}@no-such-host.invalid/memory", policies=POLICIES)
    assert not heard


# ---- a server with a certificate


@dataclass
class Guarded:
    """A server with TLS on 127.0.0.1, whose certificate says that it is `db.example`."""

    server: Cluster
    ours: Authority

    def url(self, host: str = FAR, ca: Path | None = None, more: str = "", password: str = PASSWORD) -> str:
        root = ca or self.ours.certificate
        there = f"{host}:{self.server.port}/postgres?hostaddr=127.0.0.1&sslrootcert={root}"
        return f"postgresql://worker:{password}@{there}{more}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    ours = authority(tmp_path_factory.mktemp("ca"))
    certificate, key = ours.issue(FAR)
    port = free_port()
    options = ("listen_addresses=127.0.0.1", "ssl=on", "ssl_cert_file=FOLDER/crt", "ssl_key_file=FOLDER/key")
    with cluster(*options, port=port, files={"crt": certificate, "key": key}) as server:
        with psycopg.connect(f"host={server.folder} port={port} user=owner dbname=postgres", autocommit=True) as conn:
            conn.execute(f"CREATE ROLE worker LOGIN PASSWORD '{PASSWORD}'".encode())
            conn.execute("CREATE SCHEMA AUTHORIZATION worker")
        yield Guarded(server, ours)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_that_proves_who_it_is_is_used_over_tls(guarded: Guarded) -> None:
    with PostgresLedger(guarded.url(), policies=POLICIES) as ledger:
        ledger.enqueue("effect")
        assert ledger.read("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("host", "foreign_ca", "words"),
    [(FAR, True, "certificate verify failed"), ("other.example", False, "does not match host name")],
)
def test_a_server_that_cannot_prove_it_is_refused(
    guarded: Guarded, tmp_path: Path, host: str, foreign_ca: bool, words: str
) -> None:
    ca = authority(tmp_path / "foreign").certificate if foreign_ca else None
    with pytest.raises(QueueUnavailable, match=words):
        PostgresLedger(guarded.url(host, ca), policies=POLICIES)


@pytest.mark.slow
@pytest.mark.postgres
def test_an_authority_that_is_not_there_is_said(guarded: Guarded, tmp_path: Path) -> None:
    with pytest.raises(QueueUnavailable, match="root certificate file"):
        PostgresLedger(guarded.url(ca=tmp_path / "none.crt"), policies=POLICIES)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_wrong_password_is_said_and_not_shown(guarded: Guarded) -> None:
    with pytest.raises(QueueUnavailable, match="password authentication failed") as caught:
        PostgresLedger(guarded.url(password="wrong-geheim"), policies=POLICIES)
    assert "wrong-geheim" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_plain_link_is_made_where_the_user_wrote_it(guarded: Guarded) -> None:
    with Address(guarded.url(more="&sslmode=disable")).connect("test") as conn:
        assert conn.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (False,)
