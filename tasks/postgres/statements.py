"""The statements of `..queries` for PostgreSQL, under the same names.

Most are the same but for how a parameter is written. What differs is said here in full: JSON, the order in which rows
are locked, and that a row another transaction holds is passed over (`SKIP LOCKED`) instead of waited for.
"""

from __future__ import annotations

import re

from ..queue import queries
from ..queue.schema import QUEUE_NAME

TABLE_PREFIX = "huey"
PLACED = "to"
"""The argument that names the one machine where a job may run."""
CHANNEL = f"{TABLE_PREFIX}.q.{QUEUE_NAME}"
"""What huey's storage listens to (`huey.storage.PostgresStorage`)."""


def doorbells_of(machine: str, *, work: bool) -> dict[str, str]:
    """Parameters of ANY_DOORBELL and TAKE_DOORBELL: what is addressed to the machine, and what anybody may do."""
    return {"own": f"{QUEUE_NAME}@{machine}", "common": QUEUE_NAME if work else ""}


_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


def translated(sql: str) -> str:
    """`:name` as `%(name)s`; casts (`::text`) stay."""
    return _PARAMETER.sub(r"%(\1)s", sql)


# Two that enqueue the same work at once must see each other's job: the second waits for the first one's commit.
LOCK_KEY = "SELECT pg_advisory_xact_lock(hashtextextended(%(unique_key)s, 0))"
LOCK_KIND = "SELECT pg_advisory_xact_lock(hashtextextended('kind:' || %(kind)s, 0))"
KIND_AND_KEY = "SELECT kind, unique_key FROM job WHERE id = %(id)s"
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"

SCHEMA_VERSION = "SELECT coalesce(max(version), 0) FROM migration"

_HISTORY = """
    (CASE WHEN jsonb_array_length(history) >= 20 THEN history - 1 ELSE history END)
    || jsonb_build_array(jsonb_build_object(
        'attempt', attempt, 'owner', owner, 'started', started_at, 'ended', :now::float8,
        'outcome', :outcome::text, 'error', :error::text, 'result', :result::jsonb))
"""

JOB_COLUMNS = queries.JOB_COLUMNS.replace("history", "history::text")

_LOST_DOORBELL = """
    state = 'queued' AND rung_at IS NOT NULL AND (rung_at <= :now - :older OR rung_at > :now + :older)
          AND NOT EXISTS (SELECT 1 FROM huey_task WHERE huey_task.job_id = job.id)
"""

