import pytest

from .support import Bed


@pytest.fixture
def ask(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """The bed as the vault for commands in this process."""
    bed.enter(monkeypatch)
    return bed
