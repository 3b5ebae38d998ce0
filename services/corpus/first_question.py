"""Make a question from a statement: a literal excerpt of the user's words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...index.query import is_significant
from ...pipelines.likeness import content_words, own_words

MOST_WORDS = 8
LEAST_CONTENT = 2
"""A question needs two content words: a single one occurs in too many notes."""
_SENTENCE_END = re.compile(r"[.;:!?…]+[\"'”’)\]]*(?=\s|\Z)|[。！？；]")
_CLAUSE_END = re.compile(r"[,.;:!?…]+[\"'”’)\]]*(?=\s|\Z)|\s[–—-]+\s|[()]|[，、。！？；]")
_TOKEN = re.compile(r"\S+")
_MARKUP = re.compile(r"`|\*\*")
_EDGES = "\"'“”‘’«»„*_`,.;:!?…()[]"
# Thai to Khmer, kana, and Chinese characters: without spaces between words, a token is a phrase.
_UNSPACED = re.compile(r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{4}")


class _Run(NamedTuple):
    """A piece of the statement: its content, and its length in words."""

    content: int
    words: int
    text: str


def question_about(statement: str) -> str | None:
    """Return the shortest excerpt of at most MOST_WORDS with the content of the statement's first clause.

    None if it has fewer than LEAST_CONTENT content words.
    """
    said = own_words(statement)
    for end in (_CLAUSE_END, _SENTENCE_END):  # "Use pnpm, not npm": no clause has enough content, the sentence has.
        for part in end.split(said):
            run = _telling_run(_TOKEN.findall(part))
            if run.content >= LEAST_CONTENT:
                quoted = _MARKUP.sub("", run.text).strip(_EDGES).replace('"', "'")
                return f'what did I say about "{quoted}"?'
    return None


def _telling_run(tokens: Sequence[str]) -> _Run:
    """Return the run with the most content; of several the shortest, then the first."""
    contents = [_content_of(token) for token in tokens]
    best = _Run(0, 0, "")
    for start in range(len(tokens)):
        for stop in range(start + 1, min(start + MOST_WORDS, len(tokens)) + 1):
            content, words = sum(contents[start:stop]), stop - start
            if (content, -words) > (best.content, -best.words):
                best = _Run(content, words, " ".join(tokens[start:stop]))
    return best


def _content_of(token: str) -> int:
    """Return how many content words a token counts as."""
    word = token.strip(_EDGES).lower()
    if not content_words(word) or not is_significant(word):
        return 0
    return LEAST_CONTENT if _UNSPACED.search(word) else 1
