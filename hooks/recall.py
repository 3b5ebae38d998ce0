"""UserPromptSubmit: what the vault knows about this prompt, within the budget whatever the recall service does.

The service is asked, and while it thinks the hook searches the words itself: on a busy machine that answer is there
when the service's is not. The service's counts, by words and meaning, if it comes in time. Only a few hooks search at
the same time: when many prompts come at once, twenty more searches would make all of them late."""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import allocate_lock, start_new_thread
from ..runtime.layout import INDEX_WANTED
from ..vault.render import render_block, select_hits, status_line
from .recall_client import RecallCall, format_request, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall
    from .search import FallbackHits

SERVICE_DEADLINE_SECONDS = 0.245
"""Since the process started: until then the service's answer is waited for."""
READY_DEADLINE_SECONDS = 0.18
"""The same where the hook's own search has found something."""
SEARCH_START_DEADLINE_SECONDS = 0.2
"""After this the hook's own search is not begun."""
SEARCH_DEADLINE_SECONDS = 0.23
"""Since the process started, as all but the next. At 0.26 the watchdog ends the hook; at 0.3 its time is over."""
SEARCH_OVERRUN_SECONDS = 0.02
"""How much longer the hook's own search is waited for: it looks at the clock between two files only."""
MAX_CONCURRENT_SEARCHES = 2
"""Of all hooks of one state folder: as many as a small machine has cores."""
POLL_SECONDS = 0.01


class PromptAnswer:
    """What a prompt hook prints."""

    __slots__ = ("block", "found", "note", "paths", "service", "status")

    def __init__(
        self, block: str, status: str, paths: list[str], note: str, service: str, found: Mapping[str, object]
    ) -> None:
        self.block = block
        """The recalled entries for the model; '' for none."""
        self.status = status
        """One line for the user."""
        self.paths = paths
        """Vault-relative paths of the entries in `block`, which the session holds from now on."""
        self.note = note
        """What was missing, '' when nothing was."""
        self.service = service
        """'ok', 'absent', 'slow', 'not asked' or 'broken (why)'."""
        self.found = found
        """For the log: how many entries were found by meaning (`vec_hits`), by words (`grep_hits`), and both ways."""


def answer_prompt(question: str, call: HookCall, settings: Mapping[str, str], started: float) -> PromptAnswer:
    """Answer `question` for a process that started at `started` (monotonic seconds). Never raises."""
    k = int(settings["recall_k"])
    token_budget = int(settings["token_budget"])
    service = "not asked"
    request: RecallCall | None = None
    until = started + SERVICE_DEADLINE_SECONDS
    try:
        if time.monotonic() < until:
            service = "slow"
            line = format_request(question, k, call.cwd, call.session, until, token_budget)
            request = RecallCall(settings["recall_socket"], line, until)
    except (FileNotFoundError, ConnectionRefusedError):
        service = "absent"
    except OSError as error:
        service = f"broken ({error})"
    own = _OwnSearch(question, call, settings, k, started)
    own.try_start()
    while request is not None and service == "slow" and time.monotonic() < until:
        if own.has_hits:  # There is an answer: it must be printed before the watchdog ends the hook on a busy machine.
            until = min(until, started + READY_DEADLINE_SECONDS)
        patience = SERVICE_DEADLINE_SECONDS if own.has_hits else POLL_SECONDS
        answer, service = _await_answer(request, min(time.monotonic() + patience, until), service)
        if answer is not None:
            return answer
        own.try_start()
    while own.may_start:
        own.try_start()
        if own.may_start:
            time.sleep(POLL_SECONDS)
    return _render(own.wait_for_hits(), token_budget, service)


def _await_answer(request: RecallCall, deadline: float, service: str) -> tuple[PromptAnswer | None, str]:
    """The service's answer if it comes until `deadline`, and the state of the service, which else stays `service`."""
    try:
        response = request.wait(deadline)
    except OSError as error:
        return None, f"broken ({error})"
    if response is None:
        return None, service
    answer = _parse_answer(response)
    if answer is not None:
        return answer, "ok"
    return None, "broken (it reported an error)"


