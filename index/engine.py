"""The recall engine: one path from a prompt to hits, for hooks, command, MCP and evaluation.

    query → scope → keyword arm ┐
                  → dense arm   ┴→ fuse, floor → check each hit against its file → hits

Each arm may be missing or late; the other answers, and the result says so in `degraded`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import apsw

from ..vault.entry import SKILL_KIND, Entry, parse_entry
from ..vault.errors import IndexUnavailable, ModelUnavailable
from ..vault.in_use import NEVER_UNNAMED
from .chunking import chunks_of
from .database import file_identity
from .embedder import Embedder, ModelLoading
from .files import FileLooks, Look, Seen
from .filescan import scan_files
from .filters import parse_filter
from .matrix import Looked, Matrix, MatrixKeeper
from .query import QueryAnalysis, analyse, refine
from .ranking import (
    FULL_TAIL_NOTES,
    DenseHit,
    KeywordHit,
    Scored,
    Weights,
    WordEvidence,
    above_floor,
    answers_by_words,
    fuse,
    fuse_apart,
    is_near_duplicate,
)
from .reader import DENSE_LIMIT, FIRST_LOOK, KEYWORD_LIMIT, EntryRow, IndexReader, Remembered
from .scope import Scope
from .store import row_of
from .words import WordVectors, match, match_texts

# What `degraded` may hold.
NO_INDEX = "no-index"  # the files were scanned instead
SCAN_INCOMPLETE = "scan-incomplete"
NO_MODEL = "no-model"
MODEL_LOADING = "model-loading"
NO_EXTENSION = "no-extension"  # sqlite-vec cannot be loaded
NO_VECTORS = "no-vectors"  # nothing embedded by this model yet
VECTORS_DAMAGED = "vectors-damaged"
DENSE_LATE = "dense-late"
KEYWORD_LATE = "keyword-late"
BUSY = "busy"  # too many asked at once: the rarest words decided alone
FILES_LATE = "files-late"  # the disk did not answer in time: the same
VAULT_MISSING = "vault-missing"  # hits could not be checked against their files

# Why an entry that was ranked is not shown.
BELOW_FLOOR = "below-floor"
SAYS_THE_SAME = "says-the-same"  # as a better hit
FILE_GONE = "file-gone"  # or it may no longer be shown
REFUSED_IN_RECEIPT = 3

CACHED_QUESTIONS = 512
POOLED_READERS = 4
HURRIED_PASSAGES, HURRIED_HITS = 1_000, 20
"""What the keyword arm scores and keeps where there is no time for more: an eighth of a whole recall's work."""
_BUDGET_SHARE, _FILES_SHARE = 0.75, 0.85
"""Of the budget, when the arms must have ended, and when the look at the files; the rest is for the way back."""


@dataclass(frozen=True)
class RecallQuery:
    """What is asked. With no `project` and not `all_projects`, only entries of no project are seen."""

    text: str
    k: int = 5
    project: str | None = None
    all_projects: bool = False
    filter: str | None = None
    group: str | None = None
    statuses: frozenset[str] = frozenset({"active"})
    include: frozenset[str] = frozenset()
    exclude_paths: frozenset[str] = frozenset()
    exclude_always_load: bool = False
    exclude_kinds: frozenset[str] = NEVER_UNNAMED
    prompt: bool = False
    """True: it was said to an agent, not asked of us. A single word is then no question, and of entries
    that say the same only the best is given."""
    floor: bool = True
    """False: also what is below the floor (for evaluation and for the search of duplicates)."""


@dataclass(frozen=True)
class Hit:
    """One entry with its best chunk. `dense` is a cosine, `keyword` a BM25; None where that arm is silent."""

    path: str
    slug: str
    title: str
    kind: str | None
    status: str | None
    project: str | None
    score: float
    dense: float | None
    keyword: float | None
    excerpt: str
    ordinal: int
    session: str | None
    created: str | None = None
    updated: str | None = None
    surfaced_at: str | None = None
    """When it was said, where that is known: an ISO 8601 time."""
    answers: float | None = None
    """Log-odds that this entry answers the question (ranking.Scored), None without a ranking."""


@dataclass(frozen=True)
class Refused:
    """An entry that was ranked and not shown, for the receipt."""

    path: str
    score: float
    dense: float | None
    keyword: float | None
    answers: float
    why: str
    """BELOW_FLOOR, SAYS_THE_SAME or FILE_GONE."""


