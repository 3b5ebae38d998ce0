"""Judge whose words a passage of a message is, by its words, its place and the text around it.

A linear model over hashed words and the layout. `training/reader/surroundings.py` builds the weights; the features are
hashed, so that the weights hold nobody's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log1p, sqrt
from pathlib import Path
from zlib import crc32

from .calibration import calibration
from .forms import IDEA, explicit_form
from .ngrams import Features, Weights

WEIGHTS = Path(__file__).with_name("surroundings.safetensors")
BUCKETS = 1 << 13
GROUPS = ("passage", "lead", "first", "tail", "last", "rest", "layout")
NUMBERS = 24
SIZE = len(GROUPS) * BUCKETS + NUMBERS
NEAR_CHARS = 200
"""Characters read of the passage, and of each line around it."""
FAR_CHARS = 1500
"""Characters read before the passage, and after it."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_PERSONS = tuple(re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in ("i|me|my", "we|us|our", "you|your"))
_INTRODUCTION = re.compile(r"[^:：\n]{1,80}[:：]\s+(?=\S+\s+\S)")
_BLANK = re.compile(r"\n\s*\n")
_ITEM = re.compile(r"\s*(?:[-*+•–]|\(?\d{1,3}[.)])\s+\Z")


def is_own(text: str, start: int, end: int, reader: str, models: Sequence[float] = ()) -> bool:
    """Whether the passage [start, end) of a message is certainly the person's own words.

    `reader`: the reader whose threshold is used. `models`: the models' logits that the words are another's. The text
    after a colon within the passage must be the person's own, too, unless the colon only says that it is an idea.
    """
    by_models = dict(zip(("model", "second"), models, strict=False))
    introduced = None if explicit_form(text[start:end]) == IDEA else _INTRODUCTION.match(text, start, end)
    return all(
        calibration(reader).apart_logit({**by_models, "words": _packaged().logits(found)["apart"]}) < 0
        for found in [features(text, each, end) for each in (start, *([introduced.end()] if introduced else ()))]
    )


@lru_cache(maxsize=1)
def _packaged() -> Weights:
    return Weights(WEIGHTS)


@dataclass(frozen=True)
class _Place:
    """A passage and the lines around it, without surrounding blanks; "" for no line."""

    passage: str
    prefix: str
    """Text before it on its line."""
    suffix: str
    above: Sequence[str]
    """Lines that are not blank."""
    below: Sequence[str]
    is_parted_above: bool
    """Whether a blank line is between."""
    is_parted_below: bool
    is_item: bool
    around: str
    """All text that is read around the passage."""

    @property
    def lead(self) -> str:
        return self.prefix or (self.above[-1] if self.above else "")

    @property
    def tail(self) -> str:
        return self.suffix or (self.below[0] if self.below else "")

    @property
    def first(self) -> str:
        """The first line, where it is not the lead."""
        lines = [*self.above, self.prefix] if self.prefix else self.above
        return lines[0] if len(lines) > 1 else ""

    @property
    def last(self) -> str:
        """The last line, where it is not the tail."""
        lines = [self.suffix, *self.below] if self.suffix else self.below
        return lines[-1] if len(lines) > 1 else ""

    @property
    def lines(self) -> list[str]:
        """All lines around it."""
        return [line for line in (*self.above, self.prefix, self.suffix, *self.below) if line]


def _place(text: str, start: int, end: int) -> _Place:
    before, behind = text[max(0, start - FAR_CHARS) : start], text[end : end + FAR_CHARS]
    upper, _, prefix = before.rpartition("\n")
    suffix, _, lower = behind.partition("\n")
    return _Place(
        text[start:end].strip(),
        prefix.strip() if any(map(str.isalnum, prefix)) and not _ITEM.match(prefix) else "",
        suffix.strip() if any(map(str.isalnum, suffix)) else "",
        _filled(upper),
        _filled(lower),
        _BLANK.search(before[len(before.rstrip()) :]) is not None,
        _BLANK.search(behind[: len(behind) - len(behind.lstrip())]) is not None,
        _ITEM.match(prefix) is not None,
        f"{before}\n{behind}",
    )


