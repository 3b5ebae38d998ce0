"""A backfill with a model as the miner: real workers and a real endpoint on loopback."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.spending import spent_since
from memoryvault.tests.support.loopback_model import USAGE, LoopbackModel
from memoryvault.tests.support.sandbox import Sandbox

from .sessions import old_session

pytestmark = pytest.mark.slow

SESSIONS = 4
LESSON = "customers get the narrow font on paper"
REWORDED = "Our customers get the narrow font on paper."
IDLE = ("service", "worker", "--until-idle", "--timeout", "240")
"""Mining has low priority: on a busy machine a minute may not be enough."""
TOKENS = USAGE["total_tokens"]


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """Propose the lesson for every text that contains it."""
    found = []
    for line in body["messages"][-1]["content"].splitlines():
        told = json.loads(line)
        if LESSON in told.get("text", "") and "turn" in told:
            said = {"turn": told["turn"], "quote": LESSON, "category": "preference", "statement": REWORDED}
            found.append({**said, "reason": "a taste", "standing_rule": False, "scope": "project"})
    return {"candidates": found}


@pytest.fixture
def model() -> Iterator[LoopbackModel]:
    with LoopbackModel(answer).serving() as served:
        yield served


def choose(sandbox: Sandbox, model: LoopbackModel, **more: int) -> Settings:
    chosen = {"miner": "openai", "endpoint": model.endpoint, "model": "qwen3:4b", **more}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in chosen.items())
    (sandbox.root / "config.toml").write_text(f"[reflection]\n{lines}\n", "utf-8")
    return load_settings(sandbox.environment)


def corpus(sandbox: Sandbox) -> list[Path]:
    folder = sandbox.projects / "-home-dev-shop"
    said = ("look at the pages", f"looks good, {LESSON}")
    return [old_session(folder, number, *said) for number in range(1, SESSIONS + 1)]


def vault(sandbox: Sandbox) -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(sandbox.vault.rglob("*.md")))


def test_each_session_is_put_to_the_model_within_the_caps(sandbox: Sandbox, model: LoopbackModel) -> None:
    settings = choose(sandbox, model)
    corpus(sandbox)
    told = sandbox.json("reflect", "corpus")
    assert model.requests == []
    assert (told["miner"], told["requests"], told["daily_token_cap"]) == ("openai", SESSIONS, 500_000)
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    assert len(model.requests) == SESSIONS
    assert model.most_at_once == 1
    (sums,) = spent_since(settings.state.state_db, "2000-01-01")
    assert sums.spent == SESSIONS * TOKENS <= told["tokens"]
    assert REWORDED in vault(sandbox)
    assert not list((Path(settings.state.cache) / "answers").glob("*.json"))
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    assert len(model.requests) == SESSIONS


def test_beyond_the_cap_the_rest_is_mined_by_rules(sandbox: Sandbox, model: LoopbackModel) -> None:
    choose(sandbox, model)
    corpus(sandbox)
    reserved = -(-sandbox.json("reflect", "corpus")["tokens"] // SESSIONS)
    cap = reserved + TOKENS
    settings = choose(sandbox, model, daily_token_cap=cap)
    told = sandbox.memory("reflect", "corpus")
    assert "what is beyond it is mined by rules alone" in told
    assert f"the cap of {cap:,} a day" in told
    sandbox.memory("reflect", "corpus", "--execute")
    sandbox.memory(*IDLE)
    (sums,) = spent_since(settings.state.state_db, "2000-01-01")
    assert (len(model.requests), sums.spent) == (2, 2 * TOKENS)
    assert sandbox.json("reflect", "corpus")["skipped_already_processed"] == SESSIONS
