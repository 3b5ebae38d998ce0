"""The recall engine: one path from a prompt to hits, for hooks, commands, MCP and evaluation.

    query → scope → keyword retriever ┐
                  → dense retriever   ┴→ rank fusion, gate → check of each hit against its file → hits

Either retriever may be missing or late; the other answers, and the result says so in `degraded`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw

from ..runtime.errors import IndexUnavailable, ModelUnavailable
from ..runtime.normal_form import normal_form
from ..runtime.paths import is_text, read_regular
from ..vault.entry import INCIDENT, SKILL_KIND, Entry, parse_entry
from ..vault.gate import EAGERNESS, note_features, rarity, surely
from ..vault.listing import list_notes
from .catalog_reader import EntryRow, StoredChunk
from .chunking import chunk_entry
from .embedder import Embedder, ModelLoading
from .file_check import MAX_FILE_BYTES, FileCheck, FileChecker, FileStatus
from .gating import GATED_ENTRIES, Surroundings, asks, features, log_odds, needed, threshold
from .languages import is_foreign
from .late_interaction import match_texts, match_vectors
from .matrix import MatrixCache
from .query import QueryAnalysis, analyse, refine
from .query_embedding import QueryEmbedder, QueryEmbedding
from .ranking import DenseHit, EntryFacts, KeywordHit, ScoredEntry, WordEvidence, fuse, fuse_by_kind, is_near_duplicate
from .scope import Scope
from .search_reader import KEYWORD_LIMIT, ReaderPool, SearchReader
from .store import row_of

# The codes of `degraded`.
NO_INDEX = "no-index"  # a question was answered by reading the files
NO_MODEL = "no-model"
MODEL_LOADING = "model-loading"
NO_EXTENSION = "no-extension"  # sqlite-vec cannot be loaded
NO_VECTORS = "no-vectors"  # nothing embedded by this model yet
VECTORS_DAMAGED = "vectors-damaged"
DENSE_LATE = "dense-late"
MODEL_UNREAD = "model-unread"  # most of the question's letters are not in the model's vocabulary
KEYWORD_LATE = "keyword-late"
FILES_LATE = "files-late"  # the disk did not answer in time: hits are shown as they were indexed
VAULT_MISSING = "vault-missing"  # the same, since there are no files

# The reasons of a `Rejection`.
BELOW_FLOOR = "below-floor"
NO_ANSWER = "no-answer"  # the model says that it does not answer the prompt
SAYS_THE_SAME = "says-the-same"  # as a better hit
FILE_GONE = "file-gone"  # or it may no longer be shown
MAX_REJECTIONS = 3

DEFAULT_EAGERNESS = EAGERNESS[1]
QUESTION_LENIENCE = 2.5
"""Log-odds by which a question to the vault is answered more readily than a prompt gets an entry unasked."""
LEAST_ANSWER = -1.8
"""The logit below which a note does not answer a prompt: see docs/benchmarks/recall.md."""
UNJUDGED_KINDS = frozenset({SKILL_KIND, "fix", INCIDENT})
"""Kinds of which the model learned nothing. A fix answers a symptom that is told in other words."""
JUDGING_SECONDS, LEAST_SECONDS = 0.008, 0.05
"""In a recall with a deadline, the time after which no further note is judged, and the time that must be left for the
next one. A note takes some 5 ms."""
FILES_SECONDS = 1.0
"""Time for searching the notes' files where there is no index, in a recall without a deadline."""
_RETRIEVAL_SHARE, _FILES_SHARE = 0.75, 0.85
"""Shares of the budget after which retrieval and the check of the files end; the rest is for sending the answer."""


Judge = Callable[[str, str], float | None]
"""Returns the logit that a passage answers a prompt; None where it cannot judge (answer_model.py)."""


@dataclass(frozen=True)
class RecallQuery(Scope):
    """A question and its scope: a prompt to an agent, or a question to the vault.

    A prompt of a single word is not taken for a question, and of entries with nearly the same text it gets only the
    best.
    """

    text: str
    k: int = 5
    apply_threshold: bool = True
    """False: return entries that do not pass the gate too (for evaluation and the search for duplicates)."""


@dataclass(frozen=True)
class Hit:
    """One entry with its best chunk. `dense` is a cosine, `keyword` a BM25; None where that retriever did not find it.

    Its fields are the keys of a hit in JSON.
    """

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
    """ISO 8601 time at which it was said, where that is known."""
    answers: float | None = None
    """Log-odds that the question needs this entry (ScoredEntry.log_odds), None without a ranking."""
    is_weak: bool = False
    """Whether it is below the gate's threshold, so that it hardly answers."""


