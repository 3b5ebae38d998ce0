"""The pages, in the order of the navigation. A new one is a module here with a PAGE, named below."""

from __future__ import annotations

from ..page import Page
from . import health, jobs, recall, review, search, sessions

PAGES: tuple[Page, ...] = (
    review.PAGE,
    search.PAGE,
    recall.PAGE,
    sessions.PAGE,
    jobs.PAGE,
    health.PAGE,
)
