"""The table of job kinds."""

import pytest

from memoryvault.schedules.table import SCHEDULES
from memoryvault.tasks.queue.kinds import ArgsInvalid, validate_args


def test_every_schedule_enqueues_a_kind_with_arguments_that_fit() -> None:
    for schedule in SCHEDULES:
        validate_args(schedule.kind, {**schedule.args, "slot": "x"})


@pytest.mark.parametrize(
    ("kind", "args", "complaint"),
    [
        ("nonsense", {}, "no such job kind: 'nonsense'"),
        ("reflect.session", [], "not an object"),
        ("reflect.session", {}, "missing session"),
        ("reflect.session", {"session": "../x"}, "session is not a session"),
        ("reflect.session", {"session": ".x"}, "session is not a session"),
        ("reflect.session", {"session": "a", "body": "b"}, "unknown argument 'body'"),
        ("index.reconcile", {"full": 1}, "full is not a flag"),
        ("index.reconcile", {"paths": ["a", 1]}, "paths is not a paths"),
        ("research.idea", {"slug": ""}, "slug is not a text"),
        ("research.idea", {"slug": "x" * 5000}, "slug is not a text"),
    ],
)
def test_arguments_that_do_not_fit_are_named(kind: str, args: object, complaint: str) -> None:
    with pytest.raises(ArgsInvalid, match=complaint):
        validate_args(kind, args)


def test_arguments_that_fit_are_returned() -> None:
    args = {"session": "0b1c-A.b_c", "slot": "s"}
    assert validate_args("reflect.session", args) == args
