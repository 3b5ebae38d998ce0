"""UserPromptSubmit: what the vault knows about this prompt, within the budget whatever the service does.

The service is asked first. If it has not answered after `FIRST_PATIENCE_SECONDS` the hook looks for an answer
of its own, so that there is one, and gives the service the rest of its time meanwhile: a late good answer
beats an early weaker one.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread

from ..vault.layout import INDEX_WANTED
from ..vault.render import render_block, select_hits, status_line
from .ask import Question, recall_request, shorten
from .held import injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall
    from .search import Found

FIRST_PATIENCE_SECONDS = 0.11
LAST_PATIENCE_SECONDS = 0.19
SEARCH_DEADLINE_SECONDS = 0.23
"""All three since the process started; the hard end is at 0.3."""
LATE_SECONDS = 0.02
"""How much longer a search of our own is waited for: it looks at the clock between two files."""


class Recalled:
    """What to print. `paths` is what the session holds from now on."""

    __slots__ = ("block", "note", "paths", "service", "status")

    def __init__(self, block: str, status: str, paths: list[str], note: str, service: str) -> None:
        self.block = block
        self.status = status
        self.paths = paths
        self.note = note
        """What was missing, '' when nothing was."""
        self.service = service
        """'ok', 'absent', 'slow', 'not asked' or 'broken (why)'."""


def recall(question: str, call: HookCall, settings: Mapping[str, str], started: float) -> Recalled:
    """Answer `question` for a process that started at `started` (monotonic seconds). Never raises."""
    k = int(settings["recall_k"])
    token_budget = int(settings["token_budget"])
    service = "not asked"
    asked: Question | None = None
    answer: dict[str, Any] | None = None
    try:
        first = started + FIRST_PATIENCE_SECONDS
        budget_ms = int((started + LAST_PATIENCE_SECONDS - time.monotonic()) * 1000)
        if budget_ms > 0:
            service = "ok"
            request = recall_request(question, k, call.cwd, call.session, budget_ms, token_budget)
            asked = Question(settings["recall_socket"], request, first)
            answer = asked.answer(first)
    except (FileNotFoundError, ConnectionRefusedError):
        service = "absent"
    except OSError as error:
        service, asked = f"broken ({error})", None
    if answer is not None and (told := _told(answer)) is not None:
        return told
    if service == "ok":
        service = "slow" if answer is None else "broken (it reported an error)"
    own = _OwnSearch(question, call, settings, k, started)
    if asked is not None and answer is None:
        try:
            answer = asked.answer(started + LAST_PATIENCE_SECONDS)
        except OSError as error:
            service = f"broken ({error})"
        if answer is not None and (told := _told(answer)) is not None:
            return told
    return _rendered(own.found(), token_budget, service)


class _OwnSearch:
    """A search of our own, in a thread: the vault's disk may never answer, and the service still may."""

    __slots__ = ("_deadline", "_done", "_found")

    def __init__(self, question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> None:
        self._deadline = started + SEARCH_DEADLINE_SECONDS
        self._done = allocate_lock()
        self._done.acquire()
        self._found: Found | None = None
        start_new_thread(self._run, (question, call, settings, k, started))

    def _run(self, question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> None:
        try:
            self._found = _search(question, call, settings, k, started)
        finally:
            self._done.release()

    def found(self) -> Found:
        """What was found by the deadline."""
        self._done.acquire(timeout=max(self._deadline + LATE_SECONDS - time.monotonic(), 0.001))
        if self._found is not None:
            return self._found
        from .search import Found

        return Found([], "own search late", False)


def _told(answer: dict[str, Any]) -> Recalled | None:
    """The service's answer; None when it says that it could not."""
    block, status, paths = answer.get("block"), answer.get("status"), answer.get("paths")
    if answer.get("ok") is not True or not isinstance(block, str) or not isinstance(paths, list):
        return None
    degraded = answer.get("degraded")
    note = "; ".join(str(part) for part in degraded) if isinstance(degraded, list) else ""
    return Recalled(block, str(status or status_line([])), [p for p in paths if isinstance(p, str)], note, "ok")


def _search(question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> Found:
    # Loaded only now: a warm service answers without any of it.
    from ..vault.project import project_of
    from .search import SEARCHED_FILES, Found, Search, search

    deadline = started + SEARCH_DEADLINE_SECONDS
    if time.monotonic() >= deadline:
        return Found([], "time budget exceeded", False)
    held = injected(settings["harness"], call.session) if call.session else set()
    query = Search(shorten(question), settings["vault"], project_of(call.cwd), k, held, deadline)
    found = search(query, settings["index_db"])
    if found.degraded.endswith(SEARCHED_FILES):
        _want_index(f"{settings['state']}/run/{INDEX_WANTED}")
    return found


def _want_index(path: str) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return


def _rendered(found: Found, token_budget: int, service: str) -> Recalled:
    shown = select_hits(found.hits, token_budget)
    status = status_line(hit.slug for hit in shown)
    if not found.searched:
        status += " (nothing was searched)"
    note = f"recall service {service}"
    if found.degraded:
        note += f"; {found.degraded}"
    block = render_block(shown, token_budget) if shown else ""
    return Recalled(block, status, [hit.path for hit in shown], note, service)
