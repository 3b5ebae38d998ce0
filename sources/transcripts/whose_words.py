"""Separate what the user typed from what the host, a program or a pasted document added."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ...runtime.private import mark_private
from ...vault.typed_text import typed_text, words_to_agent
from .lines import clean

_IMAGE_MARK = re.compile(r"\[(?:Image|PDF|Pasted text|Attachment|File)(?: #?\d+| \+\d+ lines|:[^\]\n]{0,300}){1,2}\]")
_TRAILING_BLANKS = re.compile(r"(?<![ \t])[ \t]+\n")
# Up to the last such heading: the file that is open in the editor may hold one.
_IDE_REQUEST = re.compile(r"\A# Context from my IDE setup:.*^## My request[^\n]*\n", re.DOTALL | re.MULTILINE)

_FORM = re.compile(
    r"""
      (?:\ {4}|\t)\s*\S                                       # indented
    | \s*(?:>|\||│|┃|⏺|⎿|❯|➜|//|/\*|\*/|<!--|<{7}|={7}|>{7}|@@|\+\+\+|---)
    | \s*</?[A-Za-z][^<>]{0,200}>
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"\"[^\"\n]{12,2000}\"|“[^”\n]{12,2000}”|(?<!\w)'[^'\n]{12,2000}'(?!\w)"
    r"|«[^»\n]{12,2000}»|„[^“”\n]{12,2000}[“”]|「[^」\n]{6,2000}」"
)
_TAG_LINE = re.compile(r"\s*<(/?)([A-Za-z][\w:.-]{0,60})(?:\s[^<>]*)?>\s*\Z")


def own_text(text: str) -> str:
    """Return a message without the host's passages and without `<private>` ones; "" if nothing is left.

    A private passage inside a sentence is replaced by a mark.
    """
    text = typed_text(mark_private(clean(text)))
    if text.startswith("# Context from my IDE setup:"):
        text = _IDE_REQUEST.sub("", text)
    if "[" in text:
        text = _IMAGE_MARK.sub("", text)
    return _TRAILING_BLANKS.sub("\n", text).strip()


def entered_text(text: str) -> str:
    """Return `own_text` of a line entered at the prompt; "" for a command of the shell or the host."""
    return words_to_agent(own_text(text))


# A letter, digit or mark that opens a sentence, a path or an item of a list; and no name of an event.
_PERSONS_FORM = re.compile(r"(?!```|\w+:[A-Za-z][\w-]*\s|[\w:]+ hook [a-z ]{3,40}:)[\w@/~'\"‘“„«`(.,!?¡¿-]")


def has_machines_form(text: str) -> bool:
    """Whether a message begins in a form that a program may have written: a line in brackets, a heading, an element, a
    picture.

    A person's message begins with a letter, a digit or a mark of `_PERSONS_FORM`: 637 of 646 typed messages do.
    """
    return _PERSONS_FORM.match(_IMAGE_MARK.sub("", clean(text)).lstrip()) is None


SHORTEST_LABEL = 5
"""Letters and digits; a shorter label only counts as the whole answer."""


