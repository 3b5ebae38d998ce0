"""Jobs, schedules and kinds as they are now, with the actions of `memory jobs …`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...runtime.errors import UsageError
from ...runtime.process_lock import lock_holder
from ...schedules.table import SCHEDULES
from ...services.hook_log import TRIAL_SESSION
from ...services.paging import Listed, nearest_page
from ...services.pausing import why_nothing_starts
from ...tasks.queue.enqueue import open_ledger
from ...tasks.queue.kinds import POLICIES, UPKEEP
from ...tasks.queue.ledger import STATES, Job, Ledger
from ...tasks.queue.scheduler import Scheduler, local_timezone
from ..context import ConsoleContext, Notice, Page, attempt, counted, page_number, routes_of

ON_A_PAGE = 25
VIEWS = ("jobs", "schedules", "kinds")
MOST_RUNNING = 20


@dataclass(frozen=True)
class KindRow:
    """One kind with its jobs."""

    kind: str
    is_paused: bool
    counts: Mapping[str, int]
    oldest_due: float | None
    policy: Any


@dataclass(frozen=True)
class JobFilter:
    """The parameters of the page."""

    view: str
    id: str
    state: str
    kind: str
    text: str
    number: int
    is_live: bool
    has_upkeep: bool
    """Whether upkeep that has ended is listed, too."""

    @classmethod
    def of(cls, request: Request) -> JobFilter:
        values = request.query_params
        view, state, kind = values.get("view", ""), values.get("state", ""), values.get("kind", "")
        return cls(
            view=view if view in VIEWS else VIEWS[0],
            id=values.get("id", ""),
            state=state if state in STATES else "",
            kind=kind if kind in POLICIES else "",
            text=values.get("q", "").strip()[:200],
            number=page_number(request),
            is_live=values.get("live") != "off",
            has_upkeep=any(values.get(name, "").strip() for name in ("all", "state", "kind", "q")),
        )

    @property
    def query(self) -> dict[str, object]:
        """The parameters of an address, without the page's number."""
        return {
            "view": "" if self.view == VIEWS[0] else self.view,
            "id": self.id,
            "state": self.state,
            "kind": self.kind,
            "q": self.text,
            "live": "" if self.is_live else "off",
            "all": "1" if self.has_upkeep and not (self.state or self.kind or self.text) else "",
        }


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        return _shown(context, request)

    def live(request: Request) -> Response:
        asked = JobFilter.of(request)
        return context.part(
            "jobs_live.html", asked=asked, csrf=request.state.session.csrf, **_values(context, asked), **_fixed()
        )

    def act(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        return _shown(context, request, attempt(lambda: _acted(context, form)))

    return (*routes_of("/jobs", look, act=act), Route("/jobs/live", live, methods=["GET"]))


def _shown(context: ConsoleContext, request: Request, said: Notice | None = None) -> Response:
    asked = JobFilter.of(request)
    return context.page(
        request,
        "jobs.html",
        page="jobs",
        said=said,
        address=context.url("jobs", page=asked.number if asked.number > 1 else "", **asked.query),
        asked=asked,
        **_values(context, asked),
        **_fixed(),
    )


def _fixed() -> dict[str, Any]:
    return {"states": STATES, "kinds": sorted(POLICIES)}


def _values(context: ConsoleContext, asked: JobFilter) -> dict[str, Any]:
    with open_ledger(context.settings) as ledger:
        values: dict[str, Any] = {"overview": _overview(context, ledger), "job": None, "now": ledger.now()}
        if asked.id:
            return {**values, "job": ledger.get(_number(asked.id))}
        if asked.view == "schedules":
            return {**values, "schedules": _scheduler(ledger).status(), "zone": local_timezone()}
        if asked.view == "kinds":
            return {**values, "rows": _kinds(ledger)}
        wanted, number = 0, max(1, asked.number)
        while wanted != number:
            wanted, behind = number, (number - 1) * ON_A_PAGE
            jobs, total, upkeep = _jobs(ledger, asked, behind)
            number, pages = nearest_page(total, wanted, ON_A_PAGE)
        listed = Listed(jobs, total, number, pages)
        running = ledger.list_jobs(["running"], most=MOST_RUNNING)
        return {**values, "listed": listed, "running": running, "upkeep": upkeep}


def _jobs(ledger: Ledger, asked: JobFilter, behind: int) -> tuple[list[Job], int, int]:
    """One page of jobs, the number of all, and how many of upkeep were left out."""
    states = [state for state in STATES if asked.state in ("", state)]
    jobs, total = ledger.page(states, kind=asked.kind or None, text=asked.text, behind=behind, most=ON_A_PAGE)
    if asked.has_upkeep:
        return jobs, total, 0
    jobs, upkeep = ledger.list_without(UPKEEP, f'"{TRIAL_SESSION}', behind=behind, most=ON_A_PAGE)
    return jobs, total - upkeep, upkeep


def _overview(context: ConsoleContext, ledger: Ledger) -> dict[str, Any]:
    """The first line of the page."""
    return {
        **vars(ledger.backlog()),
        "worker": lock_holder(context.settings.state.worker_lock),
        "why_nothing_starts": why_nothing_starts(context.settings),
    }


def _kinds(ledger: Ledger) -> list[KindRow]:
    counts: dict[str, dict[str, int]] = {}
    for kind, state, count in ledger.live_counts():
        counts.setdefault(kind, {})[state] = count
    oldest, paused = dict(ledger.oldest_due()), set(ledger.paused())
    return [
        KindRow(policy.kind, policy.kind in paused, counts.get(policy.kind, {}), oldest.get(policy.kind), policy)
        for policy in sorted(POLICIES.values(), key=lambda policy: (-policy.priority, policy.kind))
    ]


def _scheduler(ledger: Ledger) -> Scheduler:
    return Scheduler(ledger, kinds={schedule.kind for schedule in SCHEDULES})


def _acted(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Carry out one action, by the functions that `memory jobs …` uses."""
    name = form.get("name", "")
    with open_ledger(context.settings) as ledger:
        match form.get("do"):
            case "retry":
                job = ledger.retry(_number(name))
                return Notice(f"job {job.id} ({job.kind}) is queued again")
            case "retry-all":
                again, refused = ledger.retry_dead()
                waiting = f"; {counted(len(refused), 'other')} wait already" if refused else ""
                return Notice(f"{counted(len(again), 'dead job is', 'dead jobs are')} queued again{waiting}")
            case "cancel":
                return _cancelled(ledger, _number(name), form.get("state", ""))
            case "pause":
                ledger.pause(name)
                return Notice(f"{name}: no job of this kind starts until you resume it")
            case "resume":
                ledger.resume(name)
                return Notice(f"{name}: resumed")
            case "schedule-run":
                return Notice(f"{name}: queued as job {_scheduler(ledger).run_now(name)}")
            case "schedule-pause":
                _scheduler(ledger).pause(name, paused=True)
                return Notice(f"{name}: paused until you resume it")
            case "schedule-resume":
                _scheduler(ledger).pause(name, paused=False)
                return Notice(f"{name}: resumed")
    raise UsageError("that is nothing to be done with a job, a kind or a schedule")


def _cancelled(ledger: Ledger, job_id: int, seen: str) -> Notice:
    job = ledger.get(job_id)
    if seen and seen != job.state and job.state in ("queued", "running"):
        raise UsageError(f"job {job_id} is {job.state} by now: nothing was done, decide again")
    job = ledger.cancel(job_id)
    return Notice(f"job {job.id} ({job.kind}) is cancelled")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{text[:40]!r} is not a job's number")
    return int(text)


PAGE = Page(
    name="jobs",
    title="Jobs",
    key="j",
    routes=_routes,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before")),
)
