"""Rebuild the scrubber's weights: `python -m memoryvault.bench.train_scrub`.

Deterministic. Secrets and look-alikes are invented here, form by form; the other text is this repository's. So all
strings on which the scrubber is measured are unseen. Needs numpy (in the extra `semantic`).
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import random
import re
import string
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..pipelines.secret_model import (
    ALPHABET,
    MAX_TOKEN_CHARS,
    REACH_CHARS,
    WEIGHTS_FILE,
    Features,
    Model,
    features_of,
    is_candidate_token,
)
from ..pipelines.secret_patterns import CANDIDATE

ROOT = Path(__file__).resolve().parents[1]
OWN_TEXT = (
    "*.md",
    "docs/**/*.md",
    "cli/*.py",
    "hooks/*.py",
    "index/*.py",
    "sources/**/*.py",
    "tasks/*.py",
    "vault/*.py",
)
SECRETS = 6000
LOOKALIKES = 6000
OWN_WEIGHT = 1500.0
"""Total weight of all tokens of our own text."""
STRENGTH = 0.3
NEWTON_STEPS = 60
FALSE_ALARMS = 0.002
"""Share of look-alikes above the threshold."""

LOWER36 = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"

Vector = npt.NDArray[np.float64]


ALPHABETS = {
    "hex": HEX,
    "HEX": "0123456789ABCDEF",
    "digits": string.digits,
    "base62": string.ascii_letters + string.digits,
    "base62_": string.ascii_letters + string.digits + "_-",
    "base62~": 2 * (string.ascii_letters + string.digits) + "~._-",
    "lower": string.ascii_lowercase,
    "lower36": LOWER36,
    "upper36": string.ascii_uppercase + string.digits,
    "crockford": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
}
_BLANK = re.compile(r"<([\w~]+)([^<>]*)>")


class Maker:
    """Fills templates. The same seed gives the same strings.

    `<hex 32 40>`: as many characters drawn from that alphabet; `<base64 24 32>`, `<base64url 24>`: so many bytes;
    `<one /a/b>`: one of these; `<word>`, `<Word>`: a word of our own; `<words ->`: some, joined by what follows;
    `<uuid>`.
    """

    def __init__(self, seed: int, words: Sequence[str]) -> None:
        self._chance = random.Random(seed)
        self._words = words

    def __call__(self, template: str) -> str:
        while _BLANK.search(template):
            template = _BLANK.sub(self._fill, template)
        return template

    def one_of(self, choices: Sequence[str]) -> str:
        return self._chance.choice(choices)

    def _fill(self, blank: re.Match[str]) -> str:
        name, rest = blank[1], blank[2].removeprefix(" ")
        chance = self._chance
        if name == "one":
            return str(chance.choice(rest[1:].split(rest[0])))
        if name in ("word", "Word"):
            word = chance.choice(self._words)
            return word.title() if name == "Word" else word
        if name == "words":
            return rest.join(chance.choice(self._words) for _ in range(chance.randint(2, 5)))
        if name == "uuid":
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        length = int(chance.choice(rest.split()))
        if name == "base64":
            return base64.b64encode(chance.randbytes(length)).decode()
        if name == "base64url":
            return base64.urlsafe_b64encode(chance.randbytes(length)).decode().rstrip("=")
        return "".join(chance.choices(ALPHABETS[name], k=length))


PREFIX = "<lower 2 3 3 4 5><one ,_,_,-><one ,,,,v1_,live_,test_,api-,sk->"
FORMS: Mapping[str, str] = {
    "base62": "<base62 20 22 24 28 32 36 40 43 48 64>",
    "base64": "<base64 20 24 30 32 48>",
    "base64url": "<base64url 20 24 32 48>",
    "one case": "<lower36 36 40 48 52 64>",
    "dotted": "<base62 4 8 11 14>.<base62_ 22 27 32 43>",
    "all signs": "<base62~ 34 37 40>",
    "prefix, base62": f"{PREFIX}<base62 20 24 32 36 40>",
    "prefix, base64url": f"{PREFIX}<base62_ 24 32 43>",
    "prefix, hexadecimal": f"{PREFIX}<hex 32 40 64>",
    "prefix, one case": f"{PREFIX}<lower36 24 32 40>",
    "prefix, long": f"{PREFIX}<base64url 80 110 150>",
}
"""Forms of tokens as services make them, without an issuer's mark."""

