"""Which languages but English may a text be in that states a rule?

By the words of rules (`foreign_wording`), not by grammar at large: a text that has none of them is in no language here.
"""

from __future__ import annotations

import re

from .foreign_wording import LANGUAGES, LanguageWording

_WORD = re.compile(r"[^\W\d_]+")
_CJK = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")
_BY_WORD: dict[str, list[LanguageWording]] = {}
for _language in LANGUAGES:
    for _one in _language.words.split():
        _BY_WORD.setdefault(_one, []).append(_language)
_BY_NAME = {language.name: language for language in LANGUAGES}


_LETTERS = bytes(code if code >= 0x80 or chr(code).isalpha() else 32 for code in range(256))
_TRIGGERS = frozenset(word.encode() for word in _BY_WORD)


def may_state_foreign_rule(text: str) -> bool:
    """Whether the text has a word or the letters of which each rule in another language has one. Cheap: each message of
    the user is asked."""
    words = text.lower().encode("utf-8", "surrogatepass").translate(_LETTERS).split()
    return not _TRIGGERS.isdisjoint(words) or (not text.isascii() and _CJK.search(text) is not None)


def languages_of(text: str) -> list[LanguageWording]:
    """The languages whose rules a text may state."""
    words = dict.fromkeys(_WORD.findall(text.lower()))
    found = {language.name: language for word in words for language in _BY_WORD.get(word, ())}
    if not text.isascii() and _CJK.search(text):
        script = "Korean" if _HANGUL.search(text) else "Japanese" if _KANA.search(text) else "Chinese"
        found[script] = _BY_NAME[script]
    return list(found.values())
