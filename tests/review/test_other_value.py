"""A rule that is stated again with another value is not kept beside the first one without asking."""

from dataclasses import replace

import pytest

from memoryvault.cli import review_dialogue
from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.review import Approve
from memoryvault.services.entry_decisions import dismiss, edit
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put
from memoryvault.vault.scrubbed import Scrubbed

from .support import RULE, Bed, said

pytestmark = pytest.mark.slow

FIFTY = "Always keep functions below 50 lines."
PORT = "Remember that staging is at port {}."
STAGING = said(RULE, "a", PORT.format(8081), standing_rule=False, claimed_rule=True)


def limit(session: str, lines: int, **changes: object) -> Candidate:
    """A rule whose value is a number."""
    return said(RULE, session, f"Always keep functions below {lines} lines.", **changes)


def approve(bed: Bed, words: str) -> None:
    """In the one waiting note with these words, as a person does."""
    (waits,) = [entry for entry in bed.entries() if words in entry.body and entry.effective_status == "pending"]
    bed.decide_in_note(waits.path, "approve")
    bed.reviewer.apply_notes()


@pytest.mark.parametrize("statement", ["Always keep functions below 40 lines.", FIFTY])
def test_a_rule_that_the_user_has_moved_into_the_archive_is_in_use_no_more(bed: Bed, statement: str) -> None:
    """Its status says what it said: said again it is news, and nothing has to take its place."""
    bed.remember(limit("a", 40))
    old, archived = bed.only("active").path, "personal-private/_archive/old-rule.md"
    (bed.vault / archived).parent.mkdir()
    (bed.vault / old).rename(bed.vault / archived)
    before = bed.files()[archived]
    (path,) = bed.remember(said(RULE, "b", statement)).written
    assert (bed.store.read(path).effective_status, path.rsplit("/", 1)[0]) == ("active", old.rsplit("/", 1)[0])
    assert bed.files()[archived] == before


def test_two_values_in_one_message_both_hold(bed: Bed) -> None:
    monday = limit("a", 40)
    bed.remember(monday, replace(monday, statement=FIFTY))
    assert [entry.effective_status for entry in bed.entries()] == ["active", "active"]


def test_an_order_that_is_no_rule_replaces_none(bed: Bed) -> None:
    bed.remember(limit("a", 40))
    bed.remember(said(RULE, "b", "Keep functions below 50 lines here", standing_rule=False))
    assert bed.only("inbox").supersedes is None


def test_a_third_value_would_replace_the_rule_in_use_which_may_be_the_second_by_then(bed: Bed) -> None:
    for session, lines in (("a", 40), ("b", 50), ("c", 60), ("d", 70)):
        bed.remember(limit(session, lines))
    waiting = [entry for entry in bed.entries() if entry.effective_status == "pending"]
    assert [entry.supersedes for entry in waiting] == [bed.only("active").path] * 3
    for lines in (50, 60, 70):
        approve(bed, f"below {lines}")
        assert f"below {lines}" in bed.only("active").body
    links = [entry.superseded_by for entry in bed.entries() if entry.status == "superseded"]
    assert len(set(links)) == 3
    bed.reviewer.undo_last()
    assert "below 60" in bed.only("active").body


