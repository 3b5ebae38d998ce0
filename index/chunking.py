"""Entry → chunks: the pieces of a note that are indexed and embedded on their own.

One vector for a long note says a little of everything and finds nothing (a fact deep in a note was
found in 13 of 100 tries); pieces of a few hundred characters keep their point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..vault.evidence import without_evidence

if TYPE_CHECKING:
    from ..vault.entry import Entry

CHUNK_CHARACTERS = 600
"""Paragraphs are joined up to this length. About 130 word pieces: well within what a model reads."""
LONGEST_CHARACTERS = 900
"""A paragraph longer than this is cut, between sentences where it has any."""

_HEADING = re.compile(r"#{1,6}\s+(?P<text>.+?)\s*#*\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n+")


@dataclass(frozen=True)
class ChunkText:
    """One chunk: three columns of the keyword index, and the text that is embedded."""

    ordinal: int
    title: str
    tags: str
    body: str
    embed_text: str


@dataclass(frozen=True)
class _Passage:
    heading: str
    text: str


def chunks_of(entry: Entry) -> list[ChunkText]:
    """Chunk 0 is the title, the tags and the first paragraph; longer bodies add chunks. Never empty.

    Every chunk carries the title (and the heading it stands under), so that a fact is found by what
    the note is about as well as by its own words.
    """
    tags = " ".join((*entry.tags, *entry.aliases))
    chunks: list[ChunkText] = []
    for ordinal, passage in enumerate(_passages(entry.name, without_evidence(entry.body))):
        above = " – ".join(part for part in (entry.name, passage.heading) if part)
        head = [above, tags] if ordinal == 0 else [above]
        embed_text = "\n".join(part for part in (*head, passage.text) if part)
        title = f"{entry.name} {passage.heading}".strip()
        chunks.append(ChunkText(ordinal, title, tags if ordinal == 0 else "", passage.text, embed_text))
    return chunks


def _passages(title: str, body: str) -> list[_Passage]:
    """Paragraphs joined to passages of CHUNK_CHARACTERS; a heading begins a new one unless both are short."""
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
    """(heading it stands under, paragraph); a fenced block is one paragraph."""
    heading, lines, fenced = "", list[str](), False
    for line in [*body.splitlines(), ""]:
        if _FENCE.match(line):
            fenced = not fenced
        found = None if fenced else _HEADING.fullmatch(line)
        if (found or not line.strip()) and not fenced:
            if lines:
                yield heading, "\n".join(lines)
                lines = []
            if found:
                # The title is on every chunk already.
                heading = "" if found["text"] == title else found["text"]
        else:
            lines.append(line.rstrip())
    if lines:
        yield heading, "\n".join(lines)


def _pieces(paragraph: str) -> Iterator[str]:
    """The paragraph, cut between sentences (else words) where it is longer than LONGEST_CHARACTERS."""
    if len(paragraph) <= LONGEST_CHARACTERS:
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
    while len(sentence) > LONGEST_CHARACTERS:
        space = sentence.rfind(" ", CHUNK_CHARACTERS // 2, LONGEST_CHARACTERS)
        end = space if space > 0 else LONGEST_CHARACTERS
        yield sentence[:end]
        sentence = sentence[end:].lstrip()
    if sentence.strip():
        yield sentence