@dataclass(frozen=True)
class RecallResult:
    """Hits best first (this project's before the others), what was missing, milliseconds by stage."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]
    refused: tuple[Refused, ...] = ()
    """The best of what was not shown, and why."""
    floor: float = 0.0
    """What `answers` of the best hit must reach."""


@dataclass(frozen=True)
class _Asked:
    """A question as the model sees it: float32 little-endian bytes, and the vectors of its words."""

    vector: bytes
    words: WordVectors | None
    looked: Looked | None = None
    """The nearest passages, where the vectors are in memory."""


@dataclass
class _Run:
    """One recall in progress."""

    query: RecallQuery
    analysis: QueryAnalysis
    scope: Scope
    deadline: float | None
    files_deadline: float | None
    hurried: bool = False
    degraded: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    notes: int = FULL_TAIL_NOTES
    """How many there are within the scope, skills not counted; no more than this."""

    @property
    def apart(self) -> str | None:
        """The kind that is looked for beside the others, not among them: nobody asked for skills."""
        return SKILL_KIND if self.query.prompt and self.scope.filter is None else None

    def refuse(self, found: Scored, row: EntryRow, why: str) -> None:
        if len(self.refused) < REFUSED_IN_RECEIPT:
            one = Refused(row.path, round(found.score, 6), found.dense, found.keyword, round(found.answers, 3), why)
            self.refused.append(one)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = round((time.perf_counter() - start) * 1000, 3)

    def say(self, what: str) -> None:
        if what not in self.degraded:
            self.degraded.append(what)

    def seconds_left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class RecallEngine:
    """Answers recalls over one index and one vault; may be used from several threads."""

    def __init__(
        self,
        index_db: Path,
        vault: Path,
        embedder: Embedder | None,
        weights: Weights | None = None,
        *,
        today: Callable[[], date] = date.today,
        keep_vectors: bool = False,
    ) -> None:
        """`keep_vectors`: hold a large index's vectors in memory, for a process that answers many recalls."""
        self._index_db = index_db
        self._vault = vault
        self._embedder = embedder
        self._weights = weights or Weights()
        self._today = today
        self._readers: list[IndexReader] = []
        self._terms = Remembered()
        self._questions: OrderedDict[tuple[str, str], _Asked] = OrderedDict()
        self._lock = threading.Lock()
        self._files = FileLooks(vault)
        self._vectors = MatrixKeeper(index_db) if keep_vectors else None
        self._dense_thread = ThreadPoolExecutor(POOLED_READERS, thread_name_prefix="dense")

    def close(self) -> None:
        self._dense_thread.shutdown(wait=False, cancel_futures=True)
        if self._vectors is not None:
            self._vectors.close()
        with self._lock:
            readers, self._readers = self._readers, []
        for reader in readers:
            reader.close()

    def wait_for_vectors(self, seconds: float) -> None:
        """Until the vectors that the first recall asked for are in memory."""
        if self._vectors is not None:
            self._vectors.wait(seconds)

    def recall(self, query: RecallQuery, *, budget_ms: float | None = None, hurried: bool = False) -> RecallResult:
        """The best hits within `budget_ms` (None: take the time). Raises UsageError for a bad filter.

        `hurried`: by the rarest words alone, which costs little, for when more is asked than can be answered in time.
        """
        started = time.perf_counter()
        scope = Scope(
            project=query.project,
            all_projects=query.all_projects,
            group=query.group,
            statuses=query.statuses,
            include=query.include,
            exclude_paths=query.exclude_paths,
            exclude_always_load=query.exclude_always_load,
            exclude_kinds=query.exclude_kinds,
            filter=parse_filter(query.filter, self._today()),
        )
        now = time.monotonic()
        deadline, files_deadline = (
            None if budget_ms is None else now + budget_ms * share / 1000 for share in (_BUDGET_SHARE, _FILES_SHARE)
        )
        run = _Run(query, analyse(query.text), scope, deadline, files_deadline, hurried)
        hits: list[Hit] = []
        if query.k > 0:
            try:
                with self._reader() as reader:
                    hits = self._from_index(reader, run)
            except IndexUnavailable:
                run.say(NO_INDEX)
                with run.stage("scan"):
                    hits = self._from_files(run)
        run.timings["total"] = round((time.perf_counter() - started) * 1000, 3)
        return RecallResult(tuple(hits), tuple(run.degraded), run.timings, tuple(run.refused), self._weights.floor)

    # From the index

    def _from_index(self, reader: IndexReader, run: _Run) -> list[Hit]:
        said_something = bool(run.analysis.words or run.analysis.identifiers)
        with reader.snapshot():
            scored: list[Scored] = []
            rows: dict[int, EntryRow] = {}
            if said_something:
                coming = self._ask(reader, run)
                with run.stage("refine"):
                    run.analysis = refine(run.analysis, reader, *([HURRIED_PASSAGES] if run.hurried else []))
                keyword = self._keyword_arm(reader, run)
                asked = self._await(run, coming)
                model, dense = self._dense_arm(reader, run, asked, keyword)
                with run.stage("evidence"):
                    evidence = self._evidence(reader, run, asked, model, dense, keyword)
                with run.stage("fuse"):
                    rows = reader.entries([hit.entry_rowid for hit in keyword] + [hit.entry_rowid for hit in dense])
                    facts = {rowid: row.facts() for rowid, row in rows.items()}
                    fused = fuse_apart if run.apart else fuse
                    scored = fused(run.analysis, dense, keyword, facts, self._weights, evidence)
                    if run.query.prompt:
                        run.notes = reader.count_up_to(FULL_TAIL_NOTES, run.scope.without(run.apart))
                    if run.query.floor:
                        ranked, scored = scored, self._shown(run, scored)
                        kept = {found.entry_rowid for found in scored}
                        for found in ranked[: len(scored) + REFUSED_IN_RECEIPT]:
                            if found.entry_rowid not in kept:
                                run.refuse(found, rows[found.entry_rowid], BELOW_FLOOR)
            with run.stage("check"):
                hits = self._checked(reader, run, scored, rows)
                if not hits and run.scope.filter is not None:
                    hits = self._only_filtered(reader, run)
        project = (run.query.project or "").lower()
        if project:
            hits.sort(key=lambda hit: (hit.project or "").lower() != project)
        return hits

    def _keyword_arm(self, reader: IndexReader, run: _Run) -> list[KeywordHit]:
        if run.analysis.fts_match is None:
            return []
        with run.stage("keyword"):
            try:
                with reader.interrupted_at(run.deadline):
                    limit = HURRIED_HITS if run.hurried else KEYWORD_LIMIT
                    return reader.keyword(run.analysis.fts_match, run.scope, limit)
            except apsw.InterruptError:
                run.say(KEYWORD_LATE)
                return []

    def _ask(self, reader: IndexReader, run: _Run) -> Future[_Asked] | None:
        """Start to embed the question, and to look for what is nearest to it; the keyword arm runs meanwhile."""
        if run.hurried:
            run.say(BUSY)
            return None
        if self._embedder is None:
            run.say(NO_MODEL)
            return None
        if not reader.has_vectors:
            run.say(NO_EXTENSION)
            return None
        held = self._held(reader, self._embedder.name) if self._vectors is not None else None
        return self._dense_thread.submit(self._looked, self._embedder, run.analysis.dense_text, held)

    def _held(self, reader: IndexReader, name: str) -> Matrix | None:
        try:
            model = reader.model(name)
            return self._vectors.matrix(reader, *model) if self._vectors is not None and model is not None else None
        except apsw.SQLError:
            return None  # A part is missing: the dense arm will say so.

    def _looked(self, embedder: Embedder, text: str, held: Matrix | None) -> _Asked:
        asked = self._asked(embedder, text)
        if held is None or held.dimension * 4 != len(asked.vector):
            return asked
        return replace(asked, looked=Looked(held, held.nearest(asked.vector, FIRST_LOOK * DENSE_LIMIT)))

    def _asked(self, embedder: Embedder, text: str) -> _Asked:
        key = (embedder.name, text)
        with self._lock:
            if key in self._questions:
                self._questions.move_to_end(key)
                return self._questions[key]
        encoded = embedder.encode_words([text], query=True)
        asked = _Asked(encoded.vectors[0].astype("<f4").tobytes(), encoded.words[0] if encoded.words else None)
        with self._lock:
            self._questions[key] = asked
            while len(self._questions) > CACHED_QUESTIONS:
                self._questions.popitem(last=False)
        return asked

    def _await(self, run: _Run, coming: Future[_Asked] | None) -> _Asked | None:
        """The embedded question, if it comes in time."""
        if coming is None:
            return None
        with run.stage("embed"):
            try:
                return coming.result(run.seconds_left())
            except FutureTimeout:
                coming.cancel()
                run.say(DENSE_LATE)
            except ModelLoading:
                run.say(MODEL_LOADING)
            except ModelUnavailable:
                run.say(NO_MODEL)
        return None

    def _dense_arm(
        self, reader: IndexReader, run: _Run, asked: _Asked | None, keyword: Sequence[KeywordHit]
    ) -> tuple[int | None, list[DenseHit]]:
        """The model's id and the nearest chunks, with the likeness of every keyword hit too."""
        if asked is None or self._embedder is None:
            return None, []
        with run.stage("dense"):
            model = reader.model(self._embedder.name)
            if model is None or model[1] * 4 != len(asked.vector):
                run.say(NO_VECTORS)
                return None, []
            try:
                with reader.interrupted_at(run.deadline):
                    hits = reader.dense(model[0], asked.vector, run.scope, matrix=asked.looked, apart=run.apart)
                    known = {hit.chunk_rowid for hit in hits}
                    missing = [h.chunk_rowid for h in keyword if h.chunk_rowid not in known]
                    if missing:
                        hits += reader.similarities(model[0], asked.vector, missing, asked.looked)
                    return model[0], hits
            except apsw.InterruptError:
                run.say(DENSE_LATE)
                return None, []
            except apsw.SQLError:
                # sqlite-vec's word for a part that is missing: what the keyword arm found is still sound.
                run.say(VECTORS_DAMAGED)
                return None, []

    def _evidence(
        self,
        reader: IndexReader,
        run: _Run,
        asked: _Asked | None,
        model: int | None,
        dense: Sequence[DenseHit],
        keyword: Sequence[KeywordHit],
    ) -> Mapping[int, WordEvidence]:
        """What each chunk has for the words of the question: by their vectors, else by their spelling."""
        chunks = list(dict.fromkeys([h.chunk_rowid for h in dense] + [h.chunk_rowid for h in keyword]))
        found: dict[int, WordEvidence] = {}
        if model is not None and asked is not None and asked.words is not None:
            found = match(run.analysis, asked.words, reader.words(model, chunks))
        rest = [chunk for chunk in chunks if chunk not in found]
        return found | match_texts(run.analysis, reader.texts(rest)) if rest else found

    def _shown(self, run: _Run, scored: Sequence[Scored]) -> list[Scored]:
        """What answers the question; to who asks for one word, also whatever has that word."""
        shown = above_floor(scored, self._weights, run.notes)
        if shown or run.query.prompt or len(run.analysis.terms) != 1:
            return shown
        return [row for row in scored if row.keyword is not None]

    def _checked(
        self, reader: IndexReader, run: _Run, scored: Sequence[Scored], rows: Mapping[int, EntryRow]
    ) -> list[Hit]:
        """The first k hits whose files are still there; what changed since is read again.

        The rest must reach the floor without what is gone.
        """
        chunks = reader.chunks([row.chunk_rowid for row in scored[: 4 * run.query.k]])
        hits: list[Hit] = []
        gone: set[int] = set()
        seen: dict[int, Seen] = {}
        for number, found in enumerate(scored):
            if len(hits) >= run.query.k:
                break
            if found.entry_rowid not in seen:
                ahead = [rows[each.entry_rowid] for each in scored[number : number + 2 * run.query.k]]
                seen |= self._files.look(ahead, run.files_deadline)
            row = rows[found.entry_rowid]
            chunk = chunks.get(found.chunk_rowid) or reader.chunks([found.chunk_rowid])[found.chunk_rowid]
            hit = self._hit_now(run, row, seen[row.rowid], chunk, found)
            if hit is None:
                run.refuse(found, row, FILE_GONE)
                gone.add(found.entry_rowid)
            elif run.query.prompt and _says_nothing_new(hit, hits):
                run.refuse(found, row, SAYS_THE_SAME)
            else:
                hits.append(hit)
        if gone and run.query.floor:
            left = self._shown(run, [found for found in scored if found.entry_rowid not in gone])
            paths = {rows[found.entry_rowid].path for found in left}
            hits = [hit for hit in hits if hit.path in paths]
        return hits

    def _only_filtered(self, reader: IndexReader, run: _Run) -> list[Hit]:
        """Nothing matches the words: what the filter names is still what was asked for."""
        rows = reader.newest(run.scope, run.query.k)
        firsts = reader.first_chunks([row.rowid for row in rows])
        seen = self._files.look(rows, run.files_deadline)
        hits = (self._hit_now(run, row, seen[row.rowid], firsts.get(row.rowid, (0, "")), None) for row in rows)
        return [hit for hit in hits if hit is not None]

    def _hit_now(
        self, run: _Run, row: EntryRow, seen: Seen, chunk: tuple[int, str], found: Scored | None
    ) -> Hit | None:
        """The hit as its file is now; None when the file is gone or may no longer be shown.

        Where the disk does not answer, or the vault is not there, it is shown as it was indexed.
        """
        ordinal, excerpt = chunk
        now: EntryRow | Entry = row
        if seen.look in (Look.GONE, Look.UNREADABLE):
            return None
        if seen.look is Look.NO_VAULT:
            run.say(VAULT_MISSING)
        elif seen.look is Look.LATE:
            run.say(FILES_LATE)
        elif seen.look is Look.CHANGED:
            entry = parse_entry(row.path, seen.data)
            if entry.content_hash != row.content_hash:
                if not run.scope.admits(row_of(entry)):
                    return None
                fresh = chunks_of(entry)
                best = max(fresh, key=lambda c: (_overlap(c.body, run.analysis), c.ordinal == ordinal))
                ordinal, excerpt = best.ordinal, best.body
                now = entry
        return Hit(
            path=row.path,
            slug=now.slug,
            title=now.title,
            kind=now.kind,
            status=now.status,
            project=now.project,
            score=round(found.score, 6) if found else 0.0,
            dense=found.dense if found else None,
            keyword=found.keyword if found else None,
            excerpt=excerpt,
            ordinal=ordinal,
            session=row.session,
            created=now.created,
            updated=now.updated,
            surfaced_at=now.surfaced_at,
            answers=round(found.answers, 3) if found else None,
        )

    # From the files

    def _from_files(self, run: _Run) -> list[Hit]:
        if not self._vault.is_dir():
            run.say(VAULT_MISSING)
            return []
        left = run.seconds_left()
        found, complete = scan_files(
            self._vault, run.analysis, run.scope, **({} if left is None else {"seconds": left})
        )
        if not complete:
            run.say(SCAN_INCOMPLETE)
        answers = [round(answers_by_words(run.analysis, each.covered), 3) for each in found]
        scored = [
            Scored(n, n, each.score, None, each.score, answers[n], each.covered, each.entry.kind == run.apart)
            for n, each in enumerate(found)
        ]
        # Who asks wants to see whatever there is; into a prompt goes only what answers it.
        shown = self._shown(run, scored) if run.query.floor and run.query.prompt else scored
        hits = []
        for row in shown[: run.query.k]:
            scanned = found[row.entry_rowid]
            entry = scanned.entry
            chunk = max(chunks_of(entry), key=lambda c: (_overlap(c.body, run.analysis), -c.ordinal))
            hits.append(
                Hit(
                    path=entry.path,
                    slug=entry.slug,
                    title=entry.title,
                    kind=entry.kind,
                    status=entry.status,
                    project=entry.project,
                    score=round(scanned.score, 6),
                    dense=None,
                    keyword=round(scanned.score, 6),
                    excerpt=chunk.body,
                    ordinal=chunk.ordinal,
                    session=entry.sources[0].session if entry.sources else None,
                    created=entry.created,
                    updated=entry.updated,
                    surfaced_at=entry.surfaced_at,
                    answers=row.answers,
                )
            )
        return hits

    # Readers

    @contextmanager
    def _reader(self) -> Iterator[IndexReader]:
        """A pooled reader of the file that is index.db now."""
        identity = file_identity(self._index_db)
        reader = None
        with self._lock:
            while self._readers and reader is None:
                reader = self._readers.pop()
                if reader.identity != identity:
                    reader.close()
                    reader = None
        reader = reader or IndexReader(self._index_db, remembered=self._terms)
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        with self._lock:
            if len(self._readers) < POOLED_READERS:
                self._readers.append(reader)
                return
        reader.close()


def _says_nothing_new(hit: Hit, earlier: Sequence[Hit]) -> bool:
    return any(is_near_duplicate(hit.excerpt, other.excerpt) for other in earlier)


def _overlap(text: str, query: QueryAnalysis) -> int:
    lowered = text.lower()
    return sum(word in lowered for word in query.words)
