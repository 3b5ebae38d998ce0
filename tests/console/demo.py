"""A made-up vault with some weeks of work, which the screenshots show."""

import json
import os
import random
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.receipts import append_receipt, receipt
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.spending import SpendingBook
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import Claim
from memoryvault.tests.review.support import RULE, Bed, make_bed
from memoryvault.vault.entry import Source
from memoryvault.vault.marker import REFLECTED, Marker, create_marker, mark_reflected, marker_path

from .vaults import idea, inbox_note, nobody_came_back_to, transcript

NOTES = json.loads(Path(__file__).with_name("demo_notes.json").read_text("utf-8"))
GUESSED: tuple[tuple[str, str], ...] = (
    ("release-report-as-a-list", "The release report reads well as a bullet list."),
    ("release-report-reads-well-bullet-list", "The release report reads well as a bullet list!"),
    ("dark-terminal", "Seems to work in a dark terminal."),
    ("short-answers", "Short answers are liked late in the evening."),
)
QUESTIONS = (
    "how long do login tokens last?", "which package manager do we use", "why did the checkout hang",
    "are webhooks sent more than once", "how do we release the shop", "what about float prices in the basket",
    "zone of the tide tables",
)  # fmt: skip
SESSIONS = 24


def demo_vault(root: Path, now: datetime | None = None, **settings: str) -> Bed:
    """The vault and its state below `root`, indexed by keywords. `now` is aware; the last weeks are made before it."""
    now = now or datetime.now(UTC)
    chance = random.Random(7)
    bed = make_bed(root, **settings)
    sessions = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(SESSIONS)]
    began = [now - timedelta(days=82 - 82 * number / SESSIONS, hours=chance.random() * 5) for number in range(SESSIONS)]
    _markers(bed, sessions, began)
    _entries(bed, sessions, began)
    _waiting(bed, sessions[-1])
    reconcile_now(bed.settings)
    _hooks(bed, chance, now)
    _recalls(bed, sessions[-6:], now)
    _jobs(bed, chance, sessions, now)
    _spending(bed, chance, now)
    return bed


def _markers(bed: Bed, sessions: list[str], began: list[datetime]) -> None:
    markers = bed.settings.state.markers
    for number, (session, at) in enumerate(zip(sessions, began, strict=True)):
        if number < SESSIONS // 3:
            continue  # markers of mined sessions are kept for a month
        project = "shop" if number % 3 else "lighthouse"
        said = [("user", f"Let us look at {project}, please."), ("assistant", "Gladly.")]
        path = transcript(bed.root, said, session)
        offset = path.stat().st_size if number < SESSIONS - 1 else 0
        host = "claude" if number % 4 else "codex"
        cwd = f"/home/me/{project}"
        create_marker(markers, Marker(session, at.isoformat(), "startup", str(path), cwd, host, offset))
        if number < SESSIONS - 2:
            mark_reflected(markers, session)
        state = REFLECTED if number < SESSIONS - 2 else "start"
        ended = (at + timedelta(minutes=50)).timestamp()
        os.utime(marker_path(markers, session, state), (ended, ended))


def _entries(bed: Bed, sessions: list[str], began: list[datetime]) -> None:
    for number, (kind, project, title, text, tags) in enumerate(NOTES["known"]):
        place = number * SESSIONS // len(NOTES["known"])
        day = began[place].date()
        folder = f"personal-projects/{project}" if project else "personal-private"
        slug = "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
        fields = {"kind": kind, "status": "active", "group": folder, "project": project or None}
        fields |= {"tags": [tag.strip() for tag in tags.split(",")], "source": [Source("claude", sessions[place])]}
        bed.note(f"{folder}/{kind}/{slug}.md", f"# {title}\n\n{text}", created=day, updated=day, **fields)


def _waiting(bed: Bed, session: str) -> None:
    dates = "Always write dates as 2026-05-04, also in file names."
    typed = [*(text for *_, text in NOTES["waiting"]), dates]
    said = [
        (role, words) for text in typed for role, words in (("user", f"One more thing. {text}"), ("assistant", "OK."))
    ]
    path = transcript(bed.root, said, session)
    assert path.exists()
    for number, (slug, kind, project, text) in enumerate(NOTES["waiting"]):
        title = slug.replace("-", " ").capitalize()
        fields = {"kind": kind, "status": "pending", "group": "personal-private", "project": project or None}
        fields |= {"created": bed.store.today(), "occurrences": 2 if kind == "preferences" else 1}
        said_in = [Source("claude", session, (f"{session[:8]}-r{2 * number}",))]
        bed.note(f"personal-private/_review/{slug}.md", f"# {title}\n\n{text}", source=said_in, **fields)
    for slug, text in GUESSED:
        inbox_note(bed, slug, text, created=bed.store.today(), source=[Source("claude", session)])
    record = f"{session[:8]}-r{2 * len(NOTES['waiting'])}"
    rule = replace(RULE, statement=dates, excerpt=dates, session=session, records=(record,))
    bed.remember(rule)
    bed.remember(replace(rule, statement="No, use the staging bucket instead of the live one", standing_rule=False))
    slugs = [
        idea(bed, "A page that shows retried charges", "It would end the guessing about double bookings."),
        idea(bed, "Replay failed webhooks from the command line", "So that nobody edits the database by hand."),
        idea(bed, "Tides as a calendar feed", "Skippers ask for it every spring."),
    ]
    nobody_came_back_to(bed, *slugs[:2])


