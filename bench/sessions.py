"""Make invented sessions of any size, as Claude Code writes them, for benchmarks and tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

SESSION = "5e551014-0000-4000-8000-000000000001"

_PROMPTS = (
    "add a retry to the uploader, and keep the old flag",
    "no, use the clock of the database instead of the system's",
    "why does the second request wait so long?",
    "Always run the linter before you commit.",
    "looks good, go on with the parser",
    "what if we cached the parsed headers? maybe later",
)
_ANSWERS = (
    "Let me look at how the queue hands out its jobs.",
    "Found it: the root cause is a stale lock, because the handle is never closed on the error path. "
    "The fix is to close it in a `finally` block.",
    "All 31 tests pass. I changed `uploader.py` so that a failed part is sent again, twice at most.",
    "I'll read the configuration first, then change the parser.",
)
_PHRASE = "the file of a job is read once and its lines are kept in order until they were sent to whoever asked"
_WORDS = _PHRASE.split()


def session_lines(turns: int, bytes_a_turn: int, seed: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the turn, line with newline) of a session. A turn is a prompt, then tool calls with their
    results and words of the agent up to `bytes_a_turn`, then the agent's answer."""
    choose = random.Random(seed)
    number = 0

    def record(kind: str, content: Any, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        value = {"isSidechain": False, "cwd": "/srv/shop", "sessionId": SESSION, "type": kind}
        value |= {"message": {"role": kind, "content": content}, "uuid": f"00000000-0000-4000-8000-{number:012d}"}
        value |= {"timestamp": f"2026-03-01T10:{number % 60:02d}:00.000Z", **fields}
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    for turn in range(turns):
        size = 0
        prompt = f"{choose.choice(_PROMPTS)} ({turn})"
        line = record("user", prompt, origin={"kind": "human"}, promptSource="typed", entrypoint="cli")
        while size < bytes_a_turn:
            size += len(line)
            yield turn, line
            call = f"toolu_{number:08d}"
            said = [{"type": "text", "text": choose.choice(_ANSWERS)}] if choose.random() < 0.3 else []
            use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"src/part_{number % 90}.py"}}
            line = record("assistant", [*said, use])
            size += len(line)
            yield turn, line
            output = "\n".join(" ".join(choose.choices(_WORDS, k=12)) for _ in range(choose.randint(5, 150)))
            block = {"type": "tool_result", "tool_use_id": call, "content": output}
            line = record("user", [block], toolUseResult={"file": {"content": output, "numLines": 100}})
        yield turn, line
        yield turn, record("assistant", [{"type": "text", "text": choose.choice(_ANSWERS)}])
