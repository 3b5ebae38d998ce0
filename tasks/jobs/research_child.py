"""The child process of research.idea, which researches one idea.

`python -m memoryvault.tasks.jobs.research_child` reads a request as JSON on stdin. It writes each finding at once to a
file in the request's folder below cache/, so that a killed child leaves its findings and the next attempt continues
from there. Every second, request and token is reserved in state.db before it is spent. It writes nothing to the vault;
its findings are scrubbed.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ...index.recall import DEGRADED_MESSAGES, FOR_NOW, recall_as_it_is
from ...pipelines.research import (
    RELATED_MEMORIES,
    RELATED_NOTES,
    is_askable,
    related_text,
    shown_link,
    significant_words,
    summary_of,
    web_text,
    within_tokens,
)
from ...pipelines.scrub import scrub
from ...runtime.atomic_file import replace_file
from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point
from ...runtime.layout import StatePaths, make_private_folder, open_private
from ...runtime.slug import free_slug
from ...services.cursors import Cursors
from ...services.discovery.fetch_child import FetchResult
from ...services.discovery.politeness import AskedHost
from ...services.spending import BudgetRefused, Cap, Reservation, SpendingBook, Unit
from ...sources.notes import scan_notes
from ...sources.web.addresses import is_own_network, is_public, system_resolver
from ...sources.web.fetch import Fetcher, FetchFailed, FetchRefused, Limits, Page
from ...sources.web.pages import READABLE_TYPES, Robots, readable
from ...sources.web.search import AnswerUnreadable, Provider, providers
from ...vault.render import estimate_tokens
from ...vault.wording import counted, cut
from ..queue import supervisor

PURPOSE = "research"
HOSTS = "discovery"
"""The scan under which hosts are remembered, so that rate limits hold for discovery and research together."""
LOCAL_SECONDS = 60.0
FETCH_SECONDS = 20.0
LOCAL_TOKENS = 900
WEB_TOKENS = 1000
MOST_RELATED = 6
RECALL_SECONDS = 15.0
EXCERPT_CHARACTERS = 220
REQUESTS_FILE = "requests.txt"
"""File with every requested address, written before the request."""
SAID_FILE = "said.txt"


@dataclass(frozen=True)
class ResearchRequest:
    """What to search for, where, and the limits. All texts in it are scrubbed."""

    subject: str
    """Subject of the spending: the idea."""
    idea: str
    """Vault-relative path of the idea's note."""
    title: str
    summary: str
    query: str
    """Query for search engines; '' for none."""
    links: list[str]
    local: bool
    """Search the vault and the user's notes; False if an earlier attempt did."""
    network: bool
    providers: list[str]
    bases: dict[str, str]
    """Addresses that replace those of the providers."""
    allow: list[tuple[str, int]]
    """Hosts and ports that may be loopback: empty except in tests."""
    searxng_allow: list[tuple[str, int]]
    """The same, for the SearXNG server that the user has named."""
    notes_root: str | None
    leave_out: list[str]
    vault: str
    state: str
    folder: str
    seconds: int
    fetches: int
    tokens: int
    service: bool = False
    """Whether a recall service is available; then a result from files alone does not count."""
    last: bool = False
    """Whether this is the last attempt, which accepts incomplete results."""

    @classmethod
    def from_json(cls, data: bytes) -> ResearchRequest:
        """Decode its fields as JSON."""
        value = parse_json(data)
        for name in ("allow", "searxng_allow"):
            value[name] = [(str(host), int(port)) for host, port in value[name]]
        return cls(**value)

    def cap(self, unit: Unit) -> Cap:
        """Return the idea's limit of a unit."""
        limit = {"seconds": self.seconds, "fetches": self.fetches, "tokens": self.tokens}[unit]
        return Cap(unit, limit, "subject")


@dataclass(frozen=True)
class Finding:
    """The result of one step; it becomes a note unless `body` is empty."""

    name: str
    """Name of the note, without `.md`."""
    title: str
    body: str
    line: str
    """Its line in the receipt."""
    untrusted: bool = False
    address: str = ""
    overran: str = ""
    """The unit whose budget ended it early."""
    asked: bool = True
    """False: it was refused here, before any host was asked."""


