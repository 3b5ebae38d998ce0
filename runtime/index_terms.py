"""Cut text into terms for a keyword index, of scripts without blanks between words above all.

Chinese, Japanese, Thai, Lao, Khmer and Burmese have no blanks between words, and Korean words carry particles: no word
of a question would be found in another sentence. As search engines do, runs of ideographs, of Hangul and of these
scripts' letters are indexed as overlapping pairs (bigrams): most words have two letters, and longer ones consist of
such pairs. A run of katakana is a loan word; one of hiragana is grammar for the most part.

Light module: hooks import it.
"""

from __future__ import annotations

from .normal_form import normal_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

FIRST_MARK = "\u0300"
FIRST_LETTER = "\u0e01"
"""The first letter of these scripts."""
_PAIRED, _KATAKANA, _HIRAGANA = "paired", "katakana", "hiragana"
_RANGES = (
    ("\u0e01", "\u0e46", _PAIRED),  # Thai
    ("\u0e81", "\u0ec6", _PAIRED),  # Lao
    ("\u1000", "\u103f", _PAIRED),  # Burmese
    ("\u1100", "\u11ff", _PAIRED),  # Hangul in parts
    ("\u1780", "\u17b3", _PAIRED),  # Khmer
    ("\u3005", "\u3007", _PAIRED),  # the signs of repetition and of zero
    ("\u3041", "\u309f", _HIRAGANA),
    ("\u30a1", "\u30ff", _KATAKANA),
    ("\u3130", "\u318f", _PAIRED),
    ("\u31f0", "\u31ff", _KATAKANA),
    ("\u3400", "\u4dbf", _PAIRED),
    ("\u4e00", "\u9fff", _PAIRED),
    ("\uac00", "\ud7af", _PAIRED),
    ("\uf900", "\ufaff", _PAIRED),
    ("\uff66", "\uff9f", _KATAKANA),
    ("\U00020000", "\U0003ffff", _PAIRED),
)
LETTER_CLASS = "".join(f"{first}-{last}" for first, last, _ in _RANGES)
"""The letters of these scripts, as between the brackets of a pattern."""
_FUNCTION = (
    "为什么 什么 怎么 怎样 哪里 哪个 哪些 多少 几个 时候 可以 应该 需要 是否 能否 如何 这个 那个 这些 那些 "
    "我们 你们 他们 一下 一个 现在 然后 但是 因为 所以 如果 还是 已经 没有 不是 不要 就是 或者 以及 "
    "的 了 吗 呢 吧 啊 是 们 我 你 他 她 它 这 那 很 么"
)
_FUNCTION_WORDS = tuple(_FUNCTION.split())
"""Chinese words of grammar, and letters that hardly occur in other words."""


def plain_letters(text: str) -> str:
    """Return the text in its normal form and without marks above and below letters that do not compose with them.

    A tokenizer takes the marks of Hindi or Thai for ends of words; those of Arabic and Hebrew are seldom written.
    """
    text = normal_form(text)
    if not text or max(text) < FIRST_MARK:
        return text
    from unicodedata import category

    return "".join([letter for letter in text if letter < FIRST_MARK or category(letter)[0] != "M"])


def with_joined_names(text: str) -> str:
    """Return the text, and behind it its names with underscores as one word each: `config_loader` is ConfigLoader."""
    if "_" not in text:
        return text
    runs = "".join([letter if letter.isalnum() or letter == "_" else " " for letter in text]).split()
    return " ".join([text, *(run.replace("_", "") for run in runs if "_" in run.strip("_"))])


def index_text(text: str) -> str:
    """Return the text as the keyword index gets it."""
    return split_terms(with_joined_names(plain_letters(text)))


def cut_terms(run: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the terms of a run of letters and digits; all of it where none is of these scripts."""
    if not run or max(run) < FIRST_LETTER:
        yield 0, len(run)
        return
    start = 0
    while start < len(run):
        script = _script(run[start])
        end = start + 1
        while end < len(run) and _script(run[end]) == script:
            end += 1
        if script == _PAIRED and end - start > 2:
            yield from ((at, at + 2) for at in range(start, end - 1))
        else:
            yield start, end
        start = end


def split_terms(text: str) -> str:
    """Return the text with blanks between its terms, each pair by itself; unchanged without these scripts."""
    if not text or max(text) < FIRST_LETTER:
        return text
    return " ".join([text[start:end] for start, end in cut_terms(text)])


def function_letters(text: str) -> AbstractSet[int]:
    """Return the positions of the letters that are grammar: a term that contains one is useless for a search.

    In Japanese these are hiragana, and a single ideograph before them: the stem of a verb (書く).
    """
    if not text or max(text) < FIRST_LETTER:
        return frozenset()
    scripts = ["", "", *map(_script, text)]
    found = {at for at, script in enumerate(scripts[2:]) if script == _HIRAGANA}
    found |= {at - 1 for at in found if scripts[at + 1] == _PAIRED != scripts[at]}
    for word in _FUNCTION_WORDS:
        at = text.find(word)
        while at >= 0:
            found.update(range(at, at + len(word)))
            at = text.find(word, at + len(word))
    return found


def without_chance_pairs(words: Sequence[str], is_known: Callable[[str], bool]) -> list[str]:
    """Leave out each pair that no note has and that overlaps a pair that notes have: it lies across two words.

    `words`: the terms of a question in their order.
    """

    def is_known_pair(word: str) -> bool:
        return _is_pair(word) and is_known(word)

    kept = []
    for number, word in enumerate(words):
        if _is_pair(word) and not is_known(word):
            before = words[number - 1] if number else ""
            after = words[number + 1] if number + 1 < len(words) else ""
            if before[-1:] == word[0] and is_known_pair(before):
                continue
            if after[:1] == word[1] and is_known_pair(after):
                continue
        kept.append(word)
    return kept


def _is_pair(word: str) -> bool:
    return len(word) == 2 and _script(word[0]) == _script(word[1]) == _PAIRED


def _script(letter: str) -> str:
    if letter >= FIRST_LETTER:
        for first, last, script in _RANGES:
            if first <= letter <= last:
                return script
    return ""
