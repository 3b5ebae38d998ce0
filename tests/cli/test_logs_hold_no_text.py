"""Logs and the job ledger hold no text of sessions or notes."""

import json
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryvault.tests.support.forked import ForkedSandbox

CANARIES = {
    "rule": "quokkarule",
    "correction": "quokkacorrection",
    "answer": "quokkaanswer",
    "prompt": "quokkaprompt",
    "saved": "quokkasaved",
    "agent": "quokkaagent",
    "decision": "quokkadecision",
    "broken": "quokkabroken",
    "idea": "quokkaidea",
}
"""Of each place where text comes from a word of its own. Words at the end of a long sentence: a note's name, which logs
may tell, is made of the first ones."""


def transcript(session: str) -> str:
    """A session with a rule, a correction, an idea, an answer of the agent, and a line that does not parse."""
    said = [
        (
            "user",
            f"From now on, always run the linter before you commit anything to the main line, {CANARIES['rule']}.",
        ),
        ("assistant", f"Understood, I will use npm to install the packages {CANARIES['answer']}."),
        ("user", f"no, use pnpm instead of npm for installing the packages of this project, {CANARIES['correction']}"),
        ("assistant", "Done."),
        ("user", f"idea: a page that lists each of the failed builds by day and by author and {CANARIES['idea']}"),
    ]
    lines = []
    parent = None
    for role, text in said:
        own = str(uuid.uuid4())
        record = {
            "type": role, "uuid": own, "parentUuid": parent, "sessionId": session, "cwd": "/home/dev/shop",
            "timestamp": "2026-03-01T10:00:00.000Z", "isSidechain": False, "userType": "external", "version": "2.1.0",
            "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
        }  # fmt: skip
        lines.append(json.dumps(record))
        parent = own
    lines.insert(2, '{"type": "user", "message": "' + CANARIES["broken"])
    return "\n".join(lines) + "\n"


def told(state: Path) -> Iterator[tuple[str, str]]:
    """(place, text) of all that is a log or a ledger."""
    for path in sorted((state / "log").rglob("*")):
        if path.is_file():
            yield f"log/{path.name}", path.read_text("utf-8", "replace")
    for path in sorted((state / "spool").rglob("*")):
        if path.is_file():
            yield f"spool/{path.name}", path.read_text("utf-8", "replace")
    with closing(sqlite3.connect(state / "queue.db")) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield (
                    f"queue.db {table}",
                    " ".join(
                        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in row
                    ),
                )


@pytest.mark.slow
def test_neither_logs_nor_jobs_hold_what_was_said(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    session = str(uuid.uuid4())
    path = sandbox.transcript(session, transcript(session))
    old = str(uuid.uuid4())
    sandbox.transcript(old, transcript(old))
    call = {"session_id": session, "transcript_path": str(path), "cwd": "/home/dev/shop"}
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault))
    sandbox.memory("save", "fix", "locks", "--body", f"Two workers wrote to one file {CANARIES['saved']}.")
    proposal = f"---\nkind: fix\nstatus: pending\ndecision: {CANARIES['decision']}\n---\n\n# F\n\nFix it.\n"
    review = sandbox.vault / "personal-private" / "_review"
    review.mkdir(parents=True)
    (review / "f.md").write_text(proposal, "utf-8")
    sandbox.hook("SessionStart", {**call, "source": "startup"})
    sandbox.hook("UserPromptSubmit", {**call, "prompt": f"how do we run the linter {CANARIES['prompt']}?"})
    sandbox.hook("Stop", {**call, "last_assistant_message": CANARIES["agent"]})
    sandbox.hook("SessionEnd", {**call, "reason": "other"})
    sandbox.memory("service", "worker", "--until-idle")
    sandbox.memory("recall", f"which linter {CANARIES['prompt']}")
    sandbox.run("review", "--decide", "f=approve")
    sandbox.memory("vault", "reindex")
    sandbox.memory("vault", "inbox")
    in_vault = "".join(file.read_text("utf-8") for file in sandbox.vault.rglob("*.md"))
    for name in ("rule", "saved"):
        assert CANARIES[name] in in_vault, f"the flow did not write down the {name}: this test would prove nothing"

    places = list(told(sandbox.state))
    assert any(place == "log/memoryvault.log" and '"hook"' in text for place, text in places)
    worked = sandbox.memory("service", "logs", "-n", "500", "--event", "tasks.jobs.reflection")
    assert sum(f"session mined  session={each} project=shop " in worked for each in (session, old)) == 2
    for field in ("candidates_mined=", "auto_saved=", "proposed=", "inboxed=", "duration_ms="):
        assert field in worked
    assert any(place == "log/receipts.jsonl" for place, _ in places)
    assert any("reflect.session" in text for _, text in places)
    leaks = [f"{name} in {place}: {text}" for place, text in places for name, word in CANARIES.items() if word in text]
    assert leaks == []
