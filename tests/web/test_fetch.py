"""The guarded fetcher against real servers on loopback that misbehave in every way."""

import gzip
import os
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.sources.web import fetch
from memoryvault.sources.web.addresses import is_own_network, is_public
from memoryvault.sources.web.fetch import USER_AGENT, Fetcher, FetchFailed, FetchRefused, Limits, Page
from memoryvault.sources.web.pages import Robots, readable
from memoryvault.tests.support.loopback_site import HOST, Reply, Site, page, site, slowly

QUICK = Limits(connect_seconds=2, total_seconds=5, max_bytes=100_000, max_redirects=3)


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as running:
        yield running


def allowed(web: Site, limits: Limits = QUICK) -> Fetcher:
    return Fetcher(limits, allow=web.allowed)


def test_a_page_comes_with_its_address_headers_and_text(web: Site) -> None:
    web.replies["/a"] = Reply("Grüße".encode(), headers={"ETag": '"1"'})
    got = allowed(web).get(web.url + "/a#part")
    assert (got.url, got.status, got.text) == (web.url + "/a", 200, "Grüße")
    assert got.headers["etag"] == '"1"'
    assert got.content_type == "text/html"


def test_it_says_who_it_is_and_sends_nothing_else_about_the_user(web: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    web.replies["/a"] = Reply(b"x", headers={"Set-Cookie": "id=1"})
    fetcher = allowed(web)
    for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")  # Nobody listens there.
    fetcher.get(web.url + "/a")
    fetcher.get(web.url + "/a")
    for _, headers in web.requests:
        assert set(headers) == {"host", "accept", "user-agent", "accept-encoding"}
        assert headers["user-agent"] == USER_AGENT


@pytest.mark.parametrize("members", [[b"a page " * 1000], [b"a page " * 500] * 2], ids=["one member", "two members"])
def test_compressed_pages_are_read(web: Site, members: list[bytes]) -> None:
    web.replies["/a"] = Reply(b"".join(map(gzip.compress, members)), headers={"Content-Encoding": "gzip"})
    assert allowed(web).get(web.url + "/a").body == b"a page " * 1000


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/", "file:///etc/passwd", "https://example.org:8443/", "https://user:secret@example.org/",
        "https://127.0.0.1/", "https://2130706433/", "https://[::1]/", "https://[::ffff:127.0.0.1]/",
        "https://169.254.169.254/latest/meta-data/", "https://xn--a/b", "not an address",
    ],
)  # fmt: skip
def test_what_is_not_https_to_a_public_address_is_refused(url: str) -> None:
    asked: list[str] = []
    with pytest.raises(FetchRefused) as refused:
        Fetcher(QUICK, before_request=asked.append).get(url)
    assert asked == []
    assert "secret" not in str(refused.value)


NOT_PUBLIC = """
    127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.254 0.0.0.0 224.0.0.1 239.1.1.1
    240.0.0.1 255.255.255.255 192.0.2.1 198.18.0.1 ::1 :: fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 ff02::1 fec0::1
    ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
    2002:7f00:1::1 2002:a00:1::1 2001:0:a00:1::1 2001:db8::1 ::127.0.0.1 nonsense
"""


PUBLIC = "93.184.216.34 2606:2800:220:1::1 64:ff9b::5db8:d822"


@pytest.mark.parametrize("address", (NOT_PUBLIC + PUBLIC).split())
def test_no_address_but_a_public_one_is_public(address: str) -> None:
    assert is_public(address) is (address in PUBLIC.split())


