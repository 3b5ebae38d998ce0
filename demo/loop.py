"""`memory vault demo`: run the whole loop in a temporary vault with the real commands and hooks.

Hooks record a session, the worker mines it, and a second session asks in other words and must get the memory back. The
user can give a transcript instead of the shipped session.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from ..index.embedder import DEFAULT_MODEL
from ..index.models import why_not_loaded
from ..vault.render import RULES
from .sandbox import Sandbox

SHIPPED_SESSION = Path(__file__).with_name("session.jsonl")
# Shares no content word with "always ship on Tuesday mornings, never right before the weekend".
SIDEWAYS = "Which day is good for putting the new version into production?"
BY_KEYWORDS = "On which morning do we ship?"
"""Without a model a question has to share a word."""
MOST_PROMPTS = 3
EXPECTED = "tuesday"


def play(chosen: Path | None) -> int:
    """Run the demo with a transcript, or with the shipped one; 0 if the memory came back."""
    session = chosen or SHIPPED_SESSION
    root = Path(tempfile.mkdtemp(prefix="memoryvault-demo-"))
    try:
        return run(Sandbox(root), session, shipped=chosen is None)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run(sandbox: Sandbox, session: Path, *, shipped: bool) -> int:
    """Record, reflect, index, recall."""
    first, cwd, prompts = _identity(session)
    print(f"1. A session is recorded: {session.name} ({len(prompts)} prompts, session {first[:8]})")
    transcript = sandbox.projects / "-demo" / f"{first}.jsonl"
    transcript.parent.mkdir(parents=True)
    common = {"session_id": first, "transcript_path": str(transcript), "cwd": cwd}
    sandbox.hook("SessionStart", {**common, "source": "startup"})
    for prompt in prompts[:2]:
        sandbox.hook("UserPromptSubmit", {**common, "prompt_id": str(uuid.uuid4()), "prompt": prompt})
    shutil.copyfile(session, transcript)
    sandbox.hook("Stop", {**common, "prompt_id": str(uuid.uuid4()), "stop_hook_active": False})
    sandbox.hook("SessionEnd", {**common, "reason": "prompt_input_exit"})

    print("2. The worker mines it and indexes what was found")
    with sandbox.recall_service():
        print("   " + sandbox.memory("service", "worker", "--until-idle").splitlines()[0])
        # Mined entries have a confidence; questions about them and research have none.
        mined = [entry for entry in sandbox.json("list", "--status", "all") if entry["confidence"]]
        _show(mined)
        status = _ask_sideways(sandbox) if shipped else _ask_back(sandbox, mined)
    print("\nEach hook, whole process:")
    for event, ms in sandbox.hook_ms:
        print(f"   {event:17} {ms:6.1f} ms")
    return status


def _show(mined: list[dict[str, Any]]) -> None:
    if not mined:
        print("   nothing in it was worth keeping")
    for entry in mined:
        print(f"   {entry['confidence'] or '-':6} {entry['kind'] or '-':12} {entry['title']}")
        print(f"          -> {entry['path']}")


def _ask_sideways(sandbox: Sandbox) -> int:
    def common() -> dict[str, str]:
        session = str(uuid.uuid4())
        transcript = str(sandbox.projects / "-demo" / f"{session}.jsonl")
        return {"session_id": session, "transcript_path": transcript, "cwd": "/home/dev/shop"}

    print("\n3. A new session is given at its start:\n")
    _print_block(sandbox.hook("SessionStart", {**common(), "source": "startup"}))
    by_meaning = why_not_loaded(DEFAULT_MODEL, Path(sandbox.state) / "models") is None
    question = SIDEWAYS if by_meaning else BY_KEYWORDS
    print(f"\n4. One that began before asks{' in other words' if by_meaning else ''}: {question}\n")
    session = common()
    for asked in range(MOST_PROMPTS):
        if asked:
            print("   nothing: on a busy machine the model can be too late for a prompt; it is asked again\n")
        if block := sandbox.hook("UserPromptSubmit", {**session, "prompt_id": str(uuid.uuid4()), "prompt": question}):
            break
    _print_block(block)
    if EXPECTED in block.lower() and RULES in block:
        print("\nThe memory came back, as a rule of the user.")
        return 0
    if EXPECTED in block.lower() and not by_meaning:
        print("\nThe memory came back, for the user to confirm: without a model no rule is saved unasked.")
        return 0
    found = "" if block else json.dumps(sandbox.json("recall", question, "--all-projects"))
    if EXPECTED in found.lower():
        print("\nToo busy for a hook's 0.3 seconds. `memory recall`, which has no limit, brings it back.")
        return 0
    print("\nThe memory did NOT come back.", file=sys.stderr)
    return 1


def _print_block(text: str) -> None:
    print("\n".join("   | " + line for line in text.splitlines()))


def _ask_back(sandbox: Sandbox, mined: list[dict[str, Any]]) -> int:
    if not mined:
        print("\n3. Nothing to ask for.")
        return 0
    order = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}
    entry = min(mined, key=lambda item: (order.get(item["confidence"], 3), item["path"]))
    print(f"\n3. One of them is asked for, inbox included: {entry['title']}\n")
    hits = sandbox.json("recall", entry["title"], "--include-inbox", "--all-projects")["hits"]
    for hit in hits:
        print(f"   {hit['score']:.2f}  {hit['path']}")
    if any(hit["path"] == entry["path"] for hit in hits):
        print("\nIt came back.")
        return 0
    print("\nIt did NOT come back.", file=sys.stderr)
    return 1


def _identity(session: Path) -> tuple[str, str, list[str]]:
    """Session id, working directory and typed prompts of a transcript."""
    identity, cwd, prompts = session.stem, "/home/dev/demo", []
    with session.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if not isinstance(record, dict):
                continue
            identity = record.get("sessionId") or identity
            cwd = record.get("cwd") or cwd
            message = record.get("message")
            if record.get("type") == "user" and isinstance(message, dict) and isinstance(message.get("content"), str):
                prompts.append(message["content"])
    return identity, cwd, prompts