_OWN = {
    "CLOCK": CLOCK,
    "INSERT_JOB": f"""
        INSERT INTO job (kind, args, unique_key, priority, run_at, created_at, place)
        VALUES (:kind, :args::text, :unique_key, :priority, :run_at, :now, :args::text::jsonb ->> '{PLACED}')
        RETURNING id
    """,
    # The row is locked, so that nobody claims the job while its time is moved.
    "QUEUED_BY_KEY": queries.QUEUED_BY_KEY + " FOR UPDATE",
    "ANY_DOORBELL": "SELECT 1 FROM task WHERE queue IN (:own, :common) LIMIT 1",
    # One after the other, not `IN`: so each look is the first row of the index, however many wait.
    "TAKE_DOORBELL": """
        DELETE FROM task WHERE id = coalesce(
            (SELECT id FROM task WHERE queue = :own ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED),
            (SELECT id FROM task WHERE queue = :common ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED))
        RETURNING data
    """,
    "CLAIMABLE": queries.CLAIMABLE + " FOR UPDATE OF job SKIP LOCKED",
    "EXPIRED": """
        SELECT id, kind, unique_key, owner, attempt FROM job
        WHERE state = 'running' AND NOT owner = ANY (SELECT jsonb_array_elements_text(:held::jsonb))
              AND (:all_others::bool OR lease_until <= :now OR lease_until > :now + :longest_lease)
        ORDER BY id FOR UPDATE SKIP LOCKED
    """,
    "INHERIT_ATTEMPTS": """
        UPDATE job SET attempt = greatest(attempt, :attempt), run_at = greatest(run_at, :run_at) WHERE id = :id
    """,
    "PULL_FROM_FUTURE": queries.PULL_FROM_FUTURE.replace("max(", "greatest("),
    "PULL_TIME_FROM_FUTURE": queries.PULL_TIME_FROM_FUTURE.replace(
        queries._LAST_END, "(history -> -1 ->> 'ended')::float8"
    ),
    "RING": f"""
        WITH rung AS (
            INSERT INTO huey_task (queue, data, priority, job_id)
            SELECT '{QUEUE_NAME}' || coalesce('@' || place, ''), :data, :priority, id
            FROM job WHERE id = (convert_from(:data, 'UTF8')::jsonb -> 'args' ->> 0)::bigint
            RETURNING queue)
        SELECT pg_notify('{CHANNEL}', queue) FROM rung
    """,
    "UNRUNG_DUE_OF_KIND": """
        SELECT id, priority, run_at FROM (
            SELECT id, priority, run_at FROM job
            WHERE state = 'queued' AND rung_at IS NULL AND kind = :kind AND run_at <= :now
                  AND NOT EXISTS (SELECT 1 FROM kind_state WHERE kind_state.kind = job.kind)
                  AND NOT EXISTS (SELECT 1 FROM job AS other
                                  WHERE other.state = 'running' AND other.unique_key = job.unique_key)
            ORDER BY run_at LIMIT 100 FOR UPDATE OF job SKIP LOCKED) AS first
        ORDER BY run_at - priority * :aging, id LIMIT :most
    """,
    "LOST_DOORBELLS": f"SELECT 1 FROM job WHERE {_LOST_DOORBELL} LIMIT 1",
    "FORGET_LOST_DOORBELLS": f"UPDATE job SET rung_at = NULL WHERE {_LOST_DOORBELL}",
    "GET_JOB": f"SELECT {JOB_COLUMNS} FROM job WHERE id = :id",
    "LIST_JOBS": """
        SELECT {columns} FROM job
        WHERE (:kind::text IS NULL OR kind = :kind)
              AND state IN (SELECT jsonb_array_elements_text(:states::jsonb))
        ORDER BY id DESC LIMIT :most
    """.replace("{columns}", JOB_COLUMNS),
    "PAUSE_KIND": "INSERT INTO kind_state VALUES (:kind, :now) ON CONFLICT DO NOTHING",
    "BEAT": """
        INSERT INTO worker_state (owner, pid, version, beat, beat_at, started_at)
        VALUES (:owner, :pid, :version, 1, :now, :now)
        ON CONFLICT (owner) DO UPDATE SET
            pid = excluded.pid, version = excluded.version, beat = worker_state.beat + 1, beat_at = excluded.beat_at
    """,
    "RUNS_FOR": "SELECT 1 FROM job WHERE state = 'running' AND starts_with(owner, :worker) LIMIT 1",
    "FORGET_WORKER": "DELETE FROM worker_state WHERE owner = :owner",
    "FORGET_SILENT_WORKERS": "DELETE FROM worker_state WHERE beat_at < :before",
    "STALE_JOBS": """
        DELETE FROM job WHERE id IN (
            SELECT id FROM job WHERE state IN ('queued', 'dead') AND created_at < :before
            ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED)
        RETURNING id
    """,
    # One that somebody takes just now is passed over: it finds no job, and is gone then.
    "STALE_DOORBELLS": """
        DELETE FROM task WHERE id IN (SELECT id FROM task WHERE job_id = ANY (:jobs) FOR UPDATE SKIP LOCKED)
    """,
    "WORKER": """
        SELECT owner, pid, version, beat, beat_at, started_at FROM worker_state ORDER BY beat_at DESC LIMIT 1
    """,
}

_TASK = re.compile(r"\b(FROM|INTO) task\b")


def _of(name: str, sql: str) -> str:
    own = _OWN.get(name, sql).replace(queries._HISTORY, _HISTORY)
    return translated(_TASK.sub(rf"\1 {TABLE_PREFIX}_task", own))


globals().update(
    {name: _of(name, sql) for name, sql in {**vars(queries), **_OWN}.items() if name.isupper() and isinstance(sql, str)}
)
