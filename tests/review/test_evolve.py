"""Evolving is one act: after a kill at any step, the next run restores one of the two whole states."""

import json
import os
import re
from pathlib import Path
from unicodedata import normalize

import pytest

from memoryvault.cli.main import main
from memoryvault.hooks.entryfile import read_entry_file
from memoryvault.pipelines.review import Approve, Supersede
from memoryvault.runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound
from memoryvault.services.agent_proposals import AgentProposals, ProposalFields
from memoryvault.services.entry_names import resolve_entry
from memoryvault.services.evolving import evolve
from memoryvault.services.journal import Change, Journal
from memoryvault.tests.support.files import put
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.entry import Source
from memoryvault.vault.render import render_always_load, render_block
from memoryvault.vault.scrubbed import Scrubbed
from memoryvault.vault.store import MAX_ENTRY_BYTES

from .support import Bed

pytestmark = pytest.mark.slow

OLD = "personal-private/preferences/deploy-day.md"
WAITS = "personal-private/_inbox/deploy-day.md"
EVOLVE = """
from memoryvault.services.evolving import evolve
from memoryvault.vault.scrubbed import Scrubbed
evolve(store, journal, {old!r}, Scrubbed("We deploy on Mondays."), Scrubbed("new train"))
"""
KILL_POINTS = [
    "journal-pending",
    *(f"vault-before-rename@{n}" for n in (1, 2)),
    *(f"journal-applied@{n}" for n in (1, 2)),
    "journal-recorded",
]


@pytest.fixture
def old_note(bed: Bed) -> str:
    return bed.note(OLD, "We deploy on Tuesdays.", kind="preferences", group="personal-private", tags=["release"])


def do_evolve(bed: Bed, body: str = "We deploy on Mondays.") -> str:
    return evolve(bed.store, bed.journal, OLD, Scrubbed(body), Scrubbed("new train"))


@pytest.mark.parametrize("kind", ["preferences", "fix"])
def test_a_prompt_gets_nothing_of_the_old_wording_not_even_its_name(bed: Bed, kind: str) -> None:
    old = f"personal-private/{kind}/ship-on-fridays.md"
    bed.note(old, "# Ship on Fridays\n\nShip on Fridays.", kind=kind, group="personal-private")
    evolve(bed.store, bed.journal, old, Scrubbed("We deploy on Mondays."), Scrubbed("new train"))
    entry = read_entry_file(str(bed.store.vault), old)
    for given in (render_block([entry]), render_always_load([entry], 0)[0]):
        assert "We deploy on Mondays." in given
        assert "ridays" not in given


def test_the_new_entry_stands_in_the_place_of_the_old_one_and_is_taken_back(bed: Bed, old_note: str) -> None:
    bed.edit(OLD, "tags: [release]", "tags: [release] # mine\nmood: good")
    bed.edit(OLD, "created: ", "created: 2020-01-01 #")
    before = bed.files()
    archive = do_evolve(bed)
    assert re.fullmatch(r"personal-private/_archive/personal-private/preferences/deploy-day\.md\.\d{8}\.md", archive)
    now, then = bed.store.read(OLD), bed.store.read(archive)
    assert (now.status, now.supersedes, now.body) == ("active", archive, "We deploy on Mondays.")
    assert now.created == bed.store.today().isoformat(), "not inherited"
    assert "tags: [release] # mine\nmood: good" in bed.files()[OLD], "the user's own fields go on"
    assert (then.status, then.superseded_by, then.superseded_reason) == ("superseded", OLD, "new train")
    assert str(then.superseded_at).endswith("Z")
    assert then.body == "We deploy on Tuesdays."
    assert bed.reviewer.undo_last(path=OLD) is not None
    assert bed.files() == before


