"""The console's HTTP server."""

import resource
import socket
from contextlib import ExitStack

import pytest

from memoryvault.console import server
from memoryvault.console.server import MOST_WAITING, Http
from memoryvault.tests.review.support import Bed

from .support import connection_to, serving


def test_the_end_of_a_page_does_not_wait_until_the_browser_acknowledges_its_beginning(bed: Bed) -> None:
    """It would for 40 ms on Linux, on every page that is shorter than what the network sends at a time."""
    with serving(bed) as made:
        authority = made.base.removeprefix("http://").split("/")[0]
        with connection_to(made) as asked:
            asked.sendall(f"GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            assert asked.recv(1000).startswith(b"HTTP/1.1 ")
            (connection,) = made.server.server_state.connections
            ours = connection.transport.get_extra_info("socket")
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_request_that_cannot_be_read_is_answered_once_and_leaves_no_traceback(
    at_once: bool, bed: Bed, caplog: pytest.LogCaptureFixture
) -> None:
    """A body whose first chunk has no length: what comes behind a whole head is found out after the application began,
    or after it answered."""
    with serving(bed) as made:
        authority = made.base.removeprefix("http://").split("/")[0]
        head = f"POST / HTTP/1.1\r\nHost: {authority}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        with connection_to(made) as asked:
            asked.sendall(head + b"none\r\n" if at_once else head)
            answer = asked.recv(100_000)
            if not at_once:
                asked.sendall(b"none\r\n")
            while part := asked.recv(100_000):
                answer += part
        assert answer.startswith(b"HTTP/1.1 400 " if at_once else b"HTTP/1.1 404 ")
        assert answer.count(b"HTTP/1.1 ") == 1
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


def test_others_are_served_while_more_connections_are_held_half_open_than_files_may_be(bed: Bed) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving(bed) as made, ExitStack() as held:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))  # Both ends are in this process.
            for _ in range(1100):
                one = held.enter_context(connection_to(made))
                one.sendall(b"GET / HTTP/1.1\r\nHos")
            with connection_to(made) as asked:
                asked.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert asked.recv(1000).startswith(b"HTTP/1.1 ")
            assert len(Http._waiting) <= MOST_WAITING
        finally:
            held.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_head_that_does_not_come_ends_its_connection(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    with serving(bed) as made, connection_to(made) as silent:
        silent.sendall(b"GET / HT")
        assert silent.recv(100) == b""
