"""Where a message holds what may be another's: blocks apart from the words that the person typed around them.

A block is told by its form (quotation marks, indentation, a prefix, a frame, a label) or by the line before it, which
introduces something, shows it, or asks to have it changed. A guess that errs towards "apart": what stands there is put
to the user instead of being saved unasked, and nothing of it is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_DEICTIC = re.compile(r"\b(?:this|these|those|such|following|below)\b", re.IGNORECASE)
# "This is the third time.", "commit this": the state of things, or the work at hand.
_OF_THE_WORK = re.compile(
    r"(?:this|these|those)\s+(?:is|was|are|were|took|takes|should|must|works?)\b(?!\s+(?:what|how|the text))"
    r"|[^.?!]{0,60}\b(?:commit|merge|push|ship|deploy|do|try|run|test|build|fix|implement|revert|undo|keep|like"
    r"|finish)"
    r"\s+(?:this|these|those)(?:\s+(?:now|first|please|too|again|time|way|task|branch|file|page|bug"
    r"|feature))?\W*\Z",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\b(?:says?|said(?!\s+(?:yesterday|before))|saying|sent|found|gets?|wrote|writes|reads|prints?|shows?"
    r"|typed|told\s+(?:me|us)|answer(?:s|ed)|contain(?:s|ed)"
    r"|suggest(?:s|ed)|propose[sd]|is|was|to|with|as|that|which|from|like)\W*\Z",
    re.IGNORECASE,
)
_OTHERS_SAY = re.compile(r"(?<!\bI )\b(?:sent|wrote|said|says|told|posted|typed|commented|answered)\b", re.IGNORECASE)
_ASKS_ABOUT_IT = re.compile(r"\b(?:it|he|she|they)\b[^?]{0,80}\?\Z", re.IGNORECASE)
_TEXT = re.compile(
    r"\b(?:text|sentences?|paragraph|wording|grammar|e-?mails?|letter|messages?|prompt|comments?|docstring"
    r"|quotes?|thread"
    r"|chat|conversation|transcript|tweet|posts?|article|blog|page|forum|reddit|slack|whatsapp|telegram|discord"
    r"|news"
    r"|readme|wiki|handbook|manual|docs?|document|guide|ticket|issue|description|changelog|notes|minutes|memo"
    r"|diff|patch"
    r"|logs?|output|snippet|config|poem|lyrics|essay|abstract|draft|slide|survey|exam|quiz|faq|opinions?|advice"
    r"|instructions?|spec|policy|line|string|label|input|example|question|feedback|reviews?|reports?"
    r"|clipboard|paste)\b|\.(?:md|txt|rst"
    r"|\w+rules)\W*\Z",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"(?:(?:please|pls|can|could|would|you|help|me|let's|now|also)\s+){0,4}"
    r"(?:rephrase|reword|rewrite|paraphrase|translate|proofread|correct|polish|shorten|summari[sz]e|simplify"
    r"|explain"
    r"|classify|convert|cluster|compare|draft|improve|turn\s+(?:this|it)|make\s+it)\b",
    re.IGNORECASE,
)
_OWN_LABEL = re.compile(
    r"\b(?:rules?|remember|notes?|important|reminder|from now on|preferences?|fyi|btw|ps|also|and|but|so"
    r"|things?|todo|tasks?|always|never|please|before|after|when|for|first|second|next|then|ok|okay|yes|no"
    r"|sorry|again|I|we|my|mine|you)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"(?:fix|add|update|write|remove|delete|open|close|create|check|read|run|go|look|commit|push)\b", re.I
)
_LABEL = re.compile(r"\s{0,8}(?:[-*]\s)?([^\s:.?!\"'`][^:.?!\n]{0,38}):\s+\S")
_FRAME = re.compile(r"\s{0,8}([=*~_#+\"'-])\1{2,}\W*\Z")
_FORM = re.compile(
    r"""
      (?:\ {4}|\t)\s*\S                                       # indented
    | \s*(?:>|\||│|┃|⏺|⎿|❯|➜|\$\s|//|/\*|\*/|<!--|<{7}|={7}|>{7}|@@|\+\+\+|---|<\s)
    | [+<]\s?\w | [#]{1,6}\s+\S | ={2,6}\s+\S | h[1-6]\.\s | \\\w+\{ | \*{2,6}\s\S | ::\w+
    | \s*</?[A-Za-z][^<>]{0,200}>
    | \s*[{\["'“„«(]\s*["'\w]+["']?\s*[:=,] | \s*["“„«]
    | \s*\[?\d{1,4}[-:./]\d{1,2}(?:[-:./]\d{1,4})?\b          # a date, a time
    | \s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*,?\s+\d
    | \s*\[[^\]\n]{1,60}\]\s | \s*\d+\t | [0-9a-f]{7,40}\s | \S+:\d+:\s?\S
    | [A-Z]\s{3,}\S | (?:npm|DEBUG|INFO|WARN(?:ING)?|ERROR)\s
    | [\w.-]{1,40}\s?=\s?\S | \w+\s["'].*["']\s*\Z
    | [-+]\ ?[\[(][ xX]?[\])]\s
    | \w[\w.]*\([^)\n]{0,200}\).{0,4}\Z
    | \S.*\S\s{3,}\S                                          # columns
    """,
    re.VERBOSE,
)
_CELLS = re.compile(r"[^\s,;]+[,;](?=\S)[^\n]*\Z")
# From here on it is all of one kind: a mail, a document below its heading, subtitles.
_OPENS_REST = re.compile(
    r"(?:Subject|From|To|Cc|Date|Betreff|Von|An|Datum|Objet|De|Asunto):\s|#{1,6}\s\S|={2,6}\s\S|h[1-6]\.\s"
    r"|\\\w*section\{"
    r"|[\d:.,]+\s-->\s[\d:.,]+"
)
_QUOTED = re.compile(
    r"\"[^\"\n]{12,2000}\"|“[^”\n]{12,2000}”|(?<!\w)'[^'\n]{12,2000}'(?!\w)"
    r"|«[^»\n]{12,2000}»"
)
_REFERS_BACK = re.compile(
    r"(?:what|why|who|which|where|how|is|are|was|does|do|can|could|should|would|the|that|that's|these|those"
    r"|this|fix|explain"
    r"|convert|sort|parse|translate|resolve|turn|make|drop|remove|delete|count|strip|render|draft|summari[sz]e"
    r"|sounds)\b"
    r"[^\n]{0,200}(?:\b(?:this|that|these|those|it|above)\b|\?)|(?:that|these|those)(?:'s|\s(?:is|are|was|were))\b",
    re.IGNORECASE,
)
_OWN_END = re.compile(r"(?:thanks?|thx|ty|please|cheers|ok|and|now|then|also)\b", re.IGNORECASE)
_SAYING = re.compile(r"\b(?:say|says|said|saying|reads?|called|titled|named)[:,]?\s+(?=[A-Z]\w+\s)")
_ITEM = re.compile(r"(?:[-*•+]|\d{1,2}[.)])\s")
_SENTENCE = re.compile(r"[^.?!\n]+[.?!]+(?=\s)\s*")
_POINTS = re.compile(r"\b(?:this|these|following|below)\b[^\n]*\?\s*\Z|\b(?:the following|below)\b", re.IGNORECASE)
_FOLLOWING = re.compile(r"\b(?:the following|below)\b", re.IGNORECASE)
_ABOVE = re.compile(r"\babove\W*\Z|\bthe \w+ above\b", re.IGNORECASE)
# Behind a sentence on its line: "<- reword this", "(Tom, yesterday)", "- seen today".
_NOTE_BEHIND = re.compile(r"[.!?]\s+(?:<-|←|\^|[-–—]{1,2}\s|\([^()\n]{1,80}\)\W{0,3}\Z)")
_ASKS_BEHIND = re.compile(
    r"[.!?]\s+(?:what|is|are|was|were|does|did|do)\s(?:this|that|these|those)\s[^.?!\n]{1,80}\?\W{0,3}\Z"
)
_TAG_LINE = re.compile(r"\s*<(/?)([A-Za-z][\w:.-]{0,60})(?:\s[^<>]*)?>\s*\Z")
_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_TITLE = re.compile(r"[A-Z0-9][^\n.,;:!?]{0,60}")
_ENDS_SENTENCE = re.compile(r"[^\w\s\"'`/>\])]\Z|:\)\Z")
_FROM_WHERE = re.compile(
    r"(?:\(|\^|--\s|[—–~]\s?|(?:source|from|via|quoted|copied|author|quelle)\b[:\s])", re.IGNORECASE
)
_CLOSES_MAIL = re.compile(
    r"(?:(?:kind|best|warm|many)\s)?(?:best|regards|wishes|cheers|sincerely|yours|gr(?:ü|u)(?:ß|ss)e"
    r"|cordialement)\b[^\n]{0,20}\Z",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[^\W\d_][^\s.?!,]*(?: [^\s.?!,]+){0,2}, [A-Z]\w+(?: [A-Z]\w+)?")
_OF_ANOTHER = re.compile(r"(?<!\blet)(?<!\bthat)(?<!\bit)(?<!\bhere)(?<!\bwhat)'s\b", re.IGNORECASE)
SHORT_WORDS = 3
"""A question, or a mention of a text, in so few words is about what stands beside it: "Typo here?", "Draft 2."."""
LEAST_LEAD_WORDS = 3
LEAD_CHARS = 120
"""A longer line introduces nothing, and speaks of nothing before it."""


def apart_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Character ranges of a message that may be another's words. In order; they may touch, and overlap nothing."""
    found = sorted(
        [*_quoted(text), *_in_form(text), *_enclosed(text), *_headed(text), *_introduced(text), *_spoken_of(text)]
    )
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif start < end:
            merged.append((start, end))
    return tuple(merged)


def _quoted(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _QUOTED.finditer(text))
    for match in _SAYING.finditer(text):
        line_end = text.find("\n", match.end())
        yield match.end(), line_end if line_end >= 0 else len(text)


def _lines(text: str) -> list[tuple[int, int, str]]:
    lines = []
    position = 0
    for line in text.splitlines(keepends=True):
        lines.append((position, position + len(line), line.rstrip("\r\n")))
        position += len(line)
    return lines


def _in_form(text: str) -> Iterator[tuple[int, int]]:
    lines = _lines(text)
    frame = -1
    for index, (start, end, line) in enumerate(lines):
        head = line[:400]
        if _FRAME.match(head):
            # A line of one mark alone: it frames what follows, or underlines the line before, which heads the rest.
            if frame >= 0:
                yield frame, end
                frame = -1
            else:
                frame = start
                if index and lines[index - 1][2].strip():
                    yield start, len(text)
        elif _OPENS_REST.match(head) and text[end:].strip():
            yield start, len(text)
            return
        elif _FORM.match(head) or _CELLS.match(head):
            yield start, end
        else:
            label = _LABEL.match(head)
            if label is not None and not _is_own_label(label.group(1)):
                yield start, end


def _enclosed(text: str) -> Iterator[tuple[int, int]]:
    """Yield what stands between the lines of an opening and a closing tag."""
    opened: dict[str, int] = {}
    for start, end, line in _lines(text):
        if (tag := _TAG_LINE.match(line[:400])) is None:
            continue
        if not tag.group(1):
            opened.setdefault(tag.group(2), start)
        elif tag.group(2) in opened:
            yield opened.pop(tag.group(2)), end


def _headed(text: str) -> Iterator[tuple[int, int]]:
    """Yield all from the first heading on, where two or more paragraphs stand below short lines of their own."""
    paragraphs = list(_PARAGRAPH.finditer(text))
    headings = [
        part.start()
        for part, below in pairwise(paragraphs)
        if _TITLE.fullmatch(part.group()) and not _TITLE.fullmatch(below.group())
    ]
    if len(headings) > 1:
        yield headings[0], len(text)


def _is_own_label(label: str) -> bool:
    """Whether a label, or a line with a colon, announces what the person says: "New rule", "What I want"."""
    return _OWN_LABEL.search(label) is not None and not any(
        others.search(label) for others in (_TEXT, _SAYS, _OTHERS_SAY, _OF_ANOTHER)
    )


def _introduces(line: str, behind: str) -> bool:
    """Whether what stands behind the line may be what it speaks of."""
    line = line.strip()
    if not line or len(line) > LEAD_CHARS:
        return False
    if line.endswith(":"):
        return not _is_own_label(line[:-1])
    is_short = len(line.split()) <= SHORT_WORDS
    if line.endswith("?") and _ITEM.match(behind):
        return True
    if is_short and (line.endswith("?") or _TEXT.search(line)):
        return True
    if line[0] in "([" and line[-1] in ")]":
        return True
    if _CHANGES.match(line) or _ASKS_ABOUT_IT.search(line) or _FOLLOWING.search(line):
        return True
    if _DEICTIC.search(line) and not _OF_THE_WORK.match(line):
        return not (line.endswith(".") and _TEXT.search(line) is None)
    if line.endswith((".", "!", "?")):
        return False
    if len(line.split()) >= LEAST_LEAD_WORDS and _ENDS_SENTENCE.search(line) is None and not _ITEM.match(line):
        return True  # It is no sentence by itself: what follows may be what it is about.
    return _SAYS.search(line) is not None or (_TEXT.search(line) is not None and _ORDERS.match(line) is None)


def _introduced(text: str) -> Iterator[tuple[int, int]]:
    for start, end, line in _lines(text):
        if text[end:].strip() and _introduces(line, text[end : end + LEAD_CHARS].lstrip()):
            yield end, len(text)
            return
        for first in _SENTENCE.finditer(line[:LEAD_CHARS]):
            # Of a sentence with another behind it on the line only what it points at tells.
            said = first.group()
            if _POINTS.search(said) and not _OF_THE_WORK.match(said) and line[first.end() :].strip():
                yield start + first.end(), len(text)
                return


def _spoken_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield what stands before a last line that speaks of it: "who is right?", "what does this comment mean"."""
    lines = [each for each in _lines(text) if each[2].strip()]
    for start, _, line in lines[1:]:
        said = line.strip()
        signs = start == lines[-1][0] and _SIGNS.fullmatch(said) is not None
        if (signs or _CLOSES_MAIL.match(said)) and len(lines) > 2:
            yield 0, len(text)
            return
        is_source = start == lines[-1][0] and _FROM_WHERE.match(said) is not None
        if len(said) > LEAD_CHARS:
            continue
        if is_source or _ABOVE.search(said) or (_REFERS_BACK.match(said) and not _OWN_END.match(said)):
            yield 0, start
            return
    for start, _, line in _lines(text):
        if (note := _NOTE_BEHIND.search(line) or _ASKS_BEHIND.search(line)) is not None:
            yield start, start + note.start()
