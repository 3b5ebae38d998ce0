"""Whose words? Tells what a user typed from what a host, a program or a document put beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ...runtime import private
from ...vault.typed_text import typed_text, words_to_agent
from .lines import clean

_IMAGE_MARK = re.compile(r"\[(?:Image|Pasted text|Attachment|File)(?: #\d+| \+\d+ lines|:[^\]\n]{0,300}){1,2}\]")
_TRAILING_BLANKS = re.compile(r"(?<![ \t])[ \t]+\n")
_IDE_REQUEST = re.compile(r"\A# Context from my IDE setup:.*?^## My request[^\n]*\n", re.DOTALL | re.MULTILINE)


def own_text(text: str) -> str:
    """What is left of a message when a host's passages and `<private>` ones are taken out; "" for none.

    In a sentence out of which a private passage was taken there is a mark in its place.
    """
    text = clean(text)
    if private.may_have_private_tag(text):
        text = private.mark_private(text)
    text = typed_text(text)
    if text.startswith("# Context from my IDE setup:"):
        text = _IDE_REQUEST.sub("", text)
    if "[" in text:
        text = _IMAGE_MARK.sub("", text)
    return _TRAILING_BLANKS.sub("\n", text).strip()


def entered_text(text: str) -> str:
    """The same of a line as it was entered at the prompt: "" for one that the shell or the host runs."""
    return words_to_agent(own_text(text))


def strip_private(text: str) -> str:
    """The text without `<private>` passages. One whose beginning was cut off is taken to begin with the text."""
    return private.strip_private(text) if private.may_have_private_tag(text) else text


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
_NO_LETTERS = bytes(code for code in range(128) if not (chr(code).isalpha() or chr(code) == " "))
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_INTRODUCES = re.compile(
    r"\b(?:feedback|comments?|reviews?|reviewer|output|logs?|errors?|message|messages|response|report(?:ed|s)?"
    r"|says?|said|saying|got (?:this|the following)|gives?|gave|shows?|showing|here(?:'s| is| are)"
    r"|from (?:the )?(?:pr|review|issue|docs?|readme|ticket|bot|copilot|cursor|claude|codex|agent)"
    r"|suggest(?:s|ed|ion|ions)|description|below|following|prints?"
    r"|returned|failing|fails?|failed|example|context|spec|requirements?|ticket|issue|document"
    r"|summary|analysis|findings?)\b[^\n]{0,200}:\s*$",
    re.IGNORECASE,
)
_OWN_VOICE = re.compile(r"\b(?:I|I'm|I'd|I've|I'll|my|me|please|let's|lets|pls)\b")
_CONVERSES = re.compile(
    r"\b(?:I|I'm|we|we're|you|your|our|us|please|pls|ok|okay|let's|lets|can|could|hmm)\b|\?", re.IGNORECASE
)
_LONG_QUOTE = re.compile(r'"[^"\n]{120,2000}"|“[^”\n]{120,2000}”')
_BULLET = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+\S")
BRIDGED_CHARS = 800
IMPERSONAL_CHARS = 500
"""Characters; a longer message that nowhere speaks to or of anybody is a document."""
LONG_MESSAGE = 700
"""Characters; in a longer message, a document below an introducing line is taken as pasted."""


def pasted_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Character ranges of a user's message that were not typed there: code fences, quoted lines, logs, traces,
    diffs, tables, long quotations, and documents under a line that introduces one.

    A guess that errs towards "pasted": it costs a question to the user, the other error costs a junk rule.
    """
    if len(text) > IMPERSONAL_CHARS and not _CONVERSES.search(text):
        return ((0, len(text)),)
    if len(text) <= LONG_MESSAGE and len(text.splitlines()) < 2 and not _BEGINS_BLOCK.match(text):
        # Most messages: all but a quotation takes two lines, or tells by its beginning.
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
    lines: list[tuple[int, int, str]] = []
    position = 0
    for line in text.splitlines(keepends=True):
        lines.append((position, position + len(line), line.rstrip("\r\n")))
        position += len(line)

    # Runs of lines a program wrote, blank lines inside. One such line alone may be a coincidence of punctuation;
    # what stands between two runs, in nobody's own voice, belongs to the same output.
    runs: list[tuple[int, int]] = []
    run: list[tuple[int, int]] = []
    for start, end, line in [*lines, (len(text), len(text), "end")]:
        if _QUOTE_LINE.match(line):
            yield start, end
        if not line.strip():
            continue
        if _is_machine(line):
            run.append((start, end))
            continue
        if len(run) >= 2:
            runs.append((run[0][0], run[-1][1]))
        run = []
    yield from runs
    for (_, before), (after, _) in pairwise(runs):
        if after - before < BRIDGED_CHARS and not _OWN_VOICE.search(text[before:after]):
            yield before, after

    headings = [m.start() for m in _HEADING.finditer(text)]
    if len(headings) >= 2 or (headings and headings[0] == 0 and len(text) > LONG_MESSAGE):
        yield headings[0], len(text)

    for index, (_, end, line) in enumerate(lines):
        # A line that introduces something ends with a colon, which is told sooner.
        introduces = line.rstrip().endswith(":") and _INTRODUCES.search(line)
        if introduces and _reads_as_document(text[end:], [item[2] for item in lines[index + 1 :]]):
            yield end, len(text)
            break


def _is_machine(line: str) -> bool:
    head = line[:400]
    if _BULLET.match(head) and not head.rstrip().endswith((";", "{", "}")):
        return False
    if _MACHINE_LINE.match(head):
        return True
    return len(head) > 12 and _letters(head) < 0.6 * len(head)


def _letters(text: str) -> int:
    """How many of its characters are letters or blanks."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _NO_LETTERS))
    return sum(map(str.isalpha, text)) + text.count(" ")


def _reads_as_document(text: str, lines: list[str]) -> bool:
    if len(text.strip()) < 200 or _OWN_VOICE.search(text):
        return False
    bullets = sum(1 for line in lines if _BULLET.match(line))
    filled = sum(1 for line in lines if line.strip())
    return len(text) > LONG_MESSAGE or bullets < filled


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
