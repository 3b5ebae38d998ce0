"""The vectors of one model in the recall service's memory: the nearest of 100,000 in 5 ms instead of 110.

sqlite-vec reads every vector from the file for each question, and a list of the rows that a scope admits takes as
long again to make. Held as float32 blocks the same comparison is one product of matrices, so it can be made over
all of them and only the nearest tested against the scope: see docs/adr/0013. The index is the source: the blocks are
filled from it, vectors that are added later are added here, and once vectors were dropped the blocks are filled again.

numpy is imported where it is used, as in late_interaction.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.errors import IndexUnavailable
from .search_reader import ModelKey, SearchReader

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

MAX_BYTES = 400_000_000
"""A quarter of a million vectors of 384 dimensions; beyond that sqlite-vec reads them from the file."""
MAX_INLINE_VECTORS = 64
"""Most new vectors that a recall waits for; more are read in the background and found a moment later."""
LENGTH_TOLERANCE = 0.1
"""Most that the square of a vector's length may differ from 1."""
BLOCK_ROWS = 8_192


@dataclass
class Matrix:
    """Unit vectors and the ids of their passages, in blocks of BLOCK_ROWS: float32[BLOCK_ROWS, dimension]."""

    identity: tuple[int, int] | None
    """That of the index file, as `SearchReader.identity`."""
    model: ModelKey
    drop_count: int
    """As `VectorState.drop_count` when it was filled: another number means that vectors were dropped."""
    last_rowid: int = 0
    """The newest row of `embedding` that is in here."""
    count: int = 0
    vectors: list[Floats] = field(default_factory=list)
    passages: list[Any] = field(default_factory=list)
    _row_of: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, passage: int, vector: bytes) -> None:
        """Add float32 little-endian bytes of unit length; a passage that is in here already is left alone.

        A vector of another length is damaged, and near nothing.
        """
        import numpy

        with self._lock:
            if passage in self._row_of:
                return
            block, row = divmod(self.count, BLOCK_ROWS)
            if block == len(self.vectors):
                self.vectors.append(numpy.empty((BLOCK_ROWS, self.model.dimension), dtype=numpy.float32))
                self.passages.append(numpy.zeros(BLOCK_ROWS, dtype=numpy.int64))
            unit = numpy.frombuffer(vector, "<f4")
            with numpy.errstate(all="ignore"):
                self.vectors[block][row] = unit if abs(numpy.dot(unit, unit) - 1) < LENGTH_TOLERANCE else 0
            self.passages[block][row] = passage
            self._row_of[passage] = self.count
            self.count += 1

    def nearest(self, vector: bytes, limit: int) -> dict[int, float]:
        """Cosine similarity by passage id of the `limit` nearest, nearest first."""
        import numpy

        query = _unit_vector(vector)
        count = self.count
        similarity = numpy.empty(count, dtype=numpy.float32)
        owners = numpy.empty(count, dtype=numpy.int64)
        for number in range(-(-count // BLOCK_ROWS)):
            rows = slice(number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, count))
            size = rows.stop - rows.start
            numpy.dot(self.vectors[number][:size], query, out=similarity[rows])
            owners[rows] = self.passages[number][:size]
        best = numpy.argpartition(-similarity, limit)[:limit] if limit < count else numpy.arange(count)
        best = best[numpy.argsort(-similarity[best], kind="stable")]
        return dict(zip(owners[best].tolist(), similarity[best].tolist(), strict=True))

    def similarities(self, vector: bytes, passages: Sequence[int]) -> dict[int, float]:
        """Cosine similarity of these passages, as far as they are in here."""
        query = _unit_vector(vector)
        similarity = {}
        for passage in passages:
            position = self._row_of.get(passage)
            if position is not None:
                block, row = divmod(position, BLOCK_ROWS)
                similarity[passage] = float(self.vectors[block][row] @ query)
        return similarity


class MatrixCache:
    """Holds the matrix of the model that answers; a separate thread fills it."""

    def __init__(self, index_db: Path) -> None:
        self._index_db = index_db
        self._matrix: Matrix | None = None
        self._filler: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._matrix = None
        if self._filler is not None:
            self._filler.join(5)

    def get(self, reader: SearchReader, model: ModelKey) -> Matrix | None:
        """Return the matrix with all vectors of `reader`'s snapshot; None while it is filled, or too large."""
        state = reader.vector_state()
        if state.passage_count * model.dimension * 4 > MAX_BYTES:
            self._matrix = None
            return None
        matrix = self._matrix
        key = (reader.identity, model, state.drop_count)
        if matrix is None or (matrix.identity, matrix.model, matrix.drop_count) != key:
            self._start_filler(lambda reader: self._fill(reader, model))
            return None
        if matrix.last_rowid < state.last_rowid:
            vectors = reader.vectors_after(model.model_id, matrix.last_rowid, MAX_INLINE_VECTORS + 1)
            if len(vectors) > MAX_INLINE_VECTORS:
                self._start_filler(lambda reader: self._append_new(reader, matrix))
            else:
                for passage, vector in vectors:
                    matrix.add(passage, vector)
                matrix.last_rowid = max(matrix.last_rowid, state.last_rowid)
        return matrix

    def wait_until_filled(self, seconds: float) -> None:
        """Wait for the thread that fills the matrix, if one runs."""
        filler = self._filler
        if filler is not None:
            filler.join(seconds)

    def _start_filler(self, work: Callable[[SearchReader], None]) -> None:
        with self._lock:
            if self._is_closed or (self._filler is not None and self._filler.is_alive()):
                return
            self._filler = threading.Thread(target=self._run, args=(work,), name="matrix", daemon=True)
            self._filler.start()

    def _run(self, work: Callable[[SearchReader], None]) -> None:
        try:
            reader = SearchReader(self._index_db)
        except IndexUnavailable:
            return
        try:
            with reader.snapshot():
                work(reader)
        except IndexUnavailable:
            return
        finally:
            reader.close()

    def _fill(self, reader: SearchReader, model: ModelKey) -> None:
        state = reader.vector_state()
        matrix = Matrix(reader.identity, model, state.drop_count)
        self._matrix = None
        for passage, vector in reader.iterate_vectors(model.model_id):
            if self._is_closed:
                return
            if len(vector) == 4 * model.dimension:
                matrix.add(passage, vector)
        matrix.last_rowid = state.last_rowid
        self._matrix = matrix

    def _append_new(self, reader: SearchReader, matrix: Matrix) -> None:
        state = reader.vector_state()
        if (reader.identity, state.drop_count) != (matrix.identity, matrix.drop_count):
            return
        for passage, vector in reader.vectors_after(matrix.model.model_id, matrix.last_rowid, -1):
            if self._is_closed:
                return
            matrix.add(passage, vector)
        matrix.last_rowid = state.last_rowid


def _unit_vector(vector: bytes) -> Floats:
    import numpy

    unit: Floats = numpy.frombuffer(vector, "<f4").astype(numpy.float32)
    unit /= max(float(numpy.linalg.norm(unit)), 1e-12)
    return unit
