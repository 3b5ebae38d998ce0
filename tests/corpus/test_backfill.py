"""A backfill by real workers: done once, even in pieces, and after fresh sessions."""

import json
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoryvault.services.spending import spent_since
from memoryvault.tests.hosts.opencode_rows import OpenCodeRows, said
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.loopback_model import LoopbackModel
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import make_due, wait_until
from memoryvault.tests.tasks.test_model_mining import LESSON, REWORDED, TOKENS, endpoint_of

from .sessions import RULE, grow, old_session, pause_upkeep

pytestmark = pytest.mark.slow

SESSIONS = 12
IDLE = ("service", "worker", "--until-idle", "--timeout", "240")
SHORT_LEASE = {"MEMORY_TEST_LEASE_SECONDS": "2"}


def corpus(sandbox: Sandbox) -> list[Path]:
    folder = sandbox.projects / "-home-dev-shop"
    said = [
        (RULE,),
        ("No, use pnpm instead of npm for the shop.",),
        ("I'd rather have the report as a short table.",),
        ("What do the thumbnails cost us?",),
    ]
    return [old_session(folder, number, *said[number % len(said)]) for number in range(1, SESSIONS + 1)]


def vault(sandbox: Sandbox) -> dict[str, str]:
    return {str(path.relative_to(sandbox.vault)): path.read_text("utf-8") for path in sandbox.vault.rglob("*.md")}


def test_backfill_mines_everything_once_and_continues_where_a_file_grew(sandbox: Sandbox) -> None:
    pause_upkeep(sandbox)
    paths = corpus(sandbox)
    assert sandbox.json("reflect", "corpus", "--execute")["to_process"] == SESSIONS
    sandbox.memory(*IDLE)
    first = vault(sandbox)
    assert "_meta/corpus-digest.md" not in first
    (rule,) = [text for path, text in first.items() if "/always-run-linter" in path]
    assert "occurrences: 3" in rule
    again = sandbox.json("reflect", "corpus", "--execute")
    assert (again["to_process"], again["skipped_already_processed"], again["run"]) == (0, SESSIONS, "")
    grow(paths[1], 2, RULE)
    assert sandbox.json("reflect", "corpus")["bytes"] < 1000
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    (rule,) = [text for path, text in vault(sandbox).items() if "/always-run-linter" in path]
    assert "occurrences: 4" in rule
    sandbox.memory("reflect", "corpus", "--reset", "--execute")
    before = vault(sandbox)
    sandbox.memory(*IDLE)
    assert vault(sandbox) == before


def test_one_undo_takes_the_whole_run_back(sandbox: Sandbox) -> None:
    pause_upkeep(sandbox)
    corpus(sandbox)
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    taken = sandbox.json("undo", "--last", "--yes")
    assert (taken["run"].partition(":")[0], taken["sessions"], taken["left"]) == ("backfill", 9, 0)
    assert vault(sandbox).keys() == {"_meta/taken-back.md"}
    sandbox.memory("reflect", "corpus", "--reset", "--execute")
    assert "_meta/taken-back.md" not in vault(sandbox), "all is forgotten, that it was taken back too"


@pytest.mark.once
@pytest.mark.parametrize(
    "points",
    [
        ("mid-child@2",),
        ("before-effect@3", "after-effect@2"),
        ("after-effect", "before-completion@2", "journal-applied"),
    ],
)
def test_killed_anywhere_it_ends_the_same(tmp_path: Path, whole: dict[str, list[str]], points: tuple[str, ...]) -> None:
    """Not the same bytes: a session whose worker was killed is mined after others."""
    assert backfilled(ForkedSandbox(tmp_path / "killed", SHORT_LEASE), points) == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The result without kills."""
    found = backfilled(ForkedSandbox(tmp_path_factory.mktemp("whole"), SHORT_LEASE))
    assert sorted(map(len, found.values())) == [3, 3, 3]
    return found


def backfilled(sandbox: Sandbox, kills: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The sessions of each note at the end, though each of `kills` ended a worker."""
    pause_upkeep(sandbox)
    corpus(sandbox)
    sandbox.memory("reflect", "corpus", "--execute")
    for point in kills:
        done = sandbox.run(*IDLE, env={"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": point})
        assert done.returncode == (-signal.SIGKILL if "child" not in point else 0), done.stderr
    until = time.monotonic() + 120
    while sandbox.json("jobs", "list", "--state", "queued", "--kind", "reflect.corpus") and time.monotonic() < until:
        make_due(sandbox.state / "queue.db", "reflect.corpus")
        sandbox.memory(*IDLE)
    sandbox.memory(*IDLE)
    assert sandbox.json("jobs", "list", "--state", "dead") == []
    return {path: sorted(re.findall(r"    session: (\S+)", text)) for path, text in vault(sandbox).items()}


