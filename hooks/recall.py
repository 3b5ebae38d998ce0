"""UserPromptSubmit: what the vault knows about this prompt, within the budget whatever the service does.

The service is asked first. If it has not answered after a while the hook looks for an answer of its own, so that
there is one, and gives the service the rest of its time meanwhile: a late good answer beats an early weaker one.
But only a few hooks search at the same time: when many prompts come at once the service is late because the
processor is busy, and twenty searches more would make all of them late.
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
LEAST_PATIENCE_SECONDS = 0.06
"""What the service gets in any case since it was asked, by a process that itself was late to start."""
LAST_PATIENCE_SECONDS = 0.255
SEARCH_BY_SECONDS = 0.2
"""Later a search of our own is not begun."""
SEARCH_DEADLINE_SECONDS = 0.23
"""All but the second since the process started; the hard end is at 0.3."""
LATE_SECONDS = 0.02
"""How much longer a search of our own is waited for: it looks at the clock between two files."""
SEARCHES_AT_ONCE = 2
"""Of all hooks of one state folder: as many as a small machine has cores."""
LOOK_AGAIN_SECONDS = 0.01


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
    begun = time.monotonic()
    until = started + LAST_PATIENCE_SECONDS
    # A client whose time is nearly over asks all the same: the service knows whether it can still answer.
    first = min(max(started + FIRST_PATIENCE_SECONDS, begun + LEAST_PATIENCE_SECONDS), until)
    try:
        if begun < until:
            service = "ok"
            request = recall_request(question, k, call.cwd, call.session, until, token_budget)
            asked = Question(settings["recall_socket"], request, first)
            told, service = _wait(asked, first, service)
            if told is not None:
                return told
    except (FileNotFoundError, ConnectionRefusedError):
        service = "absent"
    except OSError as error:
        service, asked = f"broken ({error})", None
    # From here on the service is slow, or there is none that answers.
    if service == "ok":
        service = "slow"
    elif service != "absent":
        asked = None
    own = _OwnSearch(question, call, settings, k, started)
    while asked is not None and service == "slow" and time.monotonic() < until:
        own.begin()
        patience = LOOK_AGAIN_SECONDS if own.waits else LAST_PATIENCE_SECONDS
        told, service = _wait(asked, min(time.monotonic() + patience, until), service)
        if told is not None:
            return told
    while own.waits:
        own.begin()
        if own.waits:
            time.sleep(LOOK_AGAIN_SECONDS)
    return _rendered(own.found(), token_budget, service)


def _wait(asked: Question, deadline: float, service: str) -> tuple[Recalled | None, str]:
    """What the service told until `deadline`, and what is to be said of it."""
    try:
        answer = asked.answer(deadline)
    except OSError as error:
        return None, f"broken ({error})"
    if answer is None:
        return None, service
    told = _told(answer)
    if told is not None:
        return told, "ok"
    return None, "too busy" if answer.get("late") is True else "broken (it reported an error)"


class _OwnSearch:
    """A search of our own, in a thread: the vault's disk may never answer, and the service still may."""

    __slots__ = ("_begun", "_by", "_crowded", "_deadline", "_done", "_found", "_note", "_run", "_search")

    def __init__(self, question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> None:
        self._deadline = started + SEARCH_DEADLINE_SECONDS
        self._by = started + SEARCH_BY_SECONDS
        self._done = allocate_lock()
        self._done.acquire()
        self._found: Found | None = None
        self._note = ""
        self._begun = self._crowded = False
        self._run = f"{settings['state']}/run"
        self._search = (question, call, settings, k, started)

    @property
    def waits(self) -> bool:
        """It has not begun, and still may."""
        return not self._begun and time.monotonic() < self._by

    def begin(self) -> None:
        """Begin if there is time, unless SEARCHES_AT_ONCE others are at it."""
        if not self.waits:
            return
        place = _free_place(self._run)
        self._crowded = place is None
        if place is not None:
            self._begun = True
            start_new_thread(self._work, (place,))

    def _work(self, place: int) -> None:
        try:
            self._found = _search(*self._search)
        except Exception as error:  # noqa: BLE001  Nobody looks at a thread's traceback; the note is logged.
            self._note = f"recall engine error: {error}"
        finally:
            if place >= 0:
                os.close(place)
            self._done.release()

    def found(self) -> Found:
        """What was found by the deadline."""
        if self._begun:
            self._done.acquire(timeout=max(self._deadline + LATE_SECONDS - time.monotonic(), 0.001))
            if self._found is not None:
                return self._found
            why = self._note or "own search late"
        else:
            why = "other hooks were searching" if self._crowded else "time budget exceeded"
        from .search import Found

        return Found([], why, False)


def _free_place(run: str) -> int | None:
    """A file descriptor that holds one of the places for a search, None when all are taken, -1 where none can be
    had (a state folder that cannot be written must not keep a prompt from its answer)."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    for number in range(SEARCHES_AT_ONCE):
        try:
            place = os.open(f"{run}/search-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return -1
        try:
            flock(place, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(place)
        except OSError:
            os.close(place)
            return -1
        else:
            return place
    return None


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
