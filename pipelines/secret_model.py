"""Recognise random tokens by logistic regression over their characters and the words before them.

Used for tokens without an issuer's mark and without a name, in prose, in a call or alone on a line. The weights are in
`secret_weights.json` (numbers only); `python -m memoryvault.bench.train_scrub` builds them from invented strings and
from the text of this repository.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

WEIGHTS_FILE = Path(__file__).with_name("secret_weights.json")

MIN_TOKEN_CHARS = 20
MAX_TOKEN_CHARS = 256
REACH_CHARS = 60
"""Characters before a token that count as its context."""

ALPHABET = "^abcdefghijklmnopqrstuvwxyz$"
"""Characters of the bigrams; ^ and $ are the ends of a word."""

Features = Mapping[str, float]

_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_ALNUM = re.compile(r"[A-Za-z0-9]+")
_LOWER_RUN = re.compile(r"[a-z]+")
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PREFIX = re.compile(r"([A-Za-z]{2,10})\d?[_-](?=\S{14})")
_FILE_NAME = re.compile(r"\.[a-z]{2,4}\d?\Z")
_SECRET_WORD = re.compile(
    r"secret|token|passw|pwd|api.?key|auth|cred|(?:private|access|license).?key|bearer|\bkey\b", re.I
)
_DIGEST_WORD = re.compile(
    r"(?:sha-?\d*|md5|integrity|etag|commit|hash|checksum|digest|signature|build|revision|version|container|image|"
    r"object|tree|parent|blob|id)s?\W{0,4}\Z",
    re.I,
)
_SAME = re.compile(r"(.)\1{2,}")
_CAN_BE = re.compile(r"(?=[^0-9]*[0-9][^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_PLACE = re.compile(r"[\w)\]]\.[a-z]{1,4}\d?(?:[-:#(][^/~]*)?\Z")
"""Matches `strategy/common.go:119`, as nine of ten tokens that are tested here look."""
_DIGITS_OF_IDS = re.compile(r"[0-9a-f-]+|[0-9A-F-]+")


@dataclass(frozen=True)
class Model:
    """Weights of the features, and log-probabilities of the bigrams of words."""

    weights: Mapping[str, float]
    bias: float
    threshold: float
    """Least logit of a random token; chosen on held-out strings of the same kind as the training set."""
    bigrams: Mapping[str, float]

    def logit(self, features: Features) -> float:
        weights = self.weights
        return self.bias + sum(weights[name] * value for name, value in features.items() if name in weights)


def load(text: str) -> Model:
    """Load a model from JSON."""
    data = json.loads(text)
    pairs = {a + b: value for a, row in zip(ALPHABET, data["bigrams"], strict=True)
             for b, value in zip(ALPHABET, row, strict=True)}  # fmt: skip
    return Model(data["weights"], data["bias"], data["threshold"], pairs)


@functools.cache
def packaged() -> Model:
    """The model of the package, loaded once, on first use."""
    return load(WEIGHTS_FILE.read_text(encoding="utf-8"))


def is_candidate_token(token: str) -> bool:
    """Whether a token is long enough, and no word, digest, id or place in a file: cheap tests before the model."""
    return (
        MIN_TOKEN_CHARS <= len(token) <= MAX_TOKEN_CHARS
        and _CAN_BE.match(token) is not None
        and _PLACE.search(token) is None
        and _DIGITS_OF_IDS.fullmatch(token) is None
    )


def is_random_token(token: str, before: str) -> bool:
    """Whether the model takes a token for random. `before`: the text before it, REACH_CHARS if there are as many."""
    model = packaged()
    return model.logit(features_of(token, before, model.bigrams)) >= model.threshold


_PREFIXED_DIGITS = re.compile(r"([a-z]{2,8})[_-](?:[a-z]{2,8}[_-]){0,2}(?=[a-f]*\d)[0-9a-f]{32,64}")
MOST_LIKE_A_WORD = -2.9
"""Mean log-probability of letter pairs below which a prefix is no word but the short name of a service."""


def is_prefixed_digits(token: str) -> bool:
    """Whether a token is the digits of a digest after letters that are no word: "brv_…", unlike "user_…"."""
    match = _PREFIXED_DIGITS.fullmatch(token)
    return match is not None and _likeness([match[1]], packaged().bigrams)[0] < MOST_LIKE_A_WORD


def features_of(token: str, before: str, bigrams: Mapping[str, float]) -> Features:
    """Return the features of a token, for which `is_candidate_token` holds, by the names of the weights."""
    length = len(token)
    runs = _CLASS_RUN.findall(token)
    parts = _ALNUM.findall(token)
    alnum = sum(map(len, parts)) or 1
    digits = sum(len(run) for run in runs if run[0] <= "9")
    upper = sum(len(run) for run in runs if "A" <= run[0] <= "Z")
    lower = alnum - digits - upper
    longest = max(parts, key=len, default="")
    entropy = -sum(count / length * math.log2(count / length) for count in Counter(token).values())
    prefix = _PREFIX.match(token)
    words = _WORD.findall(token)
    likeness, pairs = _likeness(words, bigrams)
    hex_longest = float(len(longest) >= 16 and _HEX.fullmatch(longest) is not None)
    reach = before[-REACH_CHARS:]
    word = float(_SECRET_WORD.search(reach) is not None)
    last = before[-1:]
    line = reach[reach.rfind("\n") + 1 :]
    return {
        "length": min(math.log(length), 5.5),
        "digits": digits / alnum,
        "upper": upper / alnum,
        "entropy": entropy,
        "entropy share": entropy / math.log2(min(length, 64)),
        "mean run": min(alnum / max(1, len(runs)), 8.0),
        "longest lower": min(max(map(len, _LOWER_RUN.findall(token)), default=0), 12) / 4,
        "longest part": math.log(len(longest) + 1),
        "parts": min(len(parts), 8) / 4,
        "likeness": likeness,
        "in words": sum(map(len, words)) / alnum,
        "likeness of many": likeness * min(pairs / 12, 1.0),
        "three classes": float(bool(digits and upper and lower)),
        "one case and digits": float(not (upper and lower)),
        "hex": hex_longest * float(len(longest) >= length - 2),
        "hex part": hex_longest,
        "uuid": float(UUID.search(token) is not None),
        "prefix": float(prefix is not None),
        "likeness of prefix": _likeness([prefix[1]], bigrams)[0] if prefix else 0.0,
        "slashes": min(token.count("/"), 4) / 2,
        "dots": min(token.count("."), 4) / 2,
        "colons": min(token.count(":"), 4) / 2,
        "underscores": min(token.count("_"), 4) / 2,
        "dashes": min(token.count("-"), 6) / 3,
        "tilde": float("~" in token),
        "plus": float("+" in token),
        "percent": float("%" in token),
        "path": float(token.startswith(("/", "./", "../", "~/"))),
        "at": float("@" in token),
        "padded": float(token.endswith("=")),
        "file name": float(_FILE_NAME.search(token) is not None),
        "counted": _counted(token),
        "same": sum(len(match.group()) for match in _SAME.finditer(token)) / length,
        "secret word": word,
        "secret word, hex part": word * hex_longest,
        "digest word": float(_DIGEST_WORD.search(reach) is not None),
        "quoted": float(last in "\"'`" and last != ""),
        "in a call": float(last == "(" or reach[-2:-1] == "("),
        "first on its line": float(not line.strip()),
    }


def _likeness(words: list[str], bigrams: Mapping[str, float]) -> tuple[float, int]:
    """Mean log-probability of the bigrams of words, -3 if there are none, and their number."""
    total, count = 0.0, 0
    for word in words:
        previous = "^"
        for letter in f"{word.lower()}$":
            total += bigrams[previous + letter]
            previous = letter
            count += 1
    return (total / count, count) if count else (-3.0, 0)


def _counted(token: str) -> float:
    """Return the share of neighbours that count up or down, of letters and of digits: abcd, 4321, a1b2c3."""
    steps = total = 0
    for kind in (str.isalpha, str.isdigit):
        codes = [ord(character) for character in token.lower() if kind(character)]
        total += max(0, len(codes) - 1)
        steps += sum(abs(b - a) == 1 for a, b in pairwise(codes))
    return steps / max(1, total)
