"""Statements compared by the models of the recall service; without it, only the wording decides."""

from __future__ import annotations

import heapq
import logging
from array import array
from collections.abc import Sequence

from ..index import mpnet_files
from ..index.client import RecallClient, RequestFailed
from ..pipelines.likeness import Compared
from ..runtime.errors import ModelUnavailable
from ..runtime.settings import Settings

log = logging.getLogger(__name__)

ANSWER_SECONDS = 3.0
"""Time limit; the vault's lock is held meanwhile."""
COMPARE_SECONDS = 10.0
"""The same for the second model, which may have to be loaded first."""
MOST_TEXTS = 64
MOST_COMPARED = 4
"""Most statements that the second model compares with one: it takes some 0.1 s for each."""
LEAST_COSINE = 0.5
"""Statements that are less similar are not compared by the second model."""


class SemanticSimilarity:
    """Comparisons of texts by the models. After the service, or the second model, has failed once it is not asked
    again."""

    def __init__(self, settings: Settings) -> None:
        self._client: RecallClient | None = RecallClient(settings.state.recall_socket)
        self._vectors: dict[str, array[float]] = {}
        self._logits: dict[tuple[str, str], list[float]] = {}
        self._has_second = mpnet_files.is_used(settings)

    def __enter__(self) -> SemanticSimilarity:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def cosines(self, text: str, others: Sequence[str]) -> list[float | None]:
        """Return the similarity of `text` to each of the others; None without vectors."""
        asked = others[:MOST_TEXTS]
        self._embed([one for one in dict.fromkeys([text, *asked]) if one not in self._vectors])
        own = self._vectors.get(text)
        return [_cosine(own, self._vectors.get(other)) for other in others]

    def compared(self, text: str, others: Sequence[str], least: float = LEAST_COSINE) -> list[Compared | None]:
        """Return what the models say of `text` and each of the others; None without vectors. The second model compares
        those whose cosine is at `least`."""
        cosines = self.cosines(text, others)
        near = [pair for pair in zip(cosines, others, strict=True) if pair[0] is not None and pair[0] >= least]
        self._compare(text, [other for _, other in heapq.nlargest(MOST_COMPARED, near)])
        return [
            None if cosine is None else Compared(cosine, self._logits.get((text, other)))
            for cosine, other in zip(cosines, others, strict=True)
        ]

    def _compare(self, text: str, others: Sequence[str]) -> None:
        asked = [other for other in others if (text, other) not in self._logits]
        if self._client is None or not self._has_second or not asked:
            return
        try:
            rows = self._client.compare(text, asked, timeout_seconds=COMPARE_SECONDS)
        except (ModelUnavailable, RequestFailed, KeyError, TypeError, ValueError) as error:
            log.info("statements are compared without the second model: %s", error)
            self._has_second = False
            return
        for other, row in zip(asked, rows, strict=False):
            self._logits[text, other] = row

    def _embed(self, texts: Sequence[str]) -> None:
        if self._client is None or not texts:
            return
        try:
            batch = self._client.embed(texts, timeout_seconds=ANSWER_SECONDS)
        except RequestFailed:
            return  # These texts are what fails.
        except (ModelUnavailable, KeyError, ValueError):
            self.close()
            return
        for text, packed in zip(texts, batch.vectors, strict=False):
            self._vectors[text] = array("f", packed)


def _cosine(one: array[float] | None, other: array[float] | None) -> float | None:
    """Return the cosine of two unit vectors."""
    if one is None or other is None or len(one) != len(other):
        return None
    return sum(a * b for a, b in zip(one, other, strict=True))
