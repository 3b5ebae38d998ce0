"""What the words of lists mean: labels that name nothing, columns, sections about the list itself."""

from __future__ import annotations

import re

PRIMARY = frozenset(
    [
        "github",
        "gitlab",
        "git",
        "repo",
        "repository",
        "source",
        "code",
        "link",
        "website",
        "site",
        "url",
        "homepage",
        "project",
    ]
) | frozenset(["source code", "github repo", "github repository", "project page", "official website", "home page"])
"""Labels of the link that leads to the thing itself."""

GENERIC = PRIMARY | frozenset(
    [
        "here",
        "web",
        "docs",
        "documentation",
        "demo",
        "page",
        "blog",
        "readme",
        "view",
        "visit",
        "open",
        "details",
        "more",
        "npm",
        "pypi",
    ]
)
"""Labels that say nothing of what they lead to."""

REMARKS = frozenset(
    [
        "author",
        "authors",
        "maintainer",
        "maintainers",
        "by",
        "owner",
        "license",
        "licence",
        "docs",
        "documentation",
        "demo",
        "video",
        "paper",
        "blog",
        "tutorial",
        "discord",
        "twitter",
        "x",
        "slack",
        "see",
        "note",
        "related",
        "source-of",
        "credit",
        "credits",
    ]
) | frozenset(["see also", "related to", "created by", "made by", "inspired by", "based on"])
"""What stands before a link that belongs to an item named elsewhere."""

NAME_COLUMNS = frozenset(
    [
        "name",
        "tool",
        "project",
        "skill",
        "skills",
        "server",
        "plugin",
        "package",
        "resource",
        "title",
        "library",
        "repository",
        "repo",
        "link",
        "url",
        "github",
        "website",
        "agent",
        "app",
        "command",
        "hook",
        "item",
        "extension",
        "framework",
    ]
)
REMARK_COLUMNS = REMARKS | frozenset(["stars", "badges", "status", "language", "creator", "maintained-by"])

LICENCE_HOSTS = frozenset(["creativecommons.org", "choosealicense.com", "opensource.org"])

HOUSEKEEPING_SECTION = re.compile(
    r"(?:licen[cs]e|licensing|(?:table of )?contents|toc|contribut(?:ing|e|ors|ions?)|how to contribute|"
    r"code of conduct|star history|stargazers|sponsors?|our sponsors|backers)\W*",
    re.IGNORECASE,
)
"""Headings of sections that are about the list."""

_WITHIN_A_SENTENCE = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "see",
        "at",
        "in",
        "on",
        "of",
        "via",
        "from",
        "to",
        "with",
        "for",
        "and",
        "or",
        "by",
        "read",
        "our",
        "your",
        "its",
        "is",
        "are",
        "use",
        "using",
        "like",
        "visit",
        "check",
        "check-out",
        "follow",
        "join",
    ]
)


def ends_within_a_sentence(words: str) -> bool:
    """Whether plain words before a link read on into it, as prose does and a name does not."""
    last = words.casefold().split()[-1:] or [""]
    return last[0] in _WITHIN_A_SENTENCE
