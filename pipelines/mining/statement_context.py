"""The context of a statement, which it needs to be understood later.

It goes back no further than the agent's last message before the user's, so mining can begin there and reach the
same candidates (`Miner.context_offset`).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from ...vault.turn import Origin, Role, Turn
from ...vault.wording import beginning_of, end_of
from ..scrub import scrub, scrub_passage
from .common_patterns import count_words, without_expletive
from .products import without_products

QUOTE_CHARS = 160
"""Most characters that a statement quotes of the message it answers."""

LAST_CHARS = 1500
"""How much of the end of a message is searched for what it asks."""

MAX_STEPS = 400
"""Most tool steps remembered within one turn of the user; the oldest are forgotten."""

COMMAND_CHARS = 100
ERROR_CHARS = 2000

EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch", "str_replace", "create"})
"""Tools that change files."""

_NEEDS_CONTEXT = re.compile(
    r"\b(?:this(?! (?:repo|project|code ?base|team|company|org|workspace|monorepo)\b)|that(?! (?:is|are)\b)|these|those"
    r"|it|its|it's|they|them|their|he|she|there|here|both|same|one|ones|above|below|former|latter"
    r"|the (?:first|second|third|last|next|other|new|old|original) \w+|option [a-z0-9])\b"
    r"|^(?:\(?[a-d1-9]\)?[,.]?\s)"
    r"|^(?:might|may|could|would)(?: also| still)? be\b|^worth\b",
    re.IGNORECASE,
)
LONGEST_REJECTION = 60
"""In characters."""
_ONLY_REJECTS = re.compile(
    r"(?:(?:no+|nope|nah|sorry|hm+|wait|stop|actually)\b[\s,.!]*)*"
    r"(?:(?:(?:that|this|it)(?:['’]s| is| was)(?: still)?(?: not|n['’]t)?(?: quite| really)?"
    r"|you(?:['’]re| are)|not(?: quite)?)?"
    r" ?(?:wrong|incorrect|right|correct|true|what i (?:said|meant|asked|wanted|want)(?: for)?)"
    r"|not (?:now|yet|that|this|like that|like this|again))?[\s.!:,…-]*",
    re.IGNORECASE,
)
_FILE = re.compile(
    # From the beginning of a path only: a long run of "a.b." or "/a/b" is looked at once, not from each of its parts.
    r"@?((?<![\w.-])(?<![\w.-]/)(?:[\w.-]+/)+[\w.-]+\.\w{1,6}"
    r"|(?<!\w-)\b[\w-]+\.(?:py|go|ts|tsx|js|jsx|rs|rb|java|md|sh|yml|yaml|toml|json|sql|css|html))\b(?::\d+(?:-\d+)?)?"
)
_LINE = re.compile(r"[^\n]+")
_MARKUP = re.compile(r"[*`#>|]+|(?<!\w)_+|_+(?!\w)")


@dataclass(eq=False)
class ToolStep:
    """A tool call, with its result once that is known."""

    record: str
    name: str
    command: str
    file: str
    failed: bool | None = None
    result_record: str = ""
    error: str = ""

    @functools.cached_property
    def line(self) -> str:
        """The command, shortened."""
        line = " ".join(self.command.split())
        return line if len(line) <= COMMAND_CHARS else beginning_of(line, COMMAND_CHARS - 1).rstrip() + "…"


@dataclass
class ConversationContext:
    """The context while a session is read turn by turn."""

    said: str = ""
    """The agent's last message."""
    last_agent_offset: int = 0
    """Byte offset of the agent's last message."""
    context_offset: int = 0
    """Byte offset of the agent's last message before the user's current one."""
    steps: list[ToolStep] = field(default_factory=list)
    """Tool calls since the user's last message."""
    calls: dict[str, ToolStep] = field(default_factory=dict)
    failed_lines: set[str] = field(default_factory=set)
    """Shortened commands of the failed calls."""
    steps_when_said: int = 0
    """Number of the steps before the agent's last message."""

    def advance(self, turn: Turn) -> None:
        """Take a turn into account. Call it after the turn itself was mined."""
        if turn.is_users_words:
            self.context_offset = self.last_agent_offset
            self.steps.clear()
            self.calls.clear()
            self.failed_lines.clear()
            self.steps_when_said = 0
        elif turn.origin is Origin.ASSISTANT:
            self.said, self.last_agent_offset = turn.text, turn.offset
            self.steps_when_said = len(self.steps)
        elif turn.origin is Origin.TOOL_USE and (tool := turn.tool) is not None:
            step = ToolStep(turn.record, tool.name, tool.command or "", tool.file_path or "")
            self.steps.append(step)
            if len(self.steps) > MAX_STEPS:
                del self.steps[0]
                self.steps_when_said = max(0, self.steps_when_said - 1)
            if tool.use_id:
                self.calls[tool.use_id] = step
                if len(self.calls) > MAX_STEPS:
                    del self.calls[next(iter(self.calls))]
        elif turn.role is Role.TOOL and turn.tool is not None:
            done = self.calls.get(turn.tool.use_id or "")
            if done is not None:
                # What a failure says is asked of commands and edits only; files that were read are long.
                asked = done.command or done.name in EDITS
                done.failed = turn.tool.is_error or bool(asked and _reports_failure(turn.text))
                done.result_record = turn.record
                done.error = _tail(turn.text) if done.failed else ""
                if done.failed:
                    self.failed_lines.add(done.line)
                    if len(self.failed_lines) > MAX_STEPS:
                        self.failed_lines = {step.line for step in self.steps if step.failed}

    @property
    def recent_steps(self) -> list[ToolStep]:
        """Steps since the agent's last message."""
        return self.steps[self.steps_when_said :]


