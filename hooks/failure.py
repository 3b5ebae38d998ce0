"""After a failed tool call: tell the agent what helped when a command failed in the same way before."""

from __future__ import annotations

from ..runtime.layout import FAILURES
from .action import ActionAnswer, add_told, as_of_now, format_context, read_told
from .payload import parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .payload import HookCall

MOST_ERROR_CHARACTERS = 40_000
MOST_TOLD = 2
IN_WORDS = {"x": "This failed in the same way before", "n": "This message came before"}
OF_A_KIND = "The same command failed with an error of this kind before"


def answer_failure(call: HookCall, payload: Mapping[str, Any], settings: Mapping[str, str]) -> ActionAnswer | None:
    """Return what to print after the failed call; None for nothing. Raises OSError."""
    error, arguments = payload.get("error"), payload.get("tool_input")
    if not isinstance(error, str) or not isinstance(arguments, dict) or payload.get("is_interrupt") is True:
        return None
    try:
        with open(f"{settings['state']}/{FAILURES}", "rb", buffering=0) as file:
            content = file.read()
    except OSError:
        return None
    known = (parse_object(content[: content.find(b"\n")]) or {}).get("k")
    if not known:
        return None
    # A failed call is rare, and its output is text: what is the same in each occurrence is found with `re`.
    from ..vault.failure import failure_keys
    from ..vault.project import project_of

    command = arguments.get("command")
    keys = failure_keys(error[-MOST_ERROR_CHARACTERS:], command if isinstance(command, str) else "")
    lines, project = content.split(b"\n"), project_of(call.cwd)
    told = read_told(settings["markers"], call.session)
    end = f"\t{call.agent}" if call.agent else ""
    chosen: dict[str, str] = {}
    for key in keys:
        for number in known.get(key, ()):
            cure = parse_object(lines[number + 1]) or {}
            path = cure.get("path", "")
            is_new = cure.get("project") in ("", project) and f"\t{path}{end}" not in told and path not in chosen
            if is_new and as_of_now(cure, "helped", settings["vault"]) is not None:
                title = f": {cure['title']}" if cure["title"] else ""
                chosen[path] = f"{IN_WORDS.get(key[0], OF_A_KIND)}{title}. What helped: {cure['helped']}"
        if chosen:  # A surer rung leaves the others out.
            break
    if not chosen:
        return None
    paths = list(chosen)[:MOST_TOLD]
    add_told(settings["markers"], call.session, [f"\t{path}{end}" for path in paths])
    return ActionAnswer(format_context(call.event, "\n".join(chosen[path] for path in paths)), "", paths)
