"""Every idea is researched while the worker runs, however it was captured."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memoryvault.pipelines.review import Approve
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.tasks.jobs.sweeps import gc_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.corpus.sessions import old_session
from memoryvault.tests.ideas.support import OTHER
from memoryvault.tests.research.support import SLUG, ResearchBed
from memoryvault.tests.support import forked
from memoryvault.vault.scrubbed import Scrubbed


def asked_for(bed: ResearchBed) -> list[str]:
    with open_ledger(bed.settings) as ledger:
        return [str(job.unique_key).partition(":")[2] for job in ledger.list_jobs() if job.kind == "research.idea"]


def slugs(bed: ResearchBed) -> list[str]:
    return [path.parent.name for path in bed.folder.parent.glob("*/_index.md")]


@pytest.mark.slow
def test_an_idea_of_a_backfill(bed: ResearchBed) -> None:
    old_session(bed.settings.session_folders["claude"] / "-home-dev-shop", 1, OTHER.statement)
    forked.memory(bed.bed.env, "reflect", "corpus", "--execute")
    forked.memory(bed.bed.env, "jobs", "pause", "research.idea")
    forked.memory(bed.bed.env, "service", "worker", "--until-idle")
    assert slugs(bed)
    assert asked_for(bed) == slugs(bed)


@pytest.mark.slow
def test_an_idea_of_a_session_that_is_mined_by_hand(bed: ResearchBed, tmp_path: Path) -> None:
    session = old_session(tmp_path / "sessions", 1, OTHER.statement)
    forked.memory(bed.bed.env, "reflect", "--session", str(session))
    assert slugs(bed)
    assert asked_for(bed) == slugs(bed)


def test_an_idea_of_an_agent_when_it_is_approved(bed: ResearchBed) -> None:
    reviewer = bed.bed.reviewer
    AgentProposals(bed.settings, bed.bed.store).propose("idea", "Offline maps", "Ship the tiles with the app.")
    assert asked_for(bed) == []
    reviewer.decide(reviewer.find("offline-maps"), Approve(), run="t")
    assert asked_for(bed) == ["offline-maps"] == slugs(bed)


def test_an_idea_that_nobody_asked_about_is_found_once_by_the_weekly_look(bed: ResearchBed) -> None:
    bed.idea()
    bed.idea(slug="researched", research=Scrubbed("done"))
    with open_ledger(bed.settings) as ledger:
        job = SimpleNamespace(enqueue=ledger.enqueue, check_owned=lambda: None, still_owned=lambda: True)
        for _ in range(2):
            gc_handler(bed.settings, cast("Any", job))
    assert asked_for(bed) == [SLUG]
