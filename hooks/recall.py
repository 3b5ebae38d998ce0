"""UserPromptSubmit: find what the vault knows about a prompt, within the budget whatever the recall service does.

The hook asks the service, and where that does not answer at once, searches the words itself meanwhile, in a thread: on
a busy machine or a disk that hangs, one of the two still answers. The service's answer, by words and meaning, is taken
if it comes in time.
"""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import allocate_lock, start_new_thread
from ..runtime.layout import INDEX_WANTED
from .recall_client import RecallCall, format_request, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall
    from .search import FallbackHits

# All in seconds since the process started. At 0.26 the watchdog ends the hook; at 0.3 its time is over.
SERVICE_DEADLINE_SECONDS = 0.245
"""The service's answer is waited for until then."""
SEARCH_START_SECONDS = 0.04
"""The hook's own search begins then: an idle machine's service has answered, and the search would only slow it."""
READY_DEADLINE_SECONDS = 0.18
"""The same where the hook's own search has found something."""
SEARCH_START_DEADLINE_SECONDS = 0.2
"""After this the hook's own search is not begun."""
SEARCH_DEADLINE_SECONDS = 0.23
"""The hook's own search stops then, and is waited for 0.02 longer: it looks at the clock between two passages only."""


class PromptAnswer:
    """The answer of a prompt hook."""

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
    """Return the answer to `question` for a process that started at `started` (monotonic seconds). Never raises."""
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
    if request is not None:
        answer, service = _await_answer(request, started + SEARCH_START_SECONDS, service)
        if answer is not None:
            return answer
    own = _OwnSearch(question, call, settings, k, started)
    for seconds in (READY_DEADLINE_SECONDS, SERVICE_DEADLINE_SECONDS):
        if request is None or service != "slow" or (own.has_hits and seconds > READY_DEADLINE_SECONDS):
            break
        answer, service = _await_answer(request, started + seconds, service)
        if answer is not None:
            return answer
    return _render(own.wait_for_hits(), token_budget, service)


def _await_answer(request: RecallCall, deadline: float, service: str) -> tuple[PromptAnswer | None, str]:
    """Return the service's answer if it comes by `deadline`, and the state of the service, else `service`."""
    try:
        response = request.wait(deadline)
    except OSError as error:
        return None, f"broken ({error})"
    if response is None:
        return None, service
    answer = _parse_answer(response)
    if answer is None:
        return None, "broken (it reported an error)"
    if not answer.paths and "keyword-late" in answer.note:  # It had no time to search.
        return None, "slow"
    return answer, "ok"


class _OwnSearch:
    """A search without the service, in a thread: the vault's disk may never respond, and the service still may."""

    def __init__(self, question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> None:
        """Start the search, if there is time for it."""
        self._deadline = started + SEARCH_DEADLINE_SECONDS
        self._done = allocate_lock()
        self._hits: FallbackHits | None = None
        self._note = "own search late"
        if time.monotonic() < started + SEARCH_START_DEADLINE_SECONDS:
            self._done.acquire()
            start_new_thread(self._work, (question, call, settings, k, started))
        else:
            self._note = "time budget exceeded"

    @property
    def has_hits(self) -> bool:
        """Whether it is done and has found anything."""
        return self._hits is not None and bool(self._hits.hits)

    def _work(self, *arguments: Any) -> None:
        try:
            self._hits = _search(*arguments)
        except Exception as error:  # noqa: BLE001  Nobody looks at a thread's traceback; the note is logged.
            self._note = f"recall engine error: {error}"
        finally:
            self._done.release()

    def wait_for_hits(self) -> FallbackHits:
        """Return the hits; none, with the reason, if the search was not started or is late."""
        self._done.acquire(timeout=max(self._deadline + 0.02 - time.monotonic(), 0.001))
        if self._hits is not None:
            return self._hits
        from .search import FallbackHits

        return FallbackHits([], self._note, False)


def _parse_answer(response: dict[str, Any]) -> PromptAnswer | None:
    """Parse the service's answer; None when it reports that it could not answer."""
    block, status, paths = response.get("block"), response.get("status"), response.get("paths")
    if response.get("ok") is not True or not isinstance(block, str) or not isinstance(paths, list):
        return None
    degraded = response.get("degraded")
    note = "; ".join(str(part) for part in degraded) if isinstance(degraded, list) else ""
    counts = response.get("found")
    found = counts if isinstance(counts, dict) else {}
    shown = [path for path in paths if isinstance(path, str)]
    return PromptAnswer(block, str(status or ""), shown, note, "ok", found)


def _search(question: str, call: HookCall, settings: Mapping[str, str], k: int, started: float) -> FallbackHits:
    # Imported only now: a service that answers at once does without any of it.
    from ..vault.project import project_of
    from .injected import read_injected
    from .search import NO_INDEX, FallbackHits, FallbackQuery, search

    deadline = started + SEARCH_DEADLINE_SECONDS
    if time.monotonic() >= deadline:
        return FallbackHits([], "time budget exceeded", False)
    shown = read_injected(settings["markers"], call.session) if call.session else None
    query = FallbackQuery(shorten(question), settings["vault"], project_of(call.cwd), k, shown or set(), deadline)
    query.search_always_load = shown is not None
    query.eagerness = settings.get("eagerness") or query.eagerness
    hits = search(query, settings["index_db"])
    if hits.degraded.startswith(NO_INDEX):
        _request_index(f"{settings['state']}/run/{INDEX_WANTED}")
    return hits


def _request_index(path: str) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return


def _render(found: FallbackHits, token_budget: int, service: str) -> PromptAnswer:
    from ..vault.render import render_block, select_hits, status_line

    shown = select_hits(found.hits, token_budget)
    status = status_line(hit.slug for hit in shown)
    if not found.searched:
        status += " (nothing was searched)"
    note = f"recall service {service}"
    if found.degraded:
        note += f"; {found.degraded}"
    counts = {"vec_hits": 0, "grep_hits": found.ranked, "deduped_count": 0}
    return PromptAnswer(render_block(shown), status, [hit.path for hit in shown], note, service, counts)
