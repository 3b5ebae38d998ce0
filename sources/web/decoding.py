"""Decompress the body of a response within a size limit, and decode its text."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import sys
import zlib
from contextlib import suppress

_HEAD_BYTES = 2048
_CHARSET = re.compile(r"""charset\s*=\s*["']?([a-zA-Z0-9_.:-]{1,40})""", re.IGNORECASE)
_DECLARED = re.compile(
    r"""<(?:meta|\?xml)\b[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([a-zA-Z0-9_.:-]{1,40})""", re.IGNORECASE
)
_NO_CHARSETS = frozenset({"iso8859-1", "ascii", "idna", "punycode", "unicode_escape", "raw_unicode_escape"})
"""Codecs that say nothing of a page, or are none of the web: one of them takes quadratic time."""
_REFERENCES = re.compile(rb"(?:&#(?:[xX][0-9a-fA-F]+|[0-9]+);?)+")
_REFERENCE = re.compile(rb"&#([xX]?)([0-9a-fA-F]+)")
_DIGITS_OF_A_CHARACTER = 7
"""Most digits of a reference to a character: the last one is 1114111."""
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class BodyBroken(Exception):
    """The body is not in the encoding of its header, or that encoding was not asked for."""


def unpacked(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """Decompress a body, of which no more than `max_bytes` + 1 are returned. Raises BodyBroken."""
    encoding = content_encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise BodyBroken(f"content-encoding {encoding[:40]!r} was not asked for")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            return file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BodyBroken(f"broken gzip: {error}") from error


def decoded_text(body: bytes, content_type: str) -> str:
    """Decode a body by its byte order mark, as UTF-8, or by its header or declaration; never raises."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("cp1252", "replace")  # Which browsers take ISO-8859-1 for (WHATWG Encoding).
    else:
        # Many servers declare one charset for all pages. Text in another one is hardly ever valid UTF-8, but for
        # UTF-16, which has NULs, and ISO-2022-JP, which has escapes.
        if b"\0" not in body and b"\x1b" not in body:
            return text
    for found in (_CHARSET.search(content_type), _DECLARED.search(body[:_HEAD_BYTES].decode("latin-1"))):
        with suppress(LookupError, UnicodeError):
            if found is not None and (codec := codecs.lookup(found[1]).name) not in _NO_CHARSETS:
                return body.decode(codec, "replace")
    return text


def whole_characters(text: str) -> str:
    """Join pairs of surrogates to characters; a single one becomes U+FFFD.

    JSON and XML references can name surrogates, which no file or address can hold.
    """
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_references(body: bytes) -> bytes:
    """Make all numeric references in markup name characters, since XML parsers fail at others.

    `&#55357;&#56832;`, the two surrogates of an emoji, becomes a reference to the emoji.
    """
    return _REFERENCES.sub(_as_characters, body)


def _as_characters(run: re.Match[bytes]) -> bytes:
    numbers = [
        int(digits, 16 if hexadecimal else 10) if len(digits.lstrip(b"0")) <= _DIGITS_OF_A_CHARACTER else -1
        for hexadecimal, digits in _REFERENCE.findall(run[0])
    ]
    if all(0 < number < 0xD800 or 0xDFFF < number <= sys.maxunicode for number in numbers):
        return run[0]
    named = "".join(chr(number) if 0 < number <= sys.maxunicode else "\ufffd" for number in numbers)
    return "".join(f"&#{ord(character)};" for character in whole_characters(named)).encode("ascii")
