"""Split, fold and stem text with FTS5's own tokenizer, as the keyword index does."""

from __future__ import annotations

import threading
from functools import cache

import apsw

from ..runtime.index_terms import index_text

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")
"""The `tokenize` option of chunk_fts."""

_lock = threading.Lock()


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    return apsw.Connection(":memory:").fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))


def stems(text: str) -> list[str]:
    """The terms under which `text` is indexed, in order, repeated as often as they occur."""
    data = index_text(text).encode("utf-8", "replace")
    with _lock:
        terms = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(term) for term in terms]


def stem(word: str) -> str:
    """The term under which a single word is indexed; the word itself where the tokenizer finds none in it."""
    found = stems(word)
    return found[0] if found else word
