from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tests.support import loopback_site
from memoryvault.tests.support.loopback_site import Site

from .bed import Bed, make_bed


@pytest.fixture
def site() -> Iterator[Site]:
    with loopback_site.site() as running:
        yield running


@pytest.fixture
def bed(tmp_path: Path, site: Site) -> Bed:
    return make_bed(tmp_path, site)
