"""Jobs that run, wait or are dead: retry and cancel them. The rest of `memory jobs …` is for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...runtime.errors import UsageError
from ...runtime.process_lock import lock_holder
from ...services.pausing import why_nothing_starts
from ...tasks.queue.enqueue import open_ledger
from ...tasks.queue.records import State, job_number
from ..context import ConsoleContext, Notice, Page, attempt, counted, routes_of

SHOWN: tuple[State, ...] = ("running", "queued", "dead")
MOST = 100
"""How many jobs of each state are listed, the newest first."""


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def act(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        return _shown(context, request, attempt(lambda: _acted(context, form)))

    return routes_of("/jobs", partial(_shown, context), act=act)


def _shown(context: ConsoleContext, request: Request, said: Notice | None = None) -> Response:
    with open_ledger(context.settings) as ledger:
        return context.page(
            request,
            "jobs.html",
            page="jobs",
            said=said,
            address=context.url("jobs"),
            backlog=ledger.backlog(),
            jobs=[job for state in SHOWN for job in ledger.list_jobs([state], most=MOST)],
            most=MOST,
            now=ledger.now(),
            worker=lock_holder(context.settings.state.worker_lock),
            why_nothing_starts=why_nothing_starts(context.settings),
        )


def _acted(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Carry out one action, by the functions that `memory jobs …` uses."""
    name = form.get("name", "")
    with open_ledger(context.settings) as ledger:
        match form.get("do"):
            case "retry":
                job = ledger.retry(job_number(name))
                return Notice(f"job {job.id} ({job.kind}) is queued again")
            case "retry-all":
                again, refused = ledger.retry_dead()
                waiting = f"; {counted(len(refused), 'other')} wait already" if refused else ""
                return Notice(f"{counted(len(again), 'dead job is', 'dead jobs are')} queued again{waiting}")
            case "cancel":
                job = ledger.get(job_number(name))
                if job.state in ("queued", "running") and form.get("state", job.state) != job.state:
                    raise UsageError(f"job {job.id} is {job.state} by now: nothing was done, decide again")
                job = ledger.cancel(job.id)
                return Notice(f"job {job.id} ({job.kind}) is cancelled")
    raise UsageError("a job is retried or cancelled")


PAGE = Page(name="jobs", title="Jobs", key="j", routes=_routes)