def codex_session(folder: Path, session: str, said: str) -> Path:
    path = folder / f"rollout-2026-06-17T10-07-16-{session}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"type": "session_meta", "payload": {"id": session, "cwd": "/home/dev/shop", "source": "cli"}}
    typed = {"type": "event_msg", "payload": {"type": "user_message", "message": said}}
    path.write_text("".join(json.dumps({"timestamp": "2026-06-17T10:07:16Z", **each}) + "\n" for each in (meta, typed)))
    return path


def test_sessions_that_the_user_archives_in_codex_are_mined_too(sandbox: Sandbox) -> None:
    codex = sandbox.root / "home" / ".codex"
    sandbox.memory("service", "worker", "--until-idle")
    live = codex_session(codex / "sessions" / "2026" / "06" / "17", "live", RULE)
    event = {"session_id": "live", "transcript_path": str(live), "cwd": "/home/dev/shop"}
    sandbox.hook("PreCompact", event, argv=[*sandbox.hook_argv("PreCompact"), "--host", "codex"])
    archive = codex / "archived_sessions"
    archive.mkdir()
    live.rename(archive / live.name)
    codex_session(archive, "old", "Never push to the main branch without asking me.")
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    for words in ("linter", "without asking"):
        assert any(words in text for text in vault(sandbox).values()), words


def test_sessions_in_opencodes_database_are_mined_and_gone_on_with(sandbox: Sandbox) -> None:
    home = sandbox.root / "home"
    with closing(OpenCodeRows(home / ".local" / "share" / "opencode")) as rows:
        for session, parent in (("ses_1", None), ("ses_2", None), ("ses_child", "ses_1")):
            rows.session(session, str(home / "shop"), parent=parent)
            rows.user(session, said(RULE))
        assert sandbox.json("reflect", "corpus", "--execute")["to_process"] == 2
        sandbox.memory(*IDLE)
        (rule,) = [text for path, text in vault(sandbox).items() if "/always-run-linter" in path]
        assert "host: opencode" in rule
        assert "occurrences: 2" in rule
        assert "status: active" not in rule, "nothing says that a person typed it"
        rows.user("ses_1", said("No, use pnpm instead of npm for the shop."))
        again = sandbox.json("reflect", "corpus", "--execute")
        assert (again["to_process"], again["skipped_already_processed"]) == (1, 1)
        assert again["bytes"] < 300


def test_a_transcript_outside_the_hosts_folders_is_mined_only_from_a_root_the_user_named(sandbox: Sandbox) -> None:
    backup = sandbox.root / "backup"
    old_session(backup, 1, RULE)
    assert sandbox.json("reflect", "corpus")["to_process"] == 0
    sandbox.memory("reflect", "corpus", "--root", str(backup), "--execute")
    sandbox.memory(*IDLE)
    assert any("linter" in text for text in vault(sandbox).values())
    # A link that leads out of it is refused.
    path = old_session(backup, 2, RULE)
    sandbox.memory("reflect", "corpus", "--root", str(backup), "--execute")
    path.rename(sandbox.root / "elsewhere.jsonl")
    path.symlink_to(sandbox.root / "elsewhere.jsonl")
    assert sandbox.run(*IDLE).returncode == 1
    (dead,) = sandbox.json("jobs", "list", "--state", "dead")
    assert "refused" in dead["error"]


def test_a_transcript_that_begins_with_lines_of_a_newer_version_is_mined(sandbox: Sandbox) -> None:
    path = old_session(sandbox.projects / "-home-dev-shop", 1, RULE)
    path.write_text('{"type":"something-new"}\n' * 30 + path.read_text("utf-8"), "utf-8")
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    assert any("linter" in text for text in vault(sandbox).values())