def test_the_review_shows_what_would_be_replaced(bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    bed.remember(limit("a", 40))
    bed.remember(limit("b", 50))
    bed.decide_in_note(bed.only("pending").path, "approve")
    bed.remember(limit("c", 60))
    bed.reviewer.apply_notes()
    bed.enter(monkeypatch)
    monkeypatch.setattr(review_dialogue, "read_key", lambda prompt: "q")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    told = " ".join(memory("review").out.split())
    assert f"Approving it archives “{FIFTY}” ({bed.only('active').path})" in told
    assert told.count("always-keep-functions-below-40-lines") == 0, "the rule of then is not named beside that of now"


def test_a_proposal_names_the_rule_that_it_contradicts_until_it_is_decided(bed: Bed) -> None:
    bed.remember(limit("a", 40))
    bed.remember(limit("b", 50))
    proposal, rule = bed.only("pending"), bed.only("active")
    assert proposal.contradicts == rule.fingerprint is not None
    bed.reviewer.decide(proposal.path, Approve(), run="review-1")
    assert [entry.contradicts for entry in bed.entries()] == [None, None]


def test_what_waits_in_the_inbox_to_replace_a_rule_is_not_saved_beside_it(bed: Bed) -> None:
    """Said again it is a pattern, but only the user knows which of the two holds."""
    bed.remember(limit("a", 40))
    for session in ("b", "c", "d"):
        bed.remember(limit(session, 50, confirmed=False))
    assert [entry.effective_status for entry in bed.entries() if "below 50" in entry.body] != ["active"]
    assert "below 40" in bed.only("active").body


def test_nothing_takes_the_place_of_what_was_dismissed(bed: Bed) -> None:
    for session, lines in (("a", 40), ("b", 50), ("c", 60)):
        bed.remember(limit(session, lines))
    approve(bed, "below 50")
    dismiss(bed.reviewer, bed.only("active").path)
    approve(bed, "below 60")
    assert "below 60" in bed.only("active").body
    assert FIFTY in bed.only("dismissed").body


def test_one_of_several_replacements_of_a_waiting_proposal_stays_in_use(bed: Bed) -> None:
    waits = {}
    for session, port in (("a", 8081), ("b", 8082), ("c", 8083)):
        (waits[port],) = bed.remember(said(STAGING, session, PORT.format(port))).written
    assert bed.store.read(waits[8083]).supersedes == waits[8081]
    for port, path in waits.items():
        bed.reviewer.decide(path, Approve(), run="review-1")
        assert str(port) in bed.only("active").body


def test_a_rule_that_was_corrected_since_is_replaced_nevertheless(bed: Bed) -> None:
    """Its fingerprint is another then, and its path: it waited under the one that the proposal names."""
    for session, lines in (("a", 40), ("b", 50)):
        bed.remember(limit(session, lines, standing_rule=False, claimed_rule=True))
    approve(bed, "below 40")
    rule = bed.only("active")
    assert bed.only("pending").supersedes != rule.path
    edit(bed.reviewer, rule.path, Scrubbed(rule.body.replace("40", "45")), rule.content_hash)
    assert "below 45" in bed.only("active").body
    approve(bed, "below 50")
    assert "below 50" in bed.only("active").body


@pytest.mark.parametrize("taken", ["the name that it waited under", "the name of its place"])
def test_namesake_of_the_entry_to_replace_is_left_alone(bed: Bed, taken: str) -> None:
    """A name has six words: those of other rules may be the same."""
    text = "Always deploy the web shop of Kiel at 9."
    fact = said(RULE, "a", text, standing_rule=False, claimed_rule=True)
    other = said(fact, "z", text.replace(".", " from the blue machine alone."))
    if taken == "the name of its place":
        bed.remember(other)
        bed.reviewer.decide(bed.only("pending").path, Approve(), run="review-1")
    bed.remember(fact)
    first = bed.only("pending").path
    bed.remember(said(fact, "b", text.replace("9", "10")))
    (second,) = [entry for entry in bed.entries() if entry.supersedes]
    assert second.supersedes == first
    bed.reviewer.decide(first, Approve(), run="review-1")
    if taken == "the name that it waited under":
        bed.remember(other)
        assert "blue machine" in bed.store.read(first).body
    bed.reviewer.decide(second.path, Approve(), run="review-1")
    (left,) = [entry for entry in bed.entries() if "blue machine" in entry.body]
    assert left.effective_status in ("active", "pending")
    assert "at 9." in bed.only("superseded").body
    assert [entry.path for entry in bed.entries() if "at 10" in entry.body and entry.effective_status == "active"]


def test_a_rule_that_was_deleted_is_not_taken_for_another_of_its_name(bed: Bed) -> None:
    bed.remember(limit("a", 40))
    old = bed.only("active").path
    bed.remember(limit("b", 50))
    (bed.vault / old).unlink()
    other = f"personal-projects/shop/convention/{old.rsplit('/', 1)[-1]}"
    bed.note(other, "# Functions\n\nOf the shop.", kind="convention", status="active", project="shop")
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="review-1")
    assert [(entry.effective_status, entry.supersedes) for entry in bed.entries()] == [("active", None)] * 2


def test_replacement_of_a_projects_proposal_belongs_to_the_project(bed: Bed) -> None:
    for session, port, project in (("a", 8081, "shop"), ("b", 8082, "shop"), ("c", 8083, "blog")):
        bed.remember(said(STAGING, session, PORT.format(port), scope="project", project=project))
    first, second, other = bed.entries()
    assert [entry.project for entry in (first, second, other)] == ["shop", "shop", "blog"]
    assert [entry.supersedes for entry in (first, second, other)] == [None, first.path, None]


@pytest.mark.parametrize(("first", "later"), [(40, 50), (50, 40)])
def test_the_later_one_is_proposed_whatever_their_order_in_the_alphabet(bed: Bed, first: int, later: int) -> None:
    bed.remember(limit("a", first))
    bed.remember(limit("b", later))
    assert f"below {first}" in bed.only("active").body
    assert f"below {later}" in bed.only("pending").body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("Templates/rule.md", "Always use pnpm, not npm."),
        ("personal-private/preferences/rule.md", "# {{title}}\n\nAlways use pnpm, not npm."),
    ],
)
@pytest.mark.parametrize("words", ["Always use pnpm, not npm.", "Never use pnpm."])
def test_a_template_is_neither_said_again_nor_contradicted(bed: Bed, path: str, body: str, words: str) -> None:
    file = put(bed.vault / path, (text := f"---\nkind: preferences\nstatus: active\n---\n\n{body}\n"))
    bed.remember(said(RULE, "a", words))
    assert (bed.only("active").path != path, bed.only("active").supersedes) == (True, None)
    assert file.read_text() == text
