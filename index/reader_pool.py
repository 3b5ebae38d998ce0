"""Search readers of index.db that are opened once and used by one thread after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .database import file_identity
from .search_reader import SearchReader
from .vocabulary import TermCache


class ReaderPool:
    """Keeps up to `size` idle readers; may be used from several threads."""

    def __init__(self, index_db: Path, size: int) -> None:
        self._index_db = index_db
        self._size = size
        self._idle: list[SearchReader] = []
        self._term_cache = TermCache()
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            readers, self._idle = self._idle, []
        for reader in readers:
            reader.close()

    @contextmanager
    def borrow(self) -> Iterator[SearchReader]:
        """Lend a reader of the file that is index.db now. Raises IndexUnavailable."""
        identity = file_identity(self._index_db)
        reader = None
        with self._lock:
            while self._idle and reader is None:
                reader = self._idle.pop()
                if reader.identity != identity:
                    reader.close()
                    reader = None
        reader = reader or SearchReader(self._index_db, term_cache=self._term_cache)
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        with self._lock:
            if len(self._idle) < self._size:
                self._idle.append(reader)
                return
        reader.close()