LOOKALIKES_OF: Mapping[str, str] = {
    "digest": "<hex 32 40 64>",
    "digest of a word": "<word><one /-/_/@/.><hex 20 32 40 64>",
    "digest in a file's name": "<word>/<word>-<hex 20 32 40>.<one /png/js/css/json>",
    "bundle": "<word>/<word>-<base62_ 8>.<one /js/mjs/css>",
    "uuid": "<uuid>",
    "uuid in a path": "<word>/<uuid><one ,,.jsonl,/x>",
    "pod": "<words ->-<hex 9 10>-<lower36 5>",
    "ulid": "01<crockford 24>",
    "address": "0x<hex 18 40 64>",
    "pseudo-version": "v0.<digits 1>.0-2024<digits 10>-<hex 12>",
    "version": "<word>-<word>@<digits 1>.<digits 2>.<digits 1>-beta.<digits 1>",
    "branch": "<word>/<one ,ABC,OPS,WEB>-<digits 2 4>-<words ->",
    "dated": "<words ->-2026-1<digits 1>-2<digits 1>T1<digits 1>:3<digits 1>",
    "identifier": "<Word><Word><Word><digits 1 2>",
    "numbered words": "<words _>_<digits 1 3>_<word><digits 1>",
    "path": "<words />/<digits 2>-<word>.<one ,py,ts,md,go>:<digits 2 3>",
    "temporary folder": "/var/folders/<lower36 2>/<lower36 30>/T/<word>.<base62 10>",
    "store": "/<word>/store/<lower36 32>-<word>-<digits 1>.<digits 2>/<word>",
    "test": "tests/<word>/test_<word>.py::test_<words _>[<word>-<digits 1>]",
    "expression": "<word>.<word><digits 1>.<word>[<digits 1>].<word>",
    "encoded text": "%<HEX 2>%<HEX 2>%<HEX 2>%<HEX 2>%<HEX 2>%<HEX 2>%<HEX 2>%<HEX 2>",
    "number": "<digits 9>.<digits 12>e-<digits 2>",
    "colours": "<hex 6>-<hex 6>-<hex 6>-<hex 6>",
    "counted": "<one ,a1b2c3d4e5f6g7h8i9j0k1l2,abcdefghijklmnopqrstuvwxyz0123456789,0123456789abcdef0123456789abcdef,"
    "z9y8x7w6v5u4t3s2r1q0,ABCDEFGHIJKLMNOPQRSTUVWXYZ234567,1234567890abcdefghij>",
    "blank": "<lower 3>_<one ,xxxxxxxxxxxxxxxxxx,XXXXXXXXXXXXXXXXXX,000000000000000000><digits 2>",
    "spoken of": "<one ,your,my,some,the>-<words ->-<one ,key,token>-<digits 2>",
    "example": "<upper36 12>EXAMPLE<one ,,KEY1>",
    "class of a style": "<Word>_<word>__<base62 5>-<word>",
    "resource": "arn:aws:<word>:us-east-1:<digits 12>:<word>/<uuid>",
}
"""Forms of long mixed strings in ordinary text."""

SECRET_NAME = "<one ,access token,api key,secret,token,client secret,auth key,bearer>"
BEFORE = (
    "", "  ", "- ", "`", "use ", "here it is:\n", "<word>('", '["', "(", f"the <word> {SECRET_NAME} ",
    f"<word> {SECRET_NAME} ", f"{SECRET_NAME} (", "--<word> ", "<word> login ", "\"<word>\", '", "<word> push ",
    f"// {SECRET_NAME}\n", "<word>; ",
)  # fmt: skip
"""What stands before a token that has no name."""


def made(make: Maker, templates: Sequence[str], count: int) -> Iterator[tuple[str, str]]:
    """(token, what stands before it) of those that the model could be asked about; templates by turns."""
    for index in range(count):
        before = make(f"<words  > {make.one_of(BEFORE)}")
        token = make(templates[index % len(templates)])[:MAX_TOKEN_CHARS]
        if is_candidate_token(token):
            yield token, before


def own_text() -> str:
    """This repository's documents and code, without what knows of secrets."""
    files = sorted({path for pattern in OWN_TEXT for path in ROOT.glob(pattern)})
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def tokens_in(text: str) -> Iterator[tuple[str, str]]:
    for match in CANDIDATE.finditer(text):
        if is_candidate_token(match.group()):
            yield match.group(), text[max(0, match.start() - REACH_CHARS) : match.start()]


