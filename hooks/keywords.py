"""Find the significant words of a prompt. Pure."""

from __future__ import annotations

from ..runtime.cjk import cut_cjk, function_letters
from ..runtime.function_words import CHATTER, foreign_function_words, is_significant
from ..runtime.normal_form import normal_form

WORD_LIMIT = 40
"""Most words of a prompt; of a longer one those of the beginning and the end are taken."""


def significant_words(text: str) -> list[str]:
    """Return distinct lower-case words of `text` without stop words, in order, at most WORD_LIMIT; none for mere
    chatter."""
    found: list[str] = []
    every: list[str] = []
    for run in split_words(normal_form(text)):
        grammar = function_letters(run)
        for start, end in cut_cjk(run):
            every.append(run[start:end])
            if grammar.isdisjoint(range(start, end)):
                found.append(run[start:end])
    ignored = foreign_function_words(every)
    words = list(dict.fromkeys([word for word in found if word not in ignored and is_significant(word)]))
    if CHATTER.issuperset(words):
        return []
    if len(words) > WORD_LIMIT:
        words = words[: WORD_LIMIT // 2] + words[-(WORD_LIMIT // 2) :]
    return words


def split_words(text: str) -> list[str]:
    """Split `text` into its runs of letters and digits, lower case."""
    return "".join([c if c.isalnum() else " " for c in text.lower()]).split()
