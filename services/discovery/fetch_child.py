"""Fetch one external resource in a child process, with a time and memory limit.

`python -m memoryvault.services.discovery.fetch_child` is the child: a `FetchRequest` as JSON on stdin, a `FetchResult`
as JSON on stdout. It writes nothing to disk. Foreign content is fetched and parsed only there, so that a page that
hangs or crashes a parser only ends one short-lived process.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...pipelines.discovery import is_own_machine, place_of
from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point, kill_point_environment
from ...runtime.settings import Settings, child_environment
from ...sources.discovery.feeds import FeedInvalid, feed_items
from ...sources.discovery.github import AnswerInvalid, repository_facts, search_items, tree_items
from ...sources.discovery.markdown_list import markdown_items
from ...sources.discovery.skill_folder import folder_items
from ...sources.discovery.source_item import SourceItem
from ...sources.web.fetch import Fetcher, FetchFailed, FetchRefused, Limits, Page, shown_address
from ...tasks.queue import supervisor
from ...tasks.queue.job import Retry

CHILD = "memoryvault.services.discovery.fetch_child"
FETCH_SECONDS = 30.0
CHILD_SECONDS = 60.0
MAX_BODY_BYTES = 8_000_000
"""Size limit: a long list has a few hundred kilobytes, GitHub's tree of a large repository a few megabytes."""
MAX_ANSWER_BYTES = 24_000_000
MEMORY_BYTES = 1_500_000_000
MAX_TEXT_CHARACTERS = 40_000

FetchKind = Literal["list", "topic", "feed", "folder", "tree", "facts", "text"]


@dataclass(frozen=True)
class FetchRequest:
    """A request. `url` is fetched; `page`: the page on GitHub of which it is the tree."""

    kind: FetchKind
    url: str
    page: str = ""

    @property
    def allow(self) -> tuple[tuple[str, int], ...]:
        """Host and port if the user named an address of this machine or network; a page, as a list names it, cannot."""
        return () if self.kind == "text" or not is_own_machine(self.url) else place_of(self.url)

    @property
    def shown(self) -> str:
        """The request without the query, which may hold a token, for messages and logs."""
        return self.url if self.kind == "folder" else shown_address(self.url)


@dataclass(frozen=True)
class FetchResult:
    """The result of a request: `problem`, or items, facts or text."""

    items: tuple[SourceItem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    problem: str = ""
    status: int | None = None
    retry_after: float | None = None
    refused: bool = False
    """The request must never be repeated as it is."""


Fetch = Callable[[FetchRequest], FetchResult]
"""Raises JobLost if the asking job is no longer ours."""


def fetch(request: FetchRequest) -> FetchResult:
    """Fetch and parse. Errors of the other side are results, not exceptions."""
    if request.kind == "folder":
        try:
            return FetchResult(items=tuple(folder_items(Path(request.url))))
        except OSError as error:
            return FetchResult(problem=f"{request.url} cannot be read: {error.strerror}")
    fetcher = Fetcher(Limits(total_seconds=FETCH_SECONDS, max_bytes=MAX_BODY_BYTES), allow=request.allow)
    try:
        page = fetcher.get(request.url, headers={"accept": _ACCEPT.get(request.kind, "*/*")})
    except FetchRefused as error:
        return FetchResult(problem=str(error), refused=True)
    except FetchFailed as error:
        return FetchResult(problem=str(error), status=error.status, retry_after=error.retry_after)
    kill_point("mid-child")
    return _read(request, page)


_ACCEPT = {
    "topic": "application/vnd.github+json",
    "tree": "application/vnd.github+json",
    "facts": "application/vnd.github+json",
    "feed": "application/atom+xml, application/rss+xml, application/xml;q=0.9, */*;q=0.5",
}


def _read(request: FetchRequest, page: Page) -> FetchResult:
    try:
        match request.kind:
            case "list":
                items = markdown_items(page.text, page.url)
                if not items:  # Also for an error page in its place: everything it really lists would be new next time.
                    problem = f"{request.shown}: it lists nothing: no line of it begins with a link"
                    return FetchResult(problem=problem, status=page.status)
            case "topic":
                items = search_items(page.body)
            case "tree":
                items = tree_items(page.body, request.page)
            case "feed":
                items = feed_items(page.body, page.url, page.headers.get("content-type", ""))
            case "facts":
                return FetchResult(facts=repository_facts(page.body), status=page.status)
            case "text":
                return FetchResult(text=page.text[:MAX_TEXT_CHARACTERS], status=page.status)
            case "folder":
                raise AssertionError("a folder is not fetched")
    except (FeedInvalid, AnswerInvalid) as error:
        return FetchResult(problem=f"{request.shown}: {error}", status=page.status)
    return FetchResult(items=tuple(items), status=page.status)


# The child


def fetch_in_child(settings: Settings, run: Callable[..., supervisor.ChildResult] | None = None) -> Fetch:
    """Return a function that fetches in a child process; `run` is `RunningJob.run_child` within a job."""

    def fetch(request: FetchRequest) -> FetchResult:
        command = [sys.executable, "-m", CHILD]
        env = {**child_environment(settings), **kill_point_environment()}
        payload = json.dumps(asdict(request)).encode()
        try:
            result = (run or supervisor.run_child)(
                command, env=env, input=payload, deadline_seconds=CHILD_SECONDS, max_stdout_bytes=MAX_ANSWER_BYTES
            )
        except Retry as error:
            return FetchResult(problem=f"{request.shown}: {error}")
        if result.ended != "exited" or result.returncode != 0:
            ended = result.last_words() if result.ended == "exited" else f"killed: {result.ended}"
            return FetchResult(problem=f"{request.shown}: reading it failed ({ended})")
        value = parse_json(result.stdout)
        return FetchResult(**{**value, "items": tuple(SourceItem(**item) for item in value["items"])})

    return fetch


def main() -> int:
    """Run the child process."""
    supervisor.watch_parent()
    # macOS does not know the limit and goes without it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    request = FetchRequest(**json.load(sys.stdin))
    json.dump(asdict(fetch(request)), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
