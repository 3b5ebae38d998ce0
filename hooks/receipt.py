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
    """Append the receipt of a prompt's answer, with the fields of index/receipts.py except for scores. `ms`: duration.
    Never raises: it must not fail a prompt."""
    query = short_hash(shorten(question).encode("utf-8", "replace"))  # As in index/receipts.py.
    hits = ",".join(f'{{"path":{quote(path)}}}' for path in answer.paths)
    tokens = estimate_tokens(answer.block) if answer.block else 0
    more = (
        f'"query":{quote(query)},"characters":{len(question)},"hits":[{hits}],"tokens":{tokens},'
        f'"degraded":[{quote(answer.note[:MAX_DEGRADED_CHARACTERS])}]'
    )
    _append(log_file, "hook alone", session, answer.paths, ms, more)


def append_action(log_file: str, call: HookCall, paths: list[str], guard: str, ms: float) -> None:
    """Append the receipt of what was given at a session's start or at a tool call. Never raises."""
    channel = "core" if call.event == "SessionStart" else "action"
    more = f'"channel":"{channel}","guard":{quote(guard)},"hits":[],"degraded":[]'
    _append(log_file, call.event, call.session, paths, ms, more)


def _append(log_file: str, caller: str, session: str, paths: list[str], ms: float, more: str) -> None:
    """Append one line to receipts.jsonl in the folder of the log. `more`: its further fields, as JSON."""
    at = utc_stamp(time.time()) + "+00:00"
    injected = ",".join([quote(path) for path in paths])
    line = (
        f'{{"at":{quote(at)},"caller":{quote(caller)},"session":{quote(session) if session else "null"},'
        f'"project":null,"injected":[{injected}],"ms":{{"total":{ms:.1f}}},{more}}}'
    )
    append_line(f"{os.path.dirname(log_file)}/receipts.jsonl", line.encode("ascii"))
