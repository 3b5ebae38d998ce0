"""Splits entries into chunks, which are indexed and embedded separately.

One vector for a long note represents none of its facts (a fact deep in a note was found in 13 of 100 tries); the vector
of a few hundred characters represents what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..runtime.normal_form import normal_form
from ..vault.entry import Entry
from ..vault.evidence import strip_evidence

CHUNK_CHARACTERS = 600
"""Paragraphs are joined up to this length. About 130 word pieces: well within what a model reads."""
MAX_PARAGRAPH_CHARACTERS = 900
"""A paragraph longer than this is cut, between sentences where it has any."""

_HEADING = re.compile(r"#{1,6}\s+(?P<text>.+?)\s*#*\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n+")


@dataclass(frozen=True)
class ChunkText:
    """A chunk's number in its entry, from 0, the three columns of the keyword index, and the text that is embedded."""

    ordinal: int
    title: str
    tags: str
    body: str
    embed_text: str


@dataclass(frozen=True)
class _Passage:
    heading: str
    text: str


def chunk_entry(entry: Entry) -> list[ChunkText]:
    """Split an entry: chunk 0 is the title, the tags and the first paragraph; longer bodies add chunks. Never empty.

    Every chunk has the title (and the heading above it), so that a fact is found by the subject of the note as well as
    by its own words. A title whose words all stand in the passage is not embedded with it: saved statements, which are
    named after themselves, would say everything twice.
    """
    tags = " ".join((*entry.tags, *entry.aliases))
    chunks: list[ChunkText] = []
    for ordinal, passage in enumerate(_passages(entry.name, strip_evidence(entry.body))):
        name = "" if _words(entry.name) <= _words(passage.text) else entry.name
        heading = " – ".join(part for part in (name, passage.heading) if part)
        head = [heading, tags] if ordinal == 0 else [heading]
        embed_text = _in_normal_form("\n".join(part for part in (*head, passage.text) if part))
        title = f"{entry.name} {passage.heading}".strip()
        chunks.append(ChunkText(ordinal, title, tags if ordinal == 0 else "", passage.text, embed_text))
    return chunks


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", normal_form(text).casefold()))


def _in_normal_form(text: str) -> str:
    """Return the text in NFKC, except for "…", which would become three dots: many notes have it, and
    their vectors would all be computed again."""
    return "…".join(map(normal_form, text.split("…")))


def _passages(title: str, body: str) -> list[_Passage]:
    """Join paragraphs to passages of up to CHUNK_CHARACTERS; a heading begins a new passage."""
    passages: list[_Passage] = []
    for heading, paragraph in _paragraphs(title, body):
        for piece in _pieces(paragraph):
            last = passages[-1] if passages else None
            if last and last.heading == heading and len(last.text) + len(piece) <= CHUNK_CHARACTERS:
                passages[-1] = _Passage(heading, f"{last.text}\n\n{piece}")
            else:
                passages.append(_Passage(heading, piece))
    return passages or [_Passage("", "")]


def _paragraphs(title: str, body: str) -> Iterator[tuple[str, str]]:
    """Each paragraph with the heading above it, (heading, paragraph); a fenced block is one paragraph."""
    heading, lines, in_fence = "", list[str](), False
    for line in [*body.splitlines(), ""]:
        if _FENCE.match(line):
            in_fence = not in_fence
        match = None if in_fence else _HEADING.fullmatch(line)
        if (match or not line.strip()) and not in_fence:
            if lines:
                yield heading, "\n".join(lines)
                lines = []
            if match:
                # The title is on every chunk already.
                heading = "" if match["text"] == title else match["text"]
        else:
            lines.append(line.rstrip())
    if lines:
        yield heading, "\n".join(lines)


def _pieces(paragraph: str) -> Iterator[str]:
    """Cut a paragraph between sentences (else words) where it is longer than MAX_PARAGRAPH_CHARACTERS."""
    if len(paragraph) <= MAX_PARAGRAPH_CHARACTERS:
        yield paragraph
        return
    piece = ""
    for sentence in _SENTENCE_END.split(paragraph):
        for part in _cut(sentence):
            if piece and len(piece) + len(part) > CHUNK_CHARACTERS:
                yield piece
                piece = ""
            piece = f"{piece} {part}".strip()
    if piece:
        yield piece


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_PARAGRAPH_CHARACTERS:
        space = sentence.rfind(" ", CHUNK_CHARACTERS // 2, MAX_PARAGRAPH_CHARACTERS)
        end = space if space > 0 else MAX_PARAGRAPH_CHARACTERS
        yield sentence[:end]
        sentence = sentence[end:].lstrip()
    if sentence.strip():
        yield sentence
