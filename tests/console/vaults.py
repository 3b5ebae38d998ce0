"""Notes for every page, written as sessions and programs write them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memoryvault.pipelines.incubation import StaleIdea
from memoryvault.pipelines.incubation import question_body as ideas_question
from memoryvault.services.ideas.incubator import TITLE
from memoryvault.services.remembering import capture_idea
from memoryvault.tests.review.support import RULE, Bed
from memoryvault.vault.pending import IDEAS_LIST
from memoryvault.vault.scrubbed import Scrubbed

SESSION = "3f0c6a52-0000-4000-8000-000000000001"


def transcript(root: Path, turns: list[tuple[str, str]], session: str = SESSION) -> Path:
    """A session of Claude Code below its folder of projects: (who, text) one after the other, records named `r<n>`."""
    folder = root / "home" / ".claude" / "projects" / "-home-me-shop"
    folder.mkdir(parents=True, exist_ok=True)
    at = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
    lines = []
    for number, (who, text) in enumerate(turns):
        content: object = text if who == "user" else [{"type": "text", "text": text}]
        lines.append(
            {
                "type": who,
                "uuid": f"{session[:8]}-r{number}",
                "parentUuid": f"{session[:8]}-r{number - 1}" if number else None,
                "sessionId": session,
                "timestamp": (at + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
                "cwd": "/home/me/shop",
                "userType": "external",
                "message": {"role": who, "content": content},
            }
        )
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def inbox_note(bed: Bed, slug: str, text: str, **fields: object) -> str:
    known = {"kind": "preferences", "status": "inbox", "group": "personal-private"}
    return bed.note(f"personal-private/_inbox/{slug}.md", f"# {slug.capitalize()}\n\n{text}", **known | fields)


def idea(bed: Bed, title: str, summary: str) -> str:
    """Its slug."""
    return capture_idea(bed.settings, bed.journal, Scrubbed(title), Scrubbed(summary)).path.rsplit("/", 2)[-2]


def nobody_came_back_to(bed: Bed, *slugs: str) -> None:
    """The weekly list names these."""
    stale = []
    for slug in slugs:
        entry = bed.store.read(f"personal-private/_idea-incubator/{slug}/_index.md")
        link = f"{bed.vault.name}/{entry.path}"
        stale.append(StaleIdea(slug, entry.title, entry.title, link, bed.store.today() - timedelta(days=400)))
    fields = {"kind": "incubator-gc", "status": "pending", "group": "personal-private"}
    bed.store.create(IDEAS_LIST, fields, Scrubbed(TITLE), Scrubbed(ideas_question(stale, 6)))


def pattern(bed: Bed, name: str, source: str = "skill-list", text: str = "", **fields: object) -> str:
    body = f"# {name.replace('-', ' ').capitalize()}\n\n{text or f'Do as {name} does.'}"
    known = {"kind": "skill-pattern", "status": "pending", "confidence": "MEDIUM"}
    return bed.note(f"personal-private/_skill-watchlist/{source}/{name}.md", body, **known | fields)


def learned(bed: Bed) -> None:
    """A rule that the session's third record taught."""
    bed.remember(replace(RULE, session=SESSION, records=("3f0c6a52-r2",)))
