"""Remove from a question's vectors what all texts of its language have in common.

An English model takes any two texts of another language for similar: their pieces are fragments of words, the same ones
in each. With all-MiniLM-L6-v2 a French question has similarity .42 with unrelated French notes, an English one .06 with
English notes, so that every prompt in French got notes (docs/adr/0030). That share lies in few directions: the means of
some texts of each language. Without them questions and notes compare as English ones do (language identity removal:
Yang, Yang, Cer and Darve, EMNLP 2021, arXiv 2109.04727). Changing the question's vector is enough, since a product with
a vector is also one with its projection.

The means are of the packaged model alone; `python -m memoryvault.bench.train_languages` makes them. numpy is imported
where it is used: it comes with the extra `semantic`.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .late_interaction import WordVectors

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

LAST_LATIN = "\u024f"
FILE = Path(__file__).with_name("languages.json")
FOREIGN_SIMILARITY = 0.22
"""Product with the mean vector of a language from which a question is taken to be in it: hardly any English one reaches
it, hardly any other stays below (docs/adr/0030)."""
LEAST_LENGTH = 0.1
"""Least length of a question's vector without the directions of the languages: what is left of a shorter one is noise.
The prompts of `bench languages` keep .42 and more."""


@dataclass(frozen=True)
class LanguageDirections:
    """Mean vectors of texts of several languages, with orthonormal bases of the space that the means span."""

    means: Floats
    """float32[languages, dimension]."""
    text_basis: Floats
    """float32[dimension, languages], of `means`."""
    word_basis: Floats
    """The same of the means of the texts' word vectors."""

    def neutralise(self, vector: Floats, words: WordVectors | None) -> tuple[Floats, WordVectors | None, float]:
        """Return the question without these directions, and what its similarities are to be multiplied by, at least 1:
        without these directions the vectors of passages would be shorter too. One in none of the languages is returned
        as it is.

        `vector`: float32[dimension], unit length.
        """
        import numpy

        if float((self.means @ vector).max()) < FOREIGN_SIMILARITY:
            return vector, words, 1.0
        neutral = vector - self.text_basis @ (self.text_basis.T @ vector)
        length = float(numpy.linalg.norm(neutral))
        if length < LEAST_LENGTH:
            return vector, words, 1.0
        if words is not None:
            rows = words.vectors - (words.vectors @ self.word_basis) @ self.word_basis.T
            words = WordVectors(words.words, rows.astype(numpy.float32))
        return (neutral / length).astype(numpy.float32), words, 1.0 / length


def directions_of(text_means: Floats, word_means: Floats) -> LanguageDirections:
    """`text_means`, `word_means`: float32[languages, dimension]."""
    import numpy

    bases = (numpy.linalg.qr(means.T)[0].astype(numpy.float32) for means in (text_means, word_means))
    return LanguageDirections(text_means, *bases)


def is_foreign(name: str, text: str) -> bool:
    """Whether most letters of the text are of a script that the model hardly saw in training: for the packaged model,
    which is English, any script but Latin."""
    letters = [character > LAST_LATIN for character in text if character.isalpha()]
    return sum(letters) * 2 > len(letters) and load_directions(name) is not None


def load_directions(model_name: str) -> LanguageDirections | None:
    """Return the directions of this model; None if they were not measured for it."""
    found = _read()
    return found[1] if found[0] == model_name else None


@cache
def _read() -> tuple[str, LanguageDirections]:
    import numpy

    content = json.loads(FILE.read_text(encoding="utf-8"))

    def rows(name: str) -> Floats:
        packed = [base64.b64decode(language[name]) for language in content["languages"].values()]
        return numpy.stack([numpy.frombuffer(data, "<f2") for data in packed]).astype(numpy.float32)

    return str(content["model"]), directions_of(rows("text_mean"), rows("word_mean"))
