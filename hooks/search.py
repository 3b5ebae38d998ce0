"""Recall without the service: search index.db by words.

The gate (vault/gate.py) decides on the best passages with its weights for words alone. The search is limited to the
scope of a hook (entries in use, no special folder, no other project), reads the file of every hit before it is shown,
and stops at a deadline with the hits so far.
"""

from __future__ import annotations

import os
import time

from ..runtime.function_words import CHATTER, foreign_function_words, is_significant
from ..runtime.index_terms import (
    cut_terms,
    function_letters,
    index_text,
    plain_letters,
    without_chance_pairs,
)
from ..runtime.layout import ALWAYS_LOAD
from ..vault.automemory import ON_DEMAND_KINDS, kind_by_path
from ..vault.gate import BY_WORDS, exact, log_odds, note_features, rarity, threshold, word_features
from ..vault.render import around_words, introduced
from .entryfile import EntryFile, read_entry_file
from .recall_client import shorten
from .sqlite import open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCOPE = (
    "COALESCE(NULLIF(m.status, ''), 'active') NOT IN (SELECT value FROM json_each(?))"
    " AND m.special IN ('', ?) AND COALESCE(m.project, '') IN ('', ?)"
    " AND COALESCE(m.kind, '') NOT IN ('topic', 'topic-index', 'session-cost')"
)
"""Condition for what a hook may show. The index of the agent's own notes, which the session has had since its start,
and those notes, which are read on demand, are left out. Parameters: the statuses that are out of use, `_always-load` or
'', and the project."""
TOKENIZER = "porter unicode61 remove_diacritics 2"
"""The same as for chunk_fts (index/schema.py)."""
BEST = (
    "SELECT m.path, m.project, m.session, c.rowid, c.text, m.kind, m.confidence FROM (SELECT rowid,"
    " bm25(chunk_fts, 3.0, 2.0, 1.0) AS score FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY score LIMIT ?) f"
    " JOIN chunk c ON c.rowid = f.rowid JOIN entry_meta m ON m.rowid = c.entry_rowid"
    f" WHERE {SCOPE} ORDER BY f.score"
)
CHUNK = "SELECT title || ' ' || tags || ' ' || body FROM chunk_fts WHERE rowid = ?"
RIVALS = (
    "SELECT count(*) FROM entry_meta WHERE special = '' AND (COALESCE(kind, '') = 'skill') = ?"
    " AND COALESCE(project, '') COLLATE NOCASE IN ('', ?)"
)
"""Counts the skills (1) or the other entries (0) that could come with a prompt of the project."""
KEYWORD_LIMIT = 300
"""Passages that are ranked before the scope is applied."""
SCORED_PASSAGES = 4_000
"""Most passages that are scored, in some 15 ms; see index/query.py."""
WORD_LIMIT = 40
"""Most words of a prompt; of a longer one those of the beginning and the end are taken."""
NAMED_CHARACTERS = 4_000
"""Characters at the beginning and the end of a prompt in which names are looked for; its words are taken there, too."""
TERM_LIMIT = 24
"""Most words that are searched: the rarest ones."""
GATED_ENTRIES = 12
PROJECT_PRIOR = 0.2
"""Log-odds added for an entry of the project, before the threshold."""
SKILL_KIND = "skill"
"""The same as in vault/entry.py, which takes too long to import for a hook."""
MIN_SKILL_COVERAGE = 0.5
"""Share of the prompt that a skill must cover: skills describe common work in common words."""
NO_INDEX = "no index that can be used"
BY_KEYWORDS = "keywords only"
EXCERPT_CHARACTERS = 1600
"""Longest entry that is shown whole; of a longer one the passage that matched is shown."""
LOCK_PATIENCE_SECONDS = 0.02


class FallbackQuery:
    """What to search for, and where."""

    __slots__ = ("deadline", "eagerness", "exclude", "k", "project", "search_always_load", "text", "vault")

    def __init__(self, text: str, vault: str, project: str, k: int, exclude: set[str], deadline: float) -> None:
        self.text = text
        self.vault = vault
        self.project = project
        """Entries of this project and of none are searched."""
        self.k = k
        self.exclude = exclude
        """Vault-relative paths of entries that the session has already."""
        self.deadline = deadline
        """time.monotonic() at which to stop."""
        self.search_always_load = False
        """Whether to search `_always-load` too: only where it is recorded which of its entries the session has."""
        self.eagerness = "balanced"
        """A position of the setting `recall.eagerness`."""


