"""The text of a note as it is written: line ends, the blank lines around it, bytes. Pure."""

from __future__ import annotations

import re

from .header import split

_HALF_PAIRS = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates other than the 128 by which `surrogateescape` keeps a byte."""


def unix_lines(text: str) -> str:
    """With LF alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def note_text(text: str) -> str:
    """LF only, no blank lines around it, one LF at the end; '' when there is nothing in it."""
    kept = unix_lines(text).strip("\n").rstrip()
    return kept + "\n" if kept else ""


def encoded(text: str) -> bytes:
    """UTF-8; bytes of an existing file that were none come back as they were, other half pairs as `?`."""
    return _HALF_PAIRS.sub("?", text).encode("utf-8", "surrogateescape")


def with_body(text: str, body: str) -> str:
    """A note's text with another body, and its own line ends."""
    parts = split(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    kept = note_text(body).replace("\n", newline)
    if parts is None:
        return kept
    before, header, after = parts
    closing = after.partition("\n")[0].rstrip("\r")
    return f"{before}{header}{closing}{newline}" + (f"{newline}{kept}" if kept else "")
