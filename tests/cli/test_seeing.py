"""`memory health` and `memory vault inspect`: what happened, told to a person and to a program.

Those that ask a hook, which has 300 ms, run alone, and once more with more time where the machine was busy: it is a
process of its own, the commands around it are forked."""

import uuid
from pathlib import Path

import pytest

from memoryvault.index.receipts import TRIAL_CALLER, append_receipt, query_hash, read_receipts
from memoryvault.runtime.settings import load_settings
from memoryvault.services.spending import SpendingBook
from memoryvault.tasks.jobs.research_child import PURPOSE
from memoryvault.tests.acceptance.test_the_loop import COMMON
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.tasks.support import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    made = ForkedSandbox(tmp_path)
    made.memory("save", "fix", "locked-db", "--body", "Give each worker its own SQLite file.")
    made.memory("service", "worker", "--until-idle")
    return made


def _prompt(sandbox: Sandbox, text: str, caller: str = "hook alone") -> str:
    """The session of a prompt that `caller` answered: on a busy machine a hook may run out of its time."""
    for _ in range(20):
        session = str(uuid.uuid4())
        payload = {**COMMON, "session_id": session, "transcript_path": str(sandbox.projects / f"-p/{session}.jsonl")}
        sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": session, "prompt": text})
        receipts = read_receipts(sandbox.state / "log" / "receipts.jsonl")
        log = (sandbox.state / "log" / "memoryvault.log").read_text("utf-8")
        if [one["caller"] for one in receipts if one["session"] == session] == [caller] and f'"{session}"' in log:
            return session
    raise AssertionError("no hook was in time")


QUESTION = "does each worker get a sqlite file of its own?"


@pytest.mark.alone
@pytest.mark.hurried
def test_a_prompt_that_the_hook_answered_alone_leaves_a_receipt(sandbox: Sandbox) -> None:
    session = _prompt(sandbox, QUESTION)
    (receipt,) = sandbox.json("vault", "inspect", session[:8])
    assert receipt["caller"] == "hook alone"
    assert [Path(path).stem for path in receipt["injected"]] == ["locked-db"]
    assert receipt["query"] == query_hash(QUESTION)
    assert receipt["characters"] == len(QUESTION)
    assert receipt["tokens"] > 0
    assert receipt["ms"]["total"] > 0
    assert "absent" in receipt["degraded"][0]
    assert QUESTION not in (sandbox.state / "log" / "receipts.jsonl").read_text("utf-8")
    text = sandbox.memory("vault", "inspect", "last")
    assert "injected" in text
    assert "degraded: " in text


def test_what_a_session_was_given_before_is_counted_as_no_miss(sandbox: Sandbox) -> None:
    """It was not compared with the prompt: to name it would say that it fits."""
    first = {"at": "2026-11-23T08:00:00.000+00:00", "caller": "hook", "session": "s1", "floor": 0.0}
    given = "personal-private/fix/locked-db.md"
    file = sandbox.state / "log" / "receipts.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    append_receipt(file, {**first, "hits": [{"path": given}], "injected": [given]})
    append_receipt(file, {**first, "hits": [], "injected": [], "given_before": 1})
    text = sandbox.memory("vault", "inspect", "last")
    assert "nothing was shown: no other entry reached the floor of +0.0 and answers the prompt\n" in text
    assert "  1 entry that the session was given before was not considered\n" in text
    assert ".md" not in text
    assert sandbox.json("vault", "inspect", "last")[0]["given_before"] == 1
    append_receipt(file, {**first, "hits": [{"path": given, "answers": -1.4}], "injected": []})
    assert "locked-db.md  (below the floor)\n" in sandbox.memory("vault", "inspect", "last")


@pytest.mark.model
@pytest.mark.alone
@pytest.mark.hurried
def test_a_receipt_says_what_came_why_and_how_long_it_took(sandbox: Sandbox) -> None:
    with sandbox.recall_service():
        sandbox.memory("vault", "reindex")
        session = _prompt(sandbox, QUESTION, "hook")
        _prompt(sandbox, "please write a poem about the sea", "hook")
        found, nothing = sandbox.json("vault", "inspect", session)[0], sandbox.json("vault", "inspect", "last")[0]
    (hit,) = found["hits"]
    assert found["degraded"] == []
    assert None not in (hit["score"], hit["dense"], hit["keyword"])
    assert hit["answers"] >= found["floor"]
    assert {"embed", "keyword", "dense", "fuse", "check", "total"} <= set(found["ms"])
    assert nothing["hits"] == []
    (refused,) = nothing["refused"]
    assert (refused["why"], refused["answers"] < nothing["floor"]) == ("below-floor", True)
    text = sandbox.memory("vault", "inspect", session)
    assert "locked-db.md  (injected)" in text
    assert "embed " in text
    text = sandbox.memory("vault", "inspect")
    assert "nothing was shown" in text
    assert "(not shown: below the floor)" in text


@pytest.mark.alone
@pytest.mark.hurried
def test_a_recall_of_doctor_is_not_the_last_recall(sandbox: Sandbox) -> None:
    session = _prompt(sandbox, QUESTION)
    file = sandbox.state / "log" / "receipts.jsonl"
    append_receipt(file, {**read_receipts(file)[-1], "caller": TRIAL_CALLER, "session": None})
    assert sandbox.json("vault", "inspect")[0]["session"] == session


@pytest.mark.alone
@pytest.mark.hurried
def test_health_tells_counts_hooks_and_processes(sandbox: Sandbox) -> None:
    _prompt(sandbox, QUESTION)
    report = sandbox.json("health")
    assert (report["entries"]["groups"], report["index"]["entries"]) == ({"personal-private": 1}, 1)
    (prompts,) = [times for times in report["hooks"] if times["event"] == "UserPromptSubmit"]
    assert prompts["count"] >= prompts["degraded"] > 0, "one that ran out of its time was not degraded"
    assert report["processes"] == {"worker": None, "recall": None}
    assert "UserPromptSubmit" in sandbox.memory("health")
    with sandbox.process("service", "worker"):
        wait_until(lambda: sandbox.json("health")["processes"]["worker"] is not None, "the worker runs")


@pytest.mark.parametrize("network", [False, True])
def test_health_shows_what_research_took_to_a_user_who_said_yes_to_it(tmp_path: Path, network: bool) -> None:
    (tmp_path / "config.toml").write_text(f"[research]\nnetwork = {str(network).lower()}\n", "utf-8")
    sandbox = ForkedSandbox(tmp_path)
    state = load_settings(sandbox.environment).state
    state.ensure()
    book = SpendingBook(state.state_db, PURPOSE)
    book.settle(book.reserve("an idea", {"tokens": 40, "seconds": 9}), {"tokens": 20, "seconds": 2})
    said = "research: 2 seconds, 20 tokens"
    lines = [line for line in sandbox.memory("health").splitlines() if "research" in line]
    assert lines == [f"spent today      {said}", f"spent in 7 days  {said}"] * network


def test_a_backfill_is_a_reflection_as_well(sandbox: Sandbox) -> None:
    """`memory init` mines the sessions from before: who looks right after it does not read "never"."""
    assert sandbox.json("health")["last_reflection"] is None
    shipped = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"
    sandbox.transcript("3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11", shipped.read_text("utf-8"))
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory("service", "worker", "--until-idle")
    assert sandbox.json("health")["last_reflection"] is not None
