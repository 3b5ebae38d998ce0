"""The text of a note in its file: line ends, blank lines around it, encoding. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .header import split_header
from .wording import CUT

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HALF_PAIRS = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates other than the 128 that stand for a byte under `surrogateescape`."""


def unfenced(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield number, from 0, and text of each line outside fenced code."""
    fence = ""
    for number, line in enumerate(lines):
        opening = _FENCE.match(line)
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opening is not None:
            fence = opening[1]
        else:
            yield number, line


def normalize_note_text(text: str) -> str:
    """Return `text` with LF line ends, without NUL and blank lines around it, and one LF at its end; '' for a blank
    text."""
    kept = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip("\n").rstrip()
    return kept + "\n" if kept else ""


def encodable(text: str) -> str:
    """Return `text` with `?` for surrogates that `encode_note` cannot restore to the bytes they were read from."""
    return _HALF_PAIRS.sub("?", text)


def encode_note(text: str) -> bytes:
    """Encode as UTF-8. Invalid bytes of the file that `text` was read from are restored, other surrogates become
    `?`."""
    return encodable(text).encode("utf-8", "surrogateescape")


def decode_note(data: bytes) -> str:
    """Decode every byte of a file: what is no UTF-8 becomes lone surrogates, which `encode_note` restores."""
    return data.decode("utf-8", "surrogateescape")


def replace_body(text: str, body: str) -> str:
    """Return the text of a note with its body replaced; header and line ends are kept."""
    parts = split_header(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    kept = normalize_note_text(body).replace("\n", newline)
    if parts is None:
        return kept
    before, header, after = parts
    closing = after.partition("\n")[0].rstrip("\r")
    return f"{before}{header}{closing}{newline}" + (f"{newline}{kept}" if kept else "")


def said_once(body: str, title: str) -> str:
    """Return a note's body without the title, and without the heading, statement or quotes that only repeat it.

    A mined note has the same words three times: as its title, as the recalled statement, and as the evidence.
    """
    first, _, rest = body.lstrip().partition("\n")
    text = rest if first.startswith("# ") and first[2:].strip() == title else body
    paragraphs = text.strip("\n").split("\n\n")
    statement = _plain(paragraphs[0])
    kept = []
    for number, paragraph in enumerate(paragraphs):
        says = _plain(_QUOTE_MARK.sub("", paragraph))
        repeats = says == _plain(title) or (number > 0 and says == statement)
        if not says or not repeats or (number > 0 and not paragraph.startswith(">")):
            kept.append(paragraph)
    return "\n\n".join(kept)


def is_title_cut(body: str, title: str) -> bool:
    """Whether the title is only the beginning of the statement, cut off."""
    begun = _plain(title).removesuffix(CUT.strip()).rstrip()
    statement = _plain(body.lstrip().removeprefix(f"# {title}").lstrip().partition("\n\n")[0])
    return begun != _plain(title) and statement.startswith(begun)


_QUOTE_MARK = re.compile(r"^> ?", re.MULTILINE)


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".!").casefold()


def replacement_line(path: str) -> str:
    """Render the line that says what a proposal would replace."""
    return f"It would replace [[{path.removesuffix('.md')}]]."


_REPLACEMENT_LINE = re.compile(r"^It would replace \[\[[^\]\n]+\]\]\.(?:\n\n?|\Z)", re.MULTILINE)


def without_replacement_line(body: str) -> str:
    """Remove the line of `replacement_line` from a body."""
    return _REPLACEMENT_LINE.sub("", body)
