"""What a job handler sees: the running job, and the exceptions by which it may end."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point_environment
from ...runtime.settings import Settings, child_environment
from . import supervisor
from .kinds import Json, KindPolicy
from .ledger import Ledger
from .records import Claim

T = TypeVar("T")

LATE_SECONDS = 2.0
"""A handler's thread is given up this long after the deadline, at which a child is killed."""


class Retry(Exception):
    """This attempt failed; try again after the kind's backoff, or after the given time."""

    def __init__(self, reason: str, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds


class Dead(Exception):
    """No further attempt can help; keep the job with this reason."""


class Postpone(Exception):
    """Something outside is missing (vault, model, disk space): try later without counting this attempt."""

    def __init__(self, reason: str, seconds: float = 30.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class JobLost(Exception):
    """The claim no longer holds (cancelled, lease expired, worker leaving): stop without further effects."""


class RunningJob:
    """One attempt of a job. The worker's heartbeat thread extends its lease while it runs."""

    def __init__(self, ledger: Ledger, claim: Claim, args: Mapping[str, Json], policy: KindPolicy) -> None:
        self.id = claim.job_id
        self.kind = claim.kind
        self.args = args
        self.attempt = claim.attempt
        self.claim = claim
        self.policy = policy
        self.lost = threading.Event()
        """Set when the claim no longer holds."""
        self.ending = False
        """The handler has returned, and its result is being recorded."""
        self.enqueue = ledger.enqueue
        """Enqueue a follow-up durably; give it a unique key, because this attempt may be repeated."""
        self._ledger = ledger
        self._deadline = time.monotonic() + policy.deadline_seconds

    def remaining_seconds(self) -> float:
        """Return the seconds until the deadline of this attempt, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def overdue(self) -> bool:
        """Whether the deadline is long past and the handler has not returned."""
        return time.monotonic() > self._deadline + LATE_SECONDS

    def still_owned(self) -> bool:
        """Whether the claim holds, read from the database. Check it right before an effect."""
        return not self.lost.is_set() and self.remaining_seconds() > 0 and self._ledger.still_owned(self.claim)

    def check_owned(self) -> None:
        """Raise JobLost unless `still_owned`."""
        if not self.still_owned():
            raise JobLost(f"job {self.id} is no longer ours")

    def run_child(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        input: bytes = b"",
        deadline_seconds: float | None = None,
        max_stdout_bytes: int = supervisor.MAX_STDOUT_BYTES,
    ) -> supervisor.ChildResult:
        """Call `supervisor.run_child` within this job's deadline; the child is stopped when the claim is lost.

        Raises Retry if the deadline passed or the output was too large, JobLost if the claim was lost. The caller
        judges the exit status.
        """
        deadline = self.remaining_seconds()
        if deadline_seconds is not None:
            deadline = min(deadline, deadline_seconds)
        result = supervisor.run_child(
            argv,
            input,
            deadline,
            env=env,
            stop=self.lost,
            max_stdout_bytes=max_stdout_bytes,
        )
        if result.ended == "stopped":
            raise JobLost(f"job {self.id} was stopped")
        if result.ended == "deadline":
            raise Retry(f"killed at its deadline of {deadline:.0f} s")
        if result.ended == "overflow":
            raise Retry(f"killed: wrote more than {max_stdout_bytes} bytes")
        return result


Handler = Callable[[RunningJob], Mapping[str, Json] | None]
"""Runs the jobs of one kind. Returns None, or a small mapping of counts and ids for the history."""


def run_json_child(
    job: RunningJob,
    settings: Settings,
    module: str,
    request: Any,
    *,
    parse: Callable[[Any], T],
    deadline_seconds: float,
    verb: str,
    max_stdout_bytes: int = supervisor.MAX_STDOUT_BYTES,
    dead_status: int | None = None,
) -> T:
    """Send `request` as JSON to a child that runs `module`, and return what `parse` makes of the JSON that it prints:
    for what may crash, hang or grow without bound.

    `verb` words the errors, as in "mining failed".

    The child has the environment that the settings allow. Raises Retry if it fails, is killed, exceeds the deadline, or
    prints too much; Dead if it exits with `dead_status`; JobLost.
    """
    result = job.run_child(
        [sys.executable, "-m", module],
        env={**child_environment(settings), **kill_point_environment()},
        input=json.dumps(request).encode(),
        deadline_seconds=deadline_seconds,
        max_stdout_bytes=max_stdout_bytes,
    )
    if dead_status is not None and result.returncode == dead_status:
        raise Dead(result.last_words())
    if result.returncode != 0:
        raise Retry(f"{verb} failed: {result.last_words()}")
    return parse(parse_json(result.stdout))
