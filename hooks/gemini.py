"""The adapter of Gemini CLI (seen: 0.61): events of other names, and answers as JSON.

What a hook says after `/clear` is lost, so the next prompt brings the opening. Before a tool only a refusal reaches the
model; other rules, and what cured a failure, come with the tool's result. Nothing is ever said at a turn's end: the
host would take it for a new prompt.
"""

from __future__ import annotations

import os

from ..runtime.layout import resolve_within
from ..vault.marker import marker_path
from .claude import extract_question as _extract_question
from .claude import read_call as _read_call
from .payload import parse_object, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .action import ActionAnswer
    from .payload import HookCall

HOST = "gemini"
ANSWERS = True
EMPTY_ANSWER = "{}\n"
"""With nothing on standard output the host shows its user what a hook writes to standard error."""
EVENTS = {
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUseFailure",
}
TOOLS = {"run_shell_command": "Bash", "replace": "Edit", "write_file": "Write"}
"""Its names of the tools that rules speak of, mapped to Claude Code's."""
TYPED_LIST = "logs.json"
"""Beside the folder of a project's chats: each line that was typed, with its session."""
TYPED_SECONDS = 30.0
"""A prompt's hook runs within this time after the prompt was typed."""
REFERENCED = "\n--- Content from referenced files ---"
"""Between a prompt and the content of the files that it names with `@`."""
_CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"
_SHELL, _SHELL_END = "<untrusted_context>\n", "\n</untrusted_context>"
_SHELL_LINES = ("Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call. Its event is '' for a start after `/clear`, because the host drops what a hook prints
    then."""
    call = _read_call(event, payload)
    call.host = HOST
    call.event = EVENTS.get(call.event, call.event)
    if call.event == "SessionStart" and call.source == "clear":
        call.event = ""
    return call


def extract_question(prompt: str) -> str:
    """Return the user's own words in a prompt; '' if there are none."""
    return _extract_question(prompt.partition(REFERENCED)[0])


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the real path of the session's chat; None if it is outside the host's own folder.

    Return '' for the end of a session, and for the start of a resumed one: the host may then name another chat.
    """
    if call.event == "SessionEnd" or (call.event == "SessionStart" and call.source == "resume"):
        return ""
    return resolve_within(call.transcript, [folders[HOST]])


def format_answer(event: str, text: str) -> str:
    """Return `text` as the JSON object that the host reads; at a tool call, `answer_action` formatted it already."""
    if not text or event in ("PreToolUse", "PostToolUseFailure"):
        return text
    return _context(text)


def answer_action(call: HookCall, payload: Mapping[str, Any], settings: Mapping[str, str]) -> ActionAnswer | None:
    """Return what to tell the host about a tool call; None for nothing.

    Raises OSError if the list of told rules cannot be written.
    """
    from .action import ActionAnswer, answer_call, answer_failure
    from .injected import add_told, read_told

    tool = payload.get("tool_name")
    if not isinstance(tool, str) or tool not in TOOLS:
        return None
    named = {**payload, "tool_name": TOOLS[tool]}
    if call.event == "PreToolUse":
        refused = answer_call(call, named, settings, wanted="guards")
        if refused is None:
            return None
        output = (parse_object(refused.text.encode()) or {})["hookSpecificOutput"]
        decision, reason = output["permissionDecision"], output["permissionDecisionReason"]
        if decision == "ask" and not _is_typed_in(call, settings["markers"]):
            asked = [f"ask\t{path}" for path in refused.paths]
            if read_told(settings["markers"], call.session).issuperset(asked):
                return None
            add_told(settings["markers"], call.session, asked)
            decision, reason = "deny", f"{reason} Ask the user first; if they agree, run it again."
        shown = f',"systemMessage":{quote(reason)}' if decision == "ask" else ""  # The host's question has no reason.
        text = f'{{"decision":{quote(decision)},"reason":{quote(reason)}{shown}}}\n'
        return ActionAnswer(text, refused.decision, refused.paths)
    answers = [answer_call(call, named, settings, wanted="told")]
    response = payload.get("tool_response")
    content = response.get("llmContent") if isinstance(response, dict) else None
    if named["tool_name"] == "Bash" and isinstance(content, str):
        report, failed = read_shell_output(content)
        if failed:
            answers.append(answer_failure(call, {**named, "error": report}, settings))
    said, paths = [], []
    for answer in answers:
        if answer is not None:
            said.append((parse_object(answer.text.encode()) or {})["hookSpecificOutput"]["additionalContext"])
            paths += answer.paths
    return ActionAnswer(_context("\n".join(said)), "", paths) if said else None


def _is_typed_in(call: HookCall, markers: str) -> bool:
    """Whether a person types in the session.

    With `-p` the host would wait for ever for the answer to a question, also where a script continues a session that a
    person began: then nothing was typed when the turn began.
    """
    try:
        with open(f"{os.path.dirname(os.path.dirname(call.transcript))}/{TYPED_LIST}", "rb") as file:
            typed_at = os.fstat(file.fileno()).st_mtime
            is_listed = f'"{call.session}"'.encode() in file.read()
        return is_listed and typed_at > os.stat(marker_path(markers, call.session)).st_mtime - TYPED_SECONDS
    except OSError:
        return False


def read_shell_output(output: str) -> tuple[str, bool]:
    """Return what a command printed, without what the host and hooks put around it, and whether it failed."""
    output = without_context(output)
    if not output.startswith(_SHELL):
        return output, False
    lines = output[len(_SHELL) : output.rfind(_SHELL_END)].split("\n")
    failed = False
    while lines and lines[-1].startswith(_SHELL_LINES):
        line = lines.pop()
        failed = failed or (line.startswith(("Exit Code: ", "Signal: ")) and line != "Exit Code: 0")
    return "\n".join(lines).removeprefix("Output: "), failed


def without_context(output: str) -> str:
    """Return a tool's output without what hooks added to it."""
    at = output.rfind(_CONTEXT) if output.endswith(_CONTEXT_END) else -1
    return output[:at].rstrip("\n") if at >= 0 else output


def _context(text: str) -> str:
    return f'{{"hookSpecificOutput":{{"additionalContext":{quote(text)}}}}}\n'
