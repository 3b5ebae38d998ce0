"""Recognising in the agent's words and tool steps what was wrong and what fixed it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ...vault.wording import beginning_of
from .statement_context import EDITS, ToolStep

SYMPTOM_CHARS = 200

_SPEAKS = re.compile(
    r"\b(?:fix(?:ed|es)?|solution|resolved?|cause[ds]?|because|instead|so that|needs? to|switch(?:ed)?|changed|added"
    r"|issue|problem|bug)\b",
    re.IGNORECASE,
)
_ROUTINE = re.compile(r"(?:let me|now|i'll|should i)\b", re.IGNORECASE)
_OPENERS = re.compile(
    r"(?:but|so|and|because|this|that|it|its|they|these|those|which|you could|the fix|the solution|that's|instead)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(r"\b(?:found|see|clear|bug|issue|problem|cause|is it|it is)\b", re.IGNORECASE)

_ENVIRONMENT = re.compile(
    r"""^.*(?:command\ not\ found|permission\ denied|address\ already\ in\ use|connection\ refused
        |cannot\ find\ (?:main\ )?module|no\ module\ named|modulenotfounderror|could\ not\ resolve\ host
        |certificate\ (?:verify|has\ expired)|no\ space\ left|unsupported\ (?:engine|python)
        |version\ (?:mismatch|conflict)|incompatible\ version|unknown\ (?:option|flag|command)
        |unable\ to\ (?:locate|find|resolve)|gpg\ failed\ to\ sign
        |index\.lock|lock\ file|eacces|enospc|etimedout|econnrefused|detected\ dubious\ ownership
        |externally-managed-environment).*$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Matches errors of the machine, not of code that is being written: they recur."""

_CHANGES_THE_MACHINE = re.compile(
    r"(?:sudo\s+)?(?:npm|pip|uv|brew|apt|apt-get|go|cargo|chmod|mkdir|rm|kill|export|git config|mise|nvm|docker)\b"
)


STATES_CURE = re.compile(
    r"\b(?:fixed|resolved|solved|cured)\s+(?:it\s+|this\s+|that\s+)?by\s+(?:\w+ing|the)\b"
    r"|\b(?:was|were|is)\s+caused\s+by\b.{10,200}\b(?:fix|fixed|solution|resolved)\b",
    re.IGNORECASE | re.DOTALL,
)


def states_cure(sentence: str) -> bool:
    """Whether it says explicitly what fixed something ("… fixed by …")."""
    return STATES_CURE.search(sentence) is not None and not sentence.rstrip().endswith("?")


def speaks_of_fix(sentence: str) -> bool:
    """Whether it describes a cause or a fix, rather than what the agent does next."""
    return _SPEAKS.search(sentence) is not None and _ROUTINE.match(sentence) is None


def leans_back(sentence: str) -> bool:
    """Whether it cannot be understood without the sentence before it."""
    return _OPENERS.match(sentence.lstrip("*_ ")) is not None


def announces(sentence: str) -> bool:
    """Whether it only announces what the next sentence says."""
    text = sentence.rstrip("* _")
    return text.endswith(":") or (len(text.split()) < 9 and _ANNOUNCES.search(text) is not None)


def last_failure(steps: Sequence[ToolStep]) -> ToolStep | None:
    return next((step for step in reversed(steps) if step.failed and step.command), None)


def cured(steps: Sequence[ToolStep], passed: ToolStep) -> tuple[ToolStep, str, str] | None:
    """Find an earlier failure of the same command, due to the machine, that a change has fixed.

    Returns the failed step, its error line, and the change; None if there is none.
    """
    command = passed.line
    if not command or passed not in steps:
        return None
    end = steps.index(passed)
    for begin in range(end - 1, -1, -1):
        failed = steps[begin]
        if failed.line != command:
            continue
        symptom = _ENVIRONMENT.search(failed.error) if failed.failed else None
        change = _change([step for step in steps[begin + 1 : end] if step.failed is False])
        return (
            (failed, beginning_of(" ".join(symptom[0].split()), SYMPTOM_CHARS), change) if symptom and change else None
        )
    return None


def _change(steps: Sequence[ToolStep]) -> str:
    files = [PurePosixPath(step.file).name for step in steps if step.name in EDITS and step.file]
    if files:
        return f"a change to {', '.join(dict.fromkeys(files[-2:]))}"
    commands = [step for step in steps if _CHANGES_THE_MACHINE.match(step.command)]
    return f"`{commands[-1].line}`" if commands else ""
