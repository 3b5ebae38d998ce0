"""From a found pattern to a note, and from the note to a decision."""

import json
import subprocess
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from memoryvault.pipelines.adaptation import DEFAULT_TRUSTED
from memoryvault.pipelines.discovery import Pattern
from memoryvault.pipelines.watchlist import DISMISS, PROMOTE, Decision, parts_of
from memoryvault.runtime.errors import EntryNotFound, PathRefused
from memoryvault.services.decision_property import DecisionProblem
from memoryvault.services.discovery.adapting import TRUSTED_NOTE, Adaptation, owners_in
from memoryvault.services.discovery.fetch_child import FetchRequest, FetchResult
from memoryvault.services.discovery.found_patterns import FoundPatterns
from memoryvault.services.discovery.watchlist import CopyRefused, Watchlist
from memoryvault.services.undoing import Selector
from memoryvault.tests.support import forked
from memoryvault.vault.scrubbed import Scrubbed

from .bed import Bed

FOLDER = "personal-private/_skill-watchlist"
DESCRIPTION = "Hook for agents that automates commit messages and the tagging of every release in the workflow."


FACTS = {
    "owner": "anthropics",
    "name": "tool",
    "stars": 900,
    "pushed": "2020-01-01",
    "licence": "MIT",
    "archived": False,
}


def today() -> date:
    return datetime.now().astimezone().date()


def found(bed: Bed, title: str = "commit-hook", description: str = DESCRIPTION, url: str = "") -> Pattern:
    pattern = Pattern(f"{title}-key", url or f"https://github.com/o/{title}", title, description, "source-a")
    FoundPatterns(bed.settings.state.state_db).add([pattern])
    return pattern


