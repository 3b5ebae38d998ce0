from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoryvault.tests.support import forked, loopback_site
from memoryvault.tests.support.loopback_site import Site

from .bed import Bed, make_bed


@pytest.fixture
def site() -> Iterator[Site]:
    with loopback_site.site() as running:
        yield running


@pytest.fixture
def bed(tmp_path: Path, site: Site) -> Bed:
    return make_bed(tmp_path, site)


@pytest.fixture
def run_worker() -> Callable[[Bed], None]:
    """Run all that is due, in a real worker."""

    def run(bed: Bed) -> None:
        done = forked.memory(bed.env, "service", "worker", "--until-idle")
        assert done.returncode == 0, done.stderr

    return run