def test_evolved_twice_on_one_day_both_are_kept(bed: Bed, old_note: str) -> None:
    first = do_evolve(bed)
    second = do_evolve(bed, "We deploy never.")
    assert second == first.replace(".md", "-2.md").replace("-2.md", ".md", 1)
    assert bed.store.read(first).body == "We deploy on Tuesdays."
    assert bed.store.read(second).body == "We deploy on Mondays."


@pytest.mark.parametrize(
    "text",
    [
        "We deploy on Tuesdays.\n\nEach week.",
        "We deploy on Tuesdays.\r\n\r\nEach week.\n",
        "# Deploy day\n\nWe deploy on Tuesdays.\n\nEach week.",
    ],
)
def test_evolving_to_the_same_text_changes_nothing(bed: Bed, text: str) -> None:
    body = "# Deploy day\n\nWe deploy on Tuesdays.\n\nEach week.\n\n## Evidence\n\n> Tuesdays!\n\nfrom session s1"
    bed.note(OLD, body, kind="preferences", group="personal-private")
    before = bed.files()
    with pytest.raises(EntryExists, match="says that already: nothing was changed"):
        do_evolve(bed, text)
    proposals = AgentProposals(bed.settings, bed.store, bed.journal)
    known = proposals.propose("preferences", "Deploy day", text, ProposalFields(replaces=OLD, reason="x"))
    assert (known.verdict, known.path) == ("known already", OLD)
    assert bed.files() == before


@pytest.mark.parametrize("text", ["# Never on Mondays\n\nWe deploy on Tuesdays.", "We deploy on tuesdays."])
def test_another_heading_or_letter_is_another_text(bed: Bed, text: str) -> None:
    bed.note(OLD, "# Deploy day\n\nWe deploy on Tuesdays.", kind="preferences", group="personal-private")
    assert bed.store.read(do_evolve(bed, text)).superseded_by == OLD


def test_note_of_another_status_becomes_active_by_a_new_text(bed: Bed) -> None:
    bed.note(OLD, "We deploy on Tuesdays.", kind="preferences", group="personal-private", status="resolved")
    do_evolve(bed, "We deploy on Tuesdays.")
    assert bed.store.read(OLD).status == "active"


@pytest.mark.parametrize(("folder", "status"), [("_review", "pending"), ("_inbox", "inbox"), ("_review", "active")])
def test_a_note_that_waits_is_decided_on_instead(bed: Bed, folder: str, status: str) -> None:
    old = f"personal-private/{folder}/deploy-day.md"
    bed.note(old, "We deploy on Tuesdays.", kind="preferences", group="personal-private", status=status)
    before = bed.files()
    with pytest.raises(EntryInvalid, match="waits for your decision: `memory review`"):
        evolve(bed.store, bed.journal, old, Scrubbed("We deploy on Mondays."), Scrubbed("new"))
    assert bed.files() == before


def test_an_idea_stays_in_the_incubator(bed: Bed) -> None:
    old = "personal-private/_idea-incubator/offline-maps/_index.md"
    bed.note(old, "Ship the tiles with the app.", kind="idea", slug="offline-maps", status="incubating")
    evolve(bed.store, bed.journal, old, Scrubbed("Ship the tiles beside the app."), Scrubbed("smaller"))
    now = bed.store.read(old)
    assert (now.status, now.slug) == ("incubating", "offline-maps")


def test_note_that_cannot_be_evolved_is_left_with_a_reason(bed: Bed, old_note: str) -> None:
    archive = do_evolve(bed)
    before = bed.files()
    for old, error in ((archive, EntryInvalid), ("personal-private/preferences/none.md", EntryNotFound)):
        with pytest.raises(error):
            evolve(bed.store, bed.journal, old, Scrubbed("x"), Scrubbed("x"))
    assert bed.files() == before


@pytest.mark.parametrize("name", ["café", "personal-private/preferences/café", "personal-private/preferences/café.md"])
def test_a_note_that_macos_named_is_found_by_the_name_that_is_typed(bed: Bed, name: str) -> None:
    path = normalize("NFD", "personal-private/preferences/café.md")
    bed.note(path, "# Coffee\n\nAt four.", kind="preferences")
    assert resolve_entry(bed.store, normalize("NFC", name)) == path


