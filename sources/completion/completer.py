"""Request, answer and error of asking a language model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...runtime.json_text import parse_json

MAX_ANSWER_BYTES = 2_000_000
"""Most bytes of a response; an answer has a few thousand tokens."""
MAX_TOKENS = 100_000_000
"""Most tokens of a call; a larger count is a mistake, and sums of such counts would overflow a column."""

LIMIT_SECONDS = 5 * 3600.0
"""Time after which the usage limit of a plan is reset."""

_THOUGHTS = re.compile(r"\A.*?</think>(?=\s*(?:\n|\{|```))", re.DOTALL)
"""Thoughts before the answer, of which some servers remove the opening tag."""
_OBJECT = re.compile(r"(?:^|```[ \t]*(?:json)?\s*)(?=\{)", re.IGNORECASE | re.MULTILINE)
"""Matches before an object at the beginning of a line or of a code fence."""
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Completion:
    """A model's answer: a JSON object, and its cost in tokens if known."""

    value: Mapping[str, Any]
    """As the model gave it; the caller checks whether it follows the schema."""
    tokens: int | None = None
    """Of both directions."""


def total_tokens(*counts: object) -> int | None:
    """Add up the tokens that a service counts; None if a count is missing or impossible, or all are zero."""
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count >= 0]
    return sum(known) if len(known) == len(counts) and 0 < sum(known) <= MAX_TOKENS else None


class CompletionFailed(Exception):
    """There is no usable answer. The message is one line, without prompt and key."""

    def __init__(self, reason: str, *, retry_after: float | None = None, may_have_cost: bool = True) -> None:
        super().__init__(" ".join(reason.split())[:300])
        self.retry_after = retry_after
        """Seconds for which the service asked not to be called again."""
        self.may_have_cost = may_have_cost
        """False if surely nothing was computed, so that the reserved amount can be given back."""


def unanswered(reason: str) -> CompletionFailed:
    """Make the error for an agent that ran to its end without the JSON asked for: at the limit of a plan it writes
    other words in its place."""
    return CompletionFailed(reason, retry_after=LIMIT_SECONDS)


@dataclass(frozen=True)
class CompletionRequest:
    """A request to a model, with its limits. It is sent as it is, so scrub it first."""

    prompt: str
    system: str
    schema: Mapping[str, Any]
    """JSON schema of the answer."""
    max_output_tokens: int
    deadline_seconds: float


class Completer(Protocol):
    """Something that answers a request with a JSON object."""

    def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request. Raises CompletionFailed, at the deadline at the latest."""


def object_in(text: str) -> Mapping[str, Any]:
    """Parse the JSON object in a model's answer. Raises CompletionFailed.

    Thoughts before it, a code fence around it and sentences beside it are skipped: small models write them in spite of
    a schema.
    """
    try:
        value = parse_json(text)
    except ValueError:
        value = _object_within(_THOUGHTS.sub("", text, count=1))
    if not isinstance(value, dict):
        raise CompletionFailed("the model's answer is no JSON object")
    return value


def _object_within(text: str) -> object:
    begins = _OBJECT.search(text)
    try:
        if begins is not None:
            return _DECODER.raw_decode(text, begins.end())[0]
    except (ValueError, RecursionError):
        pass
    raise CompletionFailed("the model's answer is no JSON")
