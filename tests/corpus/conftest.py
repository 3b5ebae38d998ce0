from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.tests.review.support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, MEMORY_REFLECTION_CORPUS_REVIEW_ENTRIES="2")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path, {"MEMORY_QUEUE_LEASE_SECONDS": "2"})