def test_the_own_network_is_never_the_metadata_service() -> None:
    others = ("169.254.169.254", "fe80::1", "224.0.0.1", "93.184.216.34", "::ffff:127.0.0.1")
    own = [address for address in ("127.0.0.1", "192.168.1.5", *others) if is_own_network(address)]
    assert own == ["127.0.0.1", "192.168.1.5"]


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    fetcher = Fetcher(QUICK, resolver=lambda host, port: ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(FetchRefused, match=r"10\.0\.0\.1"):
        fetcher.get("https://example.org/")


def test_loopback_is_refused_unless_exactly_this_port_is_allowed(web: Site) -> None:
    web.replies["/a"] = Reply(b"x")
    with pytest.raises(FetchRefused):
        Fetcher(QUICK).get(web.url + "/a")
    with pytest.raises(FetchRefused):
        Fetcher(QUICK, allow={(HOST, web.port + 1)}).get(web.url + "/a")
    assert web.requests == []


def test_a_name_that_is_rebound_after_the_check_is_asked_at_the_checked_address(
    web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "is_own_network", lambda address: address == HOST)  # It plays the public address.
    web.replies["/a"] = Reply(b"x")
    addresses = [HOST, "127.0.0.2"]
    fetcher = Fetcher(QUICK, allow={("rebound.example", web.port)}, resolver=lambda host, port: [addresses.pop(0)])
    assert fetcher.get(f"http://rebound.example:{web.port}/a").body == b"x"
    assert addresses == ["127.0.0.2"], "not asked a second time to connect"
    assert web.requests[0][1]["host"] == f"rebound.example:{web.port}"
    with pytest.raises(FetchRefused, match=r"127\.0\.0\.2"):
        fetcher.get(f"http://rebound.example:{web.port}/a")
    assert len(web.requests) == 1


def test_each_redirect_is_a_request_and_is_announced(web: Site) -> None:
    web.replies["/a"] = Reply(status=302, headers={"Location": "/b"})
    web.replies["/b"] = Reply(status=301, headers={"Location": web.url + "/c"})
    web.replies["/c"] = Reply(b"there")
    asked: list[str] = []
    got = Fetcher(QUICK, allow=web.allowed, before_request=asked.append).get(web.url + "/a")
    assert (got.body, got.url) == (b"there", web.url + "/c")
    assert asked == [web.url + path for path in ("/a", "/b", "/c")]


@pytest.mark.parametrize("target", ["https://169.254.169.254/", "http://example.org/", "file:///etc/passwd"])
def test_a_redirect_to_an_address_that_is_not_public_is_refused(web: Site, target: str) -> None:
    web.replies["/a"] = Reply(status=302, headers={"Location": target})
    with pytest.raises(FetchRefused):
        allowed(web).get(web.url + "/a")
    assert web.paths() == ["/a"]


def test_a_redirect_loop_ends(web: Site) -> None:
    web.replies["/a"] = Reply(status=302, headers={"Location": "/a"})
    with pytest.raises(FetchFailed, match="more than 3 redirects"):
        allowed(web).get(web.url + "/a")
    assert len(web.requests) == 4


@pytest.mark.slow
@pytest.mark.parametrize("where", ["body", "headers", "nothing"])
def test_a_server_that_drips_is_left_at_the_deadline(web: Site, where: str) -> None:
    def answer(path: str) -> Reply:
        if where == "nothing":
            web.ending.wait(10)
        return Reply(pieces=slowly(), pause=0.05, drip_headers=where == "headers")

    web.replies["/a"] = answer
    started = time.monotonic()
    with pytest.raises(FetchFailed, match="no answer in time"):
        allowed(web, Limits(connect_seconds=1, total_seconds=0.6)).get(web.url + "/a")
    assert time.monotonic() - started < 5


def test_a_bomb_never_grows_beyond_the_limit(web: Site) -> None:
    bomb = gzip.compress(bytes(40_000_000))
    assert len(bomb) < QUICK.max_bytes
    web.replies["/a"] = Reply(bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(FetchFailed, match="more than 100000 bytes"):
        allowed(web).get(web.url + "/a")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(pieces=slowly(b"x" * 10_000)), "more than 100000 bytes"),
        (Reply(b"\x1b\x00", headers={"Content-Encoding": "br"}), "not asked for"),
        (Reply(zlib.compress(b"x"), headers={"Content-Encoding": "deflate"}), "not asked for"),
        (Reply(b"\x1b\x00", headers={"Content-Encoding": "gzip, gzip"}), "not asked for"),
        (Reply(b"not gzip", headers={"Content-Encoding": "gzip"}), "gzip"),
        (Reply(gzip.compress(b"x" * 5000, mtime=0)[:-9], headers={"Content-Encoding": "gzip"}), "gzip"),
        (Reply(b"MZ", type="application/octet-stream"), "octet-stream"),
        (Reply(status=304), "304"),
        (Reply(reset=True), "reset"),
        (Reply(status=302, headers={"Location": "https://xn--a/b"}), "not allowed"),
    ],
    ids=[
        "endless",
        "encoding",
        "older encoding",
        "encoded twice",
        "no gzip",
        "cut off",
        "type",
        "304",
        "reset",
        "redirect to no host",
    ],
)
def test_what_cannot_be_read_fails(web: Site, reply: Reply, told: str) -> None:
    web.replies["/a"] = reply
    with pytest.raises(FetchFailed, match=told):
        allowed(web).get(web.url + "/a", content_types={"text/html"})


