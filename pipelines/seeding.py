"""Find and rank the sentences of a file of instructions that are worth proposing as memories. Pure.

A file of 2,000 lines holds perhaps 50 rules; the rest describes the code. So each sentence is scored by words that make
it a rule, prose is left out, and the strongest rules come first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..vault.entry import fingerprint, first_heading
from ..vault.note_text import unfenced
from ..vault.wording import cut

LEAST_SCORE = 2.0
"""Least score of a rule; a sentence with less describes something."""
LEAST_WORDS, MOST_WORDS = 3, 60
MAX_STATEMENT_CHARACTERS = 600
MAX_DECISION_CHARACTERS = 500
TITLE_CHARACTERS = 90
UNFIT = "too short, too long or only a link"
DESCRIBES = "it describes something"

_RULE = re.compile(
    r"\b(?:always|never|must(?:n't| not)?|do not|don't|shall(?: not)?|required?|forbidden|under no circumstances)\b",
    re.I,
)
_ADVICE = re.compile(
    r"\b(?:prefer|avoid|should(?:n't| not)?|instead of|rather than|make sure|ensure|"
    r"only (?:\w+ )?(?:use|when|if|after)|before (?:you|every|each|any|committing|pushing|merging)|"
    r"no longer|not allowed)\b|,\s+not\s+\w",
    re.I,
)
_IMPERATIVE = re.compile(
    r"(?:use|run|write|keep|add|put|test|commit|name|check|call|create|update|follow|read|ask|start|stop|move|place|"
    r"return|raise|log|mark|wrap|pin|format|lint|document|register|declare|import|export|delete|remove|open|push)\b",
    re.I,
)
_URGENT = re.compile(r"\b(?:IMPORTANT|CRITICAL|NEVER|ALWAYS|MUST|WARNING)\b|\*\*")
_RULE_HEADING = re.compile(
    r"\b(?:rules?|convention|guideline|style|workflow|command|test|gotcha|pitfall|preference|polic|commit|review|"
    r"do(?:'?s)? and don'?ts?|practice|requirement|must|security)",
    re.I,
)
_OF_RULES = re.compile(r"\W*(?:\w+ ){0,3}(?:rules|conventions|guidelines|preferences)\W*\Z", re.I)
_TELLS = re.compile(r"\W*(?:the|an?|this|that|these|it|we|our|there|they)\b", re.I)
_PROSE_HEADING = re.compile(
    r"\b(?:overview|structure|layout|architecture|licen[cs]e|about|background|introduction|table of contents|"
    r"changelog|credits|further reading|links|history)\b",
    re.I,
)
_LINK_ONLY = re.compile(r"\W*(?:!?\[[^\]]*\]\([^)]*\)|https?://\S+|@\S+)\W*(?:[—–:-]\s*)?\S{0,20}\Z")
_BULLET = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(?P<text>.*?)\s*#*\s*\Z")
_FIELD = re.compile(r"[\s*>-]*\**(?:status|date|deciders?|authors?|tags?)\**\s*:.*", re.I)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"'])")


@dataclass(frozen=True)
class Proposal:
    """An entry proposed from a file; not scrubbed yet."""

    kind: str
    statement: str
    title: str
    line: int
    """Number of its first line, from 1."""
    heading: str
    score: float
    why: str

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the statement."""
        return fingerprint(self.statement)


def rules_in(text: str) -> list[Proposal]:
    """Return the rules in a file of instructions, each once, the strongest first."""
    found: dict[str, Proposal] = {}
    for line, heading, sentence in _sentences(text):
        score, why = grade(sentence, heading)
        if score >= LEAST_SCORE:
            one = Proposal("convention", sentence, title_of(sentence), line, heading, score, why)
            known = found.get(one.fingerprint)
            if known is None or known.score < score:
                found[one.fingerprint] = one
    return ranked(found.values())


