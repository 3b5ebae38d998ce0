"""The vectors of one model in the recall service's memory: the nearest of 100,000 in 5 ms instead of 110.

sqlite-vec reads every vector from the file for each question, and a list of the rows that a scope admits takes as
long again to make. Held as float32 blocks the same comparison is one product of matrices, so it can be made over
all of them and the scope asked only of the nearest: see docs/adr/0013. The index stays the truth: blocks are filled
from it, what is added meanwhile is added, and when something was dropped they are filled anew.

numpy is imported where it is used, as in words.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..vault.errors import IndexUnavailable
from .reader import IndexReader

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

SMALLEST = 3_000
"""Passages from which it is worth it: sqlite-vec compares so many in 5 ms."""
LARGEST_BYTES = 400_000_000
"""A quarter of a million vectors of 384 dimensions; beyond that sqlite-vec reads them from the file."""
ADDED_AT_ONCE = 64
"""New vectors that a recall waits for; more are fetched in the background and are found a moment later."""
BLOCK_ROWS = 8_192


@dataclass
class Matrix:
    """Unit vectors and the passages they belong to, in blocks of BLOCK_ROWS."""

    identity: tuple[int, int] | None
    """Of the index file, as `IndexReader.identity`."""
    model_id: int
    dimension: int
    epoch: int
    """Of `IndexReader.vector_state` when it was filled: another one means that something was dropped."""
    last: int = 0
    """The newest row of `embedding` that is in here."""
    count: int = 0
    vectors: list[Floats] = field(default_factory=list)
    passages: list[Any] = field(default_factory=list)
    _place: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, passage: int, vector: bytes) -> None:
        import numpy

        with self._lock:
            if passage in self._place:
                return
            block, row = divmod(self.count, BLOCK_ROWS)
            if block == len(self.vectors):
                self.vectors.append(numpy.empty((BLOCK_ROWS, self.dimension), dtype=numpy.float32))
                self.passages.append(numpy.zeros(BLOCK_ROWS, dtype=numpy.int64))
            self.vectors[block][row] = numpy.frombuffer(vector, "<f4")
            self.passages[block][row] = passage
            self._place[passage] = self.count
            self.count += 1

    def nearest(self, vector: bytes, limit: int) -> dict[int, float]:
        """Cosine similarity by passage of the `limit` nearest, nearest first."""
        import numpy

        asked = _unit(vector)
        count = self.count
        found = numpy.empty(count, dtype=numpy.float32)
        owners = numpy.empty(count, dtype=numpy.int64)
        for number in range(-(-count // BLOCK_ROWS)):
            rows = slice(number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, count))
            size = rows.stop - rows.start
            numpy.dot(self.vectors[number][:size], asked, out=found[rows])
            owners[rows] = self.passages[number][:size]
        best = numpy.argpartition(-found, limit)[:limit] if limit < count else numpy.arange(count)
        best = best[numpy.argsort(-found[best], kind="stable")]
        return dict(zip(owners[best].tolist(), found[best].tolist(), strict=True))

    def similarities(self, vector: bytes, passages: Sequence[int]) -> dict[int, float]:
        """The same of these passages, as far as they are in here."""
        asked = _unit(vector)
        found = {}
        for passage in passages:
            place = self._place.get(passage)
            if place is not None:
                block, row = divmod(place, BLOCK_ROWS)
                found[passage] = float(self.vectors[block][row] @ asked)
        return found


@dataclass(frozen=True)
class Looked:
    """A matrix whose nearest to one question have been looked up already."""

    matrix: Matrix
    first: dict[int, float]
    """As `Matrix.nearest` gave it."""

    def nearest(self, vector: bytes, limit: int) -> dict[int, float]:
        return self.first if limit == len(self.first) else self.matrix.nearest(vector, limit)

    def similarities(self, vector: bytes, passages: Sequence[int]) -> dict[int, float]:
        return self.matrix.similarities(vector, passages)


class MatrixKeeper:
    """Keeps the matrix of the model that answers, filled by a thread of its own."""

    def __init__(self, index_db: Path) -> None:
        self._index_db = index_db
        self._matrix: Matrix | None = None
        self._filling: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._matrix = None
        if self._filling is not None:
            self._filling.join(5)

    def matrix(self, reader: IndexReader, model_id: int, dimension: int) -> Matrix | None:
        """The matrix with what `reader`'s snapshot holds; None while there is none or it is not worth it."""
        count, last, epoch = reader.vector_state(model_id)
        if count < SMALLEST or count * dimension * 4 > LARGEST_BYTES:
            self._matrix = None
            return None
        matrix = self._matrix
        key = (reader.identity, model_id, dimension, epoch)
        if matrix is None or (matrix.identity, matrix.model_id, matrix.dimension, matrix.epoch) != key:
            self._fill(lambda reader: self._filled(reader, model_id, dimension))
            return None
        if matrix.last < last:
            added = reader.added_embeddings(model_id, matrix.last, ADDED_AT_ONCE + 1)
            if len(added) > ADDED_AT_ONCE:
                self._fill(lambda reader: self._caught_up(reader, matrix))
            else:
                for passage, vector in added:
                    matrix.add(passage, vector)
                matrix.last = max(matrix.last, last)
        return matrix

    def wait(self, seconds: float) -> None:
        """Until what is being filled is full."""
        filling = self._filling
        if filling is not None:
            filling.join(seconds)

    def _fill(self, work: Callable[[IndexReader], None]) -> None:
        with self._lock:
            if self._closed or (self._filling is not None and self._filling.is_alive()):
                return
            self._filling = threading.Thread(target=self._run, args=(work,), name="matrix", daemon=True)
            self._filling.start()

    def _run(self, work: Callable[[IndexReader], None]) -> None:
        try:
            reader = IndexReader(self._index_db)
        except IndexUnavailable:
            return
        try:
            with reader.snapshot():
                work(reader)
        except IndexUnavailable:
            return
        finally:
            reader.close()

    def _filled(self, reader: IndexReader, model_id: int, dimension: int) -> None:
        _, last, epoch = reader.vector_state(model_id)
        matrix = Matrix(reader.identity, model_id, dimension, epoch)
        self._matrix = None
        for passage, vector in reader.all_vectors(model_id):
            if self._closed:
                return
            if len(vector) == 4 * dimension:
                matrix.add(passage, vector)
        matrix.last = last
        self._matrix = matrix

    def _caught_up(self, reader: IndexReader, matrix: Matrix) -> None:
        _, last, epoch = reader.vector_state(matrix.model_id)
        if (reader.identity, epoch) != (matrix.identity, matrix.epoch):
            return
        for passage, vector in reader.added_embeddings(matrix.model_id, matrix.last, -1):
            if self._closed:
                return
            matrix.add(passage, vector)
        matrix.last = last


def _unit(vector: bytes) -> Floats:
    import numpy

    asked: Floats = numpy.frombuffer(vector, "<f4").astype(numpy.float32)
    asked /= max(float(numpy.linalg.norm(asked)), 1e-12)
    return asked