def test_a_note_that_cannot_be_read_hides_no_other_of_its_name(bed: Bed, old_note: str) -> None:
    put(bed.vault / "personal-projects/shop/notes/deploy-day.md", b"x" * (MAX_ENTRY_BYTES + 1))
    assert resolve_entry(bed.store, "deploy-day") == OLD
    (bed.vault / OLD).unlink()
    with pytest.raises(EntryInvalid, match="larger than"):
        resolve_entry(bed.store, "deploy-day")


@pytest.mark.parametrize("point", KILL_POINTS)
def test_killed_at_any_step_one_of_two_whole_states_remains(bed: Bed, old_note: str, point: str) -> None:
    whole = bed.files()
    assert bed.run_python(EVOLVE.format(old=OLD), point) == -9
    between = bed.files()
    assert any("Tuesdays" in text for text in between.values()), "what held can be read at any time"
    bed.journal.recover()
    bed.journal.recover()
    after = bed.files()
    if after != whole:
        active = [entry for entry in bed.entries() if entry.status == "active"]
        superseded = [entry for entry in bed.entries() if entry.status == "superseded"]
        assert [entry.body for entry in active] == ["We deploy on Mondays."]
        assert [entry.body for entry in superseded] == ["We deploy on Tuesdays."]
        assert active[0].supersedes == superseded[0].path
        assert superseded[0].superseded_by == active[0].path
    assert not bed.journal.is_interrupted
    assert not list(bed.vault.rglob(".memoryvault-*.tmp")) or point.startswith("vault")


def test_a_person_who_edits_after_the_crash_keeps_the_edit_and_the_old_state(bed: Bed, old_note: str) -> None:
    assert bed.run_python(EVOLVE.format(old=OLD), "journal-applied") == -9
    bed.edit(OLD, "Tuesdays", "Wednesdays")
    bed.journal.recover()
    assert list(bed.files()) == [OLD], "the archive copy of a change that did not happen goes"
    assert "Wednesdays" in bed.files()[OLD]


def test_the_next_evolve_first_ends_the_one_that_was_killed(bed: Bed, old_note: str) -> None:
    assert bed.run_python(EVOLVE.format(old=OLD), "journal-applied") == -9
    do_evolve(bed, "We deploy hourly.")
    assert bed.store.read(OLD).body == "We deploy hourly."
    assert len(bed.journal.acts()) == 2, "the first of them can be taken back, too"


