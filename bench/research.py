"""`python -m memoryvault.bench.research`: what the research of an idea costs against its budget.

Each idea is researched by the real job in a real child, with a search engine and pages on loopback: two thirds of the
ideas have links, the engines answer at once, slowly, with redirects, with a page larger than allowed, or not at all.
An overrun is an idea that spent more than its budget in any unit, or ran past its time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from ..runtime.settings import Settings, load_settings
from ..services.ideas.ledger import find_idea
from ..services.ideas.research import request_research
from ..services.indexing import reconcile_now
from ..services.state_db import state_transaction
from ..services.stores import vault_store
from ..tasks.jobs.research import START_SECONDS, WebAccess, research_handler
from ..tasks.jobs.research_child import PURPOSE
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.job import Handler
from ..tasks.queue.worker import Worker, WorkerContext
from ..vault.scrubbed import Scrubbed

HOST = "127.0.0.1"
SECONDS, FETCHES, TOKENS = 20, 3, 5000
"""The default budget, except for the time, which is 300 s by default."""
PARAGRAPH = "The soil of the greenhouse is dry at night, so a robot waters the tomatoes when a sensor says so. "
SLOW_SECONDS = 0.5


class _Web(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.close_connection = True
        if path == "/robots.txt":
            self.send_error(404)
        elif path == "/hop":
            self.send_response(302)
            self.send_header("Location", "/hop")
            self.end_headers()
        elif path == "/slow":
            time.sleep(SLOW_SECONDS)
            self._send("text/html", self._page())
        elif path == "/huge":
            self._send("text/html", self._page() * 2000)
        elif path == "/page":
            self._send("text/html", self._page())
        elif path == "/w/api.php":
            rows = [{"title": f"Article {n}", "snippet": PARAGRAPH * 4} for n in range(5)]
            self._send("application/json", json.dumps({"query": {"search": rows}}).encode())
        elif path == "/search/repositories":
            rows = [
                {"full_name": f"a/{n}", "html_url": "https://example.org/", "description": PARAGRAPH} for n in range(5)
            ]
            self._send("application/json", json.dumps({"items": rows}).encode())
        else:
            self.send_error(503)

    def _send(self, type_: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{type_}; charset=utf-8")
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return

    def _page(self) -> bytes:
        return f"<html><body><article><h1>Watering</h1><p>{PARAGRAPH * 30}</p></article></body></html>".encode()

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass(frozen=True)
class Cost:
    """Cost of one idea."""

    state: str
    wall_seconds: float
    seconds: int
    fetches: int
    tokens: int

    @property
    def overran(self) -> bool:
        """Whether more than the budget was spent."""
        late = self.wall_seconds > SECONDS + START_SECONDS
        return late or self.seconds > SECONDS or self.fetches > FETCHES or self.tokens > TOKENS


def measure(root: Path, ideas: int, notes: int) -> list[Cost]:
    """Research `ideas` ideas one after the other, in a vault beside `notes` notes of the user."""
    settings = _settings(root)
    _write_notes(root, notes)
    server = ThreadingHTTPServer((HOST, 0), _Web)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with closing(server.socket):
        base = f"http://{HOST}:{server.server_address[1]}"
        links = ("", f"{base}/page", f"{base}/slow {base}/page", f"{base}/hop", f"{base}/huge", "")
        slugs = [_write_idea(settings, number, links[number % len(links)]) for number in range(ideas)]
        reconcile_now(settings)
        names = ("wikipedia", "github", "hackernews")
        access = WebAccess(dict.fromkeys(names, base), frozenset({(HOST, int(server.server_address[1]))}))
        costs = [_research(settings, access, slug) for slug in slugs]
        server.shutdown()
    return costs


def _settings(root: Path) -> Settings:
    (root / "MemoryVault").mkdir()
    config = root / "config.toml"
    config.write_text(f"[research]\nnetwork = true\nseconds = {SECONDS}\nfetches = {FETCHES}\ntokens = {TOKENS}\n")
    env = {
        "HOME": str(root / "home"),
        "PATH": "/usr/bin:/bin",
        "MEMORY_CONFIG": str(config),
        "MEMORY_STATE_DIR": str(root / "state"),
        "MEMORY_VAULT_PATH": str(root / "MemoryVault"),
        "MEMORY_AUTOSTART": "false",
    }
    settings = load_settings(env)
    settings.state.ensure()
    return settings


def _write_notes(root: Path, notes: int) -> None:
    for number in range(notes):
        path = root / "Notes" / f"{number // 100}" / f"note-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        about = PARAGRAPH if number % 50 == 0 else f"Minutes of meeting {number}, on the matter of that week. "
        path.write_text(f"# Note {number}\n\n{about * 10}\n", "utf-8")


def _write_idea(settings: Settings, number: int, links: str) -> str:
    slug = f"watering-robot-{number}"
    body = f"A robot for the greenhouse number {number} could water tomatoes when the soil is dry. {links}"
    path = f"personal-private/_idea-incubator/{slug}/_index.md"
    fields = {"kind": "idea", "status": "incubating", "slug": slug}
    vault_store(settings).create(
        path,
        fields,
        Scrubbed.trusted("Greenhouse watering robot", reason="made up here"),
        Scrubbed.trusted(body, reason="made up here"),
    )
    return slug


def _research(settings: Settings, access: WebAccess, slug: str) -> Cost:
    with open_ledger(settings) as ledger:
        request_research(ledger, slug)
    context = WorkerContext(settings.state, poll_seconds=0.1, schedules=())
    research = partial(research_handler, settings, web=access)
    handlers: Mapping[str, Handler] = {"research.idea": research, "index.reconcile": lambda job: None}
    Worker(context, handlers).run_until_idle(60.0)
    with open_ledger(settings) as ledger:
        job = next(job for job in ledger.list_jobs() if job.unique_key == f"research.idea:{slug}")
    with state_transaction(settings.state.state_db) as conn:
        rows = conn.execute(
            "SELECT unit, sum(coalesce(spent, reserved)) FROM spending"
            " WHERE purpose = ? AND subject LIKE ? GROUP BY unit",
            (PURPOSE, f"{slug}/%"),
        ).fetchall()
    spent = {str(unit): int(total) for unit, total in rows}
    wall = (job.finished_at or 0.0) - (job.started_at or 0.0)
    state = str(find_idea(vault_store(settings), slug).extra.get("research"))
    return Cost(state, wall, spent.get("seconds", 0), spent.get("fetches", 0), spent.get("tokens", 0))


def _row(name: str, values: Sequence[float], limit: float, unit: str) -> str:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    middle = ordered[len(ordered) // 2]
    return f"| {name} | {middle:.1f}{unit} | {p95:.1f}{unit} | {ordered[-1]:.1f}{unit} | {limit:g}{unit} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a budget was overrun."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ideas", type=int, default=50)
    parser.add_argument("--notes", type=int, default=2000)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mv-bench-") as root:
        costs = measure(Path(root), options.ideas, options.notes)
    print(f"{options.ideas} ideas beside {options.notes} notes of the user's own.\n")
    print("| | median | p95 | most | budget |\n|---|---|---|---|---|")
    print(_row("wall time of the job", [cost.wall_seconds for cost in costs], SECONDS, " s"))
    print(_row("seconds booked", [cost.seconds for cost in costs], SECONDS, " s"))
    print(_row("requests", [cost.fetches for cost in costs], FETCHES, ""))
    print(_row("tokens", [cost.tokens for cost in costs], TOKENS, ""))
    states = sorted({cost.state for cost in costs})
    told = ", ".join(f"{sum(cost.state == state for cost in costs)} {state}" for state in states)
    overruns = sum(cost.overran for cost in costs)
    print(f"\nEnded: {told}. Overruns: {overruns}.")
    return 1 if overruns else 0


if __name__ == "__main__":
    sys.exit(main())
