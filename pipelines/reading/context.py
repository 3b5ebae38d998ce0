"""Context of a message: what was said and done in the session before."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from ...vault.turn import Origin, Role, Turn
from ...vault.wording import beginning_of, end_of
from ..scrub import scrub, scrub_passage
from .sentences import sentences

QUOTE_CHARS = 160
"""Most characters quoted of what a message answers."""
LAST_CHARS = 1500
"""Characters at the end of a message that are searched for its question."""
MAX_STEPS = 400
"""Most tool steps remembered since the user's last message; after that the oldest are forgotten."""
COMMAND_CHARS = 100
ERROR_CHARS = 2000
EDITS = frozenset(
    {"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch", "str_replace", "create", "replace", "write_file"}
)
"""Tools that change files."""
_LINE = re.compile(r"[^\n]+")
_REDIRECTION = re.compile(r"\s[12&]?>{1,2}\s*(?:&[12]|/dev/null)(?=\s|$|[;|&)])")
"""Of output to the other stream or to nowhere: it says nothing of what a command does."""
_CLOSING = " \"'”’)]*_`"
_MARKUP = re.compile(r"[*`#>|]+|(?<!\w)_+|_+(?!\w)")
_FAILURE = re.compile(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|E\s{2,}|error(?:\[\w+\])?:|fatal:|panic:|Traceback \(most recent|npm ERR!"
    r"|.*\b[1-9]\d* failed\b|exit code [1-9])",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(eq=False)
class ToolStep:
    """A tool call, with its result once it is known."""

    name: str
    command: str
    file: str
    failed: bool | None = None
    result_record: str = ""
    error: str = ""

    @functools.cached_property
    def line(self) -> str:
        """The command without redirections, shortened."""
        line = " ".join(_REDIRECTION.sub(" ", self.command).split())
        return line if len(line) <= COMMAND_CHARS else beginning_of(line, COMMAND_CHARS - 1).rstrip() + "…"


@dataclass
class ConversationContext:
    """The context while a session is read turn by turn.

    It goes back to the agent's last message before the user's, so that a reading can begin there.
    """

    said: str = ""
    """The agent's last message."""
    last_agent_offset: int = 0
    """Byte offset of the agent's last message."""
    context_offset: int = 0
    """Byte offset of the agent's last message before the user's current one."""
    calls: dict[str, ToolStep] = field(default_factory=dict)
    """Tool calls since the user's last message, by the host's id."""

    def advance(self, turn: Turn) -> ToolStep | None:
        """Take a turn into account, after it was read. Return the step whose result it is, if any."""
        if turn.is_users_words:
            self.context_offset = self.last_agent_offset
            self.calls.clear()
        elif turn.origin is Origin.ASSISTANT:
            self.said, self.last_agent_offset = turn.text, turn.offset
        elif turn.origin is Origin.TOOL_USE and (tool := turn.tool) is not None:
            if tool.use_id:
                self.calls[tool.use_id] = ToolStep(tool.name, tool.command or "", tool.file_path or "")
                if len(self.calls) > MAX_STEPS:
                    del self.calls[next(iter(self.calls))]
        elif turn.role is Role.TOOL and turn.tool is not None:
            return self._finish(turn)
        return None

    def _finish(self, turn: Turn) -> ToolStep | None:
        assert turn.tool is not None
        step = self.calls.get(turn.tool.use_id or "")
        if step is not None:
            # The output shows a failure only for commands and edits; files that were read hold any text.
            asked = step.command or step.name in EDITS
            step.failed = turn.tool.is_error or bool(asked and _FAILURE.search(turn.text))
            step.result_record = turn.record
            step.error = _tail(turn.text) if step.failed else ""
        return step


def occasion(turn: Turn, said: str) -> str:
    """Return what a message of the user answers, in one line: a refused tool call, a question, or what the agent said
    last (`said`); '' if unknown."""
    if turn.about:
        about = one_line(scrub(turn.about))
        known = {Origin.REJECTION: f"when refusing {about}", Origin.ANSWER: f"asked: {about}"}
        return known.get(turn.origin, "")
    answered = last_words(said)
    return f"in answer to: “{answered}”" if answered else ""


def last_words(said: str) -> str:
    """Return the agent's question in what it said, else its last line: at most QUOTE_CHARS characters."""
    tail = end_of(said.strip(), LAST_CHARS)
    asked = [part for part in sentences(tail) if part.of(tail).rstrip(_CLOSING).endswith(("?", "？"))]
    if asked:
        start, end = asked[-1].start, asked[-1].end
    else:
        lines = [line for line in _LINE.finditer(tail) if line[0].strip() and not line[0].strip().startswith("```")]
        if not lines:
            return ""
        start, end = lines[-1].span()
    # Scrubbed within its surroundings: the rest of a secret address would not be recognised alone.
    return one_line(scrub_passage(tail, start, end))


def one_line(text: str) -> str:
    """Put a text on one line of at most QUOTE_CHARS characters, without markup."""
    line = " ".join(_MARKUP.sub("", text).split()).strip(" -–—:")
    return line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _tail(output: str) -> str:
    """Cut an output to its last whole lines, so that scrubbing meets no half token."""
    if len(output) <= ERROR_CHARS:
        return output
    tail = output[-ERROR_CHARS:]
    return tail.partition("\n")[2] or tail.partition(" ")[2]