def _hooks(bed: Bed, chance: random.Random, now: datetime) -> None:
    lines = []
    for back in range(13, -1, -1):
        day = now - timedelta(days=back)
        if day.weekday() == 6:
            continue
        for _ in range(chance.randrange(25, 60)):
            at = (day - timedelta(minutes=chance.randrange(300))).isoformat()
            slow = chance.random() < 0.04
            for hook, least, spread in (("UserPromptSubmit", 48, 30), ("Stop", 18, 9)):
                ms = least + chance.random() * spread + (chance.random() * 90 if slow else 0)
                degraded = {"degraded": "dense-late"} if slow and hook == "UserPromptSubmit" else {}
                lines.append({"time": at, "hook": hook, "duration_ms": round(ms, 1), **degraded})
        at = (day - timedelta(hours=5)).isoformat()
        lines.append({"time": at, "hook": "SessionStart", "duration_ms": 95.0 + back})
    log = Path(bed.settings.state.log_file)
    log.write_text("".join(json.dumps({"level": "info", "event": "hook", **line}) + "\n" for line in lines), "utf-8")


def _recalls(bed: Bed, sessions: list[str], now: datetime) -> None:
    state = bed.settings.state
    with closing(RecallEngine(Path(state.index_db), bed.vault, None)) as engine:
        for number, session in enumerate(sessions):
            for place, question in enumerate(QUESTIONS[: 3 + number % 5]):
                at = now - timedelta(days=len(sessions) - number - 1, minutes=50 - 6 * place)
                result = engine.recall(RecallQuery(question, k=5, all_projects=True))
                # As with a model, which is not there when this is made.
                hits = tuple(replace(hit, dense=0.41 + 0.3 * hit.score % 0.4) for hit in result.hits)
                took = {**result.timings_ms, "embed": 11.4 + place, "dense": 2.1, "total": 24.8 + 3 * place}
                given = [hit.path for hit in hits[:3]]
                line = receipt(
                    question,
                    replace(result, hits=hits, degraded=("dense-late",) if place == 4 else (), timings_ms=took),
                    caller="hook",
                    now=at,
                    session=session,
                    project="shop",
                    injected=given,
                    tokens=sum(len(hit.excerpt) // 4 for hit in hits[:3]),
                )
                append_receipt(Path(state.receipts), line)


def _jobs(bed: Bed, chance: random.Random, sessions: list[str], now: datetime) -> None:
    clock = [now.timestamp()]
    with Ledger(bed.settings.state.queue_db, clock=lambda: clock[0]) as ledger:

        def started(kind: str, hours: float, args: dict[str, str] | None = None) -> Claim:
            clock[0] = now.timestamp() - hours * 3600
            job = ledger.enqueue(kind, args or {})
            claim = ledger.take(lambda: "demo", 600.0)
            assert claim is not None
            assert claim.job_id == job
            clock[0] += 0.4 + chance.random() * 4
            return claim

        for number, session in enumerate(sessions[-16:]):
            claim = started("reflect.session", 80.0 - 5 * number, {"session": session})
            ledger.complete(claim, {"written": number % 3, "strengthened": number % 2, "bytes": 8_000 + 911 * number})
            ledger.complete(started("index.reconcile", 80.0 - 5 * number - 0.01), {"indexed": number % 3})
        ledger.bury(
            started("research.idea", 3.0, {"slug": "tides-as-a-calendar-feed"}),
            "HTTP 503 from the search engine after 4 attempts",
        )
        ledger.complete(started("embed.drain", 0.5), {"embedded": 12})
        running = started("reflect.session", 0.01, {"session": sessions[-2]})
        clock[0] = now.timestamp()
        ledger.heartbeat([running], 3600.0)
        ledger.enqueue("reflect.session", {"session": sessions[-1]}, delay_seconds=90)
        ledger.enqueue("discover.scan", delay_seconds=40_000)
        ledger.pause("reflect.corpus")


def _spending(bed: Bed, chance: random.Random, now: datetime) -> None:
    for back in range(13, -1, -1):
        at = (now - timedelta(days=back)).timestamp()
        for purpose, most in (("mining", 9_000), ("research", 4_000)):
            if chance.random() < 0.75:
                book = SpendingBook(bed.settings.state.state_db, purpose, clock=partial(float, at))
                taken = book.reserve(f"s{back}", {"tokens": most})
                book.settle(taken, {"tokens": chance.randrange(most // 4, most)})
