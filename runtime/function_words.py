"""Function words of English and other languages: grammar, which says nothing about the subject of a prompt.

An index of notes counts a word as rare that few notes have, so these words would weigh most in a question. The words
are data: function_words.txt. Light module: hooks import it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet


def _read() -> dict[str, frozenset[str]]:
    """Read the groups of words, by name."""
    with open(__file__.rsplit("/", 1)[0] + "/function_words.txt", encoding="utf-8") as file:
        lines = [line.partition(":") for line in file if line[0] != "#"]
    return {name: frozenset(words.split()) for name, _, words in lines}


_LANGUAGES = _read()
"""By code of the language; without the groups that follow."""
ENGLISH = _LANGUAGES.pop("english")
"""Function words of English. Statements are compared without them, so a word that can turn a rule into another one (no,
only, more, over) is not among them."""
STOP_WORDS = _LANGUAGES.pop("stop")
"""English words that a search leaves out; halves of contractions are among them."""
CHATTER = _LANGUAGES.pop("chatter")
"""Words of courtesy and consent: a prompt of nothing else is no question."""
_HOMOGRAPHS = _LANGUAGES.pop("homograph")
"""Words of other languages that are also words of English, names, or terms and abbreviations of programs (jest, ci,
proto, todo): they do not show which language it is."""


def is_significant(word: str) -> bool:
    """Whether a lower-case word is neither a stop word of English nor a single letter."""
    return word not in STOP_WORDS and (len(word) > 1 or word.isdigit() or not word.isascii())


def foreign_function_words(words: Sequence[str]) -> AbstractSet[str]:
    """Return the function words of the language of a prompt; none where that is English or not certain.

    `words`: all words of the prompt, in lower case.
    """
    best, most = "", (0, 0)
    for language, listed in _LANGUAGES.items():
        own = [word for word in words if word in listed]
        found = sum(word not in _HOMOGRAPHS and word not in STOP_WORDS for word in own), len(own)
        if found > most:
            best, most = language, found
    if not most[0] or most[1] <= sum(word in STOP_WORDS for word in words):
        return frozenset()
    return _LANGUAGES[best]
