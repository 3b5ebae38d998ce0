"""What a page is, and what all pages share: settings, vault, reviewer and templates.

Each request reads files, index, journal and ledger anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .. import __version__
from ..pipelines.scrub import Policy, scrub
from ..runtime.days import day_of as local_day
from ..runtime.days import effective_day
from ..runtime.errors import (
    EditConflict,
    EntryExists,
    EntryNotFound,
    MemoryVaultError,
    QueueUnavailable,
    UsageError,
    VaultUnavailable,
)
from ..runtime.settings import Settings
from ..services.journal import Act
from ..services.pending_counts import PendingCounts, count_pending_notes
from ..services.reviewing import Reviewer
from ..services.stores import vault_store
from ..tasks.queue.enqueue import request_indexing
from ..vault.note_text import is_title_cut, said_once
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import counted as counted
from ..vault.wording import cut
from .diff import side_by_side
from .markdown import render_markdown
from .times import ago, size, when_iso

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Notice:
    """One line about what was just done, or why it failed."""

    text: str
    is_problem: bool = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page, with its place in the navigation. `ConsoleContext.page(…, page=name)` makes its answers."""

    name: str
    """Its address below the base."""
    title: str
    key: str
    """The key that leads there, after `g`; '' if only other pages lead there."""
    routes: Callable[[ConsoleContext], Sequence[Route]]
    waiting: Callable[[PendingCounts], int] | None = None
    """Number of things that wait on the page, shown beside its name."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of the page and what they do, for the help."""


class ConsoleContext:
    """What all requests of one console share: addresses, vault, reviewer and templates."""

    def __init__(self, settings: Settings, *, place: str, pages: Sequence[Page] = ()) -> None:
        self.settings = settings
        self.pages = tuple(pages)
        self._base = f"/{place}"
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {
            "url": self.url,
            "static": lambda name: f"{self._base}/static/{name}",
            "markdown": lambda text, below: render_markdown(text, self.entry_url, below),
            "is_title_cut": is_title_cut,
            "said_once": said_once,
            "meant_on": effective_day,
            "diff": side_by_side,
            "version": __version__,
        }
        self._templates.filters |= {
            "name_of": name_of,
            "day": lambda text: (text or "")[:10],
            "local_day": local_day,
            "count": counted,
            "cut": cut,
        }
        self._templates.filters |= {"when_iso": when_iso, "ago": ago, "size": size}

    # Addresses

    def url(self, name: str, **query: object) -> str:
        """The address of a page, with the parameters of `query` that are neither None nor ''."""
        asked = {key: value for key, value in query.items() if value not in (None, "")}
        return f"{self._base}/{name}" + (f"?{urlencode(asked, errors='replace')}" if asked else "")

    def entry_url(self, target: str) -> str:
        """The address of an entry's page, by path or slug."""
        return self.url("entry", path=target)

    # The vault

    def store(self) -> VaultStore:
        """The vault's files. Raises SettingsError."""
        return vault_store(self.settings)

    def reviewer(self) -> Reviewer:
        """Return the reviewer, which also carries out the decisions of commands and notes."""
        return Reviewer(self.settings)

    def changed(self) -> None:
        """Request an update of the index after a change."""
        request_indexing(self.settings)

    # Answers

    def page(
        self,
        request: Request,
        template: str,
        *,
        page: str,
        title: str = "",
        status: int = 200,
        said: Notice | None = None,
        address: str = "",
        pending: PendingCounts | None = None,
        **values: Any,
    ) -> Response:
        """Render a whole page; a script that needs a part of it picks that part.

        `address`: where the page can be loaded again after a change. `pending`: counts, if the page has them already.
        """
        session = request.state.session
        text = self._templates.get_template(template).render(
            page=page,
            pages=self.pages,
            title=title or next((one.title for one in self.pages if one.name == page), "MemoryVault"),
            waiting=self._waiting_by_page(pending),
            said=said,
            csrf=session.csrf,
            **values,
        )
        headers = {"HX-Push-Url": address} if address and "hx-request" in request.headers else {}
        return HTMLResponse(text.encode("utf-8", "replace"), status, headers=headers)

    def part(self, template: str, **values: Any) -> Response:
        """Render a piece of a page."""
        return HTMLResponse(self._templates.get_template(template).render(**values).encode("utf-8", "replace"))

    def refused(self, status: int, line: str) -> Response:
        """Return the answer to a request without a session: one line, with nothing of the vault."""
        return HTMLResponse(self._templates.get_template("refused.html").render(line=line), status)

    def problem(self, request: Request, error: Exception) -> Response:
        """Return a page that shows an error."""
        return self.page(
            request,
            "problem.html",
            page="",
            title="That did not work",
            status=status_of(error),
            said=Notice(str(error), True),
        )

    def _waiting_by_page(self, pending: PendingCounts | None) -> dict[str, int]:
        """Page -> number of things that wait there; empty if the vault is away."""
        try:
            counts = pending or count_pending_notes(self.store())
        except MemoryVaultError:
            return {}
        return {page.name: page.waiting(counts) for page in self.pages if page.waiting is not None}


Answer = Callable[[Request], Response]


def routes_of(base: str, look: Answer, **changes: Answer) -> tuple[Route, ...]:
    """Routes for the page `base` (GET) and its changes below it (POST).

    A GET of a change shows the page: without scripts, reloading must not repeat the change.
    """
    posts = (Route(f"{base}/{name}", change, methods=["POST"]) for name, change in changes.items())
    again = (Route(f"{base}/{name}", look, methods=["GET"]) for name in changes)
    return (Route(base, look, methods=["GET"]), *posts, *again)


def attempt(what: Callable[[], Notice]) -> Notice:
    """Run `what` and return its notice, or its error as a notice."""
    try:
        return what()
    except MemoryVaultError as error:
        return Notice(str(error), is_problem=True)


def undone(context: ConsoleContext, act_id: str) -> tuple[Notice, Act | None]:
    """Undo the last decision if it is still the act that was shown. Return a notice, and the undo's act or None."""
    reviewer = context.reviewer()
    try:
        act = reviewer.undo_last(act_id or None)
    except MemoryVaultError as error:
        return Notice(str(error), is_problem=True), None
    if act is None:
        return Notice("there is no decision to take back", is_problem=True), None
    context.changed()
    return Notice(act.what), act


def edited_text(form: Mapping[str, str], or_else: str) -> tuple[Scrubbed, str]:
    """Return the text that the user has edited, and a remark if secrets in it were replaced. Raises UsageError for an
    empty one, with what to do instead."""
    text = form.get("body", "").replace("\r\n", "\n").strip()
    if not text:
        raise UsageError(f"nothing was left of the text: {or_else} it instead")
    body = scrub(text, Policy.SECRETS)
    return body, "; secrets in the text were replaced" if body != text else ""


def status_of(error: Exception) -> int:
    """The HTTP status for an error."""
    match error:
        case EntryNotFound():
            return 404
        case EditConflict() | EntryExists():
            return 409
        case VaultUnavailable() | QueueUnavailable():
            return 503
        case UsageError():
            return 400
    return 422


def name_of(path: str) -> str:
    """The name of a note as commands accept it."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".md")
    return path.rsplit("/", 2)[-2] if stem == "_index" and "/" in path else stem


def page_number(request: Request) -> int:
    """The number in `?page=`; 1 if there is none."""
    asked = request.query_params.get("page", "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
