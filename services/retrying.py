"""A file that a person saves in the very moment in which it is to be changed: look at it again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ..runtime.errors import EditConflict

ATTEMPTS = 3
T = TypeVar("T")


def retry_edit(change: Callable[[], T], *, again: bool = True) -> T:
    """What `change` returns, which reads the file anew each time; EditConflict when it raises that at every attempt.

    `again` False: one attempt, where what the user saw must be what is changed.
    """
    for _ in range(ATTEMPTS - 1 if again else 0):
        with suppress(EditConflict):
            return change()
    return change()