@pytest.mark.parametrize("status", [404, 503])
def test_an_error_status_fails_says_when_to_come_back_and_does_not_tell_the_query(web: Site, status: int) -> None:
    web.replies["/a"] = Reply(status=status, headers={"Retry-After": "7"})
    with pytest.raises(FetchFailed, match=str(status)) as failed:
        allowed(web).get(web.url + "/a?token=secret")
    assert (failed.value.status, failed.value.retry_after) == (status, 7.0)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, 10.0**6),
        ({"Retry-After": "Fri, 01 Jan 1999 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "\xb2"}, None),  # `"²".isdigit()` is true, and it is no number to `int`.
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "\xb2"}, None),
    ],
)
def test_retry_after_may_be_a_date_or_nonsense(web: Site, headers: dict[str, str], wait: float | None) -> None:
    web.replies["/a"] = Reply(status=429, headers=headers)
    with pytest.raises(FetchFailed) as failed:
        allowed(web).get(web.url + "/a")
    told = failed.value.retry_after
    assert (failed.value.status, told and min(told, 10.0**6)) == (429, wait)


@pytest.fixture
def self_signed(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", f"subjectAltName=IP:{HOST},DNS:named.example", "-keyout", "key.pem", "-out", "cert.pem"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=env)
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "key.pem").read_bytes() + (tmp_path / "cert.pem").read_bytes())
    return both


@pytest.mark.slow
def test_a_certificate_that_nobody_vouches_for_fails(self_signed: Path) -> None:
    with site({"/a": Reply(b"x")}, tls=self_signed) as web:
        with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED"):
            allowed(web).get(web.url + "/a")
        assert web.requests == []


@pytest.mark.slow
def test_certificates_must_be_of_the_name_not_the_address(self_signed: Path) -> None:
    import httpx

    trusting = httpx.create_ssl_context(verify=True, trust_env=False)
    trusting.load_verify_locations(self_signed)
    with site({"/a": Reply(b"x")}, tls=self_signed) as web:
        fetcher = Fetcher(
            QUICK, allow={("named.example", web.port), ("other.example", web.port)}, resolver=lambda host, port: [HOST]
        )
        fetcher._tls = trusting
        assert fetcher.get(f"https://named.example:{web.port}/a").body == b"x"
        with pytest.raises(FetchFailed, match=r"other\.example"):
            fetcher.get(f"https://other.example:{web.port}/a")


@pytest.mark.parametrize(
    ("type_", "body", "text"),
    [
        ("text/html; charset=iso-8859-1", "Größe".encode("latin-1"), "Größe"),
        ("text/plain; charset=ISO-8859-1", "Größe – naïve".encode(), "Größe – naïve"),  # what Apache adds to all it has
        ("text/html; charset=no-such-thing", "Größe".encode(), "Größe"),
        ("text/html; charset=unicode_escape", b"\\u0041", "\\u0041"),
        ("text/html", "Größe".encode("cp1252"), "Größe"),
        ("text/html", b"<meta charset='shift_jis'>" + "日本".encode("shift_jis"), "<meta charset='shift_jis'>日本"),
        ("text/html", "Größe".encode("utf-16"), "Größe"),
        ("text/html; charset=iso-2022-jp", "日本".encode("iso-2022-jp"), "日本"),
        ("application/xml", b"<?xml version='1.0' encoding='koi8-r'?>\xf0", "<?xml version='1.0' encoding='koi8-r'?>П"),
        ("", b"\x00\xff\xfe", None),
    ],
)
def test_text_is_decoded_whatever_the_server_says(web: Site, type_: str, body: bytes, text: str | None) -> None:
    web.replies["/a"] = Reply(body, type=type_)
    got = allowed(web).get(web.url + "/a").text
    assert text is None or got == text


