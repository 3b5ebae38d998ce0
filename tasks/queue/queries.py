"""Every SQL statement for queue.db, by name. Parameters are named; `:now` is the time in Unix seconds."""

from __future__ import annotations

from .schema import ORDER

# ---- enqueueing

INSERT_JOB = """
    INSERT INTO job (kind, args, unique_key, priority, run_at, created_at)
    VALUES (:kind, :args, :unique_key, :priority, :run_at, :now)
    RETURNING id
"""
INSERT_DEAD = """
    INSERT INTO job (kind, args, state, error, run_at, created_at, finished_at)
    VALUES (:kind, :args, 'dead', :error, :now, :now, :now)
"""
QUEUED_BY_KEY = """
    SELECT id, run_at FROM job WHERE state = 'queued' AND unique_key = :unique_key
"""
MOVE = "UPDATE job SET run_at = :run_at WHERE id = :id AND state = 'queued'"

# ---- claiming

RUNNING_BY_KIND = "SELECT kind, count(*) FROM job WHERE state = 'running' GROUP BY kind"
# By itself SQLite would take all due jobs from another index, and sort them.
NEXT = f"""
    SELECT id, kind, args, unique_key, attempt FROM job INDEXED BY job_order
    WHERE state = 'queued' AND run_at <= :now AND kind NOT IN (SELECT value FROM json_each(:full))
          AND NOT EXISTS (SELECT 1 FROM kind_state WHERE kind_state.kind = job.kind)
          AND NOT EXISTS (SELECT 1 FROM job AS other
                          WHERE other.state = 'running' AND other.unique_key = job.unique_key)
    ORDER BY {ORDER}, id LIMIT 1
"""
CLAIM = """
    UPDATE job SET state = 'running', attempt = attempt + 1, owner = :owner, started_at = :now,
                   lease_until = :now + :lease
    WHERE id = :id AND state = 'queued'
"""

# ---- while it runs

HEARTBEAT = """
    UPDATE job SET lease_until = :now + :lease
    WHERE id = :id AND state = 'running' AND owner = :owner AND attempt = :attempt
"""
STILL_OWNED = """
    SELECT 1 FROM job WHERE id = :id AND state = 'running' AND owner = :owner AND attempt = :attempt
"""

# ---- ending an attempt

_ENTRY = """json_object('attempt', attempt, 'owner', owner, 'started', started_at, 'ended', :now,
                        'outcome', :outcome, 'error', :error, 'result', json(:result))"""
# The first attempt and the latest ones are kept: a job that is postponed for weeks must not grow.
_HISTORY = f"""json_insert(CASE WHEN json_array_length(history) >= 20 THEN json_remove(history, '$[1]')
                                ELSE history END, '$[#]', {_ENTRY})"""
FINISH = f"""
    UPDATE job SET state = :state, history = {_HISTORY}, error = :error, finished_at = :now,
                   owner = NULL, lease_until = NULL
    WHERE id = :id AND state = 'running' AND owner = :owner AND attempt = :attempt
"""
REQUEUE = f"""
    UPDATE job SET state = 'queued', history = {_HISTORY}, error = :error, run_at = :run_at,
                   attempt = attempt - :uncounted, owner = NULL, lease_until = NULL
    WHERE id = :id AND state = 'running' AND owner = :owner AND attempt = :attempt
"""
INHERIT_ATTEMPTS = """
    UPDATE job SET attempt = max(attempt, :attempt), run_at = max(run_at, :run_at) WHERE id = :id
"""
CANCEL_QUEUED = """
    UPDATE job SET state = 'cancelled', error = :error, finished_at = :now
    WHERE id = :id AND state = 'queued'
"""
CANCEL_RUNNING = f"""
    UPDATE job SET state = 'cancelled', history = {_HISTORY}, error = :error, finished_at = :now,
                   owner = NULL, lease_until = NULL
    WHERE id = :id AND state = 'running'
"""
REPLAY = """
    UPDATE job SET state = 'queued', attempt = 0, run_at = :now, finished_at = NULL
    WHERE id = :id AND state IN ('dead', 'cancelled')
"""

# ---- upkeep

