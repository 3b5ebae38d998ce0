"""What a session starts with."""

import json
import os
import time
from pathlib import Path

import pytest

from memoryvault.hooks.injected import read_injected
from memoryvault.hooks.session_start import Opening, build_opening
from memoryvault.runtime import hooklog
from memoryvault.runtime.settings import load_settings
from memoryvault.services.health_report import health_report
from memoryvault.vault.marker import Marker, create_marker, mark_reflected, marker_path

from .support import SESSION, Sandbox, index, indexed, stuck_in

pytestmark = pytest.mark.hurried

TIME_IS_UP = "time budget exceeded"


def start(sandbox: Sandbox, **fields: object) -> tuple[str, str]:
    done = sandbox.run("SessionStart", sandbox.payload(**{"source": "startup", **fields}))
    return done.stdout, done.stderr


def memory_index(sandbox: Sandbox) -> Path:
    """Of the project's own notes."""
    file = sandbox.vault / "personal-projects" / "my-shop" / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def test_always_load_entries_are_printed_and_counted(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/pref-a.md", "First always-load body.")
    sandbox.entry("team/_always-load/pref-b.md", "Second always-load body.", kind="workflow")
    sandbox.entry("personal-private/_always-load/old.md", "Should be filtered.", status="superseded")
    sandbox.entry("personal-private/_always-load/.hidden.md", "Should be filtered.")
    sandbox.entry("personal-private/preferences/other.md", "Not always.")
    stdout, stderr = start(sandbox)
    assert stdout.startswith("Standing rules and notes of the user, for every session:\n- ")
    assert "First always-load body." in stdout
    assert "Second always-load body." in stdout
    assert "filtered" not in stdout
    assert "Not always." not in stdout
    assert "Loaded 2 MemoryVault always-load entries\n" in stderr


def test_no_copy_link_or_pipe_among_them_is_loaded(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/pref.md", "The rule as it is.")
    for copy in ("pref (Conflicted copy desk 202601011010)", "pref_conflict-20260101-101010"):
        sandbox.entry(f"personal-private/_always-load/{copy}.md", "The rule of a copy.")
    (sandbox.root / "outside.md").write_text("The rule from outside.")
    (sandbox.vault / "personal-private/_always-load/link.md").symlink_to(sandbox.root / "outside.md")
    os.mkfifo(sandbox.vault / "personal-private/_always-load/pipe.md")
    stdout, stderr = start(sandbox)
    assert "The rule as it is." in stdout
    assert "of a copy" not in stdout + stderr
    assert "from outside" not in stdout
    assert "Loaded 1 " in stderr


def test_only_this_projects_own_entries_are_added(sandbox: Sandbox) -> None:
    for project in ("my-shop", "other"):
        sandbox.entry(f"personal-projects/{project}/_always-load/rule.md", f"Rule of {project}.")
        sandbox.entry(f"personal-private/_always-load/{project}.md", f"Note on {project}.", project=project)
    stdout, stderr = start(sandbox)
    assert "Rule of my-shop." in stdout
    assert "Note on my-shop." in stdout
    assert "other" not in stdout
    assert "Loaded 2 " in stderr


def test_a_rule_by_its_flag_or_in_a_subfolder_is_loaded_once_it_is_indexed(sandbox: Sandbox) -> None:
    paths = {
        "personal-private/preferences/flagged.md": {"always_load": "true"},
        "personal-private/_always-load/office/deeper.md": {},
        "personal-private/_always-load/_style.md": {},
        "_always-load/topmost.md": {},
        "team/shop/_always-load/of-a-group.md": {"always_load": "true"},
        "personal-private/_always-load/as-before.md": {},
    }
    others = {
        "personal-private/fix/not-flagged.md": {"always_load": "false", "kind": "fix"},
        "personal-private/_review/waits.md": {"always_load": "true", "status": "pending"},
        "personal-private/_archive/archived.md": {"always_load": "true"},
        "personal-projects/other/fix/foreign.md": {"always_load": "true"},
        "personal-projects/my-shop/memory/topic.md": {"always_load": "true"},
    }
    for path, header in (paths | others).items():
        sandbox.entry(path, f"Body of {path}.", **{"kind": "", **header})
    unflagged = sandbox.entry("personal-private/preferences/unflagged.md", "Unflagged since.", always_load="true")
    index(sandbox, *paths, *others, "personal-private/preferences/unflagged.md")
    unflagged.write_text(unflagged.read_text().replace("always_load: true", "always_load: false"))
    stdout, stderr = start(sandbox)
    assert {path for path in paths | others if f"Body of {path}." in stdout} == set(paths)
    assert "Unflagged since." not in stdout
    assert f"Loaded {len(paths)} " in stderr
    assert read_injected(sandbox.state.markers, SESSION) == set(paths)


@pytest.mark.parametrize("damage", ["no database at all", ""])
def test_the_rules_in_their_folder_are_loaded_without_a_sound_index(sandbox: Sandbox, damage: str) -> None:
    sandbox.entry("personal-private/_always-load/rule.md", "The rule.")
    sandbox.state.ensure()
    Path(sandbox.state.index_db).write_text(damage)
    stdout, stderr = start(sandbox)
    assert "The rule." in stdout
    assert "Loaded 1 " in stderr


def test_what_finds_no_room_is_not_printed_and_shorter_ones_are(sandbox: Sandbox) -> None:
    sandbox.entry("personal/_always-load/a-large.md", "x " * 50)
    for name, priority in (("d", "normal"), ("b", "normal"), ("e", "high"), ("c", "")):
        sandbox.entry(f"personal/_always-load/{name}-small.md", f"{name} " * 10, priority=priority)
    sandbox.extra_env["MEMORY_RECALL_CORE_WORDS"] = "40"
    stdout, stderr = start(sandbox)
    assert [line[:3] for line in stdout.splitlines()[1:]] == ["- e", "- b", "- c", "- d"], "the same in each session"
    assert "Loaded 4 " in stderr


def test_the_users_own_habits_come_first_and_bans_before_the_rest(sandbox: Sandbox) -> None:
    sandbox.entry("personal-projects/my-shop/_always-load/of-shop.md", "Never edit the generated client.")
    sandbox.entry("personal-private/_always-load/a-style.md", "Write British English.", occurrences="2")
    sandbox.entry("personal-private/_always-load/b-often.md", "Keep answers short.", occurrences="9")
    sandbox.entry("personal-private/_always-load/c-ban.md", "# Pushing\n\nDon't push to main.")
    stdout, _ = start(sandbox)
    places = [stdout.index(habit) for habit in ("Don't push", "Keep answers", "Write British", "Never edit")]
    assert places == sorted(places)


def test_the_core_is_not_lost_to_the_hosts_limit_beside_a_long_index(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/rule.md", "Keep answers short. " * 100)
    lines = (f"- [T{n}](t{n}.md) — a topic with a long description {n}\n" for n in range(300))
    memory_index(sandbox).write_text("".join(lines))
    stdout, _ = start(sandbox)
    assert "Keep answers short." in stdout
    assert "topic with a long description 5" in stdout
    assert "(truncated: " in stdout
    assert 8_000 < len(stdout) <= 10_000


def other_statements(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_always-load/habit.md", "Keep answers short.")
    statements = {
        "personal-projects/my-shop/preferences/ledger.md": ("Amounts are integers of cents.", "preferences"),
        "personal-projects/my-shop/fact/ships.md": ("We ship on Tuesdays.", "fact"),
        "personal-private/preferences/fish.md": ("I use fish.", "preferences"),
        "personal-projects/other/preferences/foreign.md": ("Other shops use floats.", "preferences"),
        "personal-projects/my-shop/fix/upload.md": ("Uploads fail behind the proxy.", "fix"),
        "personal-projects/my-shop/fact/long.md": ("The history of the shop. " * 20, "fact"),
        "personal-projects/my-shop/_inbox/guess.md": ("Guessed and not confirmed.", "fact"),
    }
    for path, (text, kind) in statements.items():
        sandbox.entry(path, text, kind=kind, occurrences="2" if "ledger" in path else "1")
    index(sandbox, *statements)


def test_what_the_habits_leave_of_the_budget_goes_to_the_projects_statements_then_the_users(sandbox: Sandbox) -> None:
    other_statements(sandbox)
    stdout, stderr = start(sandbox)
    given = ["Keep answers short.", "Amounts are integers of cents.", "I use fish.", "We ship on Tuesdays."]
    assert [line.rpartition(": ")[2].removeprefix("- ") for line in stdout.splitlines() if line[:2] == "- "] == given
    assert "Loaded 1 MemoryVault always-load entries, 3 others\n" in stderr
    assert len(read_injected(sandbox.state.markers, SESSION) or ()) == 4, "no prompt repeats them"
    sandbox.extra_env["MEMORY_RECALL_CORE_WORDS"] = "10"
    stdout, _ = start(sandbox, session_id="with-less-room")
    assert "Amounts are integers of cents." in stdout
    assert "I use fish." not in stdout


def test_a_rule_flagged_since_it_was_indexed_is_not_lost(sandbox: Sandbox) -> None:
    other_statements(sandbox)
    fish = sandbox.vault / "personal-private/preferences/fish.md"
    fish.write_text(fish.read_text().replace("status: active", "status: active\nalways_load: true"))
    assert "I use fish." in start(sandbox)[0]


def test_a_cautious_recall_gives_a_session_its_habits_alone(sandbox: Sandbox) -> None:
    other_statements(sandbox)
    sandbox.configure('[recall]\neagerness = "cautious"\n')
    stdout, _ = start(sandbox)
    assert "Keep answers short." in stdout
    assert "cents" not in stdout


def test_a_vault_that_is_not_there_or_empty(sandbox: Sandbox) -> None:
    stdout, stderr = start(sandbox)
    assert (stdout, "Loaded 0 " in stderr) == ("", True)
    sandbox.extra_env["MEMORY_VAULT_PATH"] = str(sandbox.root / "gone")
    stdout, stderr = start(sandbox)
    assert stdout == ""
    assert "vault path not found" in stderr
    assert any(Path(sandbox.state_root).rglob(f"session-id-{SESSION}.start")), "the session is recorded"


def test_a_named_pipe_in_the_place_of_the_index_is_passed_over(sandbox: Sandbox) -> None:
    sandbox.entry("personal/_always-load/rule.md", "The rule.")
    os.mkfifo(memory_index(sandbox))
    stdout, stderr = start(sandbox)
    assert "The rule." in stdout
    assert TIME_IS_UP not in stderr


def test_a_start_that_had_no_time_for_all_says_so(sandbox: Sandbox) -> None:
    indexed(sandbox, "personal/preferences/rule.md", "The rule.", kind="preferences")
    paths = {"vault": str(sandbox.vault), "markers": sandbox.state.markers, "log_file": sandbox.state.log_file}
    settings = {**paths, "index_db": sandbox.state.index_db}

    def opening(deadline: float) -> Opening:
        return build_opening(
            settings, SESSION, "", 700, deadline, publish=lambda text, shown: None, host_loads_notes=lambda _: True
        )

    in_time, late = opening(time.monotonic() + 60), opening(time.monotonic())
    assert (in_time.entries, in_time.note) == (1, "")
    assert (late.entries, late.note) == (0, TIME_IS_UP)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["claude", "codex"])
@pytest.mark.parametrize("caught", ["read_project_index", "_find_indexed"])
def test_the_rules_are_printed_when_the_rest_can_not_be_read_in_time(sandbox: Sandbox, host: str, caught: str) -> None:
    sandbox.state.ensure()
    sandbox.entry("personal/_always-load/rule.md", "The rule.")
    python = stuck_in(f"session_start.{caught}")
    done = sandbox.run("SessionStart", sandbox.payload(source="startup"), "--host", host, python=python)
    assert done.stdout.count("The rule.") == 1
    assert TIME_IS_UP in done.stderr


@pytest.mark.slow
def test_what_a_start_had_no_time_for_comes_with_the_next_prompt(sandbox: Sandbox) -> None:
    sandbox.state.ensure()
    sandbox.entry("personal/_always-load/rule.md", "The rule.")
    late = sandbox.run(
        "SessionStart", sandbox.payload(source="startup"), python=stuck_in("session_start._list_always_load")
    )
    assert (late.stdout, TIME_IS_UP in late.stderr) == ("", True)
    first, second = (sandbox.run("UserPromptSubmit", sandbox.payload(prompt=f"hi {n}")).stdout for n in (1, 2))
    assert ("The rule." in first, "The rule." in second) == (True, False)


@pytest.mark.slow
def test_a_start_that_is_cut_off_is_given_again_a_few_times(sandbox: Sandbox) -> None:
    """Where each would be cut off, as on a slow machine, the rules do not come with every prompt."""
    sandbox.state.ensure()
    sandbox.entry("personal/_always-load/rule.md", "The rule.")
    python = stuck_in("session_start.read_project_index")
    sandbox.run("SessionStart", sandbox.payload(source="startup"), python=python)
    prompts = (sandbox.run("UserPromptSubmit", sandbox.payload(prompt=f"hi {n}"), python=python) for n in range(3))
    assert ["The rule." in prompt.stdout for prompt in prompts] == [True, True, False]


def test_the_projects_memory_index_is_shown_up_to_its_limit(sandbox: Sandbox) -> None:
    index = memory_index(sandbox)
    (index.parent / "t1.md").write_text("On demand.\n")
    index.write_text("<!-- hidden -->\n" + "".join(f"- [T{n}](t{n}.md) — topic {n}\n" for n in range(300)))
    # Within 200 lines and what the host shows of a hook's text.
    stdout, _ = start(sandbox)
    assert stdout.startswith(f'<auto-memory path="{index}" topic_count="1">\n')
    assert "topic 199" in stdout
    assert "topic 200" not in stdout
    assert f"(truncated: 200 of 300 lines; the whole index is {index})\n</auto-memory>\n" in stdout
    assert "hidden" not in stdout
    assert "On demand." not in stdout
    index.write_text("- [T](t.md) — x\n" * 20_000)
    told = start(sandbox, session_id="s3")[0]
    assert "(truncated: 200 of more than 14564 lines; the" in told, "no more of it is read"
    index.write_text("ä" * 20_000)
    stdout, _ = start(sandbox, session_id="s2")
    assert 9_000 < stdout.count("ä") <= 10_000


def own_notes(sandbox: Sandbox) -> None:
    sandbox.entry("personal-projects/my-shop/memory/deploy.md", "Ship the widgets with the blue crane.", kind="")
    memory_index(sandbox).write_text("- [D](deploy.md) — widgets\n")


@pytest.mark.parametrize("how", ["link", "setting"])
def test_an_index_is_said_unless_the_host_itself_loads_it(sandbox: Sandbox, how: str) -> None:
    own_notes(sandbox)
    assert "widgets" in start(sandbox, session_id="s1")[0]
    ours = memory_index(sandbox).parent
    if how == "link":
        (sandbox.transcript.parent / "memory").symlink_to(ours)
    else:
        (sandbox.home / ".claude" / "settings.json").write_text(json.dumps({"autoMemoryDirectory": str(ours)}))
    assert start(sandbox, session_id="s2")[0] == ""
    codex = sandbox.run("SessionStart", {**sandbox.payload(source="startup"), "session_id": "s3"}, "--host", "codex")
    assert "widgets" in codex.stdout, "another host does not load it"
    file = sandbox.home / ".claude" / "settings.json"
    document = json.loads(file.read_text()) if file.exists() else {}
    sandbox.extra_env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
    assert "widgets" in start(sandbox, session_id="s4")[0], "the host's feature is off, by a variable"
    del sandbox.extra_env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"]
    file.write_text(json.dumps({**document, "autoMemoryEnabled": False}))
    assert "widgets" in start(sandbox, session_id="s5")[0], "or by a setting"


@pytest.mark.parametrize("how", ["variable", "setting"])
def test_switched_off_the_notes_on_disk_change_no_byte(sandbox: Sandbox, how: str) -> None:
    if how == "variable":
        sandbox.extra_env["MEMORY_DISABLE_AUTO_MEMORY"] = "1"
    else:
        sandbox.configure("[memory]\ndisable_auto_memory = true\n")
    sandbox.entry("personal-private/_always-load/a.md", "Always.")
    sandbox.entry("personal-private/fix/widgets.md", "The widgets go onto the blue crane.")
    index(sandbox, "personal-private/fix/widgets.md")
    prompt = sandbox.payload(prompt="where do the widgets go, onto the blue crane?")

    def printed(one: str, other: str) -> tuple[str, str]:
        began = start(sandbox, session_id=one)[0]
        return began, sandbox.run("UserPromptSubmit", {**prompt, "session_id": other}).stdout

    before = printed("s1", "s2")
    own_notes(sandbox)
    assert printed("s3", "s4") == before
    assert "Always." in before[0]
    assert "blue crane" in before[1]


def waiting(sandbox: Sandbox, inbox: int, ideas: int) -> None:
    for number in range(inbox):
        sandbox.entry(f"personal-private/_inbox/i{number}.md", "x", status="inbox")
    for number in range(ideas):
        sandbox.entry(f"personal-private/_idea-incubator/idea-{number}/_index.md", "x", status="incubating")


def test_one_line_says_what_waits(sandbox: Sandbox) -> None:
    sandbox.entry("personal-private/_review/a.md", "x", status="pending")
    waiting(sandbox, 51, 21)
    sandbox.entry("personal-private/_idea-incubator/_archive/old/_index.md", "x")
    stdout, _ = start(sandbox)
    (line,) = [line for line in stdout.splitlines() if line.startswith("MemoryVault: ")]
    assert "1 proposal waits for review" in line
    assert "inbox holds 51 entries" in line
    assert "incubator holds 21 ideas" in line
    assert "reflected" not in line


def test_below_the_limits_nothing_is_said(sandbox: Sandbox) -> None:
    waiting(sandbox, 50, 20)
    assert start(sandbox)[0] == ""


@pytest.mark.parametrize(("late", "is_told"), [(9, False), (10, True)])
def test_half_of_the_prompts_without_meaning_is_told(sandbox: Sandbox, late: int, is_told: bool) -> None:
    sandbox.state.ensure()
    ways = ({"service": "slow"}, {"service": "not asked"}, {"degraded": "dense-late"}, {"result": TIME_IS_UP})
    for number in range(20):
        how = ways[number % len(ways)] if number < late else {"service": "ok"}
        hooklog.append(str(sandbox.state.log_file), "info", "hook", hook="UserPromptSubmit", **how)
    said = f"{late} of the last 20 prompts got no recall by meaning: the machine was busy"
    assert (said in start(sandbox)[0]) is is_told
    report = health_report(load_settings(sandbox.env), time.time(), lambda settings: True, count_entries=False)
    assert any(line.startswith(said) for line in report.warnings) is is_told


def test_a_week_without_reflection_is_told(sandbox: Sandbox) -> None:
    sandbox.state.ensure()
    markers = sandbox.state.markers
    create_marker(markers, Marker("old"))
    eight_days_ago = time.time() - 8 * 86_400
    os.utime(marker_path(markers, "old"), (eight_days_ago, eight_days_ago))
    assert "nothing was reflected for 8 days" in start(sandbox)[0]
    mark_reflected(markers, "old")
    assert "nothing was reflected for 8 days" in start(sandbox, session_id="s2")[0]
    create_marker(markers, Marker("new"))
    mark_reflected(markers, "new")
    assert start(sandbox, session_id="s3")[0] == ""


def test_installed_twice_it_prints_once(sandbox: Sandbox) -> None:
    sandbox.entry("personal/_always-load/a.md", "Body.")
    outputs = [start(sandbox)[0] for _ in range(2)]
    assert sorted(map(bool, outputs)) == [False, True]
    assert start(sandbox, source="compact")[0], "another event of the same session is not a repetition"
