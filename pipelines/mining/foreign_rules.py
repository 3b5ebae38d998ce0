"""Does a sentence in another language than English state a rule for the future?

Three plain forms only, by the words in `foreign_wording`: it asks to be remembered, says from now on, or says always or
never; the last two with an order. What is not sure is no rule: what is found is proposed, and never saved unasked.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ..foreign_language import languages_of
from ..foreign_wording import LanguageWording
from .rule_certainty import Certainty
from .standing_rules import Rule

LEAST_WORDS = 3
LEAST_LETTERS = 6
"""Of a sentence in Chinese, Japanese or Korean."""
MOST_CHARS = 320

_FLAGS = re.VERBOSE
_QUESTION = re.compile(r"[?？]\s*[)\"'」』）]*\s*$|(?:吗|呢|か|かな|까요?|나요|니)[。.]?\s*$|¿")
_OPENS_QUOTED = re.compile(r"\s*[\"'`“„«»‘「『*_>]")
_QUOTES = re.compile(r"[“„«「『\"][^”“»」』\"]{6,}[”“»」』\"]")
_LEAD_IN = (
    r"(?:(?:bitte|ok|okay|also|und|nein|ja|danke|übrigens|s['’]il\s+te\s+pla[iî]t|stp|merci|non|oui|et|por\s+favor|no|sí|vale|gracias|y"
    r"|não|sim|obrigado|e|per\s+favore|sì|grazie|alsjeblieft|aub|nee|dus|proszę|tak|i|dzięki|пожалуйста|нет|да|и|спасибо"
    r"|будь\s+ласка|ні|так|дякую|lütfen|tamam|hayır|evet|ve|snälla|nej|ja|tack|och|prosím|ne|ano|díky"
    r"|请|請|好的?|不|对了|はい|いいえ|では|じゃあ|네|아니|그리고)(?:\s*[,，、:;.!–—-]+\s*|\s+))*+"
)


@dataclass(frozen=True)
class _Compiled:
    """The patterns of a language, put together."""

    language: LanguageWording
    remember: re.Pattern[str]
    from_now: re.Pattern[str]
    always: re.Pattern[str]
    order: re.Pattern[str]
    order_at_place: re.Pattern[str]
    veto: re.Pattern[str]
    tells: re.Pattern[str]
    here: re.Pattern[str]


@functools.cache
def _compiled(language: LanguageWording) -> _Compiled:
    edge = "" if not language.words else r"\b"
    filler = language.filler or r"(?!)"
    between = rf"(?:(?:{filler})(?:\s*[,:]\s*|\s+|(?<=['’]))){{0,4}}"
    # An adverbial may stand first ("before each commit always run"), in scripts without blanks nearly always.
    lead = r"[^。！？]*?" if not language.words or language.name == "Turkish" else ""
    starts = rf"\A{_LEAD_IN}"
    at_place = (
        rf"{starts}{between}(?:{language.from_now}|{language.always})\s*,?\s*{between}(?:{language.order})\b"
        rf"|{starts}{between}(?:{language.order})\s+(?:[^\s,.;:]+\s+){{0,2}}?{language.always}\b"
    )
    return _Compiled(
        language,
        re.compile(rf"{starts}(?:{language.remember})", _FLAGS),
        re.compile(rf"{starts}{lead}{edge}(?:{language.from_now}){edge}", _FLAGS),
        re.compile(
            rf"{starts}(?:{between}|{lead}){edge}(?:{language.always}){edge}|{starts}{between}{edge}(?:{language.order}){edge}[^,;:]*?{edge}{language.always}{edge}",
            _FLAGS,
        ),
        re.compile(rf"{edge}(?:{language.order})" + ("" if r"\Z" in language.order else edge), _FLAGS),
        re.compile(at_place, _FLAGS),
        re.compile(rf"{edge}(?:{language.veto}){edge}", _FLAGS),
        re.compile(rf"{edge}(?:{language.tells}){edge}", _FLAGS),
        re.compile(rf"{edge}(?:{language.here}){edge}", _FLAGS),
    )


def foreign_rule(sentence: str) -> Rule | None:
    """The standing rule that a sentence states in another language than English; None if it is not plainly one."""
    if len(sentence) > MOST_CHARS or _OPENS_QUOTED.match(sentence) or _QUOTES.search(sentence):
        return None
    text = " ".join(sentence.lower().split())
    if _QUESTION.search(text):
        return None
    for language in languages_of(text):
        form = _form(_compiled(language), text)
        if form is not None:
            return Rule(f"in {language.name}, {form}", Certainty.LIKELY, language.name)
    return None


def is_of_this_project(rule: Rule, sentence: str) -> bool:
    """Whether a rule in another language says that it is one of "this project"."""
    return any(
        language.name == rule.language and _compiled(language).here.search(sentence.lower())
        for language in languages_of(sentence)
    )


def _form(compiled: _Compiled, text: str) -> str | None:
    if compiled.language.words:
        if len(text.split()) < LEAST_WORDS:
            return None
    elif sum(map(str.isalnum, text)) < LEAST_LETTERS:
        return None
    if compiled.veto.search(text):
        return None
    if compiled.remember.search(text):
        return "asked to remember"
    core = _LEADS.sub("", text, count=1)
    if compiled.tells.search(_CLAUSE_END.split(core, maxsplit=1)[0]):
        return None
    ordered = (compiled.order if compiled.language.order_anywhere else compiled.order_at_place).search(text)
    if ordered is None:
        return None
    if compiled.from_now.search(text):
        return "from now on"
    return "always or never" if compiled.always.search(text) else None


_LEADS = re.compile(rf"\A{_LEAD_IN}", _FLAGS)
_CLAUSE_END = re.compile(r"[,;:，；：]")
