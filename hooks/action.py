"""Before a tool call: tell the agent the user's rule on it, or refuse the call.

Where no rule matches, only the compiled file is read and nothing is printed. A rule is given once in a session. A rule
that a person has marked as a guard makes the hook refuse the call once, ask the user, or always refuse it.
"""

from __future__ import annotations

import os

from ..runtime.layout import ACTIONS
from .action_match import match_call
from .payload import parse_object, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall

EVENTS = ("PreToolUse", "PostToolUseFailure")
MOST_RULES = 3
"""Most rules given before one call; the others come with the next."""
STRONGEST = ("deny", "ask", "remind")


class ActionAnswer:
    """What to print for one call, and what to remember of it."""

    __slots__ = ("decision", "paths", "text")

    def __init__(self, text: str, decision: str, paths: list[str]) -> None:
        self.text = text
        """The host's JSON."""
        self.decision = decision
        """The guard that decided: 'deny', 'ask', 'remind'; '' for text alone."""
        self.paths = paths
        """Paths of the entries whose text is given."""


def answer_call(
    call: HookCall, payload: Mapping[str, Any], settings: Mapping[str, str], *, wanted: str = ""
) -> ActionAnswer | None:
    """Return what to print before the call; None for nothing.

    `wanted`: 'guards' or 'told' where the host takes refusals and text at different events, '' for both. Raises OSError
    where the session's list cannot be written.
    """
    tool, arguments = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        return None
    try:
        with open(f"{settings['state']}/{ACTIONS}", "rb", buffering=0) as file:
            content = file.read()
    except OSError:
        return None
    lookup = parse_object(content[: content.find(b"\n")])
    numbers = match_call(lookup, tool, arguments) if lookup else []
    if not numbers:
        return None
    from ..vault.project import project_of, top_of

    numbers = match_call({**(lookup or {}), "top": top_of(call.cwd)}, tool, arguments)
    project = project_of(call.cwd)
    lines = content.split(b"\n")
    found = [rule for number in numbers if (rule := parse_object(lines[number + 1])) is not None]
    here = [rule for rule in found if rule["project"] in ("", project)]
    rules = [rule for one in here if (rule := as_of_now(one, "text", settings["vault"])) is not None]
    told = read_told(settings["markers"], call.session)
    for guard in STRONGEST if wanted != "told" else ():
        chosen = [rule for rule in rules if rule["guard"] == guard and (guard != "remind" or _key(rule) not in told)]
        if chosen:
            return _decided(guard, chosen[:MOST_RULES], settings, call)
    new = [rule for rule in rules if rule["guard"] == "" and _key(rule, call.agent) not in told][:MOST_RULES]
    if not new or wanted == "guards":
        return None
    add_told(settings["markers"], call.session, [_key(rule, call.agent) for rule in new])
    text = "\n".join(["The user's rules on this:", *(f"- {_said_on(rule)}{rule['text']}" for rule in new)])
    return ActionAnswer(format_context("PreToolUse", text), "", [rule["path"] for rule in new])


def as_of_now(compiled: dict[str, Any], field: str, vault: str) -> dict[str, Any] | None:
    """Return a compiled rule or cure with the guard that its note has now; None if the note is out of use or says its
    `field` no longer: the worker compiles a change only some seconds later."""
    path = compiled["path"]
    try:
        state = os.stat(f"{vault}/{path}")
        if [state.st_mtime_ns, state.st_size] == compiled.get("stamp"):
            return compiled
    except OSError:
        if not os.path.isdir(vault):  # On a disk that is not here.
            return compiled
    from ..vault.wording import CUT
    from .entryfile import read_entry_file

    entry = read_entry_file(vault, path)
    if entry is None or not (entry.is_in_use or entry.status in ("inbox", "resolved")):
        return None
    said = " ".join(entry.body.split())
    if compiled[field].removesuffix(CUT) not in said:
        return None
    return {**compiled, "guard": entry.guard if entry.guard in STRONGEST else ""}


def _decided(guard: str, rules: list[dict[str, Any]], settings: Mapping[str, str], call: HookCall) -> ActionAnswer:
    quoted = " ".join(f"{_said_on(rule)}{rule['text']}" for rule in rules)
    if guard == "ask":
        reason = f"Your rule: {quoted}"
    elif guard == "remind":
        add_told(settings["markers"], call.session, [_key(rule) for rule in rules])
        reason = f"The user's rule: {quoted} If they asked for exactly this now, run it again."
    else:
        reason = f"The user's rule: {quoted} This is refused always: do without it, or ask the user to do it."
    decision = "ask" if guard == "ask" else "deny"
    output = (
        f'"hookEventName":"PreToolUse","permissionDecision":"{decision}","permissionDecisionReason":{quote(reason)}'
    )
    return ActionAnswer('{"hookSpecificOutput":{' + output + "}}\n", guard, [rule["path"] for rule in rules])


def format_context(event: str, text: str) -> str:
    """The host's JSON for text alone: it reaches the model with the call's result."""
    return f'{{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":{quote(text)}}}}}\n'


def _said_on(rule: Mapping[str, Any]) -> str:
    return f"(said on {rule['said']}) " if rule["said"] else ""


def _key(rule: Mapping[str, Any], agent: str = "") -> str:
    """The line of the session's list. Text reaches the sub-agent alone that was given it."""
    return f"{rule['guard']}\t{rule['path']}" + (f"\t{agent}" if agent else "")


def told_path(markers: str, session: str) -> str:
    """Return the path of the list of rules that the session was given; each line is guard, tab, path of the entry,
    and a tab and the sub-agent that was given it, if it was one."""
    return f"{markers}/told-{session}"


def read_told(markers: str, session: str) -> set[str]:
    """Return the lines of the list; empty if there is no list."""
    try:
        with open(told_path(markers, session), "rb", buffering=0) as file:
            return set(file.read().decode("utf-8", "surrogateescape").split("\n"))
    except OSError:
        return set()


def add_told(markers: str, session: str, lines: list[str]) -> None:
    """Append lines to the list. Raises OSError."""
    if not session:
        return
    descriptor = os.open(told_path(markers, session), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def forget_told(markers: str, session: str) -> None:
    """Forget the rules that were only told, because the session's context was compacted.

    Reminders stay: a call that was refused once is not refused again.
    """
    kept = [line for line in read_told(markers, session) if line[:1] not in ("", "\t")]
    try:
        os.unlink(told_path(markers, session))
    except OSError:
        return
    if kept:
        add_told(markers, session, sorted(kept))
