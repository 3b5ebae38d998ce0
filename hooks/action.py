"""Before a tool call: tell the agent the user's rule on it, or refuse the call.

After a failed call: tell it what helped when a command failed in the same way before.

Where nothing matches, only a compiled file is read and nothing is printed. A rule or remedy is given once in a session.
A rule that a person has marked as a guard makes the hook refuse the call once, ask the user, or always refuse it.
"""

from __future__ import annotations

import os

from ..runtime.layout import ACTIONS, FAILURES
from .action_match import match_call
from .payload import format_context, parse_object, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall

MOST_RULES = 3
"""Most rules given before one call; the others come with the next."""
STRONGEST = ("deny", "ask", "remind")
MOST_ERROR_CHARACTERS = 40_000
MOST_REMEDIES = 2
IN_WORDS = {"x": "This failed in the same way before", "n": "This message came before"}
OF_A_KIND = "The same command failed with an error of this kind before"


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
    lookup, lines = _read_compiled(f"{settings['state']}/{ACTIONS}")
    numbers = match_call(lookup, tool, arguments) if lookup else []
    if not numbers:
        return None
    from ..vault.project import project_of, top_of
    from .injected import add_told, read_told

    numbers = match_call({**(lookup or {}), "top": top_of(call.cwd)}, tool, arguments)
    project = project_of(call.cwd)
    found = [rule for number in numbers if (rule := parse_object(lines[number + 1])) is not None]
    here = [rule for rule in found if rule["project"] in ("", project)]
    rules = [rule for one in here if (rule := as_of_now(one, "text", settings["vault"])) is not None]
    told = read_told(settings["markers"], call.session)
    for guard in STRONGEST if wanted != "told" else ():
        chosen = [rule for rule in rules if rule["guard"] == guard and (guard != "remind" or _key(rule) not in told)]
        if chosen:
            if guard == "remind":
                add_told(settings["markers"], call.session, [_key(rule) for rule in chosen[:MOST_RULES]])
            return _refusal(guard, chosen[:MOST_RULES])
    new = [rule for rule in rules if rule["guard"] == "" and _key(rule, call.agent) not in told][:MOST_RULES]
    if not new or wanted == "guards":
        return None
    add_told(settings["markers"], call.session, [_key(rule, call.agent) for rule in new])
    text = "\n".join(["The user's rules on this:", *(f"- {_words_of(rule)}" for rule in new)])
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
        if not os.path.isdir(vault) or not os.listdir(vault):  # On a disk that is not here.
            return compiled
    from ..vault.wording import CUT
    from .entryfile import read_entry_file

    entry = read_entry_file(vault, path)
    if entry is None or not (entry.is_in_use or (field == "helped" and entry.status in ("inbox", "resolved"))):
        return None
    said = " ".join(entry.excerpt.split())
    if compiled[field].removesuffix(CUT) not in said:
        return None
    return {**compiled, "guard": entry.guard if entry.guard in STRONGEST else ""}


def _refusal(guard: str, rules: list[dict[str, Any]]) -> ActionAnswer:
    quoted = " ".join(words if words[-1:] in (".", "!", "?") else f"{words}." for words in map(_words_of, rules))
    if guard == "ask":
        reason = f"Your rule: {quoted}"
    elif guard == "remind":
        reason = f"The user's rule: {quoted} If they asked for exactly this now, run it again."
    else:
        reason = f"The user's rule: {quoted} This is refused always: do without it, or ask the user to do it."
    decision = "ask" if guard == "ask" else "deny"
    output = (
        f'"hookEventName":"PreToolUse","permissionDecision":"{decision}","permissionDecisionReason":{quote(reason)}'
    )
    return ActionAnswer('{"hookSpecificOutput":{' + output + "}}\n", guard, [rule["path"] for rule in rules])


def answer_failure(call: HookCall, payload: Mapping[str, Any], settings: Mapping[str, str]) -> ActionAnswer | None:
    """Return what to print after the failed call; None for nothing. Raises OSError."""
    error, arguments = payload.get("error"), payload.get("tool_input")
    if not isinstance(error, str) or not isinstance(arguments, dict) or payload.get("is_interrupt") is True:
        return None
    lookup, lines = _read_compiled(f"{settings['state']}/{FAILURES}")
    known = lookup.get("k")
    if not known:
        return None
    # A failed call is rare, and its output is text: what is the same in each occurrence is found with `re`.
    from ..runtime.safe_text import safe_line
    from ..vault.failure import failure_keys
    from ..vault.project import project_of
    from .injected import add_told, read_told

    command = arguments.get("command")
    keys = failure_keys(error[-MOST_ERROR_CHARACTERS:], command if isinstance(command, str) else "")
    project = project_of(call.cwd)
    told = read_told(settings["markers"], call.session)
    end = f"\t{call.agent}" if call.agent else ""
    chosen: dict[str, str] = {}
    for key in keys:
        for number in known.get(key, ()):
            cure = parse_object(lines[number + 1]) or {}
            path = cure.get("path", "")
            is_new = cure.get("project") in ("", project) and f"\t{path}{end}" not in told and path not in chosen
            if is_new and as_of_now(cure, "helped", settings["vault"]) is not None:
                title = f": {safe_line(cure['title']).rstrip('.')}" if cure["title"] else ""
                chosen[path] = f"{IN_WORDS.get(key[0], OF_A_KIND)}{title}. What helped: {safe_line(cure['helped'])}"
        if chosen:  # A surer rung leaves the others out.
            break
    if not chosen:
        return None
    paths = list(chosen)[:MOST_REMEDIES]
    add_told(settings["markers"], call.session, [f"\t{path}{end}" for path in paths])
    return ActionAnswer(format_context(call.event, "\n".join(chosen[path] for path in paths)), "", paths)


def _read_compiled(path: str) -> tuple[dict[str, Any], list[bytes]]:
    """Return the look-up on the first line of a compiled file, and all its lines; an empty look-up if it is missing or
    damaged."""
    try:
        with open(path, "rb", buffering=0) as file:
            lines = file.read().split(b"\n")
    except OSError:
        return {}, []
    return parse_object(lines[0]) or {}, lines


def _words_of(rule: Mapping[str, Any]) -> str:
    from ..runtime.safe_text import safe_line  # Most calls match nothing.

    return (f"(said on {rule['said']}) " if rule["said"] else "") + safe_line(rule["text"])


def _key(rule: Mapping[str, Any], agent: str = "") -> str:
    """The line of the session's list. Text reaches the sub-agent alone that was given it."""
    return f"{rule['guard']}\t{rule['path']}" + (f"\t{agent}" if agent else "")
