"""Similarity in meaning from the recall service; without it, only the wording decides."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ..index.client import RecallClient, RequestFailed
from ..runtime.errors import ModelUnavailable
from ..runtime.settings import Settings

ANSWER_SECONDS = 3.0
"""Time limit; the vault's lock is held meanwhile."""
MOST_TEXTS = 64


class SemanticSimilarity:
    """Cosine similarities of texts. After the service has failed once it is not asked again."""

    def __init__(self, settings: Settings) -> None:
        self._client: RecallClient | None = RecallClient(settings.state.recall_socket)
        self._vectors: dict[str, array[float]] = {}

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
