"""Write the receipt of a prompt that the hook answered without the recall service, which writes its own receipts."""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import short_hash
from ..vault.render import estimate_tokens
from .payload import quote
from .recall_client import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .payload import HookCall
    from .recall import PromptAnswer

MAX_DEGRADED_CHARACTERS = 300


def append_receipt(log_file: str, question: str, session: str, answer: PromptAnswer, ms: float) -> None:
    """Append one line to receipts.jsonl in the folder of the log. Never raises: it must not fail a prompt."""
    try:
        line = format_receipt(question, session, answer, ms, time.time())
    except ValueError:
        return
    _append(log_file, line)


def _append(log_file: str, line: str) -> None:
    try:
        path = f"{os.path.dirname(log_file)}/receipts.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, (line + "\n").encode("ascii"))
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return


def append_action(log_file: str, call: HookCall, paths: list[str], guard: str, ms: float) -> None:
    """Append the receipt of what was given at a session's start or at a tool call. Never raises."""
    channel = "core" if call.event == "SessionStart" else "action"
    quoted = ",".join(quote(path) for path in paths)
    _append(
        log_file,
        f'{{"at":{quote(_at(time.time()))},"caller":{quote(call.event)},"channel":"{channel}",'
        f'"session":{quote(call.session) if call.session else "null"},"project":null,"guard":{quote(guard)},"hits":[],'
        f'"injected":[{quoted}],"ms":{{"total":{ms:.1f}}},"degraded":[]}}',
    )


def format_receipt(question: str, session: str, answer: PromptAnswer, ms: float, now: float) -> str:
    """Format a receipt as JSON, with the fields of index/receipts.py except for scores.

    `ms`: duration; `now`: Unix seconds.
    """
    at = _at(now)
    query = short_hash(shorten(question).encode("utf-8", "replace"))  # As in index/receipts.py.
    paths = [quote(path) for path in answer.paths]
    hits = ",".join(f'{{"path":{path}}}' for path in paths)
    tokens = estimate_tokens(answer.block) if answer.block else 0
    return (
        f'{{"at":{quote(at)},"caller":"hook alone","session":{quote(session) if session else "null"},"project":null,'
        f'"query":{quote(query)},"characters":{len(question)},"hits":[{hits}],'
        f'"injected":[{",".join(paths)}],"tokens":{tokens},"ms":{{"total":{ms:.1f}}},'
        f'"degraded":[{quote(answer.note[:MAX_DEGRADED_CHARACTERS])}]}}'
    )


def _at(now: float) -> str:
    seconds = int(now)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int((now - seconds) * 1000):03d}+00:00"
