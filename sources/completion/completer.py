"""What every way of asking a model has in common."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MAX_ANSWER_BYTES = 2_000_000
"""Of a whole response. An answer is a few thousand tokens; what is longer is no answer."""
MAX_TOKENS = 100_000_000
"""No call takes more: a larger count is a mistake, and sums of such counts fit into no column."""

_THOUGHTS = re.compile(r"\A.*?</think>(?=\s*(?:\n|\{|```))", re.DOTALL)
"""Not every server leaves the tag that opens them in the answer."""
_OBJECT = re.compile(r"(?:^|```[ \t]*(?:json)?\s*)(?=\{)", re.IGNORECASE | re.MULTILINE)
"""Matches before an object at the beginning of a line or of a code fence."""
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Completion:
    """A model's answer: a JSON object, and what it cost where the model says so."""

    value: Mapping[str, Any]
    """As the model gave it. It was asked to follow the schema; whether it does is the caller's to check."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> int | None:
        """Of both directions; None when the model did not say, or no such number can be."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        total = self.input_tokens + self.output_tokens
        return total if total <= MAX_TOKENS else None


class CompletionFailed(Exception):
    """There is no usable answer. The message is one line and holds neither the prompt nor a key."""

    def __init__(self, reason: str, *, retry_after: float | None = None, may_have_cost: bool = True) -> None:
        super().__init__(" ".join(reason.split())[:300])
        self.retry_after = retry_after
        """Seconds for which the service asked not to be called again."""
        self.may_have_cost = may_have_cost
        """False only when it is certain that nothing was computed: the amount reserved may be given back."""


@dataclass(frozen=True)
class CompletionRequest:
    """What a model is asked, and within which limits. All of it is sent as it is: scrub it first."""

    prompt: str
    system: str
    schema: Mapping[str, Any]
    """JSON schema of the answer."""
    max_output_tokens: int
    deadline_seconds: float


class Completer(Protocol):
    """Something that answers a request with a JSON object."""

    def complete(self, request: CompletionRequest) -> Completion:
        """Raises CompletionFailed, at the deadline at the latest."""


def object_in(text: str) -> Mapping[str, Any]:
    """The JSON object that is a model's answer. Thoughts before it, a code fence around it and a sentence beside it are
    passed over: small models write them whatever schema they are given.

    Raises CompletionFailed.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
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
