"""What a reader says of a message: which sentences are worth remembering, as what, and how surely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .sentences import Sentence

Category = Literal["preference", "correction", "fact", "workflow", "fix", "idea"]
Channel = Literal["core", "prompt", "action"]

LASTING: tuple[Category, ...] = ("preference", "correction", "fact", "workflow")
CATEGORIES: tuple[Category, ...] = (*LASTING, "fix", "idea")
CHANNELS: tuple[Channel, ...] = ("core", "prompt", "action")


@dataclass(frozen=True)
class Message:
    """What is read: the user's words, cut into sentences, and the end of what the agent had said before."""

    text: str
    before: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class SentenceReading:
    """What is said of one sentence. Numbers are probabilities, 0 to 1."""

    worth: float
    """That it says something worth remembering."""
    category: Category
    personal: float
    """That it holds wherever the user works, not only in this project."""
    channel: Channel
    """`core`: a habit for all work; `prompt`: for when its topic comes up; `action`: about a command, file or tool."""
    apart: float | None = None
    """Logit of the model that it is another's words; None where no model read it."""


@dataclass(frozen=True)
class MessageReading:
    """What is said of a message. Numbers are probabilities, 0 to 1."""

    worth: float
    """That it holds a preference, correction, fact or workflow."""
    idea: float
    fix: float
    sentences: Sequence[SentenceReading]
    """One for each sentence of the message, in order."""


class Reader(Protocol):
    """Reads messages. One implementation runs in the recall service, one needs no model."""

    @property
    def name(self) -> str:
        """Name of the reader, under which its thresholds are kept."""
        ...

    def read(self, message: Message) -> MessageReading:
        """Read one message."""
        ...
