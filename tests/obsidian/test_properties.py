"""Obsidian's property editor can show and change the frontmatter that we write."""

import re
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.services.evolving import evolve
from memoryvault.vault.entry import from_link, parse_entry, to_link
from memoryvault.vault.header import split_header
from memoryvault.vault.scrubbed import Scrubbed

from ..review.support import CHOICE, GUESS, RULE, Bed

pytestmark = pytest.mark.slow

NESTED = {"source"}
"""Evidence, which Obsidian shows as it stands and leaves alone."""


def properties(text: str) -> dict[str, Any]:
    parts = split_header(text)
    assert parts is not None
    assert text.startswith("---\n"), "Obsidian wants the header on the first line"
    keys = [line.split(":")[0] for line in parts[1].splitlines() if re.match(r"\w", line)]
    assert len(keys) == len(set(keys)), "no property stands there twice"
    return dict(yaml.safe_load(parts[1]))


def test_every_property_is_of_a_type_that_obsidian_has(bed: Bed) -> None:
    bed.remember(RULE, CHOICE, GUESS)
    for text in bed.files().values():
        for key, value in properties(text).items():
            items = value if isinstance(value, list) else [value]
            assert key in NESTED or all(isinstance(item, str | int | float | bool | date) for item in items), key


def test_superseding_entries_link_each_other(bed: Bed) -> None:
    (path,) = bed.remember(RULE).written
    evolve(bed.store, bed.journal, path, Scrubbed("Use yarn."), Scrubbed("we agreed"))
    archived = bed.only("superseded")
    assert archived.superseded_by is not None
    new = bed.store.read(archived.superseded_by)
    assert new.supersedes == archived.path
    files = bed.files()
    assert properties(files[new.path])["supersedes"] == f"[[{archived.path.removesuffix('.md')}]]"
    assert properties(files[archived.path])["superseded_by"] == f"[[{new.path.removesuffix('.md')}]]"


def test_paths_written_before_there_were_links_are_read_alike() -> None:
    for written in ("a/b.md", '"[[a/b]]"', '"[[a/b.md]]"', '"[[a/b|shown]]"', '"[[a/b#part]]"'):
        assert parse_entry("x.md", f"---\nsupersedes: {written}\n---\n".encode()).supersedes == "a/b.md"
    assert parse_entry("x.md", b"---\nsupersedes: a-slug\n---\n").supersedes == "a-slug"


@given(st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True), min_size=2, max_size=4))
def test_a_link_leads_back_to_its_path(parts: list[str]) -> None:
    path = "/".join(parts) + ".md"
    assert from_link(to_link(path)) == path