def test_robots_txt_is_heeded_and_asked_once(web: Site) -> None:
    web.replies["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /private/\n", type="text/plain")
    asked: list[str] = []
    robots = Robots(Fetcher(QUICK, allow=web.allowed, before_request=asked.append))
    assert robots.refusal(web.url + "/open") == ""
    assert robots.refusal(web.url + "/private/x") == "its robots.txt asks us not to read it"
    assert asked == [web.url + "/robots.txt"]


@pytest.mark.parametrize(("status", "open_"), [(404, True), (403, True), (500, False), (429, False)])
def test_a_site_without_rules_is_open_and_one_that_fails_is_not(web: Site, status: int, open_: bool) -> None:
    web.replies["/robots.txt"] = Reply(page("Nothing"), status=status)
    refusal = Robots(allowed(web)).refusal(web.url + "/x")
    assert refusal == ("" if open_ else f"its robots.txt cannot be read (status {status})")


# What is read of a page


def answer(body: bytes, type_: str = "text/html; charset=utf-8") -> Page:
    return Page("https://example.org/", 200, {"content-type": type_}, body)


@pytest.mark.slow
def test_menus_and_scripts_are_left_out() -> None:
    text = "Bees dance to tell each other where flowers are; the angle of the dance is the angle to the sun."
    body = page("How bees dance", text, "A second paragraph tells how far away the flowers are, by its length.")
    found = readable(answer(body.replace(b"<nav>", b"<script>alert(1)</script><nav>")))
    assert found.title == "How bees dance"
    assert text in found.text
    assert "alert" not in found.text
    assert "Home About" not in found.text


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"<", b"\x00\xff" * 50, b"<html>" * 5000, b"<div>" * 20_000 + b"x"])
def test_a_page_of_nothing_or_nonsense_has_no_text_and_does_no_harm(body: bytes) -> None:
    assert len(readable(answer(body)).text) < 1000


def test_plain_text_is_taken_as_it_is() -> None:
    assert readable(answer("  Grüße\n".encode(), "text/plain; charset=utf-8")).text == "Grüße"


@pytest.mark.slow
@pytest.mark.parametrize(
    "span", ['colspan="1000"', "COLSPAN = 1000", "rowspan='1000' colspan=1000", "class='a'colspan=1000"]
)
def test_a_cell_that_spans_a_thousand_columns_is_one_cell(span: str) -> None:
    """Twenty thousand of them took the extractor a minute of processor time."""
    row = "".join(f"<td {span}>column {number}</td>" for number in range(20))
    body = f"<article><table><tr>{row}</tr></table><p>{'words of a page ' * 50}</p></article>".encode()
    text = readable(answer(body)).text
    assert "column 19" in text
    assert text.count("|") < 50


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 20_000], ids=["a wide row", "many rows below a wide one"])
def test_a_table_of_very_many_cells_is_read_as_text(rows: int) -> None:
    """The extractor fills each row up to the widest: it made six million characters of 20,000 short rows."""
    wide = "".join(f"<td>column {number}</td>" for number in range(6_000))
    long = "".join(f"<tr><td>row {number}</td></tr>" for number in range(rows))
    body = f"<article><p>{'words of a page ' * 50}</p><table><tr>{wide}</tr>{long}</table></article>".encode()
    text = readable(answer(body)).text
    assert "column 5999" in text
    assert f"row {rows - 1}" in text
    assert len(text) < len(body)
