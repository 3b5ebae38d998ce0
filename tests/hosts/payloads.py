"""What the other hosts send, in the shape that they document; values are our own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..hooks.support import SESSION, Sandbox

Payload = dict[str, Any]
RECALLED = "Ship new versions on Tuesday mornings only."
"""The text of the entry that the service of `recall_requests` recalls."""


def places(sandbox: Sandbox) -> Mapping[str, Path]:
    """Where each host keeps this session's transcript."""
    home = sandbox.home
    return {
        "codex": home / ".codex" / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl",
        "copilot": home / ".copilot" / "session-state" / SESSION / "events.jsonl",
        "antigravity": home / ".gemini" / "antigravity" / "brain" / SESSION / ".system_generated" / "logs"
        / "transcript.jsonl",
        "gemini": home / ".gemini" / "tmp" / "shop" / "chats" / f"session-2026-03-01T10-00-{SESSION[:8]}.jsonl",
    }  # fmt: skip


def spooled(sandbox: Sandbox) -> int:
    """How many jobs hooks have asked for."""
    return len(list(Path(sandbox.state.spool).glob("*.json")))


def codex(sandbox: Sandbox, event: str, **fields: object) -> Payload:
    common = {"session_id": SESSION, "transcript_path": str(places(sandbox)["codex"]), "cwd": str(sandbox.project)}
    turn = {} if event == "SessionStart" else {"turn_id": "t-1"}
    rest = {"hook_event_name": event, "model": "gpt-0", "permission_mode": "default"}
    return {**common, **turn, **rest, **fields}


def copilot(sandbox: Sandbox, event: str, **fields: object) -> Payload:
    common = {"hook_event_name": event, "session_id": SESSION, "timestamp": "2026-03-01T10:00:00.000Z"}
    return {**common, "cwd": str(sandbox.project), **fields}


def antigravity(sandbox: Sandbox, **fields: object) -> Payload:
    path = str(places(sandbox)["antigravity"]).replace(str(sandbox.home), "~")
    common = {"conversationId": SESSION, "workspacePaths": [str(sandbox.project)], "transcriptPath": path}
    return {**common, "artifactDirectoryPath": "/nowhere", "modelName": "gemini-0", **fields}


def gemini(sandbox: Sandbox, event: str, **fields: object) -> Payload:
    common = {"session_id": SESSION, "transcript_path": str(places(sandbox)["gemini"]), "cwd": str(sandbox.project)}
    return {**common, "hook_event_name": event, "timestamp": "2026-03-01T10:00:00.000Z", **fields}


def antigravity_typed(sandbox: Sandbox, *prompts: str) -> Path:
    """A transcript in which these words were typed."""
    path = places(sandbox)["antigravity"]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Payload] = []
    for prompt in prompts:
        content = f"<USER_REQUEST>\n{prompt}\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nnoon\n</ADDITIONAL_METADATA>"
        lines.append({"step_index": len(lines), "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE",
                      "created_at": "2026-03-01T10:00:00Z", "content": content})  # fmt: skip
        lines.append({"step_index": len(lines), "source": "MODEL", "type": "PLANNER_RESPONSE", "content": "Done."})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
