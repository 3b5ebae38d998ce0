"""research.idea under failures: misbehaving servers, no network, kills, and concurrent edits of the note."""

import gzip
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.services.cursors import Cursors
from memoryvault.tasks.jobs.research import WebAccess, enqueue_missing_research, plan
from memoryvault.tasks.jobs.research_child import Research
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tests.research.support import (
    ENGINES,
    SLUG,
    TOMATOES,
    ResearchBed,
    access_to,
    answers,
    evidence,
    results_in,
    worker,
)
from memoryvault.tests.support.loopback_site import Reply, Site, site

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_children")]

IN_AN_HOUR = "in an hour"
"""In a header: the second of the epoch that is an hour after the request is answered."""


# ---- servers that misbehave


MISBEHAVING = {
    "429": Reply(status=429),
    "500": Reply(status=500),
    "no JSON": Reply(b"not JSON"),
    "a list": Reply(b"[]", type="application/json"),
    "odd rows": Reply(json.dumps({"query": {"search": [{"title": 7, "snippet": None}, 3]}, "items": 3}).encode()),
    "huge": Reply(b"x" * 3_000_000),
    "bomb": Reply(gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"}),
    "to metadata": Reply(status=302, headers={"Location": "http://169.254.169.254/latest/"}),
    "charset": Reply("Größe".encode("latin-1"), type="application/json; charset=utf-8"),
    "reset": Reply(reset=True),
}


@pytest.mark.parametrize("two", [("429", "500"), ("no JSON", "a list"), ("odd rows", "huge"), ("bomb", "to metadata"),
                                 ("charset", "reset")])  # fmt: skip
def test_an_engine_that_misbehaves_costs_its_note_only(online: ResearchBed, web: Site, two: tuple[str, str]) -> None:
    """Two of the three fail, each in its way; the third is still read, and nothing is retried."""
    web.replies |= {"/w/api.php": MISBEHAVING[two[0]], "/search/repositories": MISBEHAVING[two[1]]}
    online.idea()
    report = online.run(access_to(web))
    assert (report.done, report.retried) == (2, 0)
    assert online.state == "done"
    assert "research-hackernews" in online.notes()
    if "odd rows" not in two:  # of which one can be read
        assert {"research-wikipedia", "research-github"}.isdisjoint(online.notes())


def test_half_a_character_in_an_answer_costs_only_itself(online: ResearchBed, web: Site) -> None:
    """JSON and XML can name one; no file can hold it."""
    rows = [{"title": "Robot \ud800 one", "snippet": "half \udfff of it", "html_url": "https://example.org/\ud800"}]
    rows[0] |= {"full_name": "someone/\ud800", "description": "half \ud800"}
    web.replies |= {
        "/w/api.php": Reply(json.dumps({"query": {"search": rows}}).encode(), type="application/json"),
        "/search/repositories": Reply(json.dumps({"items": rows}).encode(), type="application/json"),
    }
    online.configure(network=True, more='providers = "wikipedia,github"')
    online.idea()
    report = online.run(access_to(web))
    assert (report.done, report.retried) == (2, 0)
    assert "Robot" in online.note("research-wikipedia")


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"Retry-After": "3600"}), (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": IN_AN_HOUR})],
)
def test_an_engine_whose_limit_is_reached_is_asked_again_when_it_may_be(
    online: ResearchBed, web: Site, status: int, headers: dict[str, str]
) -> None:
    headers = {name: str(int(time.time()) + 3600) if value == IN_AN_HOUR else value for name, value in headers.items()}
    with site({"/search/repositories": Reply(status=status, headers=headers)}) as full:
        access = WebAccess({"wikipedia": web.url, "github": full.url}, web.allowed | full.allowed)
        online.configure(network=True, more='providers = "wikipedia,github"')
        online.idea()
        assert online.run(access).delayed == 1
        assert online.state == "waiting"
        assert "research-wikipedia" in online.notes()
        assert online.spent()["fetches"] == 1, "what was turned away is not spent"
        assert "is left alone until" in online.note("_index")
        assert online.job().run_at == pytest.approx(time.time() + 3600, abs=120)
        online.idea(slug="another-robot", title="Another robot", surfaced_at="2026-01-02")
        online.run(access, slug="another-robot")
        assert len(full.requests) == 1, "the next idea does not ask it either"


