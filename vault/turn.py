"""One utterance or action in a session, as a transcript reader yields it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class Role(StrEnum):
    """The speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Origin(StrEnum):
    """Place of the text in the transcript, which decides how far it can be trusted."""

    PROMPT = "prompt"
    """Typed at the prompt."""
    QUEUED = "queued"
    """Typed while the agent was still working."""
    REJECTION = "rejection"
    """The feedback given when a tool call was refused: the strongest correction there is."""
    ANSWER = "answer"
    """An answer to a question the agent asked."""
    COMMAND_ARGS = "command_args"
    """Typed after a slash command."""
    BASH = "bash"
    """A shell command the user ran from the prompt."""
    ASSISTANT = "assistant"
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"


USER_WORDS = frozenset({Origin.PROMPT, Origin.QUEUED, Origin.REJECTION, Origin.ANSWER, Origin.COMMAND_ARGS})
"""Origins that hold the user's own natural-language words."""


LEAST_FOREIGN = 3
"""A passage counts as another's if at least one part in three of it stands apart."""
_USER = Role.USER


class ToolEvent(NamedTuple):
    """A tool call (`Origin.TOOL_USE`) or its outcome (`Origin.TOOL_RESULT`, `Origin.REJECTION`)."""

    name: str
    """The host's name for it (`Bash`, `Edit`); empty when a result has none."""
    use_id: str | None = None
    """Joins a result to its call."""
    command: str | None = None
    """The shell command, for tools that run one."""
    file_path: str | None = None
    """The file that it reads or writes, as given to the tool."""
    is_error: bool = False
    target: str = ""
    """Its object in one line of at most 300 characters: the command, file, pattern or address."""


def blanked(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Return the text with blanks in the place of these ranges, so that offsets stay."""
    for start, end in ranges:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


class Turn(NamedTuple):
    """One typed piece of a session. A tuple: sessions have thousands, and a frozen dataclass takes twice as long."""

    role: Role
    origin: Origin
    text: str
    record: str
    """The host's id of the record, else `line:<byte offset>`: stable when the file is read again."""
    session: str
    timestamp: str | None = None
    """ISO 8601 as the host wrote it."""
    cwd: str | None = None
    tool: ToolEvent | None = None
    offset: int = 0
    """Byte offset of its transcript line."""
    host: str = ""
    pasted: tuple[tuple[int, int], ...] = ()
    """Character ranges [start, end) of `text` that the user did not type: code, logs, quotes, documents, an
    option of the agent that was only picked. In order, not overlapping."""
    about: str = ""
    """The question, refused tool call or slash command that it answers, where the record has it."""
    apart: tuple[tuple[int, int], ...] = ()
    """Ranges that may be another's words: quoted, shown, or given to be changed. In order, not overlapping; they may
    overlap `pasted`."""
    confirmed: bool = False
    """The host's own record, which no tool writes, says that a person entered it. Other text may be proposed, never
    saved unasked."""

    def confirms(self, start: int, end: int) -> bool:
        """Whether the user typed this passage, by the host's record and its place in the message.

        Only such a passage may be saved unasked. A few quoted words in it do not matter.
        """
        foreign = sum(
            max(0, min(end, high) - max(start, low)) for ranges in (self.pasted, self.apart) for low, high in ranges
        )
        return self.confirmed and foreign * LEAST_FOREIGN < max(1, end - start)

    @property
    def is_users_words(self) -> bool:
        """Whether the user said it, and not a program under the user's name."""
        return self.role is _USER and self.origin in USER_WORDS
