"""Research links to an idea that is then deleted: the link is removed, the user's text stays."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memoryvault.pipelines.incubation import Answer
from memoryvault.pipelines.research import is_as_written
from memoryvault.services.ideas.archive import put_away, restore
from memoryvault.services.ideas.ledger import promote
from memoryvault.tasks.jobs.incubator import gc_handler

from .support import FOLDER, SLUG, ResearchBed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_children")]

OTHER = "moisture-log"
SOIL = "personal-private/fact/soil.md"
LINK = f"[[MemoryVault/personal-private/_idea-incubator/{OTHER}/_index|Moisture [log] of the greenhouse]]"
NOTE = "related-memoryvault"


@pytest.fixture
def researched(bed: ResearchBed) -> ResearchBed:
    """Two ideas and a fact; what was found about the one links to the other two."""
    bed.bed.note(SOIL, "Soil moisture sensors in the greenhouse drift when it is hot.", kind="fact")
    bed.idea("A log of the soil moisture in the greenhouse, for tomatoes.", OTHER, "Moisture [log] of the greenhouse")
    bed.idea()
    bed.run()
    assert f"## {LINK}\n\n> " in bed.note(NOTE)
    assert "|soil moisture sensors in the greenhouse drift when it is hot]]" in bed.note(NOTE).lower()
    return bed


def weekly(bed: ResearchBed) -> int:
    """How many notes the weekly check of all ideas has changed."""
    done = gc_handler(bed.settings)(cast("Any", SimpleNamespace(still_owned=lambda: True, enqueue=lambda *_, **__: 1)))
    assert done is not None
    return int(str(done["unlinked"]))


def delete(bed: ResearchBed) -> None:
    put_away(bed.bed.journal, OTHER, Answer.DELETE, run="t", actor="idea")


def raw(bed: ResearchBed) -> bytes:
    return (bed.folder / f"{NOTE}.md").read_bytes()


def test_a_deleted_idea_goes_from_what_was_found_about_another_with_its_words(researched: ResearchBed) -> None:
    before = raw(researched)
    assert weekly(researched) == 0
    assert raw(researched) == before, "while it is there"
    delete(researched)
    assert weekly(researched) == 1
    text = researched.note(NOTE)
    assert "log" not in text.lower()
    assert "|soil moisture sensors in the greenhouse drift" in text.lower(), "what else was found stays"
    assert is_as_written(researched.bed.store.read(f"{FOLDER}/{NOTE}.md")), "another pass puts its own in its place"
    assert weekly(researched) == 0


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_link_in_an_edited_note_is_struck_and_all_other_bytes_stay(researched: ResearchBed, ends: str) -> None:
    file = researched.folder / f"{NOTE}.md"
    mine = f"{ends}I like {LINK}  {ends}## [[Garden/Tomatoes|Tomatoes]]{ends}no end"
    file.write_bytes(file.read_bytes().replace(b"\n", ends.encode()) + mine.encode())
    before = file.read_bytes()
    delete(researched)
    assert weekly(researched) == 1
    heading = f"## {LINK}".encode()
    assert raw(researched) == before.replace(heading, b"## ~~Moisture [log] of the greenhouse~~ (deleted)")
    assert mine.encode() in raw(researched)
    assert weekly(researched) == 0


def test_the_next_look_up_of_the_idea_strikes_it_at_once(researched: ResearchBed) -> None:
    with (researched.folder / f"{NOTE}.md").open("a") as file:
        file.write("\nMine.\n")
    delete(researched)
    researched.run(pass_="second")
    assert "## ~~Moisture [log] of the greenhouse~~ (deleted)" in researched.note(NOTE)
    assert researched.note(NOTE).endswith("\nMine.\n")


def test_link_is_struck_in_a_promoted_idea(researched: ResearchBed) -> None:
    promote(researched.settings, researched.bed.journal, SLUG)
    delete(researched)
    assert weekly(researched) == 1
    assert LINK not in (researched.bed.vault / "personal-projects" / SLUG / f"{NOTE}.md").read_text("utf-8")


def test_restored_or_missing_idea_keeps_its_link(researched: ResearchBed) -> None:
    before = raw(researched)
    folder: Path = researched.folder.parent / OTHER
    delete(researched)
    restore(researched.bed.journal, OTHER)
    assert weekly(researched) == 0
    folder.rename(researched.bed.root / "not-synced-yet")
    assert weekly(researched) == 0
    assert raw(researched) == before