_INJECTION = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|preceding)\b
        [^.]{0,30}\b(?:instructions?|rules?|prompts?|messages)\b
    | \b(?:save|store|remember|record|memori[sz]e)\ (?:this|that|it|the\ following)\b[^.]{0,30}\bas\b[^.]{0,20}
        \b(?:rule|preference|memory|instruction|always[- ]load)\b
    | \b(?:do\ not|don't|never)\ (?:tell|inform|notify)\b[^.]{0,30}\b(?:user|human|operator)\b
    | <\s*/?\s*system\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_injection(text: str) -> bool:
    """Whether a text orders the agent to act against the user, which no rule of a repository does."""
    bare = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return _INJECTION.search(" ".join(bare.split())) is not None


def injections_in(text: str) -> list[int]:
    """Return the numbers of the lines, from 1, in which a file of instructions orders the agent to act against the
    user."""
    return [line for line, heading, sentence in _sentences(text) if is_injection(f"{heading}. {sentence}")]


def ranked(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Sort proposals, the strongest first; equals keep their order."""
    return sorted(proposals, key=lambda one: (-one.score, one.line))


def grade(sentence: str, heading: str = "") -> tuple[float, str]:
    """Return how strong a rule a sentence is, and the reason."""
    words = sentence.split()
    if not LEAST_WORDS <= len(words) <= MOST_WORDS or _LINK_ONLY.fullmatch(sentence):
        return 0.0, UNFIT
    score, reasons = 0.0, []
    for pattern, weight, reason in (
        (_RULE, 3.0, "it says always, never or must"),
        (_ADVICE, 2.0, "it prefers one thing to another"),
    ):
        if pattern.search(sentence):
            score += weight
            reasons.append(reason)
    if _IMPERATIVE.match(sentence.lstrip("*_`\"' ")):
        score += 1.5
        reasons.append("it is an instruction")
    if reasons and _URGENT.search(sentence):
        score += 0.5
    if reasons and "`" in sentence:
        score += 0.25
    if _OF_RULES.match(heading) and not _TELLS.match(sentence):
        score += LEAST_SCORE
        reasons.append("its heading says that it is a rule")
    elif _RULE_HEADING.search(heading):
        score += 0.75
    elif _PROSE_HEADING.search(heading):
        score -= 1.0
    return score, " and ".join(reasons) or DESCRIBES


def decision_in(text: str) -> Proposal | None:
    """Read a decision record: its title and the first paragraph below Decision; None for any other file.

    None also for records that are proposed, rejected or superseded.
    """
    sections: dict[str, list[str]] = {}
    current = ""
    for row in _without_header(text).split("\n"):
        heading = _HEADING.fullmatch(row)
        if heading is not None and len(heading[1]) > 1:
            current = heading["text"].strip().lower()
        sections.setdefault(current, []).append("" if heading else row)
    status = " ".join(sections.get("status", [])).strip().lower() or _inline_status(text)
    if re.search(r"\b(?:proposed|draft|rejected|deprecated|superseded)\b", status):
        return None
    name = next((name for name in sections if re.match(r"(?:the )?decisions?(?: outcome)?\b", name)), "")
    title = first_heading(text)
    if not title:
        return None
    paragraph = _first_paragraph("\n".join(sections.get(name, [])))
    title = re.sub(r"^(?:ADR\s*)?[-#]?\d{1,5}\s*[-.:·–—]*\s*", "", title, flags=re.I).strip()
    if not paragraph or not title:
        return None
    detail = cut(paragraph, MAX_DECISION_CHARACTERS)
    line = text[: text.find(title)].count("\n") + 1
    return Proposal("decision", f"{title}: {detail}", title_of(title), line, name, 3.0, "it is an accepted decision")


def description_in(text: str) -> str:
    """Return the first paragraph of a file of instructions if it describes the project; else ''."""
    for part in re.split(r"\n\s*\n", _blanked(text)):
        lines = [line.strip() for line in part.split("\n") if line.strip() and not _HEADING.fullmatch(line)]
        if lines:
            said = " ".join(lines)
            is_prose = _BULLET.fullmatch(lines[0]) is None and not lines[0].startswith(("|", ">", "<", "```", "~~~"))
            return said if is_prose and grade(said)[1] == DESCRIBES else ""
    return ""


def index_of(project: str, instructions: Iterable[str], decisions: Iterable[tuple[str, str]]) -> str:
    """Describe the project and list its decisions, in one line; '' where the files hold neither.

    `instructions`: texts of files of instructions, of which the first description counts; `decisions`: name and text of
    each decision record.
    """
    described = next(filter(None, map(description_in, instructions)), "")
    found = ((name, decision_in(text)) for name, text in decisions)
    decided = [f"{one.title} ({name})" for name, one in found if one is not None]
    parts = [f"{project}: {described}"] if described else []
    parts += [f"Decisions of {project}: {'; '.join(decided)}."] if decided else []
    return cut(" ".join(parts), MAX_STATEMENT_CHARACTERS)


def title_of(statement: str) -> str:
    """Return a statement as a heading: without markup, cut at a word."""
    line = re.sub(r"[*`]|__", "", statement).strip().rstrip(".")
    line = cut(line, TITLE_CHARACTERS)
    return line[:1].upper() + line[1:]


def _sentences(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, heading, sentence) of lists and paragraphs, without code, comments, tables and quotations."""
    heading = ""
    held: list[str] = []
    begun = 0

    def passage() -> Iterator[tuple[int, str, str]]:
        joined = " ".join(" ".join(held).split())
        held.clear()
        for sentence in _SENTENCE_END.split(joined):
            if sentence:
                yield begun, heading, sentence[:MAX_STATEMENT_CHARACTERS]

    lines = _blanked(text).split("\n")
    before = -1
    for number, _ in unfenced(line.lstrip() for line in lines):
        if number > before + 1:  # Code is between.
            yield from passage()
        line, before = lines[number], number
        head, bullet = _HEADING.fullmatch(line), _BULLET.fullmatch(line)
        if head is not None or bullet is not None or not line.strip() or line.lstrip().startswith(("|", ">", "<")):
            yield from passage()
            heading = head["text"] if head is not None else heading
            if bullet is not None:
                begun, held = number + 1, [bullet["text"]]
        else:
            if not held:
                begun = number + 1
            held.append(line.strip())
    yield from passage()


def _blanked(text: str) -> str:
    """Blank out frontmatter and comments, keeping the line numbers."""
    bare = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    body = _without_header(bare)
    return "\n" * (bare.count("\n") - body.count("\n")) + body


def _without_header(text: str) -> str:
    match = re.match(r"---\n.*?\n---[ \t]*(?:\n|\Z)", text, re.S)
    return text[match.end() :] if match else text


def _inline_status(text: str) -> str:
    match = re.search(r"^[\s*>-]*\**status\**\s*:\**\s*(.{1,80})$", text, re.I | re.M)
    return match[1].lower() if match else ""


def _first_paragraph(text: str) -> str:
    """Return the first passage with more than a heading or a line like `Status: accepted`; of a list the first item."""
    for part in re.split(r"\n\s*\n", text.strip()):
        lines = [line for line in part.split("\n") if not _HEADING.fullmatch(line) and not _FIELD.fullmatch(line)]
        if not any(line.strip() for line in lines):
            continue
        if (first := _BULLET.fullmatch(lines[0])) is not None:
            following = [number for number, line in enumerate(lines[1:], start=1) if _BULLET.fullmatch(line)]
            lines = [first["text"], *lines[1 : following[0] if following else None]]
        return " ".join(" ".join(lines).split())
    return ""
