"""Messages cut into sentences, and a judgement on each: were these words typed in conversation?

People paste into a prompt what others wrote: logs, diffs, review comments, READMEs. The transcript readers mark what
is plainly not prose (`Turn.pasted`); what is left can still be a document. A sentence counts as *spoken* only if it
stands in conversation: a rule that a document states is not a rule the user stated.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ...vault.turn import Turn
from .attribution import Attribution, AttributionTracker, introduces_own
from .caseless_pattern import CaselessPattern
from .common_patterns import FOR_GOOD, REPLIES
from .rule_certainty import Certainty
from .standing_rules import standing_rule

MAX_SENTENCES = 60
"""A message longer than this is a document; its head and tail hold what the user says about it."""

MAX_SENTENCE_CHARS = 600

_MARKER = re.compile(r"^\s*(?:[-*•+]\s+|\(?\d{1,2}[.)]\s+|[A-Za-z][.)]\s+|#{1,6}\s+|>\s?)")
_BOUNDARY = re.compile(r"[.!?…]([\"')\]*_`]*\s+)(?=\S)")
_WIDE_BOUNDARY = re.compile(_BOUNDARY.pattern + r"|[。！？｡]([\"')\]*_`」』）”]*+\s*+)(?=\S)")
"""The same with the marks of Chinese and Japanese, which no blank follows."""
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|fig|no|mr|ms|dr|st)\.|\.\.\.?)$", re.IGNORECASE
)

_LONGEST_ABBREVIATION = 12
"""Characters, with what shows that a word begins there."""

_STRUCTURE = re.compile(
    r"""^\s*(?:
        \#{1,6}\s | \|.*\| | ```|~~~ | </?[a-zA-Z][\w-]*[^>]*>\s*$ | [-=*_]{3,}\s*$ | ={3}\s |
        [+-]{3}\s\S | @@\s | (?:[+-]\s{2,}\S) | \$\s\S | >>>\s | at\s\S+\(.*\) | File\s\" |
        \d{4}-\d\d-\d\d[T\s]\d\d:\d\d | \w{3}\s+\d+\s\d\d:\d\d:\d\d | \[\d\d:\d\d |
        (?:ERROR|WARN|INFO|DEBUG|FAIL|PASS|FATAL)\b[\s:] | ---\s(?:FAIL|PASS) |
        (?:not\s)?ok\s+(?:\d+\s+(?!(?:more|other|last|quick|small|things?|notes?|points?|rules?|questions?|changes?)\b)
            -?\s*\S | \S+\s+(?:\d[\d.]*s\b | \(cached\) | \[no\stest)) | ok:\s\[ |
        [{}\[\]();,]+\s*$ | "[\w-]+"\s*: | (?:import|package|func|def|class|const|let|var|return|if)\b.*[{(;:]\s*$ |
        [│├└┌┐┘─━●⏺⎿✓✗⨯•]\s*
    )""",
    re.VERBOSE,
)
"""A line that nobody types into a prompt as prose: headings, tables, logs, diffs, code, box drawing."""

_COMMAND = re.compile(r"\s*\$\s\S")
"""A line of a terminal: what follows up to a blank line may be what it printed."""
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")

_QUOTATION = re.compile(
    r"""(?<![\w"])"(?=[^\s"])[^"\n]*(?<=[^\s"])"(?!\w)|“[^”\n]{0,2000}”|«[^»\n]{0,2000}»|„[^“”\n]{0,2000}[“”]"""
)
"""A passage in quotation marks. Pairs are taken from the left, so that what stands between two of them is none."""
_HAS_MARKS = re.compile(r'["“«„]')
_NOBODYS: frozenset[int] = frozenset()
MAX_LEAD_CHARS = 200
"""Characters before a quotation that may say whose words it holds."""

_CONVERSATION = re.compile(
    rf"""(?:\b(?:i|i'm|i'd|i'll|i've|im|me|my|you|your|we|we're|we'd|we'll|we've|our|us|let's|lets|please|pls|thanks|thank|
        yes|yep|yeah|yup|no|nope|nah|ok|okay|sure|great|good|nice|cool|perfect|hmm+|hm|oh|ah|hey|wait|stop|sorry|
        also|btw|lol|actually|alright|right|remember|don't|dont|do\ not|can|could|should|why|what|how|where)\b|
        ^{REPLIES}|{FOR_GOOD}|[?!]|[😀-🙏🌀-🗿🤀-🧿])""",
    re.IGNORECASE | re.VERBOSE,
)

_CONVERSATION_IN_LOWER_CASE = CaselessPattern(_CONVERSATION).lower_case_pattern or _CONVERSATION


def _converses(sentence: str) -> bool:
    if sentence.isascii():
        return _CONVERSATION_IN_LOWER_CASE.search(sentence.lower()) is not None
    return _CONVERSATION.search(sentence) is not None


_INTRODUCES_QUOTE = re.compile(
    r"(?:\b(?:feedback|comments?|review|says?|said|error|output|log|logs|readme|docs?|following|this|issue|message|text|prompt"
    r"|finding|suggestion|report)\b[^.?!\n]{0,60}|^(?:for|regarding|and|about)\b[^.?!\n]{0,80}):\s*$",
    re.IGNORECASE,
)

_MAIL_HEADER = re.compile(r"(?:from|to|cc|subject|date|sent|reply-to|von|an|betreff|gesendet):\s\S", re.IGNORECASE)
_SOMEBODY_WROTE = re.compile(
    r"""(?:on|am)\s.{4,120}\b(?:wrote|schrieb)\b.{0,80}:$
      | [\w.'-]+(?:\s[\w.'-]+){0,3}\s{1,4}(?:\[|\()?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp]\.?[Mm]\.?)?(?:\]|\))?:?$
      | -{3,}\s?(?:original|forwarded|weitergeleitete|ursprüngliche)\b
      | \[?\d{1,2}:\d\d(?::\d\d)?\]?\s+<?[\w.'-]+>?:?\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""How mails and chats name who speaks next."""


_DOCUMENT_BEGINS = re.compile(r"#{1,6}\s+\S|```|~~~|\|.*\|$|={3,}|<[a-z!][^>]*>")


class Sentence(NamedTuple):
    """One sentence of a message. `start` and `end` are character offsets into the message's text."""

    text: str
    start: int
    end: int
    typed: bool
    """No part of it lies in a passage that was pasted, or in a document."""
    spoken: bool
    """Typed, and said in conversation rather than standing in a document."""
    opens: bool
    """The first sentence of its line."""
    introduced: bool
    """It stands below a line that introduces it, and not as the user's own, or in a quotation: it may be somebody's."""


_sentence = tuple.__new__
"""Makes a `Sentence` in half the time."""


def sentences(turn: Turn) -> tuple[Sentence, ...]:
    """The sentences of a message, in order; at most `MAX_SENTENCES`, from its head and its tail."""
    text = turn.text
    if not turn.is_users_words:
        return _bounded(_not_typed(text))
    document_from = _document_start(text)
    found: list[Sentence] = []
    tracker = AttributionTracker()
    position = 0
    previous_speaks = True
    fenced = False
    printed = False
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced:
            continue
        if _COMMAND.match(line):
            printed = True
        if not line.strip():
            printed = False
            previous_speaks = True
            tracker.blank()
            continue
        structural = _STRUCTURE.match(line) is not None or (document_from is not None and start >= document_from)
        prose = not structural and not _overlaps(turn.pasted, start, position)
        attribution = tracker.next(line, typed=prose)
        spans = _split(line)
        others = _in_quotations(line, spans) if prose and len(spans) > 1 and _HAS_MARKS.search(line) else _NOBODYS
        for index, (low, high) in enumerate(spans):
            sentence = line[low:high]
            quoted = structural or attribution is Attribution.QUOTED
            typed = not quoted and not _overlaps(turn.pasted, start + low, start + high)
            converses = _converses(sentence)
            # A rule in the middle of a paragraph is the user's when what surrounds it is conversation:
            # "specific trade-offs imply importance. Never use adjectives." is a style guide that was pasted.
            spoken = typed and (converses or index == 0 or previous_speaks) and low not in others
            found.append(
                Sentence(
                    sentence,
                    start + low,
                    start + high,
                    typed,
                    spoken,
                    opens=index == 0,
                    introduced=printed or attribution is not Attribution.OWN or low in others,
                )
            )
            if index + 1 < len(spans):  # Of the last one nobody asks: the next line begins anew.
                previous_speaks = converses or _starts_as_order(sentence) or (spoken and _states_rule(sentence))
    return _bounded(found)


def _in_quotations(line: str, spans: Sequence[tuple[int, int]]) -> Collection[int]:
    """Where the sentences begin that are part of a quotation of several: in "Be kind. Never push to main." somebody may
    speak, unless the user says that these are the user's own words. A word or a name in quotation marks is part of its
    sentence, and that is the user's."""
    begins = [low for low, _ in spans]
    found: set[int] = set()
    for match in _QUOTATION.finditer(line):
        start, end = match.span()
        first, last = bisect_left(begins, start), bisect_left(begins, end)
        if first < last and begins[first] == start and end <= spans[first][1]:
            first += 1
        if first < last and not introduces_own(line[max(0, start - MAX_LEAD_CHARS) : start]):
            found.update(begins[first:last])
    return found


def _not_typed(text: str) -> list[Sentence]:
    """The sentences of a message that is not the user's: what only tells typed words from pasted ones is not asked."""
    found: list[Sentence] = []
    position = 0
    fenced = False
    fences = "```" in text or "~~~" in text
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if fences and _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            first = True
            for low, high in _split(line):
                found.append(
                    _sentence(Sentence, (line[low:high], start + low, start + high, False, False, first, False))
                )
                first = False
    return found


def without_fenced(text: str) -> str:
    """The lines of a message that do not stand between fences, as `sentences` takes them."""
    if "```" not in text and "~~~" not in text:
        return text
    kept: list[str] = []
    fenced = False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            kept.append(line)
    return "".join(kept)


def _bounded(found: list[Sentence]) -> tuple[Sentence, ...]:
    if len(found) > MAX_SENTENCES:
        half = MAX_SENTENCES // 2
        found = found[:half] + found[-half:]
    return tuple(found)


def _overlaps(spans: tuple[tuple[int, int], ...], start: int, end: int) -> bool:
    return any(low < end and start < high for low, high in spans)


@functools.lru_cache(maxsize=8)
def looks_pasted(text: str) -> bool:
    """Is most of the message not the user's prose, but a document, a log or somebody's review?"""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    structural = sum(1 for line in lines if _STRUCTURE.match(line))
    return structural * 2 > len(lines) or len(text) > 4000


def _document_start(text: str) -> int | None:
    """Where a pasted document begins: the first heading or table, what follows "… feedback:" on its own line, a mail's
    head, or a chat."""
    position = 0
    previous = ""
    headed = -1
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped:
            if _SOMEBODY_WROTE.match(stripped):
                return position
            if _MAIL_HEADER.match(stripped):
                if headed >= 0:
                    return headed
                headed = position
            else:
                headed = -1
            if _DOCUMENT_BEGINS.match(stripped):
                return position
            if previous and _INTRODUCES_QUOTE.search(previous) and not _MARKER.match(line):
                return position
            previous = stripped
        position += len(line)
    return None


_ORDER = re.compile(
    r"^(?:and\s+|then\s+|also\s+)?(?:use|add|run|make|keep|write|put|move|remove|check|fix|rename|commit|push|create|update|"
    r"prefer|always|never|avoid|stop|start|do|go|try|read|look|ask|test|revert|drop|ignore|follow|leave)\b",
    re.IGNORECASE,
)


def _starts_as_order(sentence: str) -> bool:
    return _ORDER.match(sentence) is not None


_MAY_STATE_RULE = re.compile(
    r"\b(?:always|never|from|going|prefer|whenever|every|each|instead|stop|don'?t|do not|rules?|remember|policy)\b",
    re.IGNORECASE,
)


def _states_rule(sentence: str) -> bool:
    """ "From now on, use uv": who says so speaks in the next sentence, too."""
    # Asking of each sentence in all wordings would take a twentieth of the whole mining.
    rule = standing_rule(sentence) if _MAY_STATE_RULE.search(sentence) else None
    return rule is not None and rule.certainty is Certainty.STATED


def _split(line: str) -> list[tuple[int, int]]:
    """Sentence spans of one line, without list markers and surrounding space."""
    # Most lines begin with a word, which is no marker.
    marker = None if line[:2].isalpha() else _MARKER.match(line)
    low = marker.end() if marker else 0
    spans: list[tuple[int, int]] = []
    for boundary in (_BOUNDARY if line.isascii() else _WIDE_BOUNDARY).finditer(line, low):
        start, end = boundary.span(boundary.lastindex or 1)
        # Its end alone: a line of nothing but abbreviations would be read again at each of them.
        if not line[end].isupper() and _ABBREVIATION.search(line[max(low, start - _LONGEST_ABBREVIATION) : start]):
            continue
        _add_trimmed(spans, line, low, end)
        low = end
    _add_trimmed(spans, line, low, len(line))
    return spans


def _add_trimmed(spans: list[tuple[int, int]], line: str, low: int, high: int) -> None:
    piece = line[low:high]
    trimmed = piece.strip()
    if trimmed:
        start = low if trimmed[0] == piece[0] else high - len(piece.lstrip())
        length = len(trimmed)
        spans.append((start, start + (length if length < MAX_SENTENCE_CHARS else MAX_SENTENCE_CHARS)))
