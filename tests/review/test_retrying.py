"""Change a file that a person saves at the same time."""

from __future__ import annotations

import pytest

from memoryvault.runtime.errors import EditConflict
from memoryvault.services.retrying import ATTEMPTS, retry_edit


class Saved:
    """A file that is saved by somebody else before each of the first attempts."""

    def __init__(self, times: int) -> None:
        self.left, self.attempts = times, 0

    def change(self) -> str:
        self.attempts += 1
        if self.left:
            self.left -= 1
            raise EditConflict("it was saved meanwhile")
        return "changed"


def test_edit_is_retried_if_the_note_was_saved_meanwhile() -> None:
    assert retry_edit(Saved(ATTEMPTS - 1).change) == "changed"


def test_note_that_is_saved_again_and_again_is_left_to_its_writer() -> None:
    saved = Saved(100)
    with pytest.raises(EditConflict, match="saved meanwhile"):
        retry_edit(saved.change)
    assert saved.attempts == ATTEMPTS


def test_edit_of_what_the_user_saw_is_not_retried() -> None:
    saved = Saved(1)
    with pytest.raises(EditConflict):
        retry_edit(saved.change, again=False)
    assert saved.attempts == 1
