"""Words as the keyword index sees them: split, folded and stemmed by FTS5's own tokenizer."""

from __future__ import annotations

import threading
from functools import cache

import apsw

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")
"""The `tokenize` option of chunk_fts."""

_lock = threading.Lock()


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    return apsw.Connection(":memory:").fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))


def stems(text: str) -> list[str]:
    """The terms under which `text` is indexed, in order, repeated as often as they occur."""
    data = text.encode("utf-8", "replace")
    with _lock:
        found = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]