def test_ctrl_c_leaves_the_bar_and_not_the_work(sandbox: Sandbox) -> None:
    corpus(sandbox)
    with sandbox.process("service", "worker"):
        locks = (sandbox.root / "state").glob
        wait_until(lambda: [*locks("*/run/worker.lock")] and sandbox.run("jobs", "list").returncode == 0, "it runs")
        sandbox.memory("jobs", "pause", "reflect.corpus")
        command = ("reflect", "corpus", "--execute")
        bar = Terminal(sandbox, command)
        bar.expect("0/12 sessions, paused")
        bar.process.send_signal(signal.SIGINT)
        assert bar.close() == 0
        # Requested again, it shows the same work, because nothing is done yet.
        bar = Terminal(sandbox, command)
        bar.expect("0/12 sessions, paused")
        assert "12/12" not in bar.text
        sandbox.memory("jobs", "resume", "reflect.corpus")
        bar.expect("12/12 sessions", 120)
        bar.expect("put to you")
        assert bar.close() == 0
    assert sandbox.json("reflect", "corpus")["skipped_already_processed"] == SESSIONS


def test_a_fresh_session_goes_before_a_backfill_that_was_asked_for_long_ago(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path, {"MEMORY_QUEUE_WORKERS": "1"})
    corpus(sandbox)
    sandbox.memory("reflect", "corpus", "--execute")
    fresh = old_session(sandbox.projects / "-home-dev-shop", 99, RULE)
    payload = {"session_id": fresh.stem, "transcript_path": str(fresh), "cwd": "/home/dev/shop"}
    sandbox.hook("SessionStart", {**payload, "source": "startup"})
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    with sqlite3.connect(sandbox.state / "queue.db") as conn:
        conn.execute("UPDATE job SET run_at = run_at - 86400 WHERE kind = 'reflect.corpus'")
    conn.close()
    sandbox.memory(*IDLE)
    jobs = sandbox.json("jobs", "list", "--limit", "100")
    ended = {job["id"]: job["finished_at"] for job in jobs if job["kind"] in ("reflect.corpus", "reflect.session")}
    (session,) = [job["id"] for job in jobs if job["kind"] == "reflect.session"]
    assert ended[session] == min(ended.values())


# With a model as the miner: a real endpoint on loopback


LESSONS = 4


def lessons(sandbox: Sandbox) -> list[Path]:
    folder = sandbox.projects / "-home-dev-shop"
    said = ("look at the pages", f"looks good, {LESSON}")
    return [old_session(folder, number, *said) for number in range(1, LESSONS + 1)]


def test_each_session_is_put_to_the_model_within_the_caps(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    lessons(sandbox)
    told = sandbox.json("reflect", "corpus")
    assert model.requests == []
    assert (told["miner"], told["requests"], told["daily_token_cap"]) == ("openai", LESSONS, 500_000)
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    assert len(model.requests) == LESSONS
    assert model.most_at_once == 1
    (sums,) = spent_since(settings.state.state_db, "2000-01-01")
    assert sums.spent == LESSONS * TOKENS <= told["tokens"]
    assert any(REWORDED in text for text in vault(sandbox).values())
    assert not list((Path(settings.state.cache) / "answers").glob("*.json"))
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    assert len(model.requests) == LESSONS


def test_beyond_the_cap_the_rest_is_mined_by_rules(sandbox: Sandbox, model: LoopbackModel) -> None:
    endpoint_of(sandbox, model)
    lessons(sandbox)
    reserved = -(-sandbox.json("reflect", "corpus")["tokens"] // LESSONS)
    cap = reserved + TOKENS
    settings = endpoint_of(sandbox, model, daily_token_cap=cap)
    told = sandbox.memory("reflect", "corpus")
    assert "what is beyond it is mined by rules alone" in told
    assert f"the cap of {cap:,} a day" in told
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    (sums,) = spent_since(settings.state.state_db, "2000-01-01")
    assert (len(model.requests), sums.spent) == (2, 2 * TOKENS)
    assert sandbox.json("reflect", "corpus")["skipped_already_processed"] == LESSONS