@dataclass(frozen=True)
class Rejection:
    """An entry that was ranked and not shown, for the receipt."""

    path: str
    score: float
    dense: float | None
    keyword: float | None
    answers: float
    """As `Hit.answers`."""
    reason: str
    """BELOW_FLOOR, NO_ANSWER, SAYS_THE_SAME or FILE_GONE."""


@dataclass(frozen=True)
class RecallResult:
    """Hits best first, codes of what was missing, milliseconds by stage."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]
    rejections: tuple[Rejection, ...] = ()
    """The best MAX_REJECTIONS of the entries that were not shown."""
    threshold: float = 0.0
    """The log-odds that a hit had to reach."""
    found: Mapping[str, int] = field(default_factory=dict)
    """How many entries each retriever found, for the log: see `_RecallState.found`."""


@dataclass
class _RecallState:
    """One recall in progress."""

    query: RecallQuery
    analysis: QueryAnalysis
    deadline: float | None
    """When retrieval must have ended (monotonic seconds), None without a budget."""
    files_deadline: float | None
    """When the check of the files must have ended."""
    degraded: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    by_words: frozenset[int | str] = frozenset()
    """Rowids of the entries that the keyword retriever found; paths without an index."""
    by_meaning: frozenset[int] = frozenset()
    """The same of the nearest ones."""
    keyword: Sequence[KeywordHit] = ()
    dense: Sequence[DenseHit] = ()
    """With the similarity of every keyword hit, too."""
    model_id: int | None = None
    """The model of the dense hits; None where the dense retriever failed."""
    embedding: QueryEmbedding | None = None
    """That of the dense hits."""
    rows: Mapping[int, EntryRow] = field(default_factory=dict)
    """The entries of all hits, by rowid."""
    facts: Mapping[int, EntryFacts] = field(default_factory=dict)
    """The same as ranking takes them."""
    evidence: Mapping[int, WordEvidence] = field(default_factory=dict)
    """By rowid of the chunk."""

    @property
    def found(self) -> Mapping[str, int]:
        """Count the entries that were found by meaning, by words, and both ways."""
        both = len(self.by_meaning & self.by_words)
        return {"vec_hits": len(self.by_meaning), "grep_hits": len(self.by_words), "deduped_count": both}

    @property
    def hits(self) -> list[DenseHit | KeywordHit]:
        """Those of both retrievers."""
        return [*self.dense, *self.keyword]

    @property
    def separate_kind(self) -> str | None:
        """The kind that is searched and ranked separately: skills, where a prompt did not ask for them."""
        return SKILL_KIND if self.query.is_prompt and self.query.filter is None else None

    def reject(self, scored: ScoredEntry, reason: str) -> None:
        if len(self.rejections) < MAX_REJECTIONS:
            path, needs = self.rows[scored.entry_rowid].path, round(scored.log_odds, 3)
            self.rejections.append(Rejection(path, round(scored.score, 6), scored.dense, scored.keyword, needs, reason))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = round((time.perf_counter() - start) * 1000, 3)

    def mark_degraded(self, code: str) -> None:
        if code not in self.degraded:
            self.degraded.append(code)

    def seconds_left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class RecallEngine:
    """Answers recalls over one index and one vault; may be used from several threads."""

    def __init__(
        self,
        index_db: Path,
        vault: Path,
        embedder: Embedder | None,
        eagerness: str = DEFAULT_EAGERNESS,
        *,
        keep_vectors: bool = False,
    ) -> None:
        """`eagerness`: a position of the setting `recall.eagerness`. `keep_vectors`: hold the index's vectors in
        memory, for a process that answers many recalls."""
        self._vault = vault
        self._embedder = QueryEmbedder(embedder) if embedder is not None else None
        self._judge: Judge | None = getattr(embedder, "judge_answer", None)
        self._eagerness = eagerness
        self._readers = ReaderPool(index_db)
        self._files = FileChecker(vault)
        self._matrices = MatrixCache(index_db) if keep_vectors else None

    def close(self) -> None:
        if self._embedder is not None:
            self._embedder.close()
        if self._matrices is not None:
            self._matrices.close()
        self._readers.close()

    def recall(self, query: RecallQuery, *, budget_ms: float | None = None) -> RecallResult:
        """Return the best hits within `budget_ms` (None: without a deadline)."""
        started = time.perf_counter()
        now = time.monotonic()
        deadline, files_deadline = (
            None if budget_ms is None else now + budget_ms * share / 1000 for share in (_RETRIEVAL_SHARE, _FILES_SHARE)
        )
        state = _RecallState(query, analyse(query.text), deadline, files_deadline)
        hits: list[Hit] = []
        if query.k > 0:
            try:
                with self._readers.borrow() as reader:
                    hits = self._search_index(reader, state)
            except IndexUnavailable:
                state.mark_degraded(NO_INDEX)
                if not query.is_prompt:  # A prompt goes without: the worker makes the index anew.
                    with state.stage("scan"):
                        hits = self._read_notes(state)
                    state.by_words = frozenset(hit.path for hit in hits)
        state.timings["total"] = round((time.perf_counter() - started) * 1000, 3)
        dense = [hit.dense for hit in hits] + [rejected.dense for rejected in state.rejections]
        by_meaning = any(similarity is not None for similarity in dense)
        limit = threshold(self._eagerness, by_meaning=by_meaning)
        return RecallResult(
            tuple(hits), tuple(state.degraded), state.timings, tuple(state.rejections), limit, state.found
        )

    # From the index

    def _search_index(self, reader: SearchReader, state: _RecallState) -> list[Hit]:
        with reader.snapshot():
            if reader.is_empty(state.query):
                return []
            scored: list[ScoredEntry] = []
            if state.analysis.words or state.analysis.identifiers:
                self._retrieve(reader, state)
                with state.stage("evidence"):
                    self._match_words(reader, state)
                with state.stage("fuse"):
                    scored = self._rank(reader, state)
            with state.stage("check"):
                hits = self._check_hits(reader, state, scored)
                if not hits and state.query.filter is not None:
                    hits = self._list_filtered(reader, state)
        return hits

    def _retrieve(self, reader: SearchReader, state: _RecallState) -> None:
        """Run the keyword retriever while the question is being embedded, then the dense one."""
        future = self._start_embedding(reader, state)
        with state.stage("refine"):
            state.analysis = refine(state.analysis, reader.vocabulary)
        state.keyword = self._search_keywords(reader, state)
        state.by_words = frozenset(hit.entry_rowid for hit in state.keyword)
        embedding = self._await_embedding(state, future)
        if embedding is None or self._embedder is None:
            return
        if not (state.keyword and is_foreign(self._embedder.name, state.analysis.text)):
            # Else meaning as the model has it would outvote a word that is there.
            self._search_vectors(reader, state, embedding, self._embedder.name)

    def _search_keywords(self, reader: SearchReader, state: _RecallState) -> list[KeywordHit]:
        if state.analysis.fts_match is None:
            return []
        with state.stage("keyword"):
            try:
                with reader.interrupt_at(state.deadline):
                    return reader.search_keywords(
                        state.analysis.fts_match, state.query, limit=max(KEYWORD_LIMIT, state.query.k)
                    )
            except apsw.InterruptError:
                state.mark_degraded(KEYWORD_LATE)
                return []

    def _start_embedding(self, reader: SearchReader, state: _RecallState) -> Future[QueryEmbedding] | None:
        """Start to embed the question; None where that cannot be done."""
        if self._embedder is None:
            state.mark_degraded(NO_MODEL)
            return None
        if not reader.has_vectors:
            state.mark_degraded(NO_EXTENSION)
            return None
        return self._embedder.submit(state.analysis.dense_text)

    def _await_embedding(self, state: _RecallState, future: Future[QueryEmbedding] | None) -> QueryEmbedding | None:
        """Return the embedded question; None if it is not ready in time."""
        if future is None:
            return None
        with state.stage("embed"):
            try:
                embedding = future.result(state.seconds_left())
                if not embedding.is_unread:
                    return embedding
                state.mark_degraded(MODEL_UNREAD)
            except TimeoutError:
                future.cancel()
                state.mark_degraded(DENSE_LATE)
            except ModelLoading:
                state.mark_degraded(MODEL_LOADING)
            except ModelUnavailable:
                state.mark_degraded(NO_MODEL)
        return None

    def _search_vectors(
        self, reader: SearchReader, state: _RecallState, embedding: QueryEmbedding, model_name: str
    ) -> None:
        """Find the nearest chunks, and the similarity of every keyword hit."""
        with state.stage("dense"):
            model = reader.find_model(model_name)
            if model is None or model.dimension * 4 != len(embedding.vector):
                state.mark_degraded(NO_VECTORS)
                return
            vector = embedding.vector
            try:
                with reader.interrupt_at(state.deadline):
                    matrix = self._matrices.get(reader, model) if self._matrices is not None else None
                    hits = reader.search_vectors(
                        model.model_id, vector, state.query, matrix=matrix, separate_kind=state.separate_kind
                    )
                    state.by_meaning = frozenset(hit.entry_rowid for hit in hits)
                    known = {hit.chunk_rowid for hit in hits}
                    missing = [hit.chunk_rowid for hit in state.keyword if hit.chunk_rowid not in known]
                    if missing:
                        hits += reader.similarities_of(model.model_id, vector, missing, matrix)
            except apsw.InterruptError:
                state.mark_degraded(DENSE_LATE)
            except apsw.SQLError:
                # sqlite-vec's error for a part that is missing: the keyword retriever's hits are still sound.
                state.mark_degraded(VECTORS_DAMAGED)
            else:
                state.dense, state.model_id, state.embedding = embedding.scaled(hits), model.model_id, embedding

    def _match_words(self, reader: SearchReader, state: _RecallState) -> None:
        """Match each chunk with the words of the question: by word vectors, else by spelling."""
        chunks = list(dict.fromkeys(hit.chunk_rowid for hit in state.hits))
        evidence: dict[int, WordEvidence] = {}
        if state.model_id is not None and state.embedding is not None and state.embedding.words is not None:
            packed = reader.word_vectors_of(state.model_id, chunks)
            evidence = match_vectors(state.analysis, state.embedding.words, packed)
        rest = [chunk for chunk in chunks if chunk not in evidence]
        state.evidence = evidence | match_texts(state.analysis, reader.texts_of(rest)) if rest else evidence

    def _rank(self, reader: SearchReader, state: _RecallState) -> list[ScoredEntry]:
        """Fuse the results and ask the gate; the best of what does not pass are noted as rejections."""
        project = (state.query.project or "").lower()
        state.rows = reader.entries_by_rowid(hit.entry_rowid for hit in state.hits)
        state.facts = {rowid: row.facts(project) for rowid, row in state.rows.items()}
        rank = fuse_by_kind if state.separate_kind else fuse
        ranked = rank(state.analysis, state.dense, state.keyword, state.facts, state.evidence)
        gated = self._ask_gate(reader, state, ranked[:GATED_ENTRIES])
        if not state.query.apply_threshold:
            return [*gated, *ranked[GATED_ENTRIES:]]
        kept = self._select_needed(state, gated)
        vain = self._judge_answers(reader, state, kept)
        kept = [scored for scored in kept if scored.entry_rowid not in vain]
        kept_rowids = {scored.entry_rowid for scored in kept}
        for scored in gated[: len(kept) + MAX_REJECTIONS]:
            if scored.entry_rowid not in kept_rowids:
                state.reject(scored, NO_ANSWER if scored.entry_rowid in vain else BELOW_FLOOR)
        return kept

    def _ask_gate(self, reader: SearchReader, state: _RecallState, ranked: Sequence[ScoredEntry]) -> list[ScoredEntry]:
        """Return these entries with the gate's log-odds, in their order."""
        asks_something = state.analysis.is_question
        return [
            replace(
                scored, log_odds=log_odds(pair), is_answer=asks_something and "answers" in pair and surely(pair) > 0
            )
            for scored, pair in zip(ranked, self._pairs(reader, state, ranked), strict=True)
        ]

    def _pairs(
        self, reader: SearchReader, state: _RecallState, ranked: Sequence[ScoredEntry]
    ) -> list[dict[str, float]]:
        """Return the gate's features of the prompt and each of these entries."""
        texts = reader.texts_of([scored.chunk_rowid for scored in ranked])
        counts = reader.vocabulary.document_frequencies([term.stem for term in state.analysis.terms])
        total = reader.vocabulary.chunk_count
        terms = [
            ((term.stem, *term.corrections), rarity(counts.get(term.stem, 0), total)) for term in state.analysis.terms
        ]
        vector = state.embedding.vector if state.embedding is not None else b""
        prompt_asks = asks(self._embedder.name, vector) if self._embedder is not None and vector else 0.0
        project = None if state.query.any_project else state.query.project or ""
        around = {
            is_skill: Surroundings(
                reader.count_rivals(
                    project, skills=is_skill if state.separate_kind else None, folders={"", *state.query.include}
                ),
                terms,
                [hit for hit in state.dense if (state.facts[hit.entry_rowid].kind.lower() == SKILL_KIND) is is_skill]
                if state.separate_kind
                else state.dense,
                prompt_asks,
            )
            for is_skill in {scored.is_skill for scored in ranked}
        }
        return [
            features(
                state.analysis,
                scored,
                texts.get(scored.chunk_rowid, ""),
                state.evidence.get(scored.chunk_rowid),
                note_features(state.facts[scored.entry_rowid].kind, state.facts[scored.entry_rowid].confidence),
                around[scored.is_skill],
            )
            for scored in ranked
        ]

    def _select_needed(self, state: _RecallState, gated: Sequence[ScoredEntry]) -> list[ScoredEntry]:
        """Return the entries that pass the gate, for a prompt the surest first.

        A question of one word gets, if none passes, the entries that have the word. A prompt of one word gets, whatever
        passes, only an entry that alone has it.
        """
        # A person who asks the vault can judge the answers.
        passed = needed(gated, self._eagerness, 0.0 if state.query.is_prompt else QUESTION_LENIENCE)
        have_the_word = [scored for scored in gated if _has_the_word(scored, state)]
        if not state.query.is_prompt:
            return passed or have_the_word
        if not state.analysis.is_one_word:
            return sorted(passed, key=lambda scored: -scored.log_odds)
        # Mostly a single word answers the agent ("yes", "apply"), and the gate has seen no such prompt.
        return have_the_word if len(have_the_word) == 1 and not have_the_word[0].is_skill else []

    def _judge_answers(self, reader: SearchReader, state: _RecallState, kept: Sequence[ScoredEntry]) -> set[int]:
        """Return the rowids of those of a prompt's entries that do not answer it, as far as there is time to judge."""
        judge, embedding = self._judge, state.embedding
        # A question in another language has a scale; the model knows only English.
        is_english = embedding is not None and embedding.similarity_scale == 1.0
        if judge is None or not state.query.is_prompt or state.analysis.is_one_word or not is_english:
            return set()
        judged = [
            scored
            for scored in kept[: 2 * state.query.k]
            if scored.dense is not None and (state.rows[scored.entry_rowid].kind or "").lower() not in UNJUDGED_KINDS
        ]
        chunks = reader.chunks_by_rowid([scored.chunk_rowid for scored in judged])
        vain: set[int] = set()
        began = time.monotonic()
        with state.stage("judge"):
            for scored in judged:
                left = state.seconds_left()
                if left is not None and (left < LEAST_SECONDS or time.monotonic() - began > JUDGING_SECONDS):
                    break
                title, text = state.rows[scored.entry_rowid].title, chunks[scored.chunk_rowid].text
                passage = text if title.casefold() in text.casefold() else f"{title}\n{text}"
                logit = judge(state.analysis.text, passage)
                if logit is not None and logit < LEAST_ANSWER:
                    vain.add(scored.entry_rowid)
        return vain

    def _check_hits(self, reader: SearchReader, state: _RecallState, ranked: Sequence[ScoredEntry]) -> list[Hit]:
        """Return the first k hits whose files still exist. What changed since it was indexed is read again."""
        chunks = reader.chunks_by_rowid([scored.chunk_rowid for scored in ranked[: 4 * state.query.k]])
        hits: list[Hit] = []
        checks: dict[int, FileCheck] = {}
        for number, scored in enumerate(ranked):
            if len(hits) >= state.query.k:
                break
            if scored.entry_rowid not in checks:
                ahead = [state.rows[other.entry_rowid] for other in ranked[number : number + 2 * state.query.k]]
                checks |= self._files.check(ahead, state.files_deadline)
            row = state.rows[scored.entry_rowid]
            chunk = chunks.get(scored.chunk_rowid)
            chunk = chunk or reader.chunks_by_rowid([scored.chunk_rowid])[scored.chunk_rowid]
            hit = self._current_hit(state, row, checks[row.rowid], chunk, scored)
            if hit is None:
                state.reject(scored, FILE_GONE)
            elif state.query.is_prompt and any(is_near_duplicate(hit.excerpt, other.excerpt) for other in hits):
                state.reject(scored, SAYS_THE_SAME)
            else:
                limit = threshold(self._eagerness, by_meaning=scored.dense is not None)
                is_strong = scored.is_answer or scored.log_odds >= limit or _has_the_word(scored, state)
                hits.append(replace(hit, is_weak=not is_strong))
        return hits

    def _list_filtered(self, reader: SearchReader, state: _RecallState) -> list[Hit]:
        """Return the newest entries that the filter admits: the user asked for them, though none has the words."""
        rows = reader.list_entries(state.query, 0, state.query.k)
        firsts = reader.first_chunks([row.rowid for row in rows])
        checks = self._files.check(rows, state.files_deadline)
        no_chunk = StoredChunk(0, "")
        hits = (self._current_hit(state, row, checks[row.rowid], firsts.get(row.rowid, no_chunk), None) for row in rows)
        return [hit for hit in hits if hit is not None]

    def _current_hit(
        self, state: _RecallState, row: EntryRow, check: FileCheck, chunk: StoredChunk, scored: ScoredEntry | None
    ) -> Hit | None:
        """Return the hit as its file is now; None when the file does not exist or may no longer be shown.

        Where the disk does not answer, or the vault is missing, the hit is shown as it was indexed.
        """
        ordinal, excerpt = chunk
        current: EntryRow | Entry = row
        if check.status in (FileStatus.GONE, FileStatus.UNREADABLE):
            return None
        if check.status is FileStatus.NO_VAULT:
            state.mark_degraded(VAULT_MISSING)
        elif check.status is FileStatus.LATE:
            state.mark_degraded(FILES_LATE)
        elif check.status is FileStatus.CHANGED:
            entry = parse_entry(row.path, check.data)
            if entry.content_hash != row.content_hash:
                if not state.query.admits(row_of(entry)):
                    return None
                fresh = chunk_entry(entry)
                best = max(fresh, key=lambda c: (_count_words(c.body, state.analysis), c.ordinal == ordinal))
                ordinal, excerpt = best.ordinal, best.body
                current = entry
        return _make_hit(current, row.session, StoredChunk(ordinal, excerpt), scored)

    # From the files

    def _read_notes(self, state: _RecallState) -> list[Hit]:
        """Read the files of all notes that the scope admits, and rank them by how many of the words they have."""
        if not self._vault.is_dir():
            state.mark_degraded(VAULT_MISSING)
            return []
        left = state.seconds_left()
        deadline = time.monotonic() + (FILES_SECONDS if left is None else left)
        found: list[tuple[int, str, Hit]] = []
        for path in filter(is_text, list_notes(self._vault).notes):
            if time.monotonic() > deadline:
                break
            with suppress(OSError):
                entry = parse_entry(path, read_regular(self._vault / path, MAX_FILE_BYTES)[0])
                words = _count_words(f"{entry.title}\n{entry.body}", state.analysis)
                if state.query.admits(row_of(entry)) and (words or not state.analysis.words):
                    best = max(chunk_entry(entry), key=lambda c: (_count_words(c.body, state.analysis), -c.ordinal))
                    session = entry.sources[0].session if entry.sources else None
                    hit = _make_hit(entry, session, StoredChunk(best.ordinal, best.body), None)
                    found.append((-words, path, hit))
        return [hit for *_, hit in sorted(found, key=lambda each: each[:2])[: state.query.k]]


def _make_hit(entry: EntryRow | Entry, session: str | None, chunk: StoredChunk, scored: ScoredEntry | None) -> Hit:
    return Hit(
        path=entry.path,
        slug=entry.slug,
        title=entry.title,
        kind=entry.kind,
        status=entry.status,
        project=entry.project,
        score=round(scored.score, 6) if scored else 0.0,
        dense=scored.dense if scored else None,
        keyword=scored.keyword if scored else None,
        excerpt=chunk.text,
        ordinal=chunk.ordinal,
        session=session,
        created=entry.created,
        updated=entry.updated,
        surfaced_at=entry.surfaced_at,
        answers=round(scored.log_odds, 3) if scored else None,
    )


def _has_the_word(scored: ScoredEntry, state: _RecallState) -> bool:
    """Whether the entry has the only significant word of the question."""
    return scored.keyword is not None and len(state.analysis.terms) == 1


def _count_words(text: str, query: QueryAnalysis) -> int:
    """Count the question's words that occur in the text, also in another form or within other words."""
    lowered = normal_form(text).lower()
    return sum(term.word in lowered or term.stem in lowered for term in query.terms)
