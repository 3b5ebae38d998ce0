"""What the shared queue is told when a handler fails: each machine that works in it may read that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.queue.job import Dead, Postpone, Retry, RunningJob
from memoryvault.tasks.queue.kinds import Json
from memoryvault.tasks.sharing.handlers import silent

FILE = "/home/rosalind/.local/state/memoryvault/state.db"


class Failed:
    """As much of a job as is named in this machine's log."""

    id = 7
    kind = "share.result"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device", FILE), Postpone),
        (QueueUnavailable(f"{FILE} cannot be used (locked)"), Postpone),
        (KeyError(FILE), Retry),
    ],
)
def test_no_file_of_this_machine_is_named_to_others(error: Exception, told: type[Exception]) -> None:
    def handle(job: RunningJob) -> Mapping[str, Json]:
        raise error

    with pytest.raises(told) as caught:
        silent(handle)(cast("Any", Failed()))
    assert "rosalind" not in str(caught.value)


def test_what_a_handler_says_itself_is_told() -> None:
    def handle(job: RunningJob) -> Mapping[str, Json]:
        raise Dead("the content is not what its key says")

    with pytest.raises(Dead, match="not what its key says"):
        silent(handle)(cast("Any", Failed()))
