"""Find fixes that a session proved: a command failed, something was changed, and the same command passed.

If the agent told the cause, the command may also pass with an option more, or within another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...vault.failure import PLACE, is_raised, names_failure, read_failure
from ...vault.turn import Turn
from .context import EDITS, ToolStep
from .sentences import Sentence, sentences

MOST_FAILURES = 20
"""Most failed commands that are followed; after that the oldest is forgotten."""
SYMPTOM_CHARS = 200
MOST_CHARS = 400
_CAUSED = r"caused?|because|root cause|the (?:problem|issue|bug|failure) was|turned out|was missing|due to"
_CAUSE = re.compile(rf"\b(?:{_CAUSED})\b", re.IGNORECASE)
_CURE = re.compile(rf"\b(?:{_CAUSED}|fix(?:ed|es)?|resolved?|solved|needed)\b", re.IGNORECASE)
_NEXT = re.compile(r"^(?:let me|now|i'll|i will|next|should i|let's)\b|[?:]$", re.IGNORECASE)
"""What comes next: a step, a question, a list."""
_STATE = re.compile(r"\[[^]]*\]")
LEAST_WORDS = 3
"""Fewest words of a line without an exception or a place that tells what failed; "task failed" does not."""
_BLANK = re.compile(r"\*\*|^#+\s*|`{3,}")


@dataclass
class _Failure:
    step: ToolStep
    claims: list[tuple[Turn, list[Sentence]]] = field(default_factory=list)
    """What the agent said about the cause since the last failure."""
    changes: list[ToolStep] = field(default_factory=list)


@dataclass(frozen=True)
class ProvedFix:
    """A failure, its fix in the agent's words, and the run that proves it."""

    failed: ToolStep
    passed: ToolStep
    claim: Turn | None
    """The agent's message about the fix; None if there is none."""
    said: tuple[int, int]
    """Range of `claim` that describes the fix."""
    change: str
    """The last command between the runs; '' if there is none, or files were changed, too."""

    @property
    def symptom(self) -> str:
        """The line of the failure's output that says what failed; '' if none does."""
        said = read_failure(self.failed.error).message
        tells = is_raised(said) or names_failure(said) or PLACE.search(said) or _words(said) >= LEAST_WORDS
        return said[:SYMPTOM_CHARS] if tells else ""

    def is_refuted_by(self, failed: ToolStep) -> bool:
        """Whether a later failure is this one again: what passed was only a part, or passed by chance."""
        if failed.line != self.failed.line:
            return False
        return read_failure(failed.error).normalised == read_failure(self.failed.error).normalised


def _words(text: str) -> int:
    """Return how many words of a language a line of output has: no names, paths, numbers, calls or states in
    brackets."""
    words = (word.strip(".,:;!?()'\"“”`") for word in _STATE.sub(" ", text).split())
    return sum(len(word) > 1 and word.isalpha() and not any(letter.isupper() for letter in word[1:]) for word in words)


class FixFinder:
    """Follows the commands of a session. A claim is forgotten when the command fails again."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}
        self._untold: tuple[_Failure, ToolStep] | None = None
        """The last failure that passed after changes to files of which nothing was told yet, and its passing run."""

    def says(self, turn: Turn) -> ProvedFix | None:
        """Take a message of the agent into account; return the fix that it tells after the run that proves it."""
        if not self._failures and self._untold is None:
            return None
        telling = [s for s in sentences(turn.text) if _CURE.search(t := s.of(turn.text)) and not _NEXT.search(t)]
        for failure in self._failures.values() if telling else ():
            failure.claims.append((turn, telling))
        # "All fixed, the tests pass" sums up.
        if self._untold is None or not any(_CAUSE.search(s.of(turn.text)) for s in telling):
            return None
        (failure, passed), self._untold = self._untold, None
        return _proved(failure, passed, (turn, telling))

    def runs(self, step: ToolStep) -> ProvedFix | None:
        """Take a finished call into account; return the fix that its success proves, if any."""
        if not step.command:
            if step.failed is False and step.name in EDITS:
                self._untold = None  # What is told now may be of this change.
                for failure in self._failures.values():
                    failure.changes.append(step)
            return None
        if step.failed:
            self._failures.pop(step.line, None)
            self._failures[step.line] = _Failure(step)
            self._untold = None
            if len(self._failures) > MOST_FAILURES:
                del self._failures[next(iter(self._failures))]
            return None
        mended = self._failures.pop(step.line, None) or self._completed(step)
        for other in self._failures.values():
            other.changes.append(step)
        if mended is None or not (mended.claims or mended.changes):
            return None
        if mended.claims or not any(change.name in EDITS for change in mended.changes):
            return _proved(mended, step, mended.claims[-1] if mended.claims else None)
        # "It failed, and passed after a change to common.go" does not tell the cure.
        self._untold = mended, step
        return None

    def _completed(self, step: ToolStep) -> _Failure | None:
        """Take out the last failure of which the agent told the cause and whose words the command has, among others.

        One word is too little: `make docs` passes where `make` still fails.
        """
        for line, failure in reversed(self._failures.items()):
            words, failed = iter(step.line.split()), line.split()
            if failure.claims and len(failed) > 1 and all(word in words for word in failed):
                failure.changes.append(step)
                return self._failures.pop(line)
        return None


def _proved(failure: _Failure, passed: ToolStep, told: tuple[Turn, list[Sentence]] | None) -> ProvedFix:
    said = (0, 0)
    if told is not None:
        first = told[1][0]
        said = first.start, max((s.end for s in told[1] if s.end - first.start <= MOST_CHARS), default=first.end)
    return ProvedFix(failure.step, passed, told[0] if told else None, said, _change(failure.changes))


def _change(steps: Sequence[ToolStep]) -> str:
    return f"`{steps[-1].line}`" if steps and all(step.command for step in steps) else ""


def plain(text: str) -> str:
    """Put the agent's words on one line, without bold, headings and fences."""
    return " ".join(_BLANK.sub("", text).split())