class FallbackHits:
    """Hits, best first. `degraded`: what was missing, in words. `searched`: False when nothing was searched. `ranked`:
    how many entries have the words, at most GATED_ENTRIES."""

    __slots__ = ("degraded", "hits", "ranked", "searched")

    def __init__(self, hits: list[EntryFile], degraded: str, searched: bool, ranked: int = 0) -> None:
        self.hits = hits
        self.degraded = degraded
        self.searched = searched
        self.ranked = ranked


def search(query: FallbackQuery, index_db: str) -> FallbackHits:
    """Search the index. Never raises."""
    if not os.path.isdir(query.vault):
        if os.path.exists(query.vault):
            return FallbackHits([], f"recall engine error: the vault {query.vault} is not a folder", False)
        return FallbackHits([], f"vault path not found: {query.vault}", False)
    words = significant_words(query.text)
    if not words:
        return FallbackHits([], "", True)
    if not os.path.exists(index_db):
        return FallbackHits([], NO_INDEX, False)
    try:
        return _search(query, words, open_database(index_db, LOCK_PATIENCE_SECONDS))
    except Exception as error:  # noqa: BLE001  A damaged index: the worker makes a new one.
        if "no such module" in str(error):
            return FallbackHits([], f"this Python's SQLite has no FTS5 ({error})", False)
        return FallbackHits([], f"{NO_INDEX} ({error})", False)