def statement(sentence: str, turn: Turn, said: str, before: str = "", *, quotes: bool = True) -> str:
    """Add to a sentence the context that it needs. `before`: the text before it in the message; `said`: the agent's
    last message; `quotes`: what it answers may be added, in the agent's words."""
    text = " ".join(sentence.split())
    if not needs_context(text):
        return text
    lead = " ".join(before.split())
    notes: list[str] = []
    if lead and turn.origin is not Origin.ANSWER:
        text = f"{lead} {text}"
    if turn.about:
        if quotes and (asked := occasion(turn, said)):
            notes.append(asked)
    elif quotes and (not lead or needs_context(lead)) and (answers := occasion(turn, said)):
        notes.append(answers)
    if turn.is_users_words and (file := _file_named(turn.text)) and file not in text:
        notes.append(f"about {file}")
    return f"{text} ({'; '.join(notes)})" if notes else text


def occasion(turn: Turn, said: str) -> str:
    """What a message of the user answers, in one line: the tool call that is refused, the question that was asked, or
    what the agent said last (`said`); '' when nothing is known of it."""
    if turn.about:
        about = _one_line(scrub(turn.about))
        known = {Origin.REJECTION: f"when refusing {about}", Origin.ANSWER: f"asked: {about}"}
        return known.get(turn.origin, "")
    answered = last_words(said)
    return f"in answer to: “{answered}”" if answered else ""


def needs_context(sentence: str) -> bool:
    """Whether the sentence cannot be understood without its context."""
    return count_words(sentence) < 3 or _NEEDS_CONTEXT.search(without_expletive(sentence)) is not None


def only_rejects(sentence: str) -> bool:
    """Whether the sentence says that something is wrong or unwanted, and nothing of what."""
    return len(sentence) <= LONGEST_REJECTION and _ONLY_REJECTS.fullmatch(sentence) is not None


def names_code(text: str) -> bool:
    """Whether the text names files, identifiers, branches or links, and so applies to one project only."""
    own = without_products(text)
    return (
        _FILE.search(own) is not None
        or re.search(
            r"`[^`]+`|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b|\b\w+\(\)|https?://|\b[A-Z]{2,}-\d+\b|#\d+\b", own
        )
        is not None
        or re.search(
            r"\b(?:this|the|our) (?:repo(?:sitory)?|project|code ?base|branch|pr|package|module|service|app)\b",
            own,
            re.IGNORECASE,
        )
        is not None
    )


def _file_named(text: str) -> str:
    """The first file that a text names once it is scrubbed; '' for none."""
    file = _FILE.search(scrub(text)) if _FILE.search(text) is not None else None
    return file[1] if file is not None else ""


@functools.lru_cache(maxsize=4)
def last_words(said: str) -> str:
    """Extract the agent's question from what it said, else its last line: at most QUOTE_CHARS characters."""
    tail = end_of(said.strip(), LAST_CHARS)
    end = tail.rfind("?") + 1
    start = max(tail.rfind(sign, 0, max(end - 1, 0)) for sign in ".!?\n") + 1
    if not tail[start:end].strip():
        lines = [line for line in _LINE.finditer(tail) if line[0].strip() and not line[0].strip().startswith("```")]
        if not lines:
            return ""
        start, end = lines[-1].span()
    # Cut out of what is scrubbed: of an address that is a secret the rest would not be recognised.
    return _one_line(scrub_passage(tail, start, end))


def _one_line(text: str) -> str:
    line = " ".join(_MARKUP.sub("", text).split()).strip(" -–—:")
    return line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _tail(output: str) -> str:
    """Cut an output to its last whole lines: half a token would not be recognised when it is scrubbed."""
    if len(output) <= ERROR_CHARS:
        return output
    tail = output[-ERROR_CHARS:]
    return tail.partition("\n")[2] or tail.partition(" ")[2]


_FAILURE = re.compile(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|E\s{2,}|error(?:\[\w+\])?:|fatal:|panic:|Traceback \(most recent|npm ERR!"
    r"|.*\b\d+ failed\b|exit code [1-9])",
    re.MULTILINE,
)


_FAILURE_BEGINS = ("--- FAIL", "FAIL", "E", "error", "fatal:", "panic:", "Traceback", "npm ERR!", "exit code ")
_FAILURE_WORDS = (" failed", *(f"\n{begin}" for begin in _FAILURE_BEGINS))
"""Words of which each report of a failure has one: outputs are long, and most report none."""


def _reports_failure(output: str) -> bool:
    if not output.startswith(_FAILURE_BEGINS):
        for word in _FAILURE_WORDS:
            if word in output:
                break
        else:
            return False
    return _FAILURE.search(output) is not None
