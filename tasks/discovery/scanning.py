"""One question to the outside world, asked in a child process under a deadline and a limit of memory.

`python -m memoryvault.tasks.discovery.scanning` is the child: a `Question` as JSON on stdin, an `Answer` as JSON on
stdout. It writes nothing to disk. What is foreign is fetched and parsed there and nowhere else, so that a page which
hangs or bursts a parser takes one short-lived process with it.
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

from ...sources.discovery.feeds import FeedInvalid, feed_items
from ...sources.discovery.github import (
    AnswerInvalid,
    rate_limit,
    repository_facts,
    search_items,
    tree_items,
)
from ...sources.discovery.listed import Listed
from ...sources.discovery.markdown_list import markdown_items
from ...sources.discovery.skill_folder import folder_items
from ...sources.web.fetch import Fetcher, FetchFailed, FetchRefused, Limits, Page, shown_address
from ...vault.killpoint import kill_point
from ...vault.settings import Settings, child_environment
from ..queue import supervisor
from ..queue.job import Retry

CHILD = "memoryvault.tasks.discovery.scanning"
FETCH_SECONDS = 30.0
CHILD_SECONDS = 60.0
MAX_BODY_BYTES = 8_000_000
"""A long list is a few hundred kilobytes, GitHub's tree of a large repository a few megabytes."""
MAX_ANSWER_BYTES = 24_000_000
MEMORY_BYTES = 1_500_000_000
MAX_TEXT_CHARACTERS = 40_000

Asked = Literal["list", "topic", "feed", "folder", "tree", "facts", "text"]


@dataclass(frozen=True)
class Question:
    """What is asked for. `url` is what is requested, `page` the address that relative links are relative to."""

    kind: Asked
    url: str
    page: str = ""
    etag: str = ""
    modified: str = ""
    allow: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of the own machine that the user named."""

    @property
    def shown(self) -> str:
        """What is asked, for messages and logs: the query of an address may hold a token."""
        return self.url if self.kind == "folder" else shown_address(self.url)


@dataclass(frozen=True)
class Answer:
    """What came of it. Exactly one of `unchanged`, `problem`, or items, facts or text."""

    items: tuple[Listed, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    unchanged: bool = False
    etag: str = ""
    modified: str = ""
    remaining: int | None = None
    reset_at: float | None = None
    problem: str = ""
    status: int | None = None
    retry_after: float | None = None
    refused: bool = False
    """It is never to be asked for again as it is."""


Ask = Callable[[Question], Answer]
"""Raises JobLost when the job that asks is no longer ours."""


def answer(question: Question) -> Answer:
    """Ask and read. Whatever the other side does, it is an Answer."""
    if question.kind == "folder":
        try:
            return Answer(items=tuple(folder_items(Path(question.url))))
        except OSError as error:
            return Answer(problem=f"{question.url} cannot be read: {error.strerror}")
    headers = {"accept": _ACCEPT.get(question.kind, "*/*")}
    if question.etag:
        headers["if-none-match"] = question.etag
    if question.modified:
        headers["if-modified-since"] = question.modified
    fetcher = Fetcher(Limits(total_seconds=FETCH_SECONDS, max_bytes=MAX_BODY_BYTES), allow=frozenset(question.allow))
    try:
        page = fetcher.get(question.url, headers=headers)
    except FetchRefused as error:
        return Answer(problem=str(error), refused=True)
    except FetchFailed as error:
        return Answer(problem=str(error), status=error.status, retry_after=error.retry_after)
    limit = rate_limit(page.headers)
    about = Answer(
        unchanged=page.status == 304,
        etag=page.headers.get("etag", "")[:1000],
        modified=page.headers.get("last-modified", "")[:200],
        remaining=limit.remaining if limit else None,
        reset_at=limit.reset_at if limit else None,
        status=page.status,
    )
    if about.unchanged:
        return about
    kill_point("mid-child")
    return _read(question, page, about)


_ACCEPT = {
    "topic": "application/vnd.github+json",
    "tree": "application/vnd.github+json",
    "facts": "application/vnd.github+json",
    "feed": "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5",
}


def _read(question: Question, page: Page, about: Answer) -> Answer:
    try:
        match question.kind:
            case "list":
                items = markdown_items(page.text, question.page or page.url)
            case "topic":
                items = search_items(page.body)
            case "tree":
                items = tree_items(page.body, question.page)
            case "feed":
                items = feed_items(page.body, page.url, page.headers.get("content-type", ""))
            case "facts":
                facts = asdict(repository_facts(page.body))
                return _with(about, facts={**facts, "pushed": str(facts["pushed"] or "")})
            case "text":
                return _with(about, text=page.text[:MAX_TEXT_CHARACTERS])
            case "folder":
                raise AssertionError("a folder is not fetched")
    except (FeedInvalid, AnswerInvalid) as error:
        return Answer(problem=f"{question.shown}: {error}", status=page.status)
    return _with(about, items=tuple(items))


def _with(about: Answer, **more: Any) -> Answer:
    return Answer(**{**{name: getattr(about, name) for name in about.__dataclass_fields__}, **more})


# The child


def ask_in_child(
    settings: Settings,
    run: Callable[..., supervisor.ChildResult] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ask:
    """Asks in a child; `run` is `RunningJob.run_child` within a job."""

    def ask(question: Question) -> Answer:
        command = [sys.executable, "-m", CHILD]
        env = {**child_environment(settings), **(environment or {})}
        payload = json.dumps(asdict(question)).encode()
        try:
            if run is None:
                result = supervisor.run_child(
                    command, payload, CHILD_SECONDS, env=env, max_stdout_bytes=MAX_ANSWER_BYTES
                )
            else:
                result = run(
                    command, env=env, input=payload, deadline_seconds=CHILD_SECONDS, max_stdout_bytes=MAX_ANSWER_BYTES
                )
        except Retry as error:
            return Answer(problem=f"{question.shown}: {error}")
        if result.ended != "exited" or result.returncode != 0:
            ended = result.last_words() if result.ended == "exited" else f"killed: {result.ended}"
            return Answer(problem=f"{question.shown}: reading it failed ({ended})")
        try:
            return _answer_from_json(json.loads(result.stdout))
        except (ValueError, KeyError, TypeError):
            return Answer(problem=f"{question.shown}: reading it gave no answer")

    return ask


def _answer_from_json(value: Mapping[str, Any]) -> Answer:
    return Answer(**{**value, "items": tuple(Listed(**item) for item in value["items"])})


def _question_from_json(value: Mapping[str, Any]) -> Question:
    return Question(**{**value, "allow": tuple((str(host), int(port)) for host, port in value["allow"])})


def main() -> int:
    """The child."""
    supervisor.watch_parent()
    # A machine that does not know the limit (macOS) goes without it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    question = _question_from_json(json.load(sys.stdin))
    try:
        found = answer(question)
    except MemoryError:
        found = Answer(problem=f"{question.shown}: it needs more than {MEMORY_BYTES // 1_000_000} MB to read")
    except RecursionError:
        found = Answer(problem=f"{question.shown}: it is nested too deep to read")
    json.dump(asdict(found), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
