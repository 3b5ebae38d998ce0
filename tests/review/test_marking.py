"""Only a person marks an entry for every session or as a guard; agents cannot."""

import pytest

from memoryvault.cli import review_dialogue
from memoryvault.cli.main import main
from memoryvault.hooks.install import actions_installed, settings_file_of
from memoryvault.hooks.wiring import install_for
from memoryvault.pipelines.review import Approve
from memoryvault.runtime.errors import EditConflict, EntryInvalid
from memoryvault.services.entry_decisions import mark_always, mark_guard
from memoryvault.services.entry_names import find_entry, resolve_entry
from memoryvault.tests.support.command import Command

from .support import CHOICE, RULE, TABS, Bed, tabs

LOADED = "personal-private/_always-load/tabs.md"


def test_off_takes_a_note_out_of_the_folder_by_which_it_was_given(bed: Bed) -> None:
    tabs(bed, LOADED)
    done = mark_always(bed.reviewer, LOADED, False)
    assert done.path == TABS
    assert not bed.store.read(TABS).always_load
    assert not bed.store.exists(LOADED)


def test_a_guard_is_set_changed_and_lifted(bed: Bed) -> None:
    tabs(bed)
    before = bed.files()
    for mark in ("remind", "deny", ""):
        mark_guard(bed.reviewer, TABS, mark)
        assert bed.store.read(TABS).guard == mark
    assert bed.files() == before
    with pytest.raises(EntryInvalid):
        mark_guard(bed.reviewer, TABS, "forbid")


def test_waiting_or_edited_note_is_not_marked(bed: Bed) -> None:
    waits = bed.note("personal-private/_review/tabs.md", "Indent.", kind="preferences", status="pending")
    with pytest.raises(EntryInvalid, match="--decide tabs=always"):
        mark_always(bed.reviewer, waits, True)
    tabs(bed)
    with pytest.raises(EditConflict):
        mark_guard(bed.reviewer, TABS, "deny", "0" * 64)


def test_a_proposal_of_the_same_name_does_not_hide_the_rule_in_force(bed: Bed) -> None:
    tabs(bed)
    bed.note("personal-private/_review/tabs.md", "Indent as you like.", kind="preferences", status="pending")
    assert find_entry(bed.store, "tabs").path == TABS
    assert resolve_entry(bed.store, "tabs") == TABS


@pytest.mark.parametrize(
    ("decision", "always", "mark"),
    [(Approve(), False, ""), (Approve(always=True), True, ""), (Approve(guard="remind"), False, "remind")],
)
def test_approving_marks_at_once_and_proposals_bring_none(bed: Bed, decision: Approve, always: bool, mark: str) -> None:
    marks = {"guard": "deny", "always_load": True}
    waits = bed.note("personal-private/_review/tabs.md", "Indent.", kind="preferences", status="pending", **marks)
    entry = bed.store.read(bed.reviewer.decide(waits, decision, run="r").path)
    assert (entry.status, entry.always_load, entry.guard) == ("active", always, mark)


def test_the_users_mark_stays_on_a_rule_whose_text_is_replaced(bed: Bed) -> None:
    bed.remember(RULE)
    old = bed.only("active").path
    mark_guard(bed.reviewer, old, "deny")
    waits = bed.note(
        "personal-private/_review/npm.md", "Use npm.", kind="preferences", status="pending", supersedes=f"[[{old}]]"
    )
    done = bed.reviewer.decide(waits, Approve(), run="r")
    assert bed.store.read(done.path).guard == "deny"


def test_always_is_a_property_that_the_last_decision_takes_back(ask: Bed, memory: Command) -> None:
    tabs(ask)
    before = ask.files()
    assert memory("always", "tabs").out == f"given to every session: {TABS}\n"
    assert ask.store.read(TABS).always_load
    assert "already" in memory("always", "tabs").out
    memory("review", "--undo")
    assert ask.files() == before
    memory("always", "tabs")
    memory("always", "--off", "tabs")
    assert not ask.store.read(TABS).always_load
    memory("save", "preferences", "short", "--always", "--body", "Keep answers short.")
    assert ask.store.read("personal-private/_always-load/short.md").always_load


