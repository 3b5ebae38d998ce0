"""Run a step of a job in a child process: JSON on stdin, an answer on stdout.

It is used for what may crash, hang or grow without bound, and runs within the job's deadline.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point_environment
from ...runtime.settings import Settings, child_environment
from . import supervisor
from .job import Dead, Retry, RunningJob

T = TypeVar("T")


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
    """Send `request` as JSON to a child that runs `module`, and return what `parse` makes of the JSON that it prints.

    `verb` words the errors, as in "mining failed". `parse` raises ValueError, KeyError or TypeError for a value that it
    cannot read.

    The child has the environment that the settings allow. Raises Retry if it fails, is killed, exceeds the deadline, or
    prints too much or invalid output; Dead if it exits with `dead_status`; JobLost.
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
    try:
        return parse(parse_json(result.stdout))
    except (ValueError, KeyError, TypeError) as error:
        raise Retry(f"{verb} gave no answer: {error}") from error
