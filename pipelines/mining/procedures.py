"""Recognising workflows: procedures that the user describes, and rounds of checks before the agent delivers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .common_patterns import without_lead_in
from .cues import WORKFLOW_CUES
from .statement_context import ToolStep

MIN_STEPS = 3
"""Fewest different checks of a procedure."""
MAX_STEPS = 7
"""Most different checks of a procedure: a longer round is trial and error."""

_DELIVERS = re.compile(
    r"\bgit\s+(?:commit|push)\b|\bgh\s+pr\s+create\b|\b(?:npm|cargo|twine|poetry|uv)\s+publish\b|\bgoreleaser\b"
)
_SEPARATOR = re.compile(r"\s*(?:&&|;|\|\||\n)\s*")
_CHECK = re.compile(
    r"""^(?:\w+=\S+\s+)*(?P<command>
        (?:mise|just|task|make|npm|pnpm|yarn|bun|rake|tox|nox|gradle|\./gradlew|mvn|bazel|poetry|uv|hatch)
            \s+(?:run\s+|exec\s+|-s\s+)?(?!run\b|install\b|add\b|-)[\w:.-]+ |
        (?:go|cargo|dotnet|mix|swift|deno)\s+(?:test|build|vet|fmt|check|clippy|lint|format) |
        (?:pytest|ruff|mypy|black|isort|flake8|eslint|prettier|tsc|vitest|jest|rspec|rubocop|golangci-lint|gofmt|goimports
            |shellcheck|biome|phpunit)\b(?:\s+(?:check|format|run))? |
        pre-commit\s+run | docker\s+(?:build|compose\s+up|push) | kubectl\s+apply |
        terraform\s+(?:plan|apply|fmt|validate) | alembic\s+upgrade | twine\s+upload
    )(?![\w-])""",
    re.VERBOSE,
)
_STEP_WORD = re.compile(
    r"\b(?:run|commit|push|test|tests|lint|format|build|deploy|review|merge|rebase|pull|update|write|open|create|tag|release|check|"
    r"verify|generate|plan|implement|refactor|document|migrate|branch|pr)\b",
    re.IGNORECASE,
)


def described(sentence: str) -> bool:
    """Whether the user's sentence describes a procedure that will be repeated."""
    core = without_lead_in(sentence)
    if sentence.rstrip().endswith("?") or len({word.lower() for word in _STEP_WORD.findall(core)}) < 2:
        return False
    if WORKFLOW_CUES["process"].search(core) or WORKFLOW_CUES["whenever_steps"].search(core):
        return True
    recurring = re.search(
        r"\b(?:always|every|each|whenever|before|usually|normally|from now on|per (?:pr|release|task))\b",
        core,
        re.IGNORECASE,
    )
    ordered = WORKFLOW_CUES["ordered"].search(core) or WORKFLOW_CUES["arrow"].search(core)
    return recurring is not None and ordered is not None


def delivers(step: ToolStep) -> bool:
    """Whether the command delivers work: a commit, a push, a pull request, a release."""
    command = step.command
    # Every command that passed is asked, and few name one of these.
    if step.failed is not False or not (
        "git" in command or "pr" in command or "publish" in command or "gor" in command
    ):
        return False
    return _DELIVERS.search(command) is not None


def round_of_checks(steps: Sequence[ToolStep]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Find the different checks that passed before the delivery that ends `steps`, and the records of their last runs.

    None if they are no procedure, or if work was delivered before.
    """
    if any(delivers(step) for step in steps[:-1]):
        return None
    last = _checks(steps)
    if not MIN_STEPS <= len(last) <= MAX_STEPS:
        return None
    return tuple(last), tuple(dict.fromkeys(last.values()))


def _checks(steps: Sequence[ToolStep]) -> dict[str, str]:
    """Map each check that passed to the record of its last run, in the order of the runs."""
    last: dict[str, str] = {}
    for step in steps:
        if step.failed is not False:
            continue
        for part in _SEPARATOR.split(step.command):
            match = _CHECK.match(part.strip())
            if match is not None and not match["command"].startswith(("git", "gh")):
                command = " ".join(match["command"].split())
                last.pop(command, None)
                last[command] = step.record
    return last