@pytest.mark.parametrize(
    "words",
    [
        "always tabs", "always --off tabs", "save preferences x --always --body Short.", "review --decide {}=always",
        "review --decide {}=remind", "guard tabs deny", "guard tabs off", "guard --on", "guard --off",
    ],
)  # fmt: skip
def test_an_agent_sets_no_mark_and_wires_no_guard(
    ask: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    ask.remember(CHOICE)
    tabs(ask, guard="ask")
    before = ask.files()
    monkeypatch.setenv("CLAUDECODE", "1")
    assert main(words.format(ask.only("pending").slug).split()) in (1, 2)
    assert "user" in capsys.readouterr().err
    assert ask.files() == before
    assert not actions_installed(ask.settings)


def test_a_note_of_the_agents_own_gets_no_mark_and_loses_one(ask: Bed, memory: Command) -> None:
    for name in ("deploy", "MEMORY"):
        ask.note(f"personal-projects/shop/memory/{name}.md", "Tag, then run git push.")
        for words in (("always", name), ("guard", name, "deny")):
            assert "it is a note of the agent's own" in memory(*words, code=1).err
    marked = ask.note("personal-projects/shop/memory/old.md", "Tag, then push.", always_load=True)
    memory("always", "--off", "old")
    assert not ask.store.read(marked).always_load


def test_without_a_name_what_every_session_is_given_is_listed(ask: Bed, memory: Command) -> None:
    tabs(ask)
    assert "no entry is given to every session" in memory("always").out
    memory("always", "tabs")
    assert memory("always").out.splitlines()[1].strip() == TABS
    memory("always", "--off", code=2)


def test_an_agent_may_see_what_every_session_gets(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    tabs(ask)
    memory("always", "tabs")
    before = ask.files()
    monkeypatch.setenv("CLAUDECODE", "1")
    assert TABS in memory("always").out
    memory("always", "--off", code=2)
    for words in (["--off", "tabs"], ["no NAME"]):
        assert "(an agent may run it with no NAME)" in memory("always", *words, code=2).err
    assert ask.files() == before


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[str]:
    """Somebody at a terminal, who answers; what is asked."""
    asked: list[str] = []
    left = iter(lines)

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(left)

    monkeypatch.setattr("memoryvault.cli.terminal._read_beside", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    return asked


def test_a_guard_is_set_and_the_hooks_offered_once(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    ask.note("personal-private/preferences/push.md", "Never push to main.", kind="preferences")
    install_for("claude", ask.settings)
    asked = answers(monkeypatch, "n")
    memory("guard", "push", "remind")
    assert ask.store.read("personal-private/preferences/push.md").guard == "remind"
    assert len(asked) == 1
    assert not actions_installed(ask.settings)
    assert "memory guard --on" in memory("guard", "push", "deny").err
    assert len(asked) == 1
    assert "1 (1 deny)" in memory("guard").out


def test_agreeing_wires_them_and_off_takes_them_out(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    ask.note("personal-private/preferences/push.md", "Never push to main.", kind="preferences")
    install_for("claude", ask.settings)
    before = settings_file_of(ask.settings).read_bytes()
    answers(monkeypatch, "y")
    memory("guard", "push", "ask")
    assert actions_installed(ask.settings)
    memory("guard", "--off")
    assert settings_file_of(ask.settings).read_bytes() == before
    memory("guard", "--on")
    assert actions_installed(ask.settings)


def test_the_first_approved_rule_about_a_call_asks(ask: Bed, monkeypatch: pytest.MonkeyPatch, memory: Command) -> None:
    ask.note("personal-private/_review/push.md", "Never push to main.", kind="preferences", status="pending")
    ask.note("personal-private/_review/tone.md", "Be brief.", kind="preferences", status="pending")
    install_for("claude", ask.settings)
    monkeypatch.setenv("MEMORY_RESEARCH_NETWORK", "false")
    asked = answers(monkeypatch, "y")
    keys = iter("auq" + "mq")
    monkeypatch.setattr(review_dialogue, "read_key", lambda _: next(keys))
    memory("review")
    assert not asked, "it was taken back"
    memory("review")
    assert len(asked) == 1
    assert "60 to 80 ms" in asked[0]
    assert actions_installed(ask.settings)
    assert ask.store.read("personal-private/preferences/push.md").guard == "remind"


def test_a_rule_that_names_nothing_to_look_for_is_told(ask: Bed, memory: Command) -> None:
    ask.note("personal-private/preferences/kind.md", "Be kind.", kind="preferences")
    assert "triggers:" in memory("guard", "kind", "deny").err


@pytest.mark.parametrize("words", [["guard", "tabs"], ["guard", "tabs", "--on"], ["guard", "nobody", "deny"]])
def test_a_bad_call_says_what_to_do(ask: Bed, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    tabs(ask)
    assert main(words) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1
