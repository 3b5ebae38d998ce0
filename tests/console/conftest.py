from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from memoryvault.tests.review.support import Bed

from .support import Front

if TYPE_CHECKING:  # the quick tests do without a browser
    from playwright.sync_api import Browser

    from .browser import ConsoleProcess, Windows


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
def console(bed: Bed) -> Iterator[ConsoleProcess]:
    """`memory console` of the bed, as a process of its own."""
    from .browser import ConsoleProcess

    console = ConsoleProcess(bed.env)
    yield console
    assert console.stop() == 0


@pytest.fixture
def windows(browser: Browser, console: ConsoleProcess) -> Iterator[Windows]:
    """Windows that complain at the end when a script failed, the policy was offended, or somebody else was asked."""
    from .browser import Windows

    windows = Windows(browser, console)
    yield windows
    windows.close()
    windows.check()