def _search(query: FallbackQuery, words: list[str], connection: Any) -> FallbackHits:
    """Return the entries that pass the gate, the surest first."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"CREATE VIRTUAL TABLE temp.said USING fts5(text, tokenize = '{TOKENIZER}')")
    connection.execute("CREATE VIRTUAL TABLE temp.said_term USING fts5vocab(temp, said, instance)")
    connection.execute("CREATE VIRTUAL TABLE temp.known USING fts5vocab(main, chunk_fts, row)")
    total = connection.execute("SELECT count(*) FROM chunk").fetchone()[0]
    rivals = {is_skill: connection.execute(RIVALS, (is_skill, query.project)).fetchone()[0] for is_skill in (0, 1)}
    spelt = other_spellings(shorten(query.text, NAMED_CHARACTERS), set(words))
    stems = _stems(connection, [*words, *spelt])
    counts = {}
    for stem in {stem for found in stems for stem in found}:
        row = connection.execute("SELECT doc FROM temp.known WHERE term = ?", (stem,)).fetchone()
        counts[stem] = row[0] if row else 0
    stem_of = {word: next(iter(found)) for word, found in zip(words, stems, strict=False) if found}
    kept = without_chance_pairs([word for word in words if word in stem_of], lambda word: bool(counts[stem_of[word]]))
    by_stem = {stem_of[word]: word for word in reversed(kept)}
    rarest = sorted(by_stem, key=lambda stem: counts[stem])[:TERM_LIMIT]
    counted = [(by_stem[stem], counts[stem]) for stem in rarest]
    names = []
    for (spelling, meant), its in zip(spelt.items(), stems[len(words) :], strict=True):
        if count := min([counts[stem] for stem in its], default=0):
            counted.append((spelling, count))
            names.append((its, {stem_of[word] for word in meant if word in stem_of}))
    terms = [((stem,), rarity(counts[stem], total)) for stem in rarest]
    match = _match(sorted(counted, key=lambda pair: pair[1]))
    if not match:
        return FallbackHits([], BY_KEYWORDS, True)
    hits: list[tuple[float, EntryFile]] = []
    best = _best_passages(query, connection, match)
    # As the service has it: a single word gets the note that no other shares it with, and brings no other.
    is_one_run = len(split_words(query.text)) == 1
    is_lone_word = is_one_run and len(words) == 1 and query.text.strip()[1:] == query.text.strip()[1:].lower()
    if is_lone_word and len(best) > 1:
        return FallbackHits([], BY_KEYWORDS, True, len(best))
    for path, project, session, chunk, passage, kind, confidence in best:
        if time.monotonic() > query.deadline:
            break
        (said,) = _stems(connection, [connection.execute(CHUNK, (chunk,)).fetchone()[0]])
        said = said.union(*(both for its, both in names if its <= said))
        is_skill = kind == SKILL_KIND
        pair = word_features(terms, {stem for stem in said if is_significant(stem)}, rivals[is_skill])
        pair |= note_features(kind or "", confidence or "")
        pair["exact"] = exact(pair, is_one_word=is_lone_word)
        sure = log_odds(BY_WORDS, pair)
        if project:
            sure += PROJECT_PRIOR
        is_poor_skill = is_skill and pair["coverage"] < MIN_SKILL_COVERAGE
        is_answer = is_one_run and len(best) == 1 and not is_skill and bool(pair["complete"])
        if not is_answer and (sure < threshold(BY_WORDS, query.eagerness) or is_poor_skill):
            continue
        hit = _read_current(query, path)
        if hit is None:
            continue
        hit.session = session or ""
        if len(hit.body) > EXCERPT_CHARACTERS:
            beginning = hit.body[:EXCERPT_CHARACTERS].rsplit("\n", 1)[0] + " …"
            hit.excerpt = introduced(passage, hit.body) or beginning
        hit.excerpt = around_words(hit.excerpt, [*kept, *rarest])
        hits.append((sure, hit))
    hits.sort(key=lambda pair: -pair[0])
    skills = [hit for _, hit in hits if hit.kind == SKILL_KIND]
    found = [hit for _, hit in hits if hit not in skills[1:]]  # Hosts list skills themselves.
    return FallbackHits(found[: query.k], BY_KEYWORDS, True, len(best))


def _stems(connection: Any, texts: list[str]) -> list[set[str]]:
    """Return the terms under which FTS5 indexes each of the texts."""
    connection.execute("DELETE FROM temp.said")
    connection.executemany(
        "INSERT INTO temp.said (rowid, text) VALUES (?, ?)",
        [(number, index_text(text)) for number, text in enumerate(texts)],
    )
    found: list[set[str]] = [set() for _ in texts]
    for number, term in connection.execute("SELECT doc, term FROM temp.said_term"):
        found[number].add(term)
    return found


def _match(counted: list[tuple[str, int]]) -> str:
    """Build an FTS5 expression of the words that occur, the rarest first, as long as they have SCORED_PASSAGES
    together."""
    chosen: list[str] = []
    passages = 0
    for word, count in counted:
        passages += count
        if count and (passages <= SCORED_PASSAGES or not chosen):
            chosen.append(f'"{word}"')
    return " OR ".join(chosen)


def _best_passages(query: FallbackQuery, connection: Any, match: str) -> list[Any]:
    """Return rows of BEST: the best passage of each entry within the scope, best first, at most GATED_ENTRIES."""
    from ..vault.statuses import OUT_OF_USE_JSON

    special = ALWAYS_LOAD if query.search_always_load else ""
    rows = connection.execute(BEST, (match, KEYWORD_LIMIT, OUT_OF_USE_JSON, special, query.project))
    best: dict[str, Any] = {}
    for row in rows:
        if row[0] not in query.exclude:
            best.setdefault(row[0], row)
        if len(best) >= GATED_ENTRIES:
            break
    return list(best.values())


def _read_current(query: FallbackQuery, path: str) -> EntryFile | None:
    """Read the entry from its file; None when it may not be shown."""
    if path in query.exclude or kind_by_path(path):
        return None
    hit = read_entry_file(query.vault, path)
    if hit is None or not hit.is_in_use or hit.kind in ON_DEMAND_KINDS:
        return None
    return hit if hit.project in ("", query.project) else None


def other_spellings(text: str, words: set[str]) -> dict[str, tuple[str, ...]]:
    """Return how else a name of `text` may be written, with the words of `words` that this stands for: `configloader`
    for `config_loader` and "config loader", "config loader" for ConfigLoader."""
    letters = zip(f" {text}", text, strict=False)
    parts = split_words("".join([f" {c}" if before.islower() and c.isupper() else c for before, c in letters]))
    found: dict[str, tuple[str, ...]] = {}
    for at in range(len(parts) - 1):
        for end in (at + 2, at + 3):
            run = tuple(parts[at:end])
            if (name := "".join(run)) in words:
                found[" ".join(run)] = (name,)
            elif words.issuperset(run):
                found[name] = run
    return found


def significant_words(text: str) -> list[str]:
    """Return the `content_words` of `text`, at most WORD_LIMIT."""
    words = content_words(text)
    if len(words) > WORD_LIMIT:
        words = words[: WORD_LIMIT // 2] + words[-(WORD_LIMIT // 2) :]
    return words


def content_words(text: str) -> list[str]:
    """Return distinct lower-case words of `text` without stop words, in order; none for mere chatter."""
    found: list[str] = []
    every: list[str] = []
    for run in split_words(text):
        grammar = function_letters(run)
        for start, end in cut_terms(run):
            every.append(run[start:end])
            if grammar.isdisjoint(range(start, end)):
                found.append(run[start:end])
    ignored = foreign_function_words(every)
    words = list(dict.fromkeys([word for word in found if word not in ignored and is_significant(word)]))
    return [] if CHATTER.issuperset(words) else words


def split_words(text: str) -> list[str]:
    """Split `text` into its runs of plain letters and digits, lower case."""
    # In lower case the İ of İstanbul is an i with a mark, at which a word must not end.
    return "".join([c if c.isalnum() else " " for c in plain_letters(text.lower())]).split()