def _plain(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def offered_in(arguments: dict[str, Any]) -> frozenset[str]:
    """Return every text in the agent's questions, letters and digits only."""
    found: set[str] = set()
    left: list[object] = [arguments]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.add(_plain(one))
        else:
            left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return frozenset(found - {""})


def was_asked(question: str, offered: frozenset[str]) -> bool:
    """Whether the agent asked this question. `offered`: the result of `offered_in`."""
    return _plain(question) in offered


def is_offered(answer: str, offered: frozenset[str]) -> bool:
    """Whether an answer contains an option of the agent, or is a part of one: hosts join and shorten labels."""
    said = _plain(answer)
    return any(said == one or (len(one) >= SHORTEST_LABEL and one in said) or (said and said in one) for one in offered)


def picked_ranges(text: str, labels: Collection[str]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of an answer that are picked options, which the agent worded.

    Several picked labels are joined by commas, and a label may itself hold commas.
    """
    options = "|".join(map(re.escape, sorted(filter(None, labels), key=len, reverse=True)))
    picked = re.compile(rf"(?:\A|(?<=,)|(?<=, ))(?:{options})(?=\s*(?:,|\Z))")
    spans = [match.span() for match in picked.finditer(text)] if options else []
    if spans and not picked.sub("", text).strip(", "):
        return ((0, len(text)),)
    return tuple(sorted({*pasted_ranges(text), *spans})) if spans else ()


_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_BEGINS_BLOCK = re.compile(r"\s*(?:`{3}|~{3}|>)")
_QUOTE_LINE = re.compile(r"\s{0,3}>")
_MACHINE_LINE = re.compile(
    r"""
    \s*(?:
      \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d            # a dated log line
    | \[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\]?\s      # a timed one
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s\d\d:\d\d
    | (?:[\w.-]+=\S*\s+){2}
    | (?:remote|From|Author|Date|Commit|commit|Merge|create\ mode|rename|delete\ mode)[:\s]\s*
      (?:[0-9a-f]{7,40}|https?:|\d{6}|\w+\s<|\w{3}\s\w{3}\s\d)
    | (?:[*]\ branch|\d+\ files?\ changed|create\ mode\ \d)
    | ={3,}
    | (?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE|panic|error|warning|fatal|npm\ ERR!)[:\[\]]\s*\S
    | (?:Traceback\ |File\ "|at\ [\w.$<>\[\] ]+\(|goroutine\ \d|Caused\ by:|\.\.\.\ \d+\ more)
    | (?:\w+\.)*\w*(?:Error|Exception|Warning):\s
    | (?:---|\+\+\+|@@|diff\ --git|index\ [0-9a-f]{7})\s
    | [+-]\s{0,20}[\w.]+[({=:;]
    | [➜❯$%»]\s+\S | [\w.-]+@[\w.-]+[:\s][^$#\n]{0,80}[$#%]\s
    | [⏺⎿●○✓✔✗✘×│┃╭╰├└┌─━═║▶]
    | (?:===|---)\s+(?:RUN|PASS|FAIL|SKIP) | (?:PASS|FAIL|ok|FAILED|PASSED)\s+\S+[/.:]
    | \|.*\|\s*$                                 # a table
    | [{}\[\]()]+[,;]?\s*$
    | "[\w$.@/-]+"\s*:\s
    | </?[a-zA-Z][\w:.-]*(?:\s[^<>]*)?/?>
    | (?:import|from|return|package|export|type|if|for|while|else)\b[^.?!]*[;{]\s*$
    | (?:const|let|var|func|def|class|public|private|static|struct|interface|fn|async)\s+\w[^.?!]*[;{:)=]\s*$
    | [\w.\[\]"'-]+\s*(?::?=|\+=)\s*\S.*
    | //.*|/\*.*|\*/.*
    | [^\s"'`]*/[^\s"'`]+:\d+(?::\d+)?[:\s]
    | (?:drwx|-rw|lrwx)[rwx-]{6}
    | .*[;{]\s*$
    )
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_LONG_QUOTE = re.compile(r'"[^"\n]{120,2000}"|“[^”\n]{120,2000}”')
_BULLET = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+\S")
LONG_MESSAGE = 700
"""Characters; a longer message that begins with a heading is a document."""


def pasted_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Return character ranges of a user's message that look pasted: code fences, quoted lines, logs, traces, diffs,
    tables, long quotations, and documents with headings.

    In doubt a range counts as pasted: that error costs the user a question, the other one a junk rule.
    """
    if len(text) <= LONG_MESSAGE and len(text.splitlines()) < 2 and not _BEGINS_BLOCK.match(text):
        # Most messages: all other kinds have two lines or a mark at the beginning.
        return _merged(_long_quotes(text), len(text))
    return _merged([*_fences(text), *_blocks(text), *_long_quotes(text)], len(text))


def _long_quotes(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _LONG_QUOTE.finditer(text)] if '"' in text or "“" in text else []


def _fences(text: str) -> Iterator[tuple[int, int]]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence.group(1)[0] == opened.group(1)[0] and len(fence.group(1)) >= len(opened.group(1)):
            yield opened.start(), fence.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    # Runs of lines that a program wrote, with blank lines inside. A single one may be a coincidence of punctuation.
    run: list[tuple[int, int]] = []
    position = 0
    for each in [*text.splitlines(keepends=True), "end"]:
        start, position, line = position, position + len(each), each.rstrip("\r\n")
        if _QUOTE_LINE.match(line):
            yield start, position
        if not line.strip():
            continue
        if _is_machine(line):
            run.append((start, position))
            continue
        if len(run) >= 2:
            yield run[0][0], run[-1][1]
        run = []

    headings = [m.start() for m in _HEADING.finditer(text)]
    if len(headings) >= 2 or (headings and headings[0] == 0 and len(text) > LONG_MESSAGE):
        yield headings[0], len(text)


def _is_machine(line: str) -> bool:
    head = line[:400]
    if _BULLET.match(head) and not head.rstrip().endswith((";", "{", "}")):
        return False
    if _MACHINE_LINE.match(head):
        return True
    letters = sum(map(str.isalpha, head)) + head.count(" ")
    return len(head) > 12 and letters < 0.6 * len(head)


def _merged(ranges: list[tuple[int, int]], length: int) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        end = min(end, length)
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)


def apart_ranges(text: str, known: Iterable[tuple[int, int]] = ()) -> tuple[tuple[int, int], ...]:
    """Return the ranges [start, end) of a message that are marked as another's words, in order and without overlaps.

    Only certain marks count: quotation marks, indentation, marks of lines, and tags. Where there is none,
    `pipelines/reading/surroundings.py` judges whose the words are. `known`: such ranges that are known already.
    """
    return _merged([*(match.span() for match in _QUOTED.finditer(text)), *_in_form(text), *known], len(text))


def _in_form(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that begin with a mark, and the blocks from an opening tag's line to the closing tag's."""
    opened: dict[str, int] = {}
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        head = line.rstrip("\r\n")[:400]
        if _FORM.match(head):
            yield start, position
        if (tag := _TAG_LINE.match(head)) is None:
            continue
        if not tag.group(1):
            opened.setdefault(tag.group(2), start)
        elif tag.group(2) in opened:
            yield opened.pop(tag.group(2)), position
