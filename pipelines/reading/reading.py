"""A reader's judgement of a message: which sentences are worth remembering, as what, with which probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..candidate import Category
from .sentences import Sentence

Channel = Literal["core", "prompt", "action"]

LASTING: tuple[Category, ...] = ("preference", "correction", "fact", "workflow")
CHANNELS: tuple[Channel, ...] = ("core", "prompt", "action")


@dataclass(frozen=True)
class Message:
    """A message to read: the user's words, cut into sentences, and the end of what the agent said before."""

    text: str
    before: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class SentenceReading:
    """Judgement of one sentence. Numbers are probabilities, 0 to 1."""

    worth: float
    """That it says something worth remembering."""
    category: Category
    personal: float
    """That it holds wherever the user works, not only in this project."""
    channel: Channel
    """`core`: a habit for all work; `prompt`: for when its topic comes up; `action`: about a command, file or tool."""
    apart: Sequence[float] = ()
    """Logits that it is another's words, by the small model and the second one, as far as they read it."""


@dataclass(frozen=True)
class MessageReading:
    """Judgement of a message. Numbers are probabilities, 0 to 1."""

    worth: float
    """That it holds a preference, correction, fact or workflow."""
    idea: float
    fix: float
    sentences: Sequence[SentenceReading]
    """One for each sentence of the message, in order."""


class Reader(Protocol):
    """Reads messages. One implementation runs in the recall service; one needs no language model."""

    @property
    def name(self) -> str:
        """Name of the reader in `calibration.json`."""
        ...

    def read(self, message: Message) -> MessageReading:
        """Read one message."""
        ...
