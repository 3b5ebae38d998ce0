"""Pack a session into windows for a model, each within a budget of tokens.

A window may be sent: its text is scrubbed, and without pasted and `<private>` passages of the user. A tool call is one
line. Every line is a JSON document, so that no text can pass for another turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ...runtime.private import find_private_spans
from ...vault.turn import Origin, Role, Turn
from ..scrub import scrub

USER_CHARS = 4000
AGENT_CHARS = 1600
DOCUMENT_CHARS = 800
"""Characters sent of a message that is a document, to recognise it."""
ABOUT_CHARS = 200
OUTPUT_CHARS = 300
"""Characters sent of the end of a failed tool's output."""
SCRUBBED_OUTPUT_CHARS = 20_000
"""Characters of the output that are scrubbed before it is cut, so that no secret is cut in two."""
CONTEXT_CHARS = 600
"""Characters sent of the agent's last message before the first turn."""
BYTES_A_TOKEN = 3
WINDOW_TOKENS = 6000
"""Most tokens of a transcript sent in one request."""
MAX_WINDOWS = 200
"""Most windows of one reading; only the local miner reads the rest."""

_CUT = " […] "


@dataclass(frozen=True)
class SentTurn:
    """A turn that may be quoted, as the model sees it."""

    turn: Turn
    """The turn with the `text` that is sent: scrubbed, shortened, without pasted text."""
    conversation: bool
    """Whether the message as a whole is conversation, not a document."""
    said: str
    """The agent's last message before it, scrubbed."""
    confirmed: bool = False
    """Whether the host's record says that the user typed it, and no part of it is marked as another's."""


@dataclass(frozen=True)
class Window:
    """The turns of one request. Turn number n is `turns[n - 1]`."""

    turns: tuple[SentTurn, ...]
    lines: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        """Text of the prompt."""
        return "\n".join(self.lines)

    @property
    def whole_messages(self) -> frozenset[str]:
        """Record ids of the user's messages that were sent whole."""
        return frozenset(
            sent.turn.record
            for sent in self.turns
            if sent.turn.is_users_words and sent.conversation and _CUT not in sent.turn.text
        )


@dataclass
class WindowPacker:
    """Packs the turns of one reading. Turns with an offset below `start` were sent before, and are only context.

    Deterministic: the same bytes from the same offset make the same windows, except for a last one that has grown.
    """

    window_tokens: int
    start: int = 0
    unsent: int = 0
    """Number of turns beyond MAX_WINDOWS."""
    _windows: list[Window] = field(default_factory=list)
    _turns: list[SentTurn] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _bytes: int = 0
    _said: str = ""

    def feed(self, turn: Turn) -> None:
        """Take the next turn of the session."""
        if turn.offset < self.start:
            if turn.origin is Origin.ASSISTANT:
                self._said = _shortened(scrub(turn.text), AGENT_CHARS)
            return
        if len(self._windows) >= MAX_WINDOWS:
            self.unsent += 1
            return
        if turn.is_users_words:
            self._add_turn(self._user_turn(turn), turn)
        elif turn.origin is Origin.ASSISTANT:
            text = _shortened(scrub(turn.text), min(AGENT_CHARS, self._most_chars))
            sent = turn._replace(text=text, pasted=())
            self._add_turn(SentTurn(sent, True, self._said), turn)
            self._said = sent.text
        elif turn.origin is Origin.TOOL_USE and turn.tool is not None:
            did = _shortened(scrub(" ".join(f"{turn.tool.name}: {turn.tool.target}".split())), ABOUT_CHARS)
            self._add_line({"by": "tool", "did": did})
        elif turn.role is Role.TOOL and turn.tool is not None and turn.tool.is_error:
            output = scrub(turn.text[-SCRUBBED_OUTPUT_CHARS:])[-OUTPUT_CHARS:]
            self._add_line({"by": "tool", "failed": True, "output": output})

    def windows(self) -> tuple[Window, ...]:
        """End the packing and return the windows with at least one turn, in order."""
        self._close()
        return tuple(self._windows)

    @property
    def _most_chars(self) -> int:
        """Most characters of one turn, so that a small window has room for several."""
        return self.window_tokens * BYTES_A_TOKEN // 3

    def _user_turn(self, turn: Turn) -> SentTurn:
        foreign = sum(end - start for start, end in (*turn.pasted, *turn.apart))
        conversation = foreign < len(turn.text) / 2
        text = scrub("\n\n".join(_typed_parts(turn)))
        most = min(USER_CHARS if conversation else DOCUMENT_CHARS, self._most_chars)
        confirmed = turn.confirmed and not turn.apart
        return SentTurn(turn._replace(text=_shortened(text, most), pasted=()), conversation, self._said, confirmed)

    def _add_turn(self, sent: SentTurn, original: Turn) -> None:
        if not sent.turn.text.strip():
            return
        # Begin a new window before the turn, so that it is together with what follows it.
        if self._turns and self._full(len(sent.turn.text.encode("utf-8", "replace"))):
            self._close()
        if not self._lines and sent.said:
            self._add_line({"by": "agent", "before": _shortened(sent.said, CONTEXT_CHARS)})
        self._turns.append(sent)
        told: dict[str, object] = {"turn": len(self._turns), "by": "user" if original.is_users_words else "agent"}
        if original.is_users_words and original.origin is not Origin.PROMPT:
            told["how"] = original.origin.value
        if original.about:
            told["about"] = _shortened(scrub(original.about), ABOUT_CHARS)
        self._add_line({**told, "text": sent.turn.text})

    def _add_line(self, told: dict[str, object]) -> None:
        # Half a surrogate pair, as in a cut log, cannot be sent.
        data = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
        line, size = data.decode(), len(data)
        if "turn" not in told and self._full(size):
            return  # Lines about tools must not take the room of what was said.
        self._lines.append(line)
        self._bytes += size + 1

    def _full(self, more: int) -> bool:
        return self._bytes + more > self.window_tokens * BYTES_A_TOKEN

    def _close(self) -> None:
        if self._turns:
            self._windows.append(Window(tuple(self._turns), tuple(self._lines)))
        self._turns, self._lines, self._bytes = [], [], 0


def _typed_parts(turn: Turn) -> Iterator[str]:
    """Yield what the user typed, without private passages, also those that begin within pasted text."""
    left_out = list(turn.pasted)
    left_out += find_private_spans(turn.text)
    position = 0
    for start, end in sorted(left_out):
        if start > position:
            yield turn.text[position:start].strip()
        position = max(position, end)
    yield turn.text[position:].strip()


def _shortened(text: str, most: int) -> str:
    """Cut a text between words to its head (two thirds of `most`) and its tail."""
    if len(text) <= most:
        return text
    tail = most // 3
    head, end = text[: most - tail], text[-tail:]
    return f"{head.rsplit(None, 1)[0]}{_CUT}{end.split(None, 1)[-1]}"
