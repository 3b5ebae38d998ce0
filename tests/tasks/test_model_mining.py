"""A session that a model reads too: real workers, a real endpoint on loopback, and failures between them."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.doctor import CHECKS
from memoryvault.cli.doctor_checks import Finding
from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.reading import model_windows
from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services import model_mining
from memoryvault.services.mining import Mined, MiningRequest, mine_transcript
from memoryvault.services.model_mining import ANSWERS_FOLDER, AnswerCache
from memoryvault.services.spending import SpendingSum, spent_since
from memoryvault.tests.sources.records import SESSION, assistant, human, text_block
from memoryvault.tests.support import forked
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.loopback_model import USAGE, LoopbackModel
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.stand_in_agent import StandInAgent
from memoryvault.tests.support.syncs import record_syncs
from memoryvault.tests.tasks.support import make_due

PAYLOAD = {"session_id": SESSION, "cwd": "/home/dev/shop"}
LESSON = "customers get the narrow font on paper"
REWORDED = "Our customers get the narrow font on paper."
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
TOKENS = USAGE["total_tokens"]


TALK = [
    human(1, "look at the invoices"),
    assistant(2, text_block(f"I used {SECRET} to fetch them.")),
    human(3, f"looks good, {LESSON}"),
]


OFF = " ".join(f"off by {cents} cents," for cents in range(40))
LONG_TALK = [
    human(10 + page, f"could you tell me why the total of page {page} is {OFF} all of them") for page in range(12)
]
"""Six windows of 600 tokens."""


def lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def finding(turn: object, quote: str, statement: str, **more: object) -> dict[str, Any]:
    """A candidate as a model names it."""
    return {"turn": turn, "quote": quote, "category": "preference", "statement": statement, "reason": "a taste", **more}


def finds(quote: str, statement: str) -> Callable[[Mapping[str, Any]], Any]:
    """A model that proposes `quote` wherever it reads it."""

    def answer(body: Mapping[str, Any]) -> dict[str, Any]:
        lines = map(json.loads, body["messages"][-1]["content"].splitlines())
        read = [line["turn"] for line in lines if quote in line.get("text", "") and "turn" in line]
        return {"candidates": [finding(turn, quote, statement, standing_rule=False, scope="project") for turn in read]}

    return answer


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return ForkedSandbox(tmp_path, {"MEMORY_TEST_LEASE_SECONDS": "2"})


@pytest.fixture
def model() -> Iterator[LoopbackModel]:
    with LoopbackModel(finds(LESSON, REWORDED)).serving() as served:
        yield served


def choose(sandbox: Sandbox, **reflection: object) -> Settings:
    chosen = "\n".join(f"{name} = {json.dumps(value)}" for name, value in reflection.items())
    (sandbox.root / "config.toml").write_text(f"[reflection]\n{chosen}\n", "utf-8")
    settings = load_settings(sandbox.environment)
    settings.state.ensure()
    return settings


def endpoint_of(sandbox: Sandbox, model: LoopbackModel, **more: object) -> Settings:
    return choose(sandbox, miner="openai", endpoint=model.endpoint, model="qwen3:4b", **more)


def mine(sandbox: Sandbox, settings: Settings, records: Sequence[Mapping[str, Any]] = TALK, offset: int = 0) -> Mined:
    path = sandbox.transcript(SESSION, lines(records))
    return mine_transcript(MiningRequest(str(path), "claude", offset, 0, session=SESSION), settings)


def spent(settings: Settings) -> SpendingSum:
    (sums,) = spent_since(settings.state.state_db, "2000-01-01")
    return sums


def lessons(mined: Mined) -> list[Candidate]:
    return [one for one in mined.candidates if "narrow font" in one.statement]


def test_text_sent_to_a_model_is_scrubbed(sandbox: Sandbox, model: LoopbackModel) -> None:
    mine(sandbox, endpoint_of(sandbox, model))
    (request,) = model.requests
    assert SECRET not in json.dumps(request.body)
    assert next(line["text"] for line in request.lines if "turn" in line) == "look at the invoices"


def test_only_new_lines_are_sent(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    end = mine(sandbox, settings).mined_until
    mine(sandbox, settings, offset=end)
    assert len(model.requests) == 1
    said = ["now the letters", "Letters are done."]
    mine(sandbox, settings, [*TALK, human(4, said[0]), assistant(5, text_block(said[1]))], end)
    assert [line["text"] for line in model.requests[1].lines if "turn" in line] == said


def test_a_program_s_own_session_is_not_sent(sandbox: Sandbox, model: LoopbackModel) -> None:
    headless = [{**record, "entrypoint": "sdk-cli"} for record in TALK]
    assert mine(sandbox, endpoint_of(sandbox, model), headless).headless
    assert model.requests == []


@pytest.mark.slow
def test_long_session_goes_in_windows(sandbox: Sandbox, model: LoopbackModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_windows, "WINDOW_TOKENS", 600)
    mined = mine(sandbox, endpoint_of(sandbox, model), [*LONG_TALK, *TALK])
    assert len(model.requests) > 3
    assert mined.model["asked"] == len(model.requests)
    assert len(lessons(mined)) == 1


FAULTS = {"500": "status 500", "garbage": "no JSON", "slow": "no answer within 1 s"}
"""The others that an endpoint can have are in sources/test_openai.py."""


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.slow) if fault == "slow" else fault for fault in FAULTS]
)
def test_local_findings_stand_on_any_failure(
    sandbox: Sandbox, model: LoopbackModel, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(model_mining, "CALL_SECONDS", 1.0)
    model.faults = [fault]
    rule = human(4, "Always run the linter before you commit.")
    settings = endpoint_of(sandbox, model)
    mined = mine(sandbox, settings, [*TALK, rule])
    local = mine(sandbox, choose(sandbox, miner="local"), [*TALK, rule])
    assert mined.candidates == local.candidates != ()
    assert FAULTS[fault] in str(mined.model["failed"])
    assert mined.mined_until == local.mined_until, "what a model did not read is not waited for"
    assert len(model.requests) == 1


@pytest.mark.slow
def test_a_failure_ends_the_asking(sandbox: Sandbox, model: LoopbackModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_windows, "WINDOW_TOKENS", 600)
    model.faults = ["ok", "500"]
    mined = mine(sandbox, endpoint_of(sandbox, model), [*TALK, *LONG_TALK])
    assert len(model.requests) == 2
    assert len(lessons(mined)) == 1, "what was answered before counts"
    assert mined.model["windows_failed"] == 1
    assert isinstance(mined.model["windows_not_asked"], int)


@pytest.mark.slow
def test_a_short_pause_is_waited_for_once_and_a_long_one_is_not(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    model.faults = ["429-soon"]
    assert len(lessons(mine(sandbox, settings))) == 1
    AnswerCache(settings.state).forget(path.stem for path in Path(settings.state.cache, "answers").iterdir())
    model.faults = ["429-soon", "429-soon"]
    assert lessons(mine(sandbox, settings)) == []
    model.faults = ["429"]
    started = time.monotonic()
    assert lessons(mine(sandbox, settings)) == []
    assert time.monotonic() - started < 60, "its pause is an hour"
    assert len(model.requests) == 5
    assert spent(settings).spent == TOKENS, "what was turned away cost nothing"


def test_an_answer_that_cannot_be_kept_is_used_all_the_same(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    Path(settings.state.cache, ANSWERS_FOLDER).touch()  # As on a full disk: nothing can be written below it.
    mined = mine(sandbox, settings)
    assert len(lessons(mined)) == 1
    assert mined.model == {"miner": "openai", "asked": 1, "tokens": TOKENS}
    assert mined.answers == ()


def test_an_answer_and_its_name_are_synced(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(sandbox.environment)
    synced = record_syncs(monkeypatch)
    AnswerCache(settings.state).put("k", {})
    folder = Path(settings.state.cache, ANSWERS_FOLDER)
    assert synced == [(folder / "k.json").stat().st_ino, folder.stat().st_ino]


def test_beyond_the_session_s_cap_nothing_is_sent(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model, session_token_cap=1000)
    mined = mine(sandbox, settings)
    assert model.requests == []
    assert "1000 tokens per subject" in str(mined.model["refused"])


def child(sandbox: Sandbox, kill_point: str = "") -> subprocess.CompletedProcess[str]:
    """The mining child of the worker, killed at that point."""
    path = sandbox.transcript(SESSION, lines(TALK))
    env = {**sandbox.environment, "MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point}
    request = MiningRequest(str(path), "claude", 0, 0, session=SESSION)
    return forked.run("memoryvault.services.mining", env=env, stdin=json.dumps(asdict(request)))


@pytest.mark.slow
@pytest.mark.parametrize(("kill_point", "requests"), [("before-replace", 2), ("mid-child", 1)])
def test_a_kill_between_reserving_and_committing_never_spends_more_than_is_put_down(
    sandbox: Sandbox, model: LoopbackModel, kill_point: str, requests: int
) -> None:
    settings = endpoint_of(sandbox, model)
    assert child(sandbox, kill_point).returncode == -9
    before = spent(settings).spent
    done = child(sandbox)
    assert done.returncode == 0, done.stderr
    assert "narrow font" in done.stdout
    assert len(model.requests) == requests
    assert before >= (0 if not model.requests else TOKENS)
    assert spent(settings).spent >= TOKENS * len(model.requests)


@pytest.mark.slow
def test_an_answer_is_kept_for_its_own_session_not_for_a_copy_of_it(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    assert child(sandbox, "mid-child").returncode == -9
    copy = MiningRequest(str(sandbox.transcript(SESSION, lines(TALK))), "claude", 0, 0, session="its-copy")
    AnswerCache(settings.state).forget(mine_transcript(copy, settings).answers)
    assert len(model.requests) == 2, "the copy has asked for itself"
    assert child(sandbox).returncode == 0
    assert len(model.requests) == 2, "what was paid for before the kill is still there"


def run_session(
    sandbox: Sandbox, records: Sequence[Mapping[str, Any]] = TALK, env: Mapping[str, str] | None = None
) -> int:
    """A session by its hooks, and a worker until nothing is left to do; the worker's exit status."""
    path = sandbox.projects / "-home-dev-shop" / f"{SESSION}.jsonl"
    payload = {**PAYLOAD, "transcript_path": str(path)}
    sandbox.hook("SessionStart", {**payload, "source": "startup"})
    sandbox.transcript(SESSION, lines(records))
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    return sandbox.run("service", "worker", "--until-idle", env=env).returncode


