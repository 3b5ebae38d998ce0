"""A rule that is stated again with another value is not kept beside the first one without asking."""

from dataclasses import replace

import pytest

from memoryvault.cli import review
from memoryvault.pipelines.review import Approve
from memoryvault.services.dismissing import dismiss
from memoryvault.tests.support.command import Command

from .support import RULE, Bed, said

pytestmark = pytest.mark.slow

MONDAYS = replace(RULE, statement="Always deploy on Mondays.", excerpt="Always deploy on Mondays.")
TUESDAYS = "Always deploy on Tuesdays."


def test_a_rule_in_the_same_words_the_other_way_round_is_no_second_occurrence(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a", "Always run the tests before the linter."))
    bed.remember(said(MONDAYS, "b", "Always run the linter before the tests."))
    assert bed.only("pending").supersedes == bed.only("active").path
    assert bed.only("active").occurrences == 1


@pytest.mark.parametrize("statement", ["Always deploy on Mondays.", TUESDAYS])
def test_a_rule_that_the_user_has_moved_into_the_archive_is_in_use_no_more(bed: Bed, statement: str) -> None:
    """Its status says what it said: said again it is news, and nothing has to take its place."""
    bed.remember(said(MONDAYS, "a"))
    old, archived = bed.only("active").path, "personal-private/_archive/old-rule.md"
    (bed.vault / archived).parent.mkdir()
    (bed.vault / old).rename(bed.vault / archived)
    before = bed.files()[archived]
    (path,) = bed.remember(said(MONDAYS, "b", statement)).written
    assert (bed.store.read(path).effective_status, path.rsplit("/", 1)[0]) == ("active", old.rsplit("/", 1)[0])
    assert bed.files()[archived] == before


def test_two_values_in_one_message_both_hold(bed: Bed) -> None:
    monday = said(MONDAYS, "a")
    bed.remember(monday, replace(monday, statement=TUESDAYS))
    assert [entry.effective_status for entry in bed.entries()] == ["active", "active"]


def test_an_order_that_is_no_rule_replaces_none(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a"))
    bed.remember(said(MONDAYS, "b", "Deploy on Tuesday", standing_rule=False))
    assert bed.only("inbox").supersedes is None


def test_a_third_value_would_replace_the_rule_in_use_and_not_the_one_that_waits(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a"))
    bed.remember(said(MONDAYS, "b", TUESDAYS))
    bed.remember(said(MONDAYS, "c", "Always deploy on Wednesdays."))
    waiting = [entry for entry in bed.entries() if entry.effective_status == "pending"]
    assert {entry.supersedes for entry in waiting} == {bed.only("active").path}


def test_a_third_value_takes_the_place_of_the_second_once_that_has_taken_the_place_of_the_first(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a"))
    for session, day in (("b", "Tuesdays"), ("c", "Wednesdays"), ("d", "Thursdays")):
        bed.remember(said(MONDAYS, session, f"Always deploy on {day}."))
    for day in ("Tuesdays", "Wednesdays", "Thursdays"):
        waits = next(entry for entry in bed.entries() if day in entry.body and entry.effective_status == "pending")
        bed.decide_in_note(waits.path, "approve")
        bed.reviewer.apply_notes()
        assert day in bed.only("active").body
    links = [entry.superseded_by for entry in bed.entries() if entry.status == "superseded"]
    assert len(set(links)) == 3
    bed.reviewer.undo_last()
    assert "Wednesdays" in bed.only("active").body


def test_the_review_shows_what_would_be_replaced(bed: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    bed.remember(said(MONDAYS, "a"))
    bed.remember(said(MONDAYS, "b", TUESDAYS))
    bed.decide_in_note(bed.only("pending").path, "approve")
    bed.remember(said(MONDAYS, "c", "Always deploy on Wednesdays."))
    bed.reviewer.apply_notes()
    bed.enter(monkeypatch)
    monkeypatch.setattr(review, "read_key", lambda prompt: "q")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    told = " ".join(memory("review").out.split())
    assert f"Approving it archives “{TUESDAYS}” ({bed.only('active').path})" in told
    assert told.count("always-deploy-on-mondays") == 0, "the rule of then is not named beside that of now"


def test_nothing_takes_the_place_of_what_was_dismissed(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a"))
    bed.remember(said(MONDAYS, "b", TUESDAYS))
    bed.remember(said(MONDAYS, "c", "Always deploy on Wednesdays."))
    for day in ("Tuesdays", "Wednesdays"):
        waits = next(entry for entry in bed.entries() if day in entry.body and entry.effective_status == "pending")
        bed.decide_in_note(waits.path, "approve")
        bed.reviewer.apply_notes()
        if day == "Tuesdays":
            dismiss(bed.reviewer, bed.only("active").path)
    assert "Wednesdays" in bed.only("active").body
    assert TUESDAYS in bed.only("dismissed").body


def test_one_of_several_replacements_of_a_waiting_proposal_stays_in_use(bed: Bed) -> None:
    fact = said(MONDAYS, "a", "Remember that staging is at port 8081.", standing_rule=False, claimed_rule=True)
    bed.remember(fact)
    waits = {"8081": bed.only("pending").path}
    for session, port in (("b", "8082"), ("c", "8083")):
        bed.remember(said(fact, session, f"Remember that staging is at port {port}."))
        waits[port] = next(entry.path for entry in bed.entries() if port in entry.body)
    assert bed.store.read(waits["8083"]).supersedes == waits["8081"]
    for port, path in waits.items():
        bed.reviewer.decide(path, Approve(), run="review-1")
        assert port in bed.only("active").body


@pytest.mark.parametrize("taken", ["the name that it waited under", "the name of its place"])
def test_namesake_of_the_entry_to_replace_is_left_alone(bed: Bed, taken: str) -> None:
    """A name has six words: those of other rules may be the same."""
    text = "Always deploy the web shop of Kiel on Mondays."
    fact = said(MONDAYS, "a", text, standing_rule=False, claimed_rule=True)
    other = said(fact, "z", text.replace(".", " from the blue machine alone."))
    if taken == "the name of its place":
        bed.remember(other)
        bed.reviewer.decide(bed.only("pending").path, Approve(), run="review-1")
    bed.remember(fact)
    first = bed.only("pending").path
    bed.remember(said(fact, "b", text.replace("Mondays", "Tuesdays")))
    (second,) = [entry for entry in bed.entries() if entry.supersedes]
    assert second.supersedes == first
    bed.reviewer.decide(first, Approve(), run="review-1")
    if taken == "the name that it waited under":
        bed.remember(other)
        assert "blue machine" in bed.store.read(first).body
    bed.reviewer.decide(second.path, Approve(), run="review-1")
    (left,) = [entry for entry in bed.entries() if "blue machine" in entry.body]
    assert left.effective_status in ("active", "pending")
    assert "Mondays." in bed.only("superseded").body
    assert [entry.path for entry in bed.entries() if "Tuesdays" in entry.body and entry.effective_status == "active"]


def test_a_rule_that_was_deleted_is_not_taken_for_another_of_its_name(bed: Bed) -> None:
    bed.remember(said(MONDAYS, "a"))
    old = bed.only("active").path
    bed.remember(said(MONDAYS, "b", TUESDAYS))
    (bed.vault / old).unlink()
    other = f"personal-projects/shop/convention/{old.rsplit('/', 1)[-1]}"
    bed.note(other, "# Mondays\n\nOf the shop.", kind="convention", status="active", project="shop")
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="review-1")
    assert {entry.effective_status for entry in bed.entries()} == {"active"}


def test_replacement_of_a_projects_proposal_belongs_to_the_project(bed: Bed) -> None:
    fact = said(MONDAYS, "a", "Remember that staging is at port 8081.", standing_rule=False, claimed_rule=True)
    bed.remember(replace(fact, scope="project", project="shop"))
    first = bed.only("pending").path
    other = said(fact, "b", "Remember that staging is at port 8082.", scope="project", project="shop")
    bed.remember(other)
    assert {(entry.project, entry.supersedes) for entry in bed.entries()} == {("shop", None), ("shop", first)}
    bed.remember(said(other, "c", "Remember that staging is at port 8083.", project="blog"))
    assert [entry.supersedes for entry in bed.entries() if entry.project == "blog"] == [None]


@pytest.mark.parametrize("days", [("Mondays", "Tuesdays"), ("Tuesdays", "Mondays")])
def test_the_later_one_is_proposed_whatever_their_order_in_the_alphabet(bed: Bed, days: tuple[str, str]) -> None:
    for session, day in zip("ab", days, strict=True):
        bed.remember(said(MONDAYS, session, f"Always deploy on {day}."))
    assert days[0] in bed.only("active").body
    assert days[1] in bed.only("pending").body


@pytest.mark.parametrize(
    "later",
    [
        "From now on, use PostgreSQL instead of MySQL.", "MySQL is no longer used here.", "Don't use MySQL any more.",
        "MySQL is out, PostgreSQL is in.", "Replace MySQL with PostgreSQL.", "From now on PostgreSQL replaces MySQL.",
        "Use read-only PostgreSQL in place of MySQL.", "MySQL is deprecated, use PostgreSQL.",
    ],
)  # fmt: skip
def test_replacement_is_proposed_though_the_old_rule_says_more(bed: Bed, later: str) -> None:
    bed.remember(said(MONDAYS, "a", "Always use MySQL for new databases and read replicas."))
    bed.remember(said(MONDAYS, "b", later))
    assert bed.only("pending").supersedes == bed.only("active").path


@pytest.mark.parametrize(
    ("old", "later"),
    [
        ("Never use tabs in Python files or Makefiles.", "From now on, use tabs in Python files."),
        ("Don't commit lock files or build output.", "Commit lock files."),
        ("Never deploy on Fridays or at weekends.", "From now on, deploy on Fridays, too."),
    ],
)
def test_replacement_is_proposed_where_a_part_of_what_was_refused_is_allowed(bed: Bed, old: str, later: str) -> None:
    bed.remember(said(MONDAYS, "a", old))
    bed.remember(said(MONDAYS, "b", later))
    assert bed.only("pending").supersedes == bed.only("active").path


@pytest.mark.parametrize(
    ("old", "later"),
    [
        ("Never force-push to main or staging.", "Push to main once the tests pass."),
        ("Never commit secrets or tokens.", "Commit small changes."),
        ("Don't add comments or docstrings.", "Never add comments."),
    ],
)
def test_what_is_no_part_of_what_was_refused_replaces_nothing(bed: Bed, old: str, later: str) -> None:
    bed.remember(said(MONDAYS, "a", old))
    bed.remember(said(MONDAYS, "b", later))
    assert all(entry.supersedes is None for entry in bed.entries())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("Templates/rule.md", "Always use pnpm, not npm."),
        ("personal-private/preferences/rule.md", "# {{title}}\n\nAlways use pnpm, not npm."),
    ],
)
@pytest.mark.parametrize("words", ["Always use pnpm, not npm.", "Never use pnpm."])
def test_a_template_is_neither_said_again_nor_contradicted(bed: Bed, path: str, body: str, words: str) -> None:
    file = bed.vault / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text := f"---\nkind: preferences\nstatus: active\n---\n\n{body}\n")
    bed.remember(said(MONDAYS, "a", words))
    assert (bed.only("active").path != path, bed.only("active").supersedes) == (True, None)
    assert file.read_text() == text