def bigrams_of(words: Sequence[str]) -> dict[str, float]:
    """Return the smoothed log-probability of each bigram in the words."""
    pairs: Counter[str] = Counter()
    for word in words:
        marked = f"^{word}$"
        pairs.update(marked[index : index + 2] for index in range(len(marked) - 1))
    first: Counter[str] = Counter()
    for pair, count in pairs.items():
        first[pair[0]] += count
    # Rounded as it is stored.
    return {
        a + b: round(math.log((pairs[a + b] + 0.5) / (first[a] + 0.5 * len(ALPHABET))), 1)
        for a in ALPHABET
        for b in ALPHABET
    }


def fit(rows: Vector, labels: Vector, importance: Vector) -> tuple[Vector, float]:
    """Return weights and bias of a logistic regression with an L2 penalty, by Newton's method."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    inside = np.hstack([(rows - mean) / spread, np.ones((len(rows), 1))])
    penalty = np.full(inside.shape[1], 1.0 / STRENGTH)
    penalty[-1] = 1e-6
    weights = np.zeros(inside.shape[1])
    for _ in range(NEWTON_STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(inside @ weights, -30, 30)))
        gradient = inside.T @ (importance * (probability - labels)) + penalty * weights
        curvature = (inside * (importance * probability * (1 - probability))[:, None]).T @ inside + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    plain = weights[:-1] / spread
    return plain, float(weights[-1] - plain @ mean)


def train(without: str | None = None, seed: int = 1) -> Model:
    """Train the model. `without`: a form of secrets to leave out."""
    text = own_text()
    words = sorted(set(re.findall(r"[a-z]{3,14}", text)))
    bigrams = bigrams_of(words)
    forms = [template for form, template in FORMS.items() if form != without]
    alike = list(LOOKALIKES_OF.values())
    positive = list(made(Maker(seed, words), forms, SECRETS))
    negative = list(made(Maker(seed + 1, words), alike, LOOKALIKES))
    own = list(tokens_in(text))
    rows = [features_of(*one, bigrams) for one in (*positive, *negative, *own)]
    names = sorted(rows[0])
    matrix = np.array([[row[name] for name in names] for row in rows])
    labels = np.array([1.0] * len(positive) + [0.0] * (len(negative) + len(own)))
    importance = np.array([1.0] * (len(positive) + len(negative)) + [OWN_WEIGHT / max(1, len(own))] * len(own))
    plain, bias = fit(matrix, labels, importance)
    model = Model(dict(zip(names, plain.tolist(), strict=True)), bias, 0.0, bigrams)
    # The threshold is set on other look-alikes.
    others = [model.logit(features_of(*one, bigrams)) for one in made(Maker(seed + 2, words), alike, LOOKALIKES)]
    threshold = sorted(others)[-max(1, round(FALSE_ALARMS * len(others)))]
    return Model(model.weights, bias, threshold, bigrams)


def dump(model: Model) -> str:
    """Serialise a model as JSON."""
    rows = ",\n  ".join(
        json.dumps([round(model.bigrams[a + b], 1) for b in ALPHABET], separators=(",", ":")) for a in ALPHABET
    )
    data = {
        "format": 1,
        "bias": round(model.bias, 4),
        "threshold": round(model.threshold, 3),
        "weights": {name: round(value, 4) for name, value in sorted(model.weights.items())},
    }
    return json.dumps(data, indent=1)[:-2] + f',\n "bigrams": [\n  {rows}\n ]\n}}\n'


def share_found(model: Model, form: str, seed: int = 9) -> float:
    """Return the share of invented secrets of one form that is found."""
    words = sorted(set(re.findall(r"[a-z]{3,14}", own_text())))
    strings = made(Maker(seed, words), [FORMS[form]], 500)
    features: list[Features] = [features_of(*one, model.bigrams) for one in strings]
    return sum(model.logit(row) >= model.threshold for row in features) / len(features)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write the file, or, with --forms, print how forms that were left out are found."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.train_scrub", description=__doc__)
    parser.add_argument("--forms", action="store_true", help="leave out each form in turn; write nothing")
    if not parser.parse_args(arguments).forms:
        WEIGHTS_FILE.write_text(dump(train()), encoding="utf-8")
        print(f"wrote {WEIGHTS_FILE}")
        return 0
    whole = train()
    print("| form of a token | found | found by a model that never saw it |\n|---|---|---|")
    for form in FORMS:
        print(f"| {form} | {share_found(whole, form):.2f} | {share_found(train(form), form):.2f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
