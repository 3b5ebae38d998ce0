"""Records of a session as Claude Code writes them, for tests."""

import json
from pathlib import Path
from typing import Any

from memoryvault.sources.transcripts.claude import ClaudeReader
from memoryvault.vault.turn import Turn

SESSION = "11111111-2222-4333-8444-555555555555"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def user(number: int, content: object, **fields: Any) -> dict[str, Any]:
    """A `user` record of an older version; fields make it anything else."""
    return {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/home/dev/shop",
        "sessionId": SESSION,
        "type": "user",
        "message": {"role": "user", "content": content},
        "uuid": uuid(number),
        "timestamp": f"2026-03-01T10:{number % 60:02d}:00.000Z",
        **fields,
    }


def older(number: int, content: object, **fields: Any) -> dict[str, Any]:
    """What was entered at the prompt of an older version, which does not name who typed it."""
    return user(number, content, **{"userType": "external", "permissionMode": "default", **fields})


def human(number: int, content: object, **fields: Any) -> dict[str, Any]:
    """The same of a recent version, which says that a person typed it."""
    return user(
        number, content, **{"origin": {"kind": "human"}, "promptSource": "typed", "entrypoint": "cli", **fields}
    )


def assistant(number: int, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "isSidechain": False,
        "sessionId": SESSION,
        "message": {"role": "assistant", "content": list(blocks)},
        "type": "assistant",
        "uuid": uuid(number),
        **fields,
    }


def command(name: str, arguments: str) -> str:
    """What the host writes for a slash command."""
    head = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
    return f"{head}\n<command-args>{arguments}</command-args>"


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(use_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": name, "input": arguments}


def result(number: int, use_id: str, content: object, is_error: bool = False, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use_id, "content": content, "is_error": is_error}
    return user(number, [block], **fields)


def queue(operation: str, content: str | None = None) -> dict[str, Any]:
    record = {"type": "queue-operation", "operation": operation, "sessionId": SESSION}
    return record if content is None else {**record, "content": content}


def queued_attachment(number: int, prompt: object, **attachment: Any) -> dict[str, Any]:
    return {
        "type": "attachment",
        "uuid": uuid(number),
        "sessionId": SESSION,
        "attachment": {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **attachment},
    }


def write(path: Path, *records: dict[str, Any] | str, compact: bool = True) -> Path:
    """A transcript with these lines; a string stands for itself."""
    separators = (",", ":") if compact else (", ", ": ")
    lines = [line if isinstance(line, str) else json.dumps(line, separators=separators) for line in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def turns(path: Path, offset: int = 0) -> list[Turn]:
    return list(ClaudeReader(path, offset))


def words(path: Path, offset: int = 0) -> list[str]:
    """What the user said in a transcript."""
    return [turn.text for turn in turns(path, offset) if turn.role == "user"]
