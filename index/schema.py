"""The SQL of index.db: a cache that can be deleted at any time.

Nothing here is truth. `entry_meta` has one row per file, `chunk` one per piece of it, `chunk_fts`
the words of the piece. `passage` has one row per distinct text that is embedded, by its hash, so
that no text is embedded twice; one `vec0` table per model holds the vectors (`chunk_vec_<model id>`,
rowid = passage.id), so that two models are never mixed. `embedding` says which are there and keeps
the vectors of the passage's words (late_interaction.py).
Hooks read `entry_meta`, `chunk` and `chunk_fts` with the standard library's sqlite3, which may
be as old as 3.40: nothing newer than that is used in them.
"""

from __future__ import annotations

import apsw

from ..runtime.layout import ALWAYS_LOAD
from ..vault.active import EXPLICIT_KINDS
from ..vault.statuses import OUT_OF_USE

SCHEMA_VERSION = 7
DERIVATION = 9
"""How rows and chunks are made of a file, kept with each row: to be raised when `parse_entry`, `row_of` or
`chunk_entry` make something else of the same bytes. Not the schema's version: programs of another one are refused. Of
two programs that use one index in turn, the older one takes what the newer one made as it is."""

ENTRY_META_COLUMNS: tuple[tuple[str, str], ...] = (
    ("path", "TEXT NOT NULL DEFAULT ''"),
    ("kind", "TEXT"),
    ("status", "TEXT"),
    ("slug", "TEXT"),
    ("title", "TEXT"),
    ("project", "TEXT"),
    ("group_name", "TEXT"),
    ("created", "TEXT"),
    ("updated", "TEXT"),
    ("tags", "TEXT NOT NULL DEFAULT '[]'"),
    ("fingerprint", "TEXT"),
    ("content_hash", "TEXT NOT NULL DEFAULT ''"),
    ("mtime_ns", "INTEGER NOT NULL DEFAULT 0"),
    ("size", "INTEGER NOT NULL DEFAULT 0"),
    ("always_load", "INTEGER NOT NULL DEFAULT 0"),
    ("occurrences", "INTEGER NOT NULL DEFAULT 1"),
    # The underscore folder that decides whether the entry may be shown, '' for none.
    ("special", "TEXT NOT NULL DEFAULT ''"),
    # The session the entry was learned in; shown with a hit.
    ("session", "TEXT"),
    # When it was said, which may be long before the note was written: `created`.
    ("surfaced_at", "TEXT"),
    # How plainly it was said, by which the gate knows it.
    ("confidence", "TEXT"),
    ("updated_at", "REAL NOT NULL DEFAULT 0"),
    # 0 means: drifted, index again at the next walk.
    ("indexed_at", "REAL NOT NULL DEFAULT 0"),
    # The DERIVATION of the program that made the row; one of a lower one is made again at the next walk.
    ("derivation", "INTEGER NOT NULL DEFAULT 0"),
)

_STATEMENTS = (
    "CREATE TABLE IF NOT EXISTS entry_meta "
    f"(rowid INTEGER PRIMARY KEY, {', '.join(f'{name} {declaration}' for name, declaration in ENTRY_META_COLUMNS)})",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_entry_meta_path ON entry_meta(path)",
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_kind ON entry_meta(kind)",
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_project ON entry_meta(project)",
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_status ON entry_meta(status)",
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_fingerprint ON entry_meta(fingerprint)",
    # Each prompt counts the entries that could come with it.
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_scope ON entry_meta(special, project, kind)",
    # Each session's start looks for these, of which there are few.
    "CREATE INDEX IF NOT EXISTS idx_entry_meta_always_load ON entry_meta(path) WHERE always_load = 1",
    # `text` is what a hit shows; the passage is what is embedded (title, tags and text, say).
    """
    CREATE TABLE IF NOT EXISTS chunk (
        rowid INTEGER PRIMARY KEY,
        entry_rowid INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        text TEXT NOT NULL,
        passage_id INTEGER NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS idx_chunk_entry ON chunk(entry_rowid, ordinal, passage_id)",
    "CREATE INDEX IF NOT EXISTS idx_chunk_passage ON chunk(passage_id)",
    # `orphaned_at`: since when no chunk has this text. It is kept for a while with its vectors: a
    # vault that is unmounted and comes back, or a text that is cut and pasted, is not embedded twice.
    """
    CREATE TABLE IF NOT EXISTS passage (
        id INTEGER PRIMARY KEY,
        text_hash TEXT NOT NULL UNIQUE,
        embed_text TEXT NOT NULL,
        orphaned_at REAL
    )
    """,
    """
    CREATE VIRTUAL TABLE IF NOT EXISTS chunk_fts USING fts5(
        title, tags, body, tokenize = 'porter unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS vector_model (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        dimension INTEGER NOT NULL,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS embedding (
        model_id INTEGER NOT NULL,
        passage_id INTEGER NOT NULL,
        words BLOB NOT NULL,
        UNIQUE (model_id, passage_id)
    )
    """,
    # Which model answers is a fact about the vectors, so it is kept with them: they are lost together.
    # `previous` is kept too, with its vectors, so that a change of model can be undone at once.
    """
    CREATE TABLE IF NOT EXISTS model_in_force (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        name TEXT NOT NULL,
        previous TEXT,
        since TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
    )
    """,
    # Counts how often vectors were dropped. Ids are used again after that, so a copy of the vectors in memory
    # (matrix.py) cannot see by anything else that it is out of date.
    """
    CREATE TABLE IF NOT EXISTS vector_epoch (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        dropped INTEGER NOT NULL
    )
    """,
    "INSERT OR IGNORE INTO vector_epoch (only, dropped) VALUES (1, 0)",
)

TABLES = (
    "entry_meta",
    "chunk",
    "passage",
    "chunk_fts",
    "vector_model",
    "embedding",
    "model_in_force",
    "vector_epoch",
)
"""The tables of every index.db, besides a table of vectors for each model."""


HAS_CONTENT = (
    "(m.title <> trim(replace(replace(m.slug, '-', ' '), '_', ' '))"
    " OR EXISTS (SELECT 1 FROM chunk said WHERE said.entry_rowid = m.rowid AND said.text <> ''))"
)
IN_ENTRY_PLACE = f"m.special IN ('', '{ALWAYS_LOAD}')"
IS_EXPLICIT_KIND = f"lower(COALESCE(m.kind, '')) IN ({', '.join(repr(kind) for kind in sorted(EXPLICIT_KINDS))})"
STATUS = "lower(COALESCE(NULLIF(m.status, ''), 'active'))"
IS_IN_USE_STATUS = f"{STATUS} NOT IN ({', '.join(repr(status) for status in OUT_OF_USE)})"
IN_USE = f"{IN_ENTRY_PLACE} AND {IS_IN_USE_STATUS} AND NOT {IS_EXPLICIT_KIND} AND {HAS_CONTENT}"
"""Which notes are entries in use (`vault.active`), as conditions on rows of entry_meta, aliased `m`."""


def vector_table(model_id: int) -> str:
    return f"chunk_vec_{model_id:d}"


def create_vector_table(model_id: int, dimension: int) -> str:
    return (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {vector_table(model_id)} "
        f"USING vec0(embedding FLOAT[{dimension:d}] distance_metric=cosine)"
    )


def user_version(connection: apsw.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").get)


def create(connection: apsw.Connection) -> None:
    """Create what a new database lacks, in one transaction, which the caller ends by closing where it fails."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
