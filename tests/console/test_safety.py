"""Access to the console, the origin of requests, and the headers of answers."""

import re
import resource
import socket
from contextlib import ExitStack

import pytest

from memoryvault.console import server
from memoryvault.console.context import ConsoleContext
from memoryvault.console.keys import MOST_SESSIONS, SESSION_SECONDS, Keys, Session
from memoryvault.console.pages import PAGES
from memoryvault.console.safety import HEADERS, MAX_FORM_BYTES
from memoryvault.console.server import MOST_WAITING, Http
from memoryvault.tests.review.support import Bed

from .support import BASE, ORIGIN, Front, connection_to, proposal, serving


@pytest.fixture
def stranger(bed: Bed) -> Front:
    """Somebody who knows the address and has no link."""
    proposal(bed, "use-tabs")
    return Front(bed.settings)


def token_of(front: Front) -> str:
    return front.keys.new_link()


def enter(front: Front, token: str) -> int:
    return int(front.client.get(f"{BASE}/enter", params={"token": token}).status_code)


def test_a_link_works_once(stranger: Front) -> None:
    token = token_of(stranger)
    assert stranger.client.head(f"{BASE}/enter", params={"token": token}).status_code == 405
    assert enter(stranger, token) == 200, "a look with HEAD does not use it up"
    again = stranger.client.get(f"{BASE}/enter", params={"token": token})
    assert (again.status_code, "was used already" in again.text) == (403, True)


@pytest.mark.parametrize("token", ["", "x", "Ж" * 40])
def test_a_wrong_link_does_not_work_and_uses_up_none(stranger: Front, token: str) -> None:
    good = token_of(stranger)
    assert enter(stranger, token) == 403
    assert enter(stranger, good) == 200


def test_the_cookie_is_strict_out_of_scripts_reach_and_for_this_console_alone(stranger: Front) -> None:
    done = stranger.client.get(f"{BASE}/enter", params={"token": token_of(stranger)})
    cookie = done.headers["set-cookie"].lower()
    assert "samesite=strict" in cookie
    assert "httponly" in cookie
    assert f"path={BASE}/" in cookie
    assert "expires" not in cookie
    assert "max-age" not in cookie


@pytest.mark.parametrize("page", ["", *(page.name for page in PAGES), "no-such-page"])
def test_without_a_session_no_page_shows_anything(stranger: Front, page: str) -> None:
    answer = stranger.get(page)
    assert answer.status_code == 403
    assert "tabs" not in answer.text
    stranger.client.cookies.set("memory-console", "guessed", domain="127.0.0.1", path=BASE)
    assert stranger.get(page).status_code == 403


def test_a_session_that_was_idle_for_long_is_over(front: Front) -> None:
    front.now += SESSION_SECONDS - 1
    assert front.get("review").status_code == 200
    front.now += SESSION_SECONDS + 1
    assert front.get("review").status_code == 403