def test_requests_to_one_host_keep_their_distance(online: ResearchBed) -> None:
    online.idea()
    nowhere = WebAccess({"wikipedia": "https://nowhere.invalid"})
    online.configure(network=True, more='providers = "wikipedia"')
    Cursors(online.settings.state.state_db, "discovery").set("host:nowhere.invalid", {"asked": time.time()})
    pauses: list[float] = []
    Research(plan(online.settings, nowhere, online.entry()), pause=pauses.append).run()
    assert [round(seconds) for seconds in pauses] == [2]


def test_temporary_findings_are_private(online: ResearchBed) -> None:
    """`memory doctor` found it open while an idea was researched."""
    online.idea()
    online.configure(network=True, more='providers = "wikipedia"')
    request = plan(online.settings, WebAccess({"wikipedia": "https://nowhere.invalid"}), online.entry())
    before = os.umask(0o022)
    try:
        Research(request, pause=lambda seconds: None).run()
    finally:
        os.umask(before)
    kept = {path.name: path.stat().st_mode & 0o777 for path in Path(request.folder).iterdir()}
    assert {"related-memoryvault.json", "said.txt"} <= kept.keys()
    assert set(kept.values()) == {0o600}


# ---- offline


NOWHERE = WebAccess(dict.fromkeys(ENGINES, "https://nowhere.invalid"))


@pytest.fixture(params=["no name is resolved", "nothing answers"])
def away(request: pytest.FixtureRequest) -> Iterator[WebAccess]:
    """A network that resolves no name, or resolves names and connects to nothing."""
    if request.param == "no name is resolved":
        yield NOWHERE
        return
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        place = ("127.0.0.1", unused.getsockname()[1])
        yield WebAccess(dict.fromkeys(ENGINES, f"http://{place[0]}:{place[1]}"), frozenset({place}))


def test_offline_is_normal(online: ResearchBed, away: WebAccess) -> None:
    """The two local notes at once, as many attempts as the table says, then done."""
    online.idea()
    report = online.run(away)
    assert (report.delayed, online.state) == (1, "waiting")
    assert online.notes() == ["related-memoryvault", "related-obsidian"]
    online.run_out(away)
    job = online.job()
    assert (job.state, job.attempt) == ("done", POLICIES["research.idea"].attempts)
    assert online.state == "offline"
    assert online.notes() == ["related-memoryvault", "related-obsidian"]
    if away is NOWHERE:
        assert "- Left this machine: `nowhere.invalid, a name to resolve`\n" in online.note("_index")
    assert online.spent().get("fetches", 0) == 0


def test_a_link_that_is_refused_here_is_no_answer_of_the_network(online: ResearchBed) -> None:
    online.idea(evidence("https://127.0.0.1/owl"))
    online.run(NOWHERE)
    assert online.state == "waiting"
    assert "not a public address" in online.note("_index")


def test_consent_that_comes_later_is_used_once_and_on_the_same_budget(bed: ResearchBed, web: Site) -> None:
    bed.own_note("Tomatoes.md", TOMATOES)
    bed.idea()
    bed.run(access_to(web))
    local, before = bed.spent(), bed.note("related-obsidian")
    assert "research: local" in bed.note("_index")
    bed.configure(network=True)
    bed.run_again(access_to(web))
    assert bed.state == "done"
    assert len(web.requests) == 3
    assert bed.note("related-obsidian") == before, "what is on this machine is not gone through again"
    assert local["tokens"] < bed.spent()["tokens"] <= 5000
    with open_ledger(bed.settings) as ledger:
        waiting = len(ledger.list_jobs())
        enqueue_missing_research(bed.settings, ledger)
        assert len(ledger.list_jobs()) == waiting, "only once"


