"""What is said of "this" project: said in another one, it is another statement. Pure."""

from __future__ import annotations

import re

_THIS_PROJECT = re.compile(
    r"\b(?:this|our)\s+(?:repo(?:sitory)?|monorepo|project|code\s?base|package|workspace|module|service|app)\b|\bhere\b",
    re.IGNORECASE,
)


def speaks_of_this_project(statement: str) -> bool:
    """Does it speak of the project in which it is said, without naming it?"""
    return _THIS_PROJECT.search(statement) is not None


def of_two_projects(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    """Do two statements in like words speak of two projects? Each with its project's slug, None where it has none.

    "In this repo, never squash." said in two of them is a rule of each, and no rule for a third.
    """
    return one[1] != other[1] and any(
        project is not None and speaks_of_this_project(statement) for statement, project in (one, other)
    )
