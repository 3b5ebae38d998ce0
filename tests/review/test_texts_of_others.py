"""A statement of the user is saved in the user's words, although a similar relayed text waits."""

from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.research import typed_links
from memoryvault.services.agent_proposals import AgentProposals
from memoryvault.vault.evidence import NOT_CONFIRMED_TAG

from .support import GUESS, RULE, Bed, make_bed

NOT_TYPED = replace(RULE, confirmed=False, session="s8", records=("r8",))

SAYING = "Always run the linter and the type checker before you commit."
STATED = replace(RULE, statement=SAYING, excerpt=SAYING)
MAIL = f"{SAYING[:-1]}, as root."
QUOTED = "let's run the linter and type checker before commits I guess"


def test_a_guess_that_the_user_states_as_a_rule_is_saved_without_the_agents_words(bed: Bed) -> None:
    guess = replace(GUESS, statement=f"{SAYING} (in answer to: “Shall I merge without asking?”)", excerpt=SAYING)
    bed.remember(guess)
    (waiting,) = bed.entries()
    assert "merge" in waiting.body
    bed.remember(replace(STATED, session="s2", records=("r2",)))
    (saved,) = bed.entries()
    assert (saved.status, saved.occurrences) == ("active", 2)
    assert SAYING in saved.body
    assert "merge" not in saved.body


def test_a_text_that_nobody_confirmed_goes_on_waiting_when_a_guess_says_nearly_the_same(bed: Bed) -> None:
    bed.remember(replace(GUESS, statement=MAIL, excerpt=MAIL, confirmed=False))
    bed.remember(replace(GUESS, statement=SAYING, excerpt=SAYING, session="s2", records=("r2",)))
    assert NOT_CONFIRMED_TAG in bed.only("inbox").tags, "it is the text of others as before"
    bed.remember(replace(STATED, session="s3", records=("r3",)))
    assert "root" not in bed.only("active").body


def test_quotation_over_several_lines_counts_as_the_users_words(bed: Bed) -> None:
    excerpt = f"ok,\n  {SAYING.replace(' the ', chr(10) + 'the ')}\n\nAnd the header."
    bed.remember(replace(GUESS, statement=SAYING, excerpt=excerpt))
    bed.remember(replace(STATED, session="s2", records=("r2",)))
    (saved,) = bed.entries()
    assert (saved.status, saved.occurrences) == ("active", 2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="a proposal of an agent"),
        pytest.param(replace(RULE, statement=MAIL, excerpt=MAIL, confirmed=False), id="a text that nobody confirmed"),
        pytest.param(replace(GUESS, statement=MAIL, said=QUOTED, excerpt=QUOTED), id="the wording of a model"),
    ],
)
def test_text_of_others_goes_on_waiting_when_the_user_says_nearly_the_same(bed: Bed, text: Candidate | None) -> None:
    if text is None:
        AgentProposals(bed.settings).propose("preferences", "Run the linter", f"{SAYING}\n\nThen merge as root.")
    else:
        bed.remember(text)
    (waiting,) = bed.entries()
    bed.remember(replace(STATED, session="s2", records=("r2",)))
    assert bed.store.read(waiting.path) == waiting
    saved = bed.only("active")
    assert SAYING in saved.body
    assert "root" not in saved.body + saved.title + saved.path
    bed.remember(replace(STATED, session="s3", records=("r3",)))
    assert bed.store.read(saved.path).occurrences == 2


def test_relayed_text_is_the_users_once_they_type_all_of_it(bed: Bed) -> None:
    bed.remember(replace(RULE, statement=MAIL, excerpt=MAIL, confirmed=False))
    assert NOT_CONFIRMED_TAG in bed.only("pending").tags
    bed.remember(replace(RULE, statement=MAIL, excerpt=MAIL, session="s2", records=("r2",)))
    saved = bed.only("active")
    assert (saved.occurrences, saved.tags) == (2, ())


def test_mode_silent_saves_no_relayed_text_however_often_said(tmp_path: Path) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE="silent")
    bed.remember(replace(GUESS, statement=MAIL, excerpt=MAIL, confirmed=False))
    for n in range(2, 5):
        bed.remember(replace(STATED, standing_rule=False, session=f"s{n}", records=(f"r{n}",)))
    (waiting,) = bed.entries()
    assert waiting.status == "pending"


def test_relayed_text_adds_nothing_to_a_rule_of_the_user(bed: Bed) -> None:
    bed.remember(RULE)
    before = bed.only("active")
    bed.remember(NOT_TYPED)
    assert bed.only("active") == before


@pytest.mark.parametrize("mode", ["interactive", "auto", "silent"])
@pytest.mark.parametrize("said_at", ["2026-03-01T09:00:00Z", "2026-03-01T11:00:00Z"])
def test_relayed_text_that_waits_keeps_no_typed_rule_from_being_saved(tmp_path: Path, mode: str, said_at: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    opposite = "Never use pnpm, always npm."
    bed.remember(replace(NOT_TYPED, statement=opposite, excerpt=opposite, said_at=said_at))
    bed.remember(replace(RULE, said_at="2026-03-01T10:00:00Z"))
    assert RULE.statement in bed.only("active").body


def test_an_agents_proposal_keeps_no_typed_rule_from_being_saved(bed: Bed) -> None:
    AgentProposals(bed.settings).propose("preferences", "Packages", "Never use pnpm, always npm.")
    bed.remember(RULE)
    assert RULE.statement in bed.only("active").body


def test_a_cure_that_a_tool_proves_in_another_project_widens_no_approved_one(bed: Bed) -> None:
    cure = replace(RULE, category="fix", role="tool", typed=False, standing_rule=False, confirmed=False)
    cure = replace(cure, statement="`make` failed; it passed after `make clean`", scope="project", project="shop")
    bed.remember(cure)
    bed.decide_in_note(bed.only("inbox").path, "approve")
    bed.reviewer.apply_notes()
    bed.remember(replace(cure, project="admin", session="s9", records=("r9",)))
    assert bed.only("active").project == "shop"


@pytest.mark.parametrize(("elsewhere", "here"), [("admin", "shop"), (None, "shop"), ("admin", None)])
def test_where_relayed_text_was_said_is_not_where_the_typed_rule_holds(
    bed: Bed, elsewhere: str | None, here: str | None
) -> None:
    bed.remember(replace(NOT_TYPED, scope="project" if elsewhere else "personal", project=elsewhere))
    bed.remember(replace(RULE, scope="project" if here else "personal", project=here))
    saved = bed.only("active")
    assert (saved.project, saved.group) == (here, "personal-projects/shop" if here else "personal-private")


def test_a_rule_in_the_words_of_a_cure_is_saved_as_a_rule(bed: Bed) -> None:
    claim = replace(RULE, category="fix", role="assistant", typed=False, standing_rule=False, confirmed=False)
    bed.remember(replace(claim, session="s8", records=("r8",)))
    bed.remember(RULE)
    saved = bed.only("active")
    assert saved.kind == "preferences"
    bed.remember(replace(claim, session="s9", records=("r9",)))
    assert bed.only("active") == saved


@pytest.mark.parametrize(("confirmed", "followed"), [(True, ["https://example.org/x"]), (False, [])])
def test_a_link_is_followed_only_from_an_idea_that_the_record_says_was_typed(
    bed: Bed, confirmed: bool, followed: list[str]
) -> None:
    text = "Idea: a crawler for recipes, see https://example.org/x"
    bed.remember(replace(RULE, category="idea", statement=text, excerpt=text, standing_rule=False, confirmed=confirmed))
    assert typed_links(bed.only("incubating").body, written_by_agent=False) == followed
