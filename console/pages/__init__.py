"""The pages in the order of the navigation. A new page is a module here with a PAGE, listed below."""

from __future__ import annotations

from ..context import Page
from . import entry, health, ideas, inbox, jobs, recall, review, search

PAGES: tuple[Page, ...] = (
    review.PAGE,
    inbox.PAGE,
    ideas.PAGE,
    search.PAGE,
    recall.PAGE,
    jobs.PAGE,
    health.PAGE,
    entry.PAGE,
)