def test_a_reading_command_ends_what_was_interrupted(bed: Bed, old_note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bed.run_python(EVOLVE.format(old=OLD), "journal-applied") == -9
    bed.enter(monkeypatch)
    assert main(["show", OLD]) == 0
    assert not bed.journal.is_interrupted
    assert bed.store.read(OLD).body == "We deploy on Mondays."
    assert len(bed.files()) == 2


def test_a_change_of_a_file_that_is_another_now_changes_nothing(bed: Bed, old_note: str) -> None:
    text = bed.files()[OLD]
    bed.edit(OLD, "Tuesdays", "Wednesdays")
    before = bed.files()
    changes = [Change("personal-private/fix/new.md", None, Scrubbed("new")), Change(OLD, text, Scrubbed("other"))]
    with pytest.raises(EditConflict):
        bed.journal.commit(changes, run="r", actor="review", what="x")
    with pytest.raises(EntryExists):
        bed.journal.commit([Change(OLD, None, Scrubbed("x"))], run="r", actor="review", what="x")
    assert bed.files() == before
    assert bed.journal.acts() == []


def test_bytes_that_are_no_text_and_foreign_line_ends_survive(bed: Bed) -> None:
    put(bed.vault / OLD, b"---\r\nkind: fix\r\n---\r\n\r\nold \xff\xfe text\r\n")
    archive = do_evolve(bed)
    archived = (bed.vault / archive).read_bytes()
    assert b"old \xff\xfe text\r\n" in archived
    assert b"kind: fix\r\n" in archived


def test_a_journal_that_was_cut_short_or_damaged_is_read_as_far_as_it_goes(bed: Bed, old_note: str) -> None:
    do_evolve(bed)
    file = bed.journal.files[-1]
    with file.open("ab") as out:
        out.write(b'{"v": 1, "id": "cut')
    do_evolve(bed, "Once more.")
    assert [act.actor for act in bed.journal.acts()] == ["review", "review"]
    (file.parent / "pending.json").write_bytes(b"\x00nothing")
    assert not bed.journal.recover()


def test_pending_files_are_private(bed: Bed, old_note: str) -> None:
    do_evolve(bed)
    before = os.umask(0o022)
    try:
        bed.journal._note_step({"id": "evolve-1"}, OLD)
    finally:
        os.umask(before)
    kept = {path.name: path.stat().st_mode & 0o777 for path in bed.journal.files[-1].parent.iterdir()}
    assert "pending.steps" in kept
    assert set(kept.values()) == {0o600}


def test_the_journal_does_not_grow_for_ever(bed: Bed) -> None:
    journal = Journal(bed.settings.state, bed.store, max_bytes=2000)
    for number in range(30):
        path = f"personal-private/fix/note-{number}.md"
        journal.commit([Change(path, None, Scrubbed("x" * 100))], run="r", actor="triage", what="x")
    assert sum(file.stat().st_size for file in journal.files) < 6000
    assert journal.acts()[-1].changes[0].path == "personal-private/fix/note-29.md"


def test_the_command_prints_both_paths_and_both_are_indexed(sandbox: Sandbox) -> None:
    sandbox.memory("save", "preferences", "deploy-day", "--body", "We deploy on Tuesdays.")
    sandbox.memory("service", "worker", "--until-idle")
    printed = sandbox.memory("evolve", OLD, "--reason", "new train", stdin="We deploy on Mondays.").strip()
    new, archive = printed.split("\t")
    assert (Path(new), Path(archive).is_file()) == (sandbox.vault / OLD, True)
    sandbox.memory("service", "worker", "--until-idle")
    hits = sandbox.json("recall", "which day do we deploy")["hits"]
    assert [hit["path"] for hit in hits] == [OLD], "only what holds"
    named = sandbox.json("recall", "which day do we deploy", "--filter", "status=superseded")["hits"]
    assert [str(sandbox.vault / hit["path"]) for hit in named] == [archive]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("deploy-day", "--reason", ""), 2),
        (("deploy-day",), 2),
        (("deploy-day", "--reason", "x", "--body", "  "), 2),
        (("deploy-day", "--reason", "x", "--body", "We deploy on Tuesdays."), 1),
        (("no-such-entry", "--body", "x"), 1),
    ],
)
def test_errors_are_one_line(sandbox: Sandbox, arguments: tuple[str, ...], code: int) -> None:
    sandbox.memory("save", "preferences", "deploy-day", "--body", "We deploy on Tuesdays.")
    sandbox.refused("evolve", *arguments, stdin="text", code=code)
    assert len(list(sandbox.vault.rglob("*.md"))) == 1


def test_a_secret_does_not_get_in_by_evolving(sandbox: Sandbox) -> None:
    sandbox.memory("save", "reference", "key", "--body", "none yet")
    token = "ghp_" + "b" * 36
    done = sandbox.run("evolve", "key", "--reason", f"token {token}", "--body", f"it is {token}", "--json")
    assert json.loads(done.stdout)["path"].endswith("key.md")
    assert not any(token in file.read_text("utf-8") for file in sandbox.vault.rglob("*.md"))