def _filled(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def features(text: str, start: int, end: int) -> Features:
    """Return the features of the passage [start, end) of a message."""
    place = _place(text, start, end)
    grams = (
        _grams(place.passage),
        _with_ends(place.lead),
        _with_ends(place.first),
        _with_ends(place.tail),
        _with_ends(place.last),
        _grams(place.around, 2 * FAR_CHARS),
        _layout(place, text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]),
    )
    found: Features = []
    for number, (name, its) in enumerate(zip(GROUPS, grams, strict=True)):
        if its:
            value = 1 / sqrt(len(its))
            indexes = {crc32(f"{name} {gram}".encode("utf-8", "replace")) % BUCKETS for gram in its}
            found += [(number * BUCKETS + index, value) for index in sorted(indexes)]
    numbers = _numbers(place, start / len(text), end / len(text))
    return found + [(len(GROUPS) * BUCKETS + number, value) for number, value in enumerate(numbers) if value]


def _words(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text)]


def _grams(text: str, most: int = NEAR_CHARS) -> set[str]:
    words = _words(text[:most])
    return {*words, *(f"{one} {two}" for one, two in pairwise(words))}


def _with_ends(line: str) -> set[str]:
    """Return words and pairs of words of a line, and its first and last ones with a mark."""
    if not line:
        return set()
    begins, ends = _words(line[:NEAR_CHARS])[:2], _words(line[-NEAR_CHARS:])[-2:]
    return {*_grams(line), f"^{begins[:1]}", f"^{begins}", f"{ends[-1:]}$", f"{ends}$"}


def _shape(text: str) -> str:
    return "".join("9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text)


def _layout(place: _Place, prefix: str, suffix: str) -> set[str]:
    """Return features of the passage's place, and the shapes of the lines: one letter stands for all letters."""
    lead, tail = place.lead, place.tail
    signs = (
        bool(place.prefix),
        bool(place.suffix),
        bool(place.above),
        bool(place.below),
        place.is_parted_above,
        place.is_parted_below,
        place.is_item,
    )
    where = "".join("01"[sign] for sign in signs)
    ends = _shape(lead[-1:]), _shape(tail[-1:])
    begins = (_words(lead[:40]) or [""])[0], (_words(tail[:40]) or [""])[0]
    found = {
        *(f"sign {number} {sign}" for number, sign in enumerate(signs)),
        where,
        f"{where} {ends[0]}",
        f"{where} {ends[1]}",
        f"{where} {ends}",
        f"{where} ^{begins[0]}",
        f"{where} {begins[1]}^",
        f"{ends} {_shape(place.passage[:1])} {_shape(place.passage[-1:])}",
    }
    for name, shape in (
        ("before", _shape(prefix[-12:])[::-1] + "^"),
        ("line", _shape(prefix[:12]) + "^"),
        ("behind", _shape(suffix[:8]) + "$"),
        ("lead", _shape(lead[:8])),
        ("lead ends", _shape(lead[-5:])[::-1]),
        ("tail", _shape(tail[:8])),
        ("tail ends", _shape(tail[-5:])[::-1]),
        ("passage", _shape(place.passage[:3])),
        ("passage ends", _shape(place.passage[-3:])[::-1]),
    ):
        found.update(f"{name} {shape[:length]}" for length in range(1, len(shape) + 1))
    found.update(f"line {_shape(line[:4])}" for line in (*place.above[-6:], *place.below[:6]))
    return found


def _numbers(place: _Place, begins: float, ends: float) -> list[float]:
    care = _care(place.passage + place.suffix[:1])
    others = [_care(line) for line in place.lines]
    usual = sum(others) / len(others) if others else care
    return [
        1.0,
        begins,
        ends,
        ends - begins,
        log1p(len(place.passage)) / 5,
        log1p(len(place.around)) / 7,
        log1p(len(place.above)) / 3,
        log1p(len(place.below)) / 3,
        log1p(len(_BLANK.findall(place.around.strip()))) / 2,
        float(not others),
        float("?" in place.around),
        care,
        usual,
        care - usual,
        float(bool(others) and place.around.islower()),
        *(float(person.search(place.passage) is not None) for person in _PERSONS),
        *(float(person.search(place.around) is not None) for person in _PERSONS),
    ]


def _care(line: str) -> float:
    """Return how carefully a line is written: with a capital at its beginning and a stop at its end; 0 to 1."""
    line = line.strip()
    return 0.5 * line[:1].isupper() + 0.5 * line.endswith((".", "!", "?", ":"))