def reflected(sandbox: Sandbox) -> dict[str, Any]:
    """The one reflection's job, with its history."""
    (job,) = sandbox.json("jobs", "list", "--kind", "reflect.session")
    return dict(sandbox.json("jobs", "show", str(job["id"])))


def notes(sandbox: Sandbox) -> list[str]:
    return [path.read_text("utf-8") for path in sandbox.vault.rglob("*.md") if "narrow font" in path.read_text("utf-8")]


@pytest.mark.once
@pytest.mark.slow
def test_a_worker_killed_between_answer_and_vault_does_not_pay_again(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = endpoint_of(sandbox, model)
    killed = {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "before-effect"}
    assert run_session(sandbox, env=killed) == -9
    assert notes(sandbox) == []
    until = time.monotonic() + 60
    while not notes(sandbox) and time.monotonic() < until:
        make_due(sandbox.state / "queue.db", "reflect.session")
        sandbox.memory("service", "worker", "--until-idle")
    (note,) = notes(sandbox)
    assert "occurrences: 1" in note
    assert len(model.requests) == 1
    assert spent(settings).spent == TOKENS
    assert os.listdir(Path(settings.state.cache, "answers")) == [], "an answer is kept no longer than it is needed"


@pytest.mark.slow
def test_a_worker_mines_with_the_model_and_health_tells_the_cost(sandbox: Sandbox, model: LoopbackModel) -> None:
    endpoint_of(sandbox, model)
    assert run_session(sandbox) == 0
    (note,) = notes(sandbox)
    assert REWORDED in note
    assert "status: pending" in note
    report = sandbox.json("health")
    assert report["miner"] == "openai"
    (today,) = report["spending"]["today"]
    assert (today["purpose"], today["spent"]) == ("mining", TOKENS)
    assert f"spent today      mining: {TOKENS} tokens" in sandbox.memory("health")
    assert '"asked": 1' in json.dumps(reflected(sandbox))


@pytest.mark.slow
def test_a_slow_model_holds_one_thread_of_the_worker_and_no_more(sandbox: Sandbox, model: LoopbackModel) -> None:
    def slowly(_: Mapping[str, Any]) -> dict[str, Any]:
        model.wait(0.5)
        return {"candidates": []}

    model.answer = slowly
    endpoint_of(sandbox, model)
    for number in range(3):
        session = f"session-{number}"
        path = str(sandbox.transcript(session, lines(TALK)))
        payload = {**PAYLOAD, "session_id": session, "transcript_path": path}
        sandbox.hook("SessionStart", {**payload, "source": "startup"})
        sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    sandbox.memory("service", "worker", "--until-idle")
    assert len(model.requests) == 3
    assert model.most_at_once == 1


def test_doctor_says_where_text_goes_and_calls_nobody(sandbox: Sandbox, model: LoopbackModel) -> None:
    def found() -> Finding:
        return dict(CHECKS)["miner"](Context(sandbox.environment))

    assert found().detail == "local: sessions stay on this machine"
    endpoint_of(sandbox, model)
    assert (found().grade, found().detail) == ("ok", f"scrubbed text of sessions goes to {model.endpoint}")
    choose(sandbox, miner="openai")
    with pytest.raises(SettingsError):
        found()
    assert model.requests == []


@pytest.mark.slow
def test_the_job_s_history_says_why_the_model_was_not_heard(sandbox: Sandbox, model: LoopbackModel) -> None:
    model.faults = ["500"]
    endpoint_of(sandbox, model)
    assert run_session(sandbox, [*TALK, human(4, "Always run the linter before you commit.")]) == 0
    job = reflected(sandbox)
    assert job["state"] == "done"
    assert "status 500" in json.dumps(job)
    # Beside it health may warn of hooks that were slow on a busy machine.
    (warning,) = [line for line in sandbox.json("health")["warnings"] if "openai" in line]
    assert warning.endswith("mined without openai or not all by it: the endpoint answered with status 500")
    assert any("linter" in path.read_text("utf-8") for path in sandbox.vault.rglob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("mode", ["garbage", "no answer", "error object", "ok"])
def test_the_user_s_own_agent_mines_and_a_session_that_it_could_not_read_in_full_is_read_again(
    sandbox: Sandbox, name: str, mode: str
) -> None:
    stand_in = StandInAgent(sandbox.root / "bin", name)
    stand_in.tell(mode, answer={"error": {"type": "rate_limit_error"}})  # In the mode `ok`, as if it were the answer.
    choose(sandbox, miner=name, agent_command=str(stand_in.program))
    run_session(sandbox)
    assert list(sandbox.vault.rglob("*.md")) == []
    stand_in.tell(answer={"candidates": [finding(3, LESSON, REWORDED, standing_rule=True)]})
    make_due(sandbox.state / "queue.db", "reflect.session", within=6 * 3600)
    sandbox.memory("service", "worker", "--until-idle")
    assert len(notes(sandbox)) == 1
    calls = stand_in.calls
    assert SECRET not in json.dumps(calls)
    assert [call["env"]["MEMORY_WORKER_CHILD"] for call in calls] == ["1", "1"]


@pytest.mark.slow
def test_reflect_takes_another_miner_and_a_dry_run_is_not_paid_twice(sandbox: Sandbox, model: LoopbackModel) -> None:
    endpoint_of(sandbox, model)
    config = sandbox.root / "config.toml"
    config.write_text(config.read_text("utf-8").replace('"openai"', '"local"'), "utf-8")
    path = str(sandbox.transcript(SESSION, lines(TALK)))
    assert "narrow font" not in sandbox.memory("reflect", "--session", path, "--dry-run")
    assert REWORDED in sandbox.memory("reflect", "--session", path, "--dry-run", "--miner", "openai")
    assert REWORDED in sandbox.memory("reflect", "--session", path, "--miner", "openai")
    assert len(model.requests) == 1
    again = sandbox.memory("reflect", "--session", path, "--miner", "openai")
    assert "this was counted already" in again
    assert len(notes(sandbox)) == 1
