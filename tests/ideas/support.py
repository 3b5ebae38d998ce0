"""Ideas as sessions bring them up, and the user's folder around the vault."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from memoryvault.services.journal import Journal
from memoryvault.services.remembering import CapturedIdea, capture_idea
from memoryvault.tests.support.files import put_note
from memoryvault.vault.scrubbed import Scrubbed

from ..review.support import GUESS, Bed

IDEA = replace(
    GUESS,
    category="idea",
    statement="We should also build a small page that shows how many charges were retried. It would end the guessing.",
    reason="something for the future",
    excerpt="We should also build a small page that shows how many charges were retried.",
)
OTHER = replace(
    IDEA,
    statement="Idea: replay failed webhooks from a command line tool, so that nobody edits the database by hand.",
    reason="called an idea",
    records=("r9",),
    excerpt="Idea: replay failed webhooks from a command line tool.",
)
SLUG = "build-a-small-page-that-shows-how-many"  # Of IDEA.
INCUBATOR = "personal-private/_idea-incubator"


def write_down(bed: Bed, title: str, summary: str = "A page that shows what was retried.") -> CapturedIdea:
    """Capture an idea like `memory idea`."""
    journal = Journal(bed.settings.state, bed.store)
    return capture_idea(bed.settings, journal, Scrubbed(title), Scrubbed(summary))


def ideas_file(bed: Bed) -> str:
    with open(bed.root / "Ideas.md", encoding="utf-8", newline="") as file:
        return file.read()


def outside(bed: Bed) -> dict[str, bytes]:
    """Every file of the user's folder except vault, state and settings."""
    own = (bed.vault, bed.root / "state", bed.root / "config.toml")
    return {
        str(path.relative_to(bed.root)): path.read_bytes()
        for path in sorted(bed.root.rglob("*"))
        if path.is_file() and not any(path == one or one in path.parents for one in own)
    }


def old_idea(bed: Bed, slug: str, days: int, **fields: object) -> Path:
    """Write an idea that was last changed this many days ago."""
    day = bed.store.today() - timedelta(days=days)
    values = {"kind": "idea", "status": "incubating", "created": day, "updated": day, "slug": slug, **fields}
    known = {key: value for key, value in values.items() if value is not None}
    text = f"# {slug.replace('-', ' ').title()}\n\nSomething about {slug}."
    return put_note(bed.vault, f"{INCUBATOR}/{slug}/_index.md", text, **known)