@pytest.mark.parametrize("host", ["localhost:8123", "evil.example", "127.0.0.1", "127.0.0.1:8124", "[::1]:8123"])
def test_another_host_name_is_refused_even_with_the_cookie(front: Front, host: str) -> None:
    assert front.client.get(f"{BASE}/review", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:8124", "http://localhost:8123", "", None]
)
def test_a_change_from_a_foreign_origin_is_refused_and_nothing_is_done(
    bed: Bed, front: Front, origin: str | None
) -> None:
    entry = proposal(bed, "use-tabs")
    form = {"csrf": front.csrf, "item": entry.path, "hash": entry.content_hash, "decision": "approve"}
    headers = {} if origin is None else {"Origin": origin}
    assert front.client.post(f"{BASE}/review/decide", data=form, headers=headers).status_code == 403
    assert bed.store.exists(entry.path)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_window_that_another_site_led_here_is_given_no_page_but_may_follow_the_link(front: Front, site: str) -> None:
    # Every port of 127.0.0.1 is one "site": other programs of this machine, too.
    headers = {"Sec-Fetch-Site": site}
    assert front.client.get(f"{BASE}/review", headers=headers).status_code == 403
    link = {"token": token_of(front)}
    assert front.client.get(f"{BASE}/enter", params=link, headers=headers).status_code == 200
    assert front.client.get(f"{BASE}/review", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("csrf", ["", "wrong", "of another session", None])
def test_a_change_without_the_token_of_the_session_is_refused(bed: Bed, front: Front, csrf: str | None) -> None:
    entry = proposal(bed, "use-tabs")
    form = {"item": entry.path, "hash": entry.content_hash, "decision": "approve"}
    other = front.keys.exchange(front.keys.new_link())
    assert isinstance(other, Session)
    if csrf is not None:
        form["csrf"] = other.csrf if csrf == "of another session" else csrf
    answer = front.client.post(f"{BASE}/review/decide", data=form, headers={"Origin": ORIGIN})
    assert answer.status_code == 403
    assert bed.store.exists(entry.path)


def test_every_route_that_changes_something_asks_for_the_token(bed: Bed, front: Front) -> None:
    """By trying them: a page that is added later is tried too."""
    context = ConsoleContext(bed.settings, place="here")
    posts = [
        route.path for page in PAGES for route in page.routes(context) if route.methods and "POST" in route.methods
    ]
    assert posts
    for path in posts:
        tried = re.sub(r"{[^}]*}", "x", path)
        assert front.client.post(f"{BASE}{tried}", data={"a": "b"}, headers={"Origin": ORIGIN}).status_code == 403


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_a_change_comes_as_a_plain_form_only(front: Front, kind: str) -> None:
    answer = front.client.post(
        f"{BASE}/review/decide",
        content=b"csrf=" + front.csrf.encode(),
        headers={"Origin": ORIGIN, "Content-Type": kind},
    )
    assert answer.status_code == 415


def test_a_form_that_is_too_large_is_refused(front: Front) -> None:
    assert front.post("review/decide", body="x" * MAX_FORM_BYTES).status_code == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(front: Front, method: str) -> None:
    assert front.client.request(method, f"{BASE}/review").status_code == 405


@pytest.mark.parametrize("path", ["/", "/review", f"/{'x' * 4}/review", "/here"])
def test_only_its_own_place_answers(front: Front, path: str) -> None:
    assert front.client.get(path).status_code in (403, 404)


def test_no_address_leads_out_of_the_static_files_or_out_of_its_own_place(bed: Bed) -> None:
    """By a socket: clients take the dots out of an address before they send it."""
    with serving(bed) as made:
        authority, place = made.base.removeprefix("http://").strip("/").split("/")

        def ask(target: str) -> str:
            with connection_to(made) as asked:
                asked.sendall(f"GET {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode())
                return b"".join(iter(lambda: asked.recv(65_536), b"")).decode()

        assert ask(f"/{place}/static/console.js").startswith("HTTP/1.1 200 "), "what is there is given in this way"
        for path in ("../app.py", "./../app.py", "%2e%2e/app.py", "..%2fapp.py", "//etc/passwd", "%2fetc/passwd"):
            answer = ask(f"/{place}/static/{path}")
            assert (path, answer.startswith("HTTP/1.1 404 ")) == (path, True)
            assert "make_app" not in answer
        for target in (f"/{place}/static/../review", f"/{place}/%2e%2e/{place}/review", f"/x/../{place}/review"):
            assert (target, ask(target)[:12] in ("HTTP/1.1 403", "HTTP/1.1 404")) == (target, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [(f"{BASE}/review", 200), (f"{BASE}/static/console.css", 200), (f"{BASE}/nothing", 404), ("/other", 404)],
)
def test_every_answer_carries_the_policy(front: Front, path: str, status: int) -> None:
    answer = front.client.get(path)
    assert answer.status_code == status
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


def test_the_policy_lets_no_inline_script_or_foreign_address_in() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert set(re.findall(r"'[^']+'", policy)) == {"'none'", "'self'"}
    assert "http" not in policy


def test_the_oldest_of_too_many_browsers_has_to_come_again() -> None:
    now = [0.0]
    keys = Keys(lambda: now[0])
    sessions = []
    for number in range(MOST_SESSIONS + 1):
        now[0] = float(number)
        session = keys.exchange(keys.new_link())
        assert isinstance(session, Session)
        sessions.append(session)
    assert keys.session(sessions[0].cookie) is None
    assert all(keys.session(session.cookie) for session in sessions[1:])


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
