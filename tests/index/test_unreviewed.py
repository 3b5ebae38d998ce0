"""What was said and nobody has decided on: it comes with a prompt that it answers, marked, if the user said it."""

import time

import pytest

from memoryvault.index.drain import drain, embed_with
from memoryvault.index.embedder import DEFAULT_MODEL, load_embedder
from memoryvault.index.engine import Hit, RecallEngine, RecallQuery
from memoryvault.index.unreviewed import FOLDERS, MOST, STRONG, recall_unreviewed, render_unreviewed
from memoryvault.tests.index.bed import Bed, slugs

PROMPT = "deploy the quokka service to staging"
SAID = "Deploy the quokka service to staging with the green button."
WAITING = frozenset(STRONG)
SOURCE = "{host: claude, session: s-1}"


def found(bed: Bed, prompt: str = PROMPT, deadline: float | None = None, **options: object) -> list[Hit]:
    bed.refresh()
    query = RecallQuery(prompt, project="shop", is_prompt=True, **options)  # type: ignore[arg-type]  # keyword options
    return list(recall_unreviewed(bed.engine(), bed.vault, query, deadline))


@pytest.fixture
def said(bed: Bed) -> Bed:
    for number in range(8):
        bed.write(f"notes/n{number}.md", f"Filler about nothing much, number {number}.", status="active")
    fields = {"status": "pending", "project": "shop", "source": SOURCE, "created": "2026-06-12"}
    bed.write("personal-projects/shop/_review/green.md", SAID, **fields)
    return bed


def test_a_proposal_that_answers_strongly_comes_marked_with_its_day(said: Bed) -> None:
    hits = found(said)
    assert [hit.slug for hit in hits] == ["green"]
    assert f"You said on 2026-06-12, not confirmed: {SAID}" in render_unreviewed(hits)
    assert slugs(said.recall(PROMPT, project="shop", is_prompt=True)) == []


def test_it_comes_once_to_a_session_and_never_when_time_is_short(said: Bed) -> None:
    (hit,) = found(said)
    assert found(said, exclude_paths=frozenset({hit.path})) == []
    assert found(said, deadline=time.monotonic()) == []


@pytest.mark.parametrize(
    "fields",
    [{"source": "agent"}, {"source": ""}, {"tags": "[not-confirmed]"}, {"status": "dismissed"}, {"project": "other"}],
)
def test_what_the_user_did_not_say_here_or_dismissed_stays_out(said: Bed, fields: dict[str, str]) -> None:
    common = {"status": "pending", "project": "shop", "source": SOURCE}
    said.write("personal-projects/shop/_review/green.md", SAID, **{**common, **fields})
    assert found(said) == []


def test_what_would_replace_a_given_rule_comes_with_it_and_not_what_an_agent_claims(said: Bed) -> None:
    rule = "personal-projects/shop/preferences/host.md"
    said.write(rule, "Deploy with the blue lever.", status="active", project="shop")
    fields = {"status": "pending", "project": "shop", "source": SOURCE, "supersedes": f'"[[{rule[:-3]}|host]]"'}
    earlier = {**fields, "created": "2026-01-02", "updated": "2026-01-02"}
    said.write("personal-projects/shop/_review/sky.md", "From now on, use the sky blue one.", **earlier)
    words = f"From now on, use the red one.\n\nIt would replace [[{rule[:-3]}]].\n\n## Evidence\n\nSaid so."
    last = {"created": "2026-03-04", "updated": "2026-03-04"}
    said.write("personal-projects/shop/_review/red.md", words, **fields, **last)
    said.write("personal-projects/shop/_review/own.md", "No levers any more.", **{**fields, "source": "agent"})
    engine = said.engine()
    query = RecallQuery("a haiku about the sea", project="shop", is_prompt=True)
    (hit,) = recall_unreviewed(engine, said.vault, query, None, [rule])
    assert render_unreviewed([hit]).endswith("not confirmed: From now on, use the red one.\n")
    assert recall_unreviewed(engine, said.vault, query, None, ["personal-projects/shop/notes/n1.md"]) == []
    for had, text, comes in (
        ({hit.path}, "deploy with the lever", False),
        ({rule}, "how do we deploy this?", True),
        ({rule}, "a haiku about the shop", False),
    ):
        query = RecallQuery(text, project="shop", is_prompt=True, exclude_paths=frozenset({"n.md", *had}))
        given = [rule] if hit.path in had else []
        found = recall_unreviewed(engine, said.vault, query, None, given)
        assert (hit.path in {each.path for each in found}) is comes


def test_at_most_two_come_and_nothing_for_a_prompt_about_something_else(said: Bed) -> None:
    for number in range(5):
        text = f"Deploy the quokka service to staging on day {number} of week{number} by hand{number}."
        fields = {"status": "inbox", "project": "shop", "source": SOURCE}
        said.write(f"personal-projects/shop/_inbox/i{number}.md", text, **fields)
    assert len(found(said)) <= MOST
    assert found(said, "write a haiku about the sea") == []


def test_a_proposal_answers_no_more_strongly_where_the_other_notes_wait_too(bed: Bed) -> None:
    """The gate is stricter the more notes there are; many proposals are no empty vault."""
    odds = []
    for folder, status in (("", "active"), ("_review/", "pending")):
        for number in range(40):
            fields = {"status": status if number else "pending", "project": "shop", "source": SOURCE}
            text = f"The spare key of room {number} hangs behind door {number}." if number else SAID
            where = folder if number else "_review/"
            (bed.vault / f"personal-projects/shop/p{number}.md").unlink(missing_ok=True)
            bed.write(f"personal-projects/shop/{where}p{number}.md", text, **fields)
        bed.refresh()
        query = RecallQuery(PROMPT, k=1, project="shop", statuses=WAITING, include=FOLDERS, is_prompt=True)
        (hit,) = bed.engine().recall(query).hits
        odds.append(hit.answers or 0.0)
    assert odds[1] <= odds[0]


WAITS = (
    "the printers on the third floor are out of paper most of the time",
    "invoices are sent by the night job, so look there first when one is missing",
    "our lawyer wants to read every text about refunds before it is public",
    "the sandbox of the bank is closed on weekends",
    "tickets get a label of the team, no label no work",
)


@pytest.mark.model
def test_a_proposal_that_alone_has_a_word_of_the_prompt_needs_less_to_come(bed: Bed) -> None:
    """Far ahead of what else waits it is an answer, though no strong one; what is near all others is none."""
    for number, text in enumerate(WAITS):
        fields = {"status": "inbox", "project": "shop", "source": SOURCE, "confidence": "LOW", "kind": "fact"}
        bed.write(f"personal-projects/shop/_inbox/w{number}.md", text, **fields)
    bed.index()
    embedder = load_embedder(DEFAULT_MODEL, models_folder=bed.root / "models")
    drain(bed.store, embed_with(embedder), model=embedder.name)
    engine = RecallEngine(bed.index_db, bed.vault, embedder)

    def given(prompt: str) -> list[str]:
        query = RecallQuery(prompt, project="shop", is_prompt=True)
        return [hit.excerpt for hit in recall_unreviewed(engine, bed.vault, query, None)]

    asked = "how do i find out why something from the last month is not in the list, the night job said nothing"
    assert given(asked) == [WAITS[1]]
    assert given("show the team on every row of the board, and sort the rows by the day they were opened") == []
    engine.close()