class _OwnSearch:
    """A search without the service, in a thread: the vault's disk may never respond, and the service still may."""

    def __init__(self, question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> None:
        self._deadline = started + SEARCH_DEADLINE_SECONDS
        self._start_deadline = started + SEARCH_START_DEADLINE_SECONDS
        self._done = allocate_lock()
        self._done.acquire()
        self._hits: FallbackHits | None = None
        self._note = ""
        self._is_started = self._is_crowded = False
        self._run = f"{settings['state']}/run"
        self._arguments = (question, call, settings, k, started)

    @property
    def may_start(self) -> bool:
        """Is it not started yet, and is there still time for it?"""
        return not self._is_started and time.monotonic() < self._start_deadline

    @property
    def has_hits(self) -> bool:
        """Is it done, and did it find anything?"""
        return self._hits is not None and bool(self._hits.hits)

    def try_start(self) -> None:
        """Start if there is time, unless MAX_CONCURRENT_SEARCHES others are running."""
        if not self.may_start:
            return
        slot = _acquire_search_slot(self._run)
        self._is_crowded = slot is None
        if slot is not None:
            self._is_started = True
            start_new_thread(self._work, (slot,))

    def _work(self, slot: int) -> None:
        try:
            self._hits = _search(*self._arguments)
        except Exception as error:  # noqa: BLE001  Nobody looks at a thread's traceback; the note is logged.
            self._note = f"recall engine error: {error}"
        finally:
            if slot >= 0:
                os.close(slot)
            self._done.release()

    def wait_for_hits(self) -> FallbackHits:
        """The hits by the deadline; none, with the reason, if the search was not started or is late."""
        if self._is_started:
            self._done.acquire(timeout=max(self._deadline + SEARCH_OVERRUN_SECONDS - time.monotonic(), 0.001))
            if self._hits is not None:
                return self._hits
            why = self._note or "own search late"
        else:
            why = "other hooks were searching" if self._is_crowded else "time budget exceeded"
        from .search import FallbackHits

        return FallbackHits([], why, False)


def _acquire_search_slot(run: str) -> int | None:
    """Descriptor of the lock of a free slot; None when all are taken; -1 where there can be no lock.

    A state folder that cannot be written must not keep a prompt from its answer.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock

    for number in range(MAX_CONCURRENT_SEARCHES):
        try:
            slot = os.open(f"{run}/search-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return -1
        try:
            flock(slot, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(slot)
        except OSError:
            os.close(slot)
            return -1
        else:
            return slot
    return None


def _parse_answer(response: dict[str, Any]) -> PromptAnswer | None:
    """The service's answer; None when it reports that it could not answer."""
    block, status, paths = response.get("block"), response.get("status"), response.get("paths")
    if response.get("ok") is not True or not isinstance(block, str) or not isinstance(paths, list):
        return None
    degraded = response.get("degraded")
    note = "; ".join(str(part) for part in degraded) if isinstance(degraded, list) else ""
    counts = response.get("found")
    found = counts if isinstance(counts, dict) else {}
    shown = [path for path in paths if isinstance(path, str)]
    return PromptAnswer(block, str(status or status_line([])), shown, note, "ok", found)


def _search(question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> FallbackHits:
    # Imported only now: a warm service answers without any of it.
    from ..vault.project import project_of
    from .injected import is_recorded, read_injected
    from .search import SEARCHED_FILES, FallbackHits, FallbackQuery, search

    deadline = started + SEARCH_DEADLINE_SECONDS
    if time.monotonic() >= deadline:
        return FallbackHits([], "time budget exceeded", False)
    shown = read_injected(settings["markers"], call.session) if call.session else set()
    query = FallbackQuery(shorten(question), settings["vault"], project_of(call.cwd), k, shown, deadline)
    query.search_always_load = bool(call.session) and is_recorded(settings["markers"], call.session)
    query.eagerness = settings.get("eagerness") or query.eagerness
    hits = search(query, settings["index_db"])
    if hits.degraded.endswith(SEARCHED_FILES):
        _request_index(f"{settings['state']}/run/{INDEX_WANTED}")
    return hits


def _request_index(path: str) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return


def _render(found: FallbackHits, token_budget: int, service: str) -> PromptAnswer:
    shown = select_hits(found.hits, token_budget)
    status = status_line(hit.slug for hit in shown)
    if not found.searched:
        status += " (nothing was searched)"
    note = f"recall service {service}"
    if found.degraded:
        note += f"; {found.degraded}"
    block = render_block(shown, token_budget) if shown else ""
    counts = {"vec_hits": 0, "grep_hits": found.ranked, "deduped_count": 0}
    return PromptAnswer(block, status, [hit.path for hit in shown], note, service, counts)
