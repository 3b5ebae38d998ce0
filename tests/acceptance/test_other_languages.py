"""A rule in another language is mined, proposed, approved and recalled in the next session."""

import json
import uuid

import pytest

from memoryvault.tests.acceptance.test_the_loop import record_session
from memoryvault.tests.sources.records import user
from memoryvault.tests.support.sandbox import Sandbox

RULES = (
    ("Ab jetzt immer pnpm statt npm benutzen.", "Soll ich die Pakete mit pnpm oder npm installieren?"),
    ("永远不要直接推送到 main 分支。", "我可以直接推送到 main 分支吗？"),
    ("コミットの前に必ずテストを実行すること。", "コミットの前にテストを実行しますか？"),
)


def say(sandbox: Sandbox, *texts: str) -> None:
    """A session in which the user types these, from its first hook to its last."""
    records = (user(minute, text, userType="external") for minute, text in enumerate(texts))
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    record_session(sandbox, str(uuid.uuid4()), lines)
    sandbox.memory("service", "worker", "--until-idle")


def ask(sandbox: Sandbox, prompt: str) -> str:
    session = str(uuid.uuid4())
    payload = {"cwd": "/home/dev/shop", "session_id": session, "transcript_path": str(sandbox.projects / "-p/x.jsonl")}
    return sandbox.hook("UserPromptSubmit", {**payload, "prompt_id": "p1", "prompt": prompt})


@pytest.mark.slow
@pytest.mark.hurried
def test_a_rule_in_another_language_is_proposed_and_once_approved_answers_the_next_prompt(sandbox: Sandbox) -> None:
    say(sandbox, *(rule for rule, _ in RULES))
    proposals = {path: path.read_text("utf-8") for path in sandbox.vault.rglob("*.md")}
    for rule, question in RULES:
        (path,) = [path for path, text in proposals.items() if rule in text]
        assert path.parent.name == "_review", "proposed, never saved unasked"
        assert rule not in ask(sandbox, question), "what waits is not recalled"
        sandbox.memory("review", "--decide", f"{path.stem}=approve")
    sandbox.memory("service", "worker", "--until-idle")
    for rule, question in RULES:
        assert rule in ask(sandbox, question)
