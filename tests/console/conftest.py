from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from memoryvault.tests.review.support import Bed

from .support import Front

if TYPE_CHECKING:  # the quick tests do without a browser
    from playwright.sync_api import Browser

    from .browser import Windows


@pytest.fixture
def front(bed: Bed) -> Iterator[Front]:
    """A browser that is signed in, without the browser."""
    with Front(bed.settings) as front:
        front.enter()
        yield front


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from .browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def windows(browser: Browser, bed: Bed) -> Iterator[Windows]:
    """Windows that complain at the end when a script failed, the policy was offended, or somebody else was asked."""
    from .browser import windows_on

    with windows_on(browser, bed.env) as windows:
        yield windows
