"""How answers are sent."""

from __future__ import annotations

import socket

from memoryvault.tests.review.support import Bed

from .support import serving


def test_the_end_of_a_page_does_not_wait_until_the_browser_acknowledges_its_beginning(bed: Bed) -> None:
    """It would for 40 ms on Linux, on every page that is shorter than what the network sends at a time."""
    with serving(bed) as made:
        authority = made.base.removeprefix("http://").split("/")[0]
        host, port = authority.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as asked:
            asked.sendall(f"GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            assert asked.recv(1000).startswith(b"HTTP/1.1 ")
            (connection,) = made.server.server_state.connections
            ours = connection.transport.get_extra_info("socket")
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