@dataclass(frozen=True)
class Report:
    """What the child prints at its end."""

    overrun: list[str]
    """Units whose budget was too small."""
    offline: bool
    """No host on the network answered."""
    again_at: float = 0.0
    """Unix seconds at which the first of the rate-limited hosts may be asked again; 0: none."""


@dataclass(frozen=True)
class _Step:
    name: str
    seconds: float
    tokens: int
    run: Callable[[float, int], Finding]
    """Takes the end (time.monotonic) and the number of tokens that it may use."""
    web: bool = False


class _NoAnswer(Exception):
    """The network or the host was unreachable."""


class _LeftAlone(Exception):
    """The host's rate limit is reached; it may be asked again at `until` (Unix seconds)."""

    def __init__(self, host: AskedHost) -> None:
        super().__init__(host.left_alone())
        self.until = host.not_before()


class Research:
    """Runs the steps of a request."""

    def __init__(self, request: ResearchRequest, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._request = request
        self._pause = pause
        self._folder = Path(request.folder)
        make_private_folder(str(self._folder.parent))  # `parents=True` would leave its mode to the umask.
        make_private_folder(str(self._folder))
        self._state = StatePaths(request.state)
        self._book = SpendingBook(self._state.state_db, PURPOSE)
        self._hosts = Cursors(self._state.state_db, HOSTS)
        self._fetch: Reservation | None = None
        """The host of the current request."""
        self._has_asked = False
        """Whether the current step sent a request."""

    def run(self) -> Report:
        """Take every step that no earlier attempt took, as far as the budget allows."""
        overrun: list[str] = []
        answered = unanswered = 0
        lacks_local = False
        again: list[float] = []
        for step in self._steps():
            kept = self._folder / f"{step.name}.json"
            try:
                if not kept.exists():
                    overrun.append(self._take(step))
                answered += step.web and parse_json(kept.read_text("utf-8")).get("asked", True)
            except BudgetRefused as refused:
                overrun.append(refused.cap.unit)
                self._log_line(f"{step.name}: no more {refused.cap.unit} left.")
            except _LeftAlone as error:
                again.append(error.until)
                self._log_line(f"{step.name}: {error}")
            except _NoAnswer as error:
                unanswered += 1
                lacks_local |= not step.web
                self._log_line(f"{step.name}: {error}")
        if unanswered and self._book.left(self._request.subject, self._request.cap("seconds")) < 1:
            return Report(sorted({"seconds", *overrun} - {""}), offline=False)
        offline = lacks_local or (bool(unanswered or again) and not answered)
        return Report(sorted(set(overrun) - {""}), offline=offline, again_at=min(again, default=0.0))

    def _take(self, step: _Step) -> str:
        """Take one step; return the unit whose budget ended it early, or ''. Raises BudgetRefused, _NoAnswer."""
        request = self._request
        seconds = min(math.ceil(step.seconds), max(1, self._book.left(request.subject, request.cap("seconds"))))
        tokens = min(step.tokens, max(1, self._book.left(request.subject, request.cap("tokens"))))
        reservation = self._book.reserve(
            request.subject,
            {"seconds": seconds, "tokens": tokens},
            [request.cap("seconds"), request.cap("tokens")],
        )
        started = time.monotonic()
        self._has_asked = False
        spent = 0
        try:
            finding = step.run(started + seconds, tokens)
            text = scrub(finding.body)
            body = within_tokens(text, tokens)
            spent = estimate_tokens(body) if body else 0
            short = len(body) < len(text) and tokens < step.tokens
            finding = replace(
                finding,
                title=scrub(finding.title),
                body=body,
                line=scrub(finding.line),
                address=scrub(finding.address),
                overran=finding.overran or ("tokens" if short else ""),
            )
            replace_file(self._folder / f"{finding.name}.json", json.dumps(asdict(finding)).encode("ascii"))
            return finding.overran
        finally:
            elapsed = min(seconds, math.ceil(time.monotonic() - started))
            self._book.settle(reservation, {"seconds": elapsed, "tokens": spent})

    def _log_line(self, line: str) -> None:
        self._append(SAID_FILE, " ".join(line.split()))

    def _append(self, name: str, line: str) -> None:
        with open(self._folder / name, "a", encoding="utf-8", opener=open_private) as file:
            file.write(line + "\n")

    # ---- the steps

    def _steps(self) -> list[_Step]:
        request = self._request
        steps: list[_Step] = []
        if request.local:
            steps.append(_Step(RELATED_MEMORIES, LOCAL_SECONDS, LOCAL_TOKENS, self._memories))
        if request.local and request.notes_root is not None:
            steps.append(_Step(RELATED_NOTES, LOCAL_SECONDS, LOCAL_TOKENS, self._notes))
        if not request.network:
            return steps
        names: list[str] = []
        for link in request.links[: request.fetches]:
            names.append(name := free_slug(f"research-{_words_of_host(link)}", names))
            steps.append(_Step(name, FETCH_SECONDS, WEB_TOKENS, partial(self._read_page, name, link), web=True))
        known = providers(request.bases)
        room = request.fetches - sum(is_askable(link, request.allow) for link in request.links)
        for engine in [known[name] for name in request.providers if name in known][: max(0, room)]:
            if request.query:
                names.append(name := free_slug(f"research-{engine.name}", names))
                steps.append(_Step(name, FETCH_SECONDS, WEB_TOKENS, partial(self._search, name, engine), web=True))
        return steps

    def _memories(self, end: float, tokens: int) -> Finding:
        request = self._request
        text = f"{request.title}\n{request.summary}"[:600]
        answer = recall_as_it_is(
            self._state,
            Path(request.vault),
            text,
            caller=PURPOSE,
            timeout_seconds=min(RECALL_SECONDS, max(0.1, end - time.monotonic())),
            k=MOST_RELATED,
            all_projects=True,
            statuses=["active", "resolved", "incubating"],
            exclude_paths=[request.idea],
        )
        if answer.without_service and request.service and not request.last:
            raise _NoAnswer(f"the vault was not asked: {answer.without_service}")
        hits, lacked = answer.hits, {*answer.degraded}
        by = "; ".join(DEGRADED_MESSAGES[code] for code in sorted(lacked))
        if lacked & FOR_NOW and not request.last:
            raise _NoAnswer(f"the vault answered {by}")
        found = [
            (str(hit["title"]), hit["path"].removesuffix(".md"), cut(str(hit["excerpt"]), EXCERPT_CHARACTERS))
            for hit in hits
            if not hit.get("is_weak")
        ]
        none = (
            f"Nothing was found in the vault, which answered {by}." if by else "Nothing in the vault is about it yet."
        )
        body = related_text("What the vault knows about it.", found, none)
        return Finding(RELATED_MEMORIES, "Related memories", body, f"Memories of the vault: {len(found)}.")

    def _notes(self, end: float, tokens: int) -> Finding:
        request = self._request
        words = significant_words(f"{request.title}\n{request.summary}")
        assert request.notes_root is not None
        scan = scan_notes(
            Path(request.notes_root),
            [Path(path) for path in request.leave_out],
            words,
            most=MOST_RELATED,
            deadline=end - 1,
        )
        intro = "Notes of yours that share words with it: short excerpts; the notes were only read."
        body = related_text(intro, scan.matches, "None of your own notes shares words with it.")
        seen = f"{scan.notes} read" if scan.complete else f"the first {scan.notes} read, then the time was over"
        line = f"Your own notes: {len(scan.matches)} ({seen})."
        return Finding(RELATED_NOTES, "Related notes", body, line, overran="" if scan.complete else "seconds")

    def _search(self, name: str, engine: Provider, end: float, tokens: int) -> Finding:
        request = self._request
        allow = request.searxng_allow if engine.name == "searxng" else []
        address = engine.url_of(request.query)
        title = f"{engine.name}: {request.query}"
        try:
            page = self._asked(address, lambda: self._fetcher(end, [*request.allow, *allow]).get(address))
            found = engine.results_of(page)
        except (FetchFailed, FetchRefused, AnswerUnreadable) as error:
            return self._no_page(name, error)
        body = web_text(engine.name, engine.base, request.query, found, "")
        return Finding(name, title, body, f"{engine.name}: {counted(len(found), 'result')}.", True, engine.base)

    def _read_page(self, name: str, link: str, end: float, tokens: int) -> Finding:
        request = self._request
        robots = Robots(self._fetcher(end, request.allow, counted=False))
        try:
            fetcher = self._fetcher(end, request.allow, robots=robots)
            page = self._asked(link, lambda: fetcher.get(link, content_types=READABLE_TYPES))
        except (FetchFailed, FetchRefused) as error:
            return self._no_page(name, error)
        read = readable(page)
        if not read.text:
            return Finding(name, "", "", f"{link}: no text was found on it.")
        summary = summary_of(read.text, f"{request.title} {request.summary}", token_limit=tokens // 2)
        # The final address may be signed for this one reader.
        reached = shown_link(page.url, request.allow)
        led_to = "" if reached == link else reached
        body = web_text(urlsplit(page.url).hostname or "", link, "", [], summary, led_to=led_to)
        return Finding(name, read.title or link, body, f"{link}: read.", True, reached.removesuffix("?…"))

    def _fetcher(
        self, end: float, allow: Sequence[tuple[str, int]], *, counted: bool = True, robots: Robots | None = None
    ) -> Fetcher:
        request = self._request

        def before(url: str) -> None:
            self._fetch = None
            if robots is not None and (refusal := robots.refusal(url)):
                raise FetchRefused(f"{shown_link(url, request.allow)}: {refusal}.")
            self._has_asked = True
            if counted:  # Settled only if there was no connection: otherwise everything that was allowed was used.
                self._fetch = self._book.reserve(request.subject, {"fetches": 1}, [request.cap("fetches")])
            self._append(REQUESTS_FILE, shown_link(url, [*request.allow, *request.searxng_allow]))
            kill_point("mid-child")

        def resolve(host: str, port: int) -> Sequence[str]:
            if not (is_public(host) or is_own_network(host)):  # Else it is a number.
                self._append(REQUESTS_FILE, f"{host}, a name to resolve")
            return system_resolver(host, port)

        limits = Limits(total_seconds=max(0.1, min(FETCH_SECONDS, end - time.monotonic())))
        return Fetcher(limits, before_request=before, allow=allow, resolver=resolve)

    def _asked(self, address: str, get: Callable[[], Page]) -> Page:
        """Return the page of a host that may be asked now. Raises _LeftAlone, and the errors of `get`."""
        host = AskedHost(self._hosts, address, pause=self._pause)
        if host.not_before():
            raise _LeftAlone(host)
        parts = urlsplit(address)
        if (parts.hostname, parts.port) not in (*self._request.allow, *self._request.searxng_allow):
            host.be_polite()
        try:
            page = get()
        except FetchFailed as error:
            if error.status not in (403, 429) or error.retry_after is None:
                raise
            host.remember(FetchResult(problem=str(error), status=error.status, retry_after=error.retry_after))
            if self._fetch is not None:
                self._book.settle(self._fetch, {"fetches": 0})
            raise _LeftAlone(host) from error
        host.remember(FetchResult(status=page.status))
        return page

    def _no_page(self, name: str, error: Exception) -> Finding:
        """Return the text for a final failure; for a temporary one raise _NoAnswer, so that it is retried."""
        if isinstance(error, FetchFailed) and error.status is None:
            if error.unsent and self._fetch is not None:
                self._book.settle(self._fetch, {"fetches": 0})
            raise _NoAnswer(str(error))
        return Finding(name, "", "", str(error), asked=self._has_asked)


def _words_of_host(link: str) -> str:
    host = (urlsplit(link).hostname or "page").removeprefix("www.")
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in host).split())[:60] or "page"


def findings_in(folder: Path) -> list[Finding]:
    """Return the child's findings by name."""
    return [Finding(**parse_json(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]


def lines_in(folder: Path, name: str) -> list[str]:
    """Return the lines of a file written by the child."""
    try:
        return list(dict.fromkeys((folder / name).read_text("utf-8", "replace").splitlines()))
    except OSError:
        return []


def main() -> int:
    """Run the child process."""
    supervisor.watch_parent()
    request = ResearchRequest.from_json(sys.stdin.buffer.read())
    report = Research(request).run()
    json.dump(asdict(report), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
