"""Write the receipt of a prompt that the hook answered without the recall service, which writes its own receipts."""

from __future__ import annotations

import os
import time

from ..runtime.hooklog import append_line, utc_stamp
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
    _append(log_file, format_receipt(question, session, answer, ms, time.time()))


def append_action(log_file: str, call: HookCall, paths: list[str], guard: str, ms: float) -> None:
    """Append the receipt of what was given at a session's start or at a tool call. Never raises."""
    channel = "core" if call.event == "SessionStart" else "action"
    quoted = ",".join(quote(path) for path in paths)
    _append(
        log_file,
        f'{{"at":{quote(utc_stamp(time.time()) + "+00:00")},"caller":{quote(call.event)},"channel":"{channel}",'
        f'"session":{quote(call.session) if call.session else "null"},"project":null,"guard":{quote(guard)},"hits":[],'
        f'"injected":[{quoted}],"ms":{{"total":{ms:.1f}}},"degraded":[]}}',
    )


def _append(log_file: str, line: str) -> None:
    append_line(f"{os.path.dirname(log_file)}/receipts.jsonl", line.encode("ascii"))


def format_receipt(question: str, session: str, answer: PromptAnswer, ms: float, now: float) -> str:
    """Format a receipt as JSON, with the fields of index/receipts.py except for scores.

    `ms`: duration; `now`: Unix seconds.
    """
    at = utc_stamp(now) + "+00:00"
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
