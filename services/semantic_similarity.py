"""Statements compared by the models of the recall service; without it, only the wording decides."""

from __future__ import annotations

import heapq
import logging
import time
from array import array
from collections.abc import Collection, Sequence

from ..index import mpnet_files
from ..index.client import RecallClient, RequestFailed
from ..pipelines.likeness import Compared
from ..runtime.closing import Closing
from ..runtime.errors import ModelUnavailable
from ..runtime.settings import Settings

log = logging.getLogger(__name__)

ANSWER_SECONDS = 3.0
"""Time limit; the vault's lock is held meanwhile."""
COMPARE_SECONDS = 10.0
"""Time limit of all that the second model compares for one object; it may have to be loaded first."""
MOST_TEXTS = 32
MOST_COMPARED = 4
"""Most statements that the second model compares with one: it takes some 0.1 s for each."""
LEAST_SAME, LEAST_CONTRADICTING = 0.5, 0.35
"""Cosines from which the second model is asked whether two statements are the same, or contradict each other: what
contradicts a rule is less like it."""


class SemanticSimilarity(Closing):
    """Comparisons of texts by the models. After the service, or the second model, has failed once it is not asked
    again."""

    def __init__(self, settings: Settings) -> None:
        self._client: RecallClient | None = RecallClient(settings.state.recall_socket)
        self._vectors: dict[str, array[float]] = {}
        self._logits: dict[frozenset[str], list[float]] = {}
        self._seconds_left = COMPARE_SECONDS if mpnet_files.is_used(settings) else 0.0

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

    def compared(self, text: str, others: Sequence[str], least: float = LEAST_SAME) -> list[Compared | None]:
        """Return what the models say of `text` and each of the others; None without vectors. The second model compares
        those whose cosine is at `least`."""
        cosines = self.cosines(text, others)
        near = {pair for pair in zip(cosines, others, strict=True) if pair[0] is not None and pair[0] >= least}
        nearest = {other for _, other in heapq.nlargest(MOST_COMPARED, near)}
        self._compare(text, nearest)
        return [
            None
            if cosine is None
            else Compared(cosine, self._logits.get(frozenset((text, other))) if other in nearest else None)
            for cosine, other in zip(cosines, others, strict=True)
        ]

    def _compare(self, text: str, others: Collection[str]) -> None:
        asked = [other for other in others if frozenset((text, other)) not in self._logits]
        if self._client is None or self._seconds_left <= 0 or not asked:
            return
        began = time.monotonic()
        try:
            rows = self._client.compare(text, asked, timeout_seconds=self._seconds_left)
        except (ModelUnavailable, RequestFailed, KeyError, TypeError, ValueError) as error:
            log.info("statements are compared without the second model: %s", error)
            self._seconds_left = 0.0
            return
        self._seconds_left -= time.monotonic() - began
        for other, row in zip(asked, rows, strict=False):
            self._logits[frozenset((text, other))] = row

    def _embed(self, texts: Sequence[str]) -> None:
        if self._client is None or not texts:
            return
        try:
            batch = self._client.embed(texts, timeout_seconds=ANSWER_SECONDS)
        except RequestFailed:
            return  # These texts are what fails.
        except (ModelUnavailable, KeyError, ValueError) as error:
            log.info("statements are compared by their words alone: %s", error)
            self.close()
            return
        for text, packed in zip(texts, batch.vectors, strict=False):
            self._vectors[text] = array("f", packed)


def _cosine(one: array[float] | None, other: array[float] | None) -> float | None:
    """Return the cosine of two unit vectors."""
    if one is None or other is None or len(one) != len(other):
        return None
    return sum(a * b for a, b in zip(one, other, strict=True))