def propose_evolved(bed: Bed, old: str, text: str) -> str:
    return AgentProposals(bed.settings, bed.store).propose_evolved(old, text, "new train").path


def test_a_secret_does_not_get_in_as_an_agents_tag_or_text(bed: Bed) -> None:
    token = "ghp_" + "b1c2d3e4f5g6" * 3
    AgentProposals(bed.settings, bed.store).propose(
        "convention", "Ship day", f"We deploy with {token}.", ProposalFields(tags=["deploy", token])
    )
    assert not any("b1c2d3e4f5g6" in text.lower() for text in bed.files().values())
    assert any("deploy" in text for text in bed.files().values())


@pytest.mark.parametrize("old", ["team/convention/deploy.md", "team/Our rules/Deploy day.md"])
def test_entry_evolved_by_an_agent_keeps_place_and_user_fields(bed: Bed, old: str) -> None:
    file = bed.vault / old
    file.parent.mkdir(parents=True)
    header = (
        "kind: convention\nstatus: active\naliases: [ship day] # mine\nalways_load: true\npriority: high\nmood: good\n"
    )
    file.write_text(f"---\n{header}tags: [Release Notes]\n---\n\n# We deploy on Tuesdays\n\nAlways.\n", "utf-8")
    proposal = propose_evolved(bed, old, "We deploy on Mondays.")
    before = bed.files()
    bed.reviewer.decide(proposal, Approve(), run="r")
    now = bed.only("active")
    assert now.path == old
    assert now.name == "We deploy on Mondays", "the title does not say the opposite"
    assert (now.always_load, now.priority, now.aliases, now.extra["mood"]) == (True, "high", ("ship day",), "good")
    assert (now.tags, now.kind, now.written_by_agent) == (("Release Notes",), "convention", True)
    assert "aliases: [ship day] # mine\nalways_load: true\npriority: high\nmood: good\n" in bed.files()[old]
    archived = bed.only("superseded")
    assert (now.supersedes, archived.superseded_by) == (archived.path, old)
    bed.reviewer.undo_last()
    assert bed.files() == before


def test_properties_that_the_user_gave_the_new_text_go_along_to_the_place_of_the_old(bed: Bed, old_note: str) -> None:
    bed.edit(OLD, "kind: ", "mood: good\nkind: ")
    proposal = propose_evolved(bed, OLD, "We deploy on Mondays.")
    own = "aliases: [train day] # mine\nchecked:\n  - by Ann\n"
    bed.edit(proposal, "kind: ", f"{own}mood: bad\nDecision: later\ndecision_error: none\nkind: ")
    bed.reviewer.decide(proposal, Approve(), run="r")
    text = bed.files()[OLD]
    assert own in text
    assert "mood: good" in text
    assert not any(word in text for word in ("bad", "ecision", "later"))


def test_a_reversal_that_takes_the_place_of_an_always_load_entry_keeps_the_users_own_fields(bed: Bed) -> None:
    old = bed.note("personal-private/_always-load/packages.md", "Use npm.", kind="preferences", always_load=True)
    bed.edit(old, "kind: ", "mood: good\npriority: high\nkind: ")
    bed.note(WAITS, "Use pnpm.", kind="preferences", status="inbox", source=[Source("claude", "s1", ("r1",))])
    bed.reviewer.decide(WAITS, Supersede(old), run="r")
    now = bed.only("active")
    assert (now.path, now.body, now.priority, now.extra["mood"]) == (old, "Use pnpm.", "high", "good")
    assert now.sources == (Source("claude", "s1", ("r1",)),)


def test_proposal_of_an_agent_that_supersedes_goes_to_its_own_place(bed: Bed, old_note: str) -> None:
    saved = AgentProposals(bed.settings, bed.store).propose("preferences", "Deploy train", "We deploy on Mondays.")
    done = bed.reviewer.decide(saved.path, Supersede(OLD), run="r")
    assert done.path == "personal-private/preferences/deploy-train.md"
