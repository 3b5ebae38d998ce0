"""A job's child answers in JSON; on any failure of the child the job is retried, without a traceback."""

from collections.abc import Iterator

import pytest

from memoryvault.index.models import wanted_model
from memoryvault.runtime.settings import Settings
from memoryvault.tasks.queue.child_job import run_json_child
from memoryvault.tasks.queue.job import Dead, Retry, RunningJob
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tasks.queue.ledger import Claim, Ledger

ANSWERING = "memoryvault.tests.tasks.answering_program"
CANNOT = 3


@pytest.fixture
def job(settings: Settings) -> Iterator[RunningJob]:
    """A claimed job of kind model.upgrade."""
    args = {"model": wanted_model(settings)}
    with Ledger(settings.state.queue_db) as ledger:
        claim = ledger.claim(ledger.enqueue("model.upgrade", args), "test", 60.0)
        assert isinstance(claim, Claim)
        yield RunningJob(ledger, claim, args, POLICIES["model.upgrade"])


def count(job: RunningJob, settings: Settings, **request: object) -> int:
    """A number that the child is asked to print."""
    return run_json_child(
        job,
        settings,
        ANSWERING,
        request,
        parse=lambda value: int(value["count"]),
        deadline_seconds=60.0,
        verb="counting",
        answer="count",
        dead_status=CANNOT,
    )


@pytest.mark.usefixtures("forked_children")
def test_the_parsed_answer_is_returned(job: RunningJob, settings: Settings) -> None:
    assert count(job, settings, print='{"count": 7}') == 7


@pytest.mark.usefixtures("forked_children")
@pytest.mark.parametrize("answer", ["", "no JSON", "[]", "{}", '{"count": "many"}', '{"count": null}', '{"count": 1'])
def test_an_unreadable_answer_is_tried_again(job: RunningJob, settings: Settings, answer: str) -> None:
    with pytest.raises(Retry, match="counting printed no count: "):
        count(job, settings, print=answer)


@pytest.mark.usefixtures("forked_children")
@pytest.mark.parametrize(
    ("status", "error", "told"), [(1, Retry, "^counting failed: out of fingers"), (CANNOT, Dead, "^out of fingers$")]
)
def test_a_child_that_fails_is_tried_again_unless_it_says_that_no_attempt_can_help(
    job: RunningJob, settings: Settings, status: int, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        count(job, settings, complain="out of fingers", status=status)