def test_a_waiting_pass_is_not_doubled_by_a_new_worker_and_ends_with_the_outage(bed: ResearchBed, web: Site) -> None:
    bed.idea()
    bed.run()
    bed.configure(network=True)
    bed.run(NOWHERE)
    assert bed.state == "waiting"
    with open_ledger(bed.settings) as ledger:
        before = len(ledger.list_jobs())
        enqueue_missing_research(bed.settings, ledger)
        assert len(ledger.list_jobs()) == before
    bed.run_out(access_to(web))
    assert "research: done" in bed.note("_index")
    assert "research-wikipedia" in bed.notes()
    assert "not resolved" not in bed.note("_index"), "what was answered since"


def test_research_that_waits_and_whose_job_is_gone_is_requested_again(online: ResearchBed, web: Site) -> None:
    online.idea()
    quick = worker(online.settings, NOWHERE, backoff_base_seconds=60.0, backoff_cap_seconds=60.0)
    with open_ledger(online.settings) as ledger:
        enqueue_missing_research(online.settings, ledger)
    quick.run_until_idle(60.0)
    assert "research: waiting" in online.note("_index")
    for path in Path(online.settings.state.root).glob("queue.db*"):
        path.unlink()
    online.run_again(access_to(web))
    assert online.state == "done"


def test_an_idea_without_its_state_is_looked_up_again(online: ResearchBed, web: Site) -> None:
    """After a time offline: the user has deleted the property."""
    online.idea()
    online.run(NOWHERE)
    online.run_out(NOWHERE)
    text = online.note("_index")
    assert "research: offline\n" in text
    (online.folder / "_index.md").write_text(text.replace("research: offline\n", ""), "utf-8")
    online.run_again(access_to(web))
    assert online.state == "done"
    assert len(web.requests) == 3


# ---- crashes


@pytest.mark.once
@pytest.mark.parametrize(
    "point",
    ["mid-child", "mid-child@2", "before-effect", "vault-before-rename@2", "vault-before-rename@4", "after-effect"],
)
def test_killed_anywhere_the_budget_holds_and_nothing_is_doubled(online: ResearchBed, web: Site, point: str) -> None:
    online.idea()
    online.program(access_to(web), kill_point=point)  # A child that is killed is repeated in the same worker.
    if online.state not in ("done", "partial"):
        online.run(access_to(web))
    assert online.state in ("done", "partial")
    assert len(web.requests) <= 3
    assert online.spent()["fetches"] <= 3
    assert {"related-memoryvault", "related-obsidian"} <= set(online.notes())
    assert len(online.notes()) <= 5
    texts = [online.note(name).partition("---\n\n")[2] for name in online.notes()]
    assert len(set(texts)) == len(texts), "no finding is in two notes"
    for engine in {"wikipedia", "github", "hackernews"} & {name.removeprefix("research-") for name in online.notes()}:
        assert results_in(online, engine) == 2
    assert online.note("_index").count("## Research receipt") == 1


def test_an_idea_that_is_promoted_meanwhile_is_left_alone(online: ResearchBed, web: Site) -> None:
    def promoted(path: str) -> Reply:
        target = online.bed.vault / "personal-projects" / SLUG
        if not target.exists():
            target.parent.mkdir(parents=True)
            online.folder.rename(target)
        return answers()["/w/api.php"]

    web.replies["/w/api.php"] = promoted
    online.idea()
    assert online.run(access_to(web)).dead == 0
    assert not (online.folder / "_index.md").exists()
    assert not list(online.folder.glob("*.md"))


def test_an_edit_of_the_note_meanwhile_is_kept(online: ResearchBed, web: Site) -> None:
    def edited(path: str) -> Reply:
        file = online.folder / "_index.md"
        file.write_text(file.read_text("utf-8") + "\nMy own line.\n", "utf-8")
        return answers()["/w/api.php"]

    web.replies["/w/api.php"] = edited
    online.idea()
    online.run(access_to(web, "wikipedia"))
    assert "My own line." in online.note("_index")
    assert online.state == "done"


# ---- by itself
