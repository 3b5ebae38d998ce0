from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tests.research.support import ResearchBed, answers, research_bed
from memoryvault.tests.support.loopback_site import Site, site


@pytest.fixture
def bed(tmp_path: Path) -> ResearchBed:
    return research_bed(tmp_path / "obsidian")


@pytest.fixture
def online(tmp_path: Path) -> ResearchBed:
    return research_bed(tmp_path / "obsidian", network=True)


@pytest.fixture
def web() -> Iterator[Site]:
    with site(dict(answers())) as running:
        yield running