def memory(bed: Bed, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.memory(bed.env, *arguments)


def as_json(bed: Bed, *arguments: str) -> Any:
    done = memory(bed, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- adapting ---


def test_a_note_says_what_to_adopt_in_our_words_and_holds_none_of_the_source(bed: Bed) -> None:
    found(bed)
    (adapted,) = bed.adapt()
    assert adapted.path == f"{FOLDER}/source-a/commit-hook.md"
    note = bed.store.read(adapted.path)
    assert (note.status, note.confidence, note.kind) == ("pending", "MEDIUM", "skill-pattern")
    assert "say in your own words what you would do alike" in note.body
    assert "https://github.com/o/commit-hook" in note.body
    assert DESCRIPTION not in note.body
    assert "automates commit messages and" not in note.body


def test_pattern_not_worth_a_note_gets_none_and_is_not_evaluated_again(bed: Bed) -> None:
    found(bed, "editor-helper", "Cursor IDE integration.")

    def fetch(request: FetchRequest) -> FetchResult:
        raise AssertionError("nobody is asked for facts about it")

    (adapted,) = bed.adapt(fetch=fetch)
    assert (adapted.path, bed.files(), bed.adapt()) == (None, {}, [])


def test_facts_of_the_repository_are_asked_for_once_and_put_into_words(bed: Bed) -> None:
    found(bed, "plain-tool", "Automates the workflow", "https://github.com/anthropics/plain-tool")
    asked = []

    def fetch(request: FetchRequest) -> FetchResult:
        asked.append(request.url)
        return FetchResult(facts=FACTS)

    (adapted,) = bed.adapt(fetch=fetch)
    assert asked == [bed.site.url + "/repos/anthropics/plain-tool"]
    assert adapted.path is not None
    note = bed.store.read(adapted.path)
    assert note.extra["trusted_owner"] is True
    for words in ("anthropics is one of your trusted owners", "900 stars", "more than a year ago", "licence MIT"):
        assert words in note.body


def test_a_strangers_best_comes_before_a_trusted_owners_weaker_ones(bed: Bed) -> None:
    found(bed, "plain-tool", "Nothing of note", "https://github.com/anthropics/plain-tool")
    found(bed)
    ranked = Adaptation(bed.settings, bed.store, fetch=None).ranked()
    assert [pattern.title for pattern in ranked] == ["commit-hook", "plain-tool"]


def test_a_repository_with_many_skills_is_looked_up_once(bed: Bed) -> None:
    for number in range(3):
        found(bed, f"hook-{number}", url=f"https://github.com/o/skills/tree/main/skills/hook-{number}")
    asked = []

    def fetch(request: FetchRequest) -> FetchResult:
        asked.append(request.url)
        return FetchResult(facts=FACTS)

    assert len(bed.adapt(fetch=fetch)) == 3
    assert asked == [bed.site.url + "/repos/o/skills"]


def test_two_patterns_of_one_name_have_two_notes(bed: Bed) -> None:
    found(bed)
    FoundPatterns(bed.settings.state.state_db).add(
        [Pattern("other", "https://github.com/p/commit-hook", "commit-hook", DESCRIPTION, "source-a")]
    )
    assert sorted(str(adapted.path) for adapted in bed.adapt()) == [
        f"{FOLDER}/source-a/commit-hook-2.md",
        f"{FOLDER}/source-a/commit-hook.md",
    ]


@pytest.mark.slow
def test_trusted_owners_are_a_note_of_the_user(bed: Bed) -> None:
    found(bed)
    assert as_json(bed, "skills", "adapt")["trusted_sources_seeded"] is True
    assert owners_in(bed.store.read(TRUSTED_NOTE)) == DEFAULT_TRUSTED
    (bed.vault / TRUSTED_NOTE).write_text("# Trusted\n- `Someone`\n- not a name!\n", "utf-8")
    found(bed, "second-hook", url="https://github.com/someone/second-hook")
    result = as_json(bed, "skills", "adapt")
    assert result["trusted_sources_seeded"] is False
    assert [entry["from_trusted_org"] for entry in result["results"]] == [True]


@pytest.mark.slow
def test_the_command_counts_and_keeps_to_its_limit(bed: Bed) -> None:
    for number in range(3):
        found(bed, f"hook-{number}")
    first = as_json(bed, "skills", "adapt", "--limit", "2", "--skip-network")
    assert (first["evaluated_count"], first["written_count"], first["limit_reached"]) == (2, 2, True)
    second = as_json(bed, "skills", "adapt")
    assert (second["evaluated_count"], second["skipped_count"], second["limit_reached"]) == (1, 2, False)
    third = as_json(bed, "skills", "adapt")
    assert (third["evaluated_count"], third["written_count"], third["skipped_count"]) == (0, 0, 3)


def test_undo_takes_a_note_back_that_the_program_wrote(bed: Bed) -> None:
    found(bed)
    bed.adapt()
    bed.undo.carry_out(Selector(last=True))
    assert bed.notes() == []


# --- the guard ---


def put(bed: Bed, source: str, pattern: str, body: str = "Our words.", made_from: str = "") -> str:
    text = Scrubbed(body)
    return bed.watchlist.propose(source, pattern, {}, Scrubbed("t"), text, made_from=[made_from], run="r")


@pytest.mark.parametrize("name", ["", "..", "../x", "_archive", "a/b", "a\\b", "A", "a.md", "a\n", "ä", "x" * 81])
def test_the_writer_writes_nowhere_else(bed: Bed, name: str) -> None:
    for source, pattern in ((name, "x"), ("x", name)):
        with pytest.raises(PathRefused):
            put(bed, source, pattern)
    assert bed.files() == {}


def test_a_link_inside_the_vault_does_not_lead_the_writer_to_the_rules(bed: Bed) -> None:
    rules = bed.vault / "personal-private" / "preferences"
    rules.mkdir(parents=True)
    (bed.vault / FOLDER).mkdir(parents=True)
    (bed.vault / FOLDER / "source-a").symlink_to(rules)
    with pytest.raises(PathRefused, match="symbolic link"):
        put(bed, "source-a", "x")
    assert list(rules.iterdir()) == []


def test_the_writer_refuses_what_its_source_says(bed: Bed) -> None:
    with pytest.raises(CopyRefused):
        put(bed, "a", "x", f"It says: {DESCRIPTION}", DESCRIPTION)
    assert bed.files() == {}


# --- decisions ---


@pytest.fixture
def three(bed: Bed) -> Bed:
    for name, confidence in (("entry-one", "HIGH"), ("entry-two", "MEDIUM"), ("entry-three", "HIGH")):
        fields = {"status": "pending", "confidence": Scrubbed(confidence), "identity": Scrubbed(f"x.org/{name} k")}
        bed.watchlist.propose("source-a", name, fields, Scrubbed(name), Scrubbed("Text."), made_from=[], run="r")
    return bed


@pytest.mark.slow
def test_list_has_the_surest_first_and_promoting_annotates(three: Bed) -> None:
    listed = as_json(three, "skills", "watchlist")["entries"]
    assert [entry["slug"] for entry in listed] == ["entry-one", "entry-three", "entry-two"]
    assert as_json(three, "skills", "watchlist", "promote", "source-a", "entry-one")["action"] == "promoted"
    note = three.store.read(f"{FOLDER}/source-a/entry-one.md")
    assert (note.status, note.extra["promoted"]) == ("active", today().isoformat())
    assert as_json(three, "skills", "watchlist")["count"] == 2
    assert [path for path in three.files() if not path.startswith(FOLDER)] == [], "nothing is installed anywhere"


@pytest.mark.slow
def test_dismissing_archives_and_is_remembered_without_the_state(three: Bed) -> None:
    done = as_json(three, "skills", "watchlist", "dismiss", "source-a/entry-two", "--reason", "we\nhave one")
    assert done["action"] == "dismissed"
    note = three.store.read(f"{FOLDER}/_archive/source-a/entry-two.md")
    assert (note.status, note.extra["reason"]) == ("dismissed", "we have one")
    assert not (three.vault / FOLDER / "source-a" / "entry-two.md").exists()


@pytest.mark.parametrize(
    "url", ["", "https://a.example/commit-hook?api_key=abcd1234efgh5678"], ids=["", "with a secret"]
)
@pytest.mark.parametrize("status", ["pending", "dismissed"])
def test_a_pattern_with_a_note_is_never_proposed_again_even_without_the_state(bed: Bed, url: str, status: str) -> None:
    pattern = found(bed, url=url)
    (adapted,) = bed.adapt()
    assert adapted.path is not None
    assert "abcd1234efgh5678" not in "".join(bed.files().values())
    if status == "dismissed":
        bed.watchlist.decide(adapted.path, DISMISS, run="r")
    bed.delete_state()
    FoundPatterns(bed.settings.state.state_db).add([pattern])
    assert bed.adapt() == []
    assert [note.status for note in bed.notes()] == [status]


@pytest.mark.slow
def test_deferring_hides_until_the_day(three: Bed) -> None:
    until = today() + timedelta(days=10)
    done = as_json(three, "skills", "watchlist", "defer", "source-a", "entry-three", "--until", until.isoformat())
    assert done["action"] == "deferred"
    assert three.store.read(done["path"]).extra["deferred_until"] == until.isoformat()
    watchlist = three.watchlist
    assert "entry-three" not in [note.slug for note in watchlist.waiting(until - timedelta(days=1))]
    assert "entry-three" in [note.slug for note in watchlist.waiting(until)]


def test_a_decision_can_be_taken_back(three: Bed) -> None:
    path = f"{FOLDER}/source-a/entry-one.md"
    before = three.files()
    three.watchlist.decide(path, DISMISS, run="r")
    assert three.reviewer.undo_last() is not None
    assert three.files() == before


def test_an_archived_name_is_not_overwritten(three: Bed) -> None:
    path = f"{FOLDER}/source-a/entry-one.md"
    archived = three.vault / FOLDER / "_archive" / "source-a" / "entry-one.md"
    archived.parent.mkdir(parents=True)
    archived.write_text("mine", "utf-8")
    decided = three.watchlist.decide(path, DISMISS, run="r")
    assert decided.path == f"{FOLDER}/_archive/source-a/entry-one-2.md"
    assert archived.read_text("utf-8") == "mine"


def test_a_pattern_that_the_user_renamed_in_obsidian_is_decided_like_the_others(three: Bed) -> None:
    folder = three.vault / FOLDER / "source-a"
    (folder / "entry-one.md").rename(folder / "Retry? (v2).md")
    path = f"{FOLDER}/source-a/Retry? (v2).md"
    assert parts_of(path) == ("source-a", "Retry? (v2)")
    decided = three.watchlist.decide(path, DISMISS, run="r")
    assert decided.path == f"{FOLDER}/_archive/source-a/Retry? (v2).md"
    assert (three.vault / decided.path).exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("promote", "source-a", "nonexistent"), 1, "there is no source-a/nonexistent"),
        (("defer", "source-a", "entry-one", "--until", "not-a-date"), 1, "YYYY-MM-DD"),
        (("promote",), 2, "which one?"),
        (("promote", "..", "x"), 1, "watchlist path"),
        (
            ("promote", "source-a", "entry-one", "--until", "2026-01-01"),
            2,
            "belongs to `memory skills watchlist defer`",
        ),
        (("review",), 0, "not a TTY: 3 skipped"),
    ],
)
@pytest.mark.slow
def test_the_command_says_what_it_can_not_do(three: Bed, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = memory(three, "skills", "watchlist", *arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1)
    assert said in done.stderr
    assert len(three.watchlist.waiting(today())) == 3


@pytest.mark.parametrize(
    ("written", "status", "place"),
    [
        ("promote", "active", "source-a/entry-one.md"),
        ("dismiss", "dismissed", "_archive/source-a/entry-one.md"),
        ("[dismiss]", "dismissed", "_archive/source-a/entry-one.md"),
        ("defer 2099-01-01", "pending", "source-a/entry-one.md"),
    ],
)
def test_a_decision_in_the_note_is_carried_out(three: Bed, written: str, status: str, place: str) -> None:
    three.decide_in_note(f"{FOLDER}/source-a/entry-one.md", written)
    three.watchlist.apply_notes()
    note = three.store.read(f"{FOLDER}/{place}")
    assert (note.status, "decision" in note.extra) == (status, False)
    assert three.watchlist.apply_notes() == []


def test_a_decision_that_makes_no_sense_is_told_in_the_note(three: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryvault.services.decision_property.SETTLED_SECONDS", 0.0)
    path = f"{FOLDER}/source-a/entry-one.md"
    three.decide_in_note(path, "hmm")
    (result,) = three.watchlist.apply_notes()
    assert isinstance(result, DecisionProblem)
    assert "decision_error: " in three.files()[path]


@pytest.mark.slow
def test_the_worker_carries_out_what_stands_in_notes(three: Bed) -> None:
    three.decide_in_note(f"{FOLDER}/source-a/entry-two.md", "dismiss")
    assert memory(three, "service", "worker", "--until-idle").returncode == 0
    assert three.store.exists(f"{FOLDER}/_archive/source-a/entry-two.md")


@pytest.mark.parametrize("decision", [PROMOTE, DISMISS, Decision("deferred", date(2099, 1, 1))])
def test_no_decision_reaches_another_folder(bed: Bed, decision: Decision) -> None:
    path = "personal-private/preferences/rule.md"
    bed.store.create(path, {"kind": "preferences"}, None, Scrubbed("My rule."))
    before = bed.files()
    with pytest.raises(PathRefused):
        Watchlist(bed.settings).decide(path, decision, run="r")
    with pytest.raises(EntryNotFound):
        bed.watchlist.decide(f"{FOLDER}/a/b.md", decision, run="r")
    assert bed.files() == before
