from pathlib import Path

import pytest

from memoryvault.tests.review.support import Bed, make_bed
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.tasks.test_model_mining import model

__all__ = ["model"]


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, MEMORY_REFLECTION_CORPUS_REVIEW_ENTRIES="2")


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    return ForkedSandbox(tmp_path, {"MEMORY_TEST_LEASE_SECONDS": "2"})
