"""An Obsidian vault with an idea in it, search engines on loopback, and a worker that researches it."""

import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memoryvault.runtime.settings import Settings
from memoryvault.services.ideas.ledger import find_idea
from memoryvault.services.ideas.research import request_research
from memoryvault.services.spending import SpendingSum, spent_since
from memoryvault.tasks.jobs.research import WebAccess, enqueue_missing_research, research_handler
from memoryvault.tasks.jobs.research_child import PURPOSE
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.job import Handler
from memoryvault.tasks.queue.kinds import POLICIES, KindPolicy
from memoryvault.tasks.queue.records import Job
from memoryvault.tasks.queue.worker import RunReport, Worker, WorkerContext
from memoryvault.tests.review.support import Bed, make_bed
from memoryvault.tests.support import forked
from memoryvault.tests.support.files import put
from memoryvault.tests.support.loopback_site import Reply, Site, page
from memoryvault.vault.entry import Entry
from memoryvault.vault.scrubbed import Scrubbed

PROGRAM = "memoryvault.tests.research.program"
SLUG = "greenhouse-watering-robot"
TITLE = "Greenhouse watering robot"
STATEMENT = "A robot for the greenhouse could water tomatoes at night when the soil moisture is low."
FOLDER = f"personal-private/_idea-incubator/{SLUG}"
TOMATOES = "# Tomatoes\n\nThe greenhouse tomatoes need water at night, when the soil moisture is below 40 percent.\n"


@dataclass
class ResearchBed:
    """Make a vault below `bed.root`, which is the Obsidian vault."""

    bed: Bed

    @property
    def settings(self) -> Settings:
        return self.bed.settings

    @property
    def folder(self) -> Path:
        return self.bed.vault / FOLDER

    def configure(self, *, network: bool, more: str = "") -> None:
        text = f"[research]\nnetwork = {str(network).lower()}\n{more}\n"
        (self.bed.root / "config.toml").write_text(text, "utf-8")

    def idea(self, body: str = STATEMENT, slug: str = SLUG, title: str = TITLE, **fields: Any) -> None:
        self.bed.store.create(
            f"personal-private/_idea-incubator/{slug}/_index.md",
            {"kind": "idea", "status": "incubating", "slug": slug, **fields},
            Scrubbed(title),
            Scrubbed(body),
        )

    def own_note(self, path: str, text: str) -> Path:
        return put(self.bed.root / path, text)

    def note(self, name: str) -> str:
        return (self.folder / f"{name}.md").read_text("utf-8")

    def notes(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.md") if path.stem != "_index")

    def entry(self, slug: str = SLUG) -> Entry:
        return find_idea(self.bed.store, slug)

    @property
    def state(self) -> object:
        return self.entry().extra.get("research")

    def spent(self) -> dict[str, int]:
        rows: tuple[SpendingSum, ...] = spent_since(self.settings.state.state_db, "2000-01-01")
        return {row.unit: row.spent for row in rows if row.purpose == PURPOSE}

    def run(self, access: WebAccess | None = None, slug: str = SLUG, **changes: object) -> RunReport:
        """Enqueue the research, run it to its end (retries follow at once) and return how it went."""
        with open_ledger(self.settings) as ledger:
            request_research(ledger, slug)
        return worker(self.settings, access, **changes).run_until_idle(60.0)

    def run_again(self, access: WebAccess) -> None:
        """Let a new worker find what is still to be looked up."""
        with open_ledger(self.settings) as ledger:
            enqueue_missing_research(self.settings, ledger)
        worker(self.settings, access).run_until_idle(60.0)

    def run_out(self, access: WebAccess) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            time.sleep(0.12)
            worker(self.settings, access).run_until_idle(60.0)
            with open_ledger(self.settings) as ledger:  # A retry may have come due while the worker left.
                if not any(job.state == "queued" for job in ledger.list_jobs()):
                    return
        raise AssertionError("it never ended")

    def job(self) -> Job:
        with open_ledger(self.settings) as ledger:
            return next(job for job in ledger.list_jobs() if job.kind == "research.idea")

    def program(self, access: WebAccess, kill_point: str = "") -> int:
        """Run the worker in its own process, which may be killed; return its exit status."""
        armed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point} if kill_point else {}
        done = forked.run(PROGRAM, [as_json(access)], env={**self.bed.env, **armed})
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode


def worker(settings: Settings, access: WebAccess | None = None, **changes: object) -> Worker:
    """A worker that only does research and retries at once."""
    policies: dict[str, KindPolicy] = dict(POLICIES)
    quick = {"backoff_base_seconds": 0.05, "backoff_cap_seconds": 0.1, **changes}
    policies["research.idea"] = replace(POLICIES["research.idea"], **quick)  # type: ignore[arg-type]  # keyword options
    context = WorkerContext(settings.state, poll_seconds=0.1, lease_seconds=2, policies=policies, schedules=())
    research = partial(research_handler, settings, web=access)
    handlers: Mapping[str, Handler] = {"research.idea": research, "index.reconcile": lambda job: None}
    return Worker(context, handlers)


def as_json(access: WebAccess) -> str:
    return json.dumps({"bases": dict(access.bases), "allow": sorted(access.allow)})


def from_json(text: str) -> WebAccess:
    value = json.loads(text)
    return WebAccess(value["bases"], frozenset((host, port) for host, port in value["allow"]))


def research_bed(root: Path, *, network: bool = False, more: str = "") -> ResearchBed:
    root.mkdir(exist_ok=True)
    bed = ResearchBed(make_bed(root))
    bed.configure(network=network, more=more)
    return bed


# Search engines


def answers(results: int = 2, text: str = "Soil moisture sensors for tomatoes") -> dict[str, Reply]:
    """Replies of every engine, in its own format."""
    numbers = range(1, results + 1)
    json_type = "application/json"
    wikipedia = {"query": {"search": [{"title": f"Article {n}", "snippet": f"<b>{text}</b>"} for n in numbers]}}
    found = [{"full_name": f"a/repo{n}", "html_url": f"https://example.org/{n}", "description": text} for n in numbers]
    news = {"hits": [{"title": f"Story {n}", "url": f"https://example.org/s{n}", "objectID": str(n)} for n in numbers]}
    searx = {"results": [{"title": f"Hit {n}", "url": f"https://example.org/h{n}", "content": text} for n in numbers]}
    return {
        "/w/api.php": Reply(json.dumps(wikipedia).encode(), type=json_type),
        "/search/repositories": Reply(json.dumps({"items": found}).encode(), type=json_type),
        "/api/v1/search": Reply(json.dumps(news).encode(), type=json_type),
        "/search": Reply(json.dumps(searx).encode(), type=json_type),
        "/page": Reply(page("A page", f"{text}: a robot waters the greenhouse when it is dry. " * 3)),
    }


NOWHERE = "https://nowhere.invalid"
ENGINES = ("wikipedia", "github", "hackernews")


def access_to(web: Site, *names: str) -> WebAccess:
    """The named engines, or all, are on the site; the others are unreachable, as no test asks a real one."""
    bases: Mapping[str, str] = dict.fromkeys(ENGINES, NOWHERE) | dict.fromkeys(names or ENGINES, web.url)
    return WebAccess(bases, web.allowed)


def evidence(*lines: str) -> str:
    return f"{STATEMENT}\n\n## Evidence\n\nProposed because: an idea.\n\n" + "\n".join(f"> {line}" for line in lines)


def results_in(bed: ResearchBed, engine: str) -> int:
    note = bed.note(f"research-{engine}")
    assert "https://example.org/" in note or "/wiki/" in note
    return note.count("\n- ")