# A lease that ends further ahead than any lease lasts was claimed before the clock was set back.
EXPIRED = """
    SELECT id, kind, unique_key, owner, attempt FROM job
    WHERE state = 'running' AND owner NOT IN (SELECT value FROM json_each(:held))
          AND (:all_others OR lease_until <= :now OR lease_until > :now + :longest_lease)
"""
# Rows from the future were written before the clock was set back: keep their delay, not their date.
PULL_FROM_FUTURE = """
    UPDATE job SET run_at = :now + max(0.0, run_at - created_at), created_at = :now
    WHERE state = 'queued' AND created_at > :now + :tolerance
"""
_LAST_END = "json_extract(history, '$[#-1].ended')"
# The same for times that were put into older rows: a retry's pause, a quiet period that began again, a spooled job's.
PULL_TIME_FROM_FUTURE = f"""
    UPDATE job SET run_at = :now
    WHERE state = 'queued' AND run_at > :now
          AND (run_at > :now + :longest OR (history <> '[]' AND {_LAST_END} > :now + :tolerance))
"""
ADVANCE = """
    UPDATE job SET run_at = :now
    WHERE state = 'queued' AND run_at > :now AND run_at <= :now + :within AND attempt = 0 AND history = '[]'
"""
TEXTS_OF_ENDED = """
    SELECT id, args || ' ' || coalesce(unique_key, '') || ' ' || history || ' ' || coalesce(error, '') FROM job
    WHERE state IN ('done', 'dead', 'cancelled')
"""
EMPTY = "UPDATE job SET args = '{}', unique_key = NULL, history = '[]', error = NULL WHERE id = :id"
PRUNE = """
    DELETE FROM job WHERE state IN ('done', 'cancelled') AND finished_at < :before
"""

# ---- looking

JOB_COLUMNS = """id, kind, args, unique_key, priority, state, attempt, run_at, lease_until, owner,
                 error, history, created_at, started_at, finished_at"""
GET_JOB = f"SELECT {JOB_COLUMNS} FROM job WHERE id = :id"
LIST_JOBS = f"""
    SELECT {JOB_COLUMNS} FROM job
    WHERE (:kind IS NULL OR kind = :kind) AND state IN (SELECT value FROM json_each(:states))
    ORDER BY id DESC LIMIT :most
"""
BACKLOG = """
    SELECT
      (SELECT count(*) FROM job WHERE state = 'running'),
      (SELECT count(*) FROM job WHERE state = 'queued' AND run_at <= :now
         AND NOT EXISTS (SELECT 1 FROM kind_state WHERE kind_state.kind = job.kind)),
      (SELECT count(*) FROM job WHERE state = 'queued' AND run_at > :now),
      (SELECT count(*) FROM job WHERE state = 'dead')
"""

# ---- pausing, schedules, the worker

PAUSE_KIND = "INSERT OR IGNORE INTO kind_state VALUES (:kind, :now)"
RESUME_KIND = "DELETE FROM kind_state WHERE kind = :kind"
PAUSED_KINDS = "SELECT kind FROM kind_state ORDER BY kind"
LAST_SLOTS = "SELECT name, last_slot FROM schedule_state"
LAST_RUNS = """
    SELECT substr(unique_key, 1, instr(unique_key, ':') - 1), MAX(started_at) FROM job
    WHERE started_at IS NOT NULL AND instr(unique_key, ':') > 1 GROUP BY 1
"""
SET_LAST_SLOT = """
    INSERT INTO schedule_state (name, last_slot) VALUES (:name, :last_slot)
    ON CONFLICT (name) DO UPDATE SET last_slot = excluded.last_slot
"""
LIVE_IN_KEY_RANGE = """
    SELECT 1 FROM job WHERE state IN ('queued', 'running') AND unique_key >= :first AND unique_key < :after LIMIT 1
"""
BEAT = """
    INSERT INTO worker_state (id, pid, beat, beat_at) VALUES (1, :pid, 1, :now)
    ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, beat = beat + 1, beat_at = excluded.beat_at
"""
WORKER = "SELECT pid, beat, beat_at FROM worker_state WHERE id = 1"

# ---- rebuilding a damaged file

RESTORE_SCHEDULE = "INSERT OR IGNORE INTO schedule_state VALUES (?, ?)"
ALL_PAUSES = "SELECT kind, paused_at FROM kind_state"
RESTORE_PAUSE = "INSERT OR IGNORE INTO kind_state VALUES (?, ?)"

# ---- scrubbing

TEXTS_OF_JOBS = "SELECT id, state, args, error, history FROM job"
REPLACE_TEXTS_OF_JOB = "UPDATE job SET args = :args, error = :error, history = :history WHERE id = :id"
