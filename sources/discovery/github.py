"""Make addresses for GitHub's public API, and read its answers. Requests are made elsewhere."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from ...runtime.json_text import parse_json
from .source_item import MAX_LISTED, SourceItem, source_item

SEARCH_PAGE = 100
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class AnswerInvalid(Exception):
    """The bytes are no answer of GitHub's API."""


def _segments(url: str) -> list[str]:
    """Return the parts of the path of a page on GitHub; none for any other address."""
    parts = urlsplit(url)
    is_github = (parts.hostname or "").lower().removeprefix("www.") == "github.com"
    return [segment for segment in parts.path.split("/") if segment] if is_github else []


def raw_address(url: str) -> str:
    """Return the address of the raw markdown of a page on GitHub; any other address is returned unchanged."""
    segments = _segments(url)
    raw = "https://raw.githubusercontent.com"
    if len(segments) == 2:
        return f"{raw}/{segments[0]}/{segments[1].removesuffix('.git')}/HEAD/README.md"
    if len(segments) >= 5 and segments[2] in ("blob", "raw"):
        return "/".join([raw, *segments[:2], *segments[3:]])
    if len(segments) >= 4 and segments[2] == "tree":
        return "/".join([raw, *segments[:2], *segments[3:], "README.md"])
    return url


def text_address(url: str) -> str | None:
    """Return the address of a pattern's text on GitHub: a folder's SKILL.md or a repository's README; else None."""
    segments = _segments(url)
    if len(segments) < 2:
        return None
    if len(segments) >= 5 and segments[2] == "tree":
        return "/".join(["https://raw.githubusercontent.com", *segments[:2], *segments[3:], "SKILL.md"])
    raw = raw_address(f"https://github.com/{'/'.join(segments)}")
    return raw if raw.startswith("https://raw.") else None


def search_address(api: str, topic: str, since: date) -> str:
    """Return the address of a search for repositories with a topic, created since a day, the most starred first."""
    query = urlencode(
        {"q": f"topic:{topic} created:>={since.isoformat()}", "sort": "stars", "order": "desc", "per_page": SEARCH_PAGE}
    )
    return f"{api}/search/repositories?{query}"


def repository_address(api: str, owner: str, name: str) -> str:
    """Return the address of a repository's facts."""
    return f"{api}/repos/{quote(owner)}/{quote(name)}"


def tree_address(api: str, url: str) -> str | None:
    """Return the address of all paths of the repository of a page on GitHub; None for any other page."""
    segments = _segments(url)
    if len(segments) < 2:
        return None
    branch = segments[3] if len(segments) >= 4 and segments[2] in ("tree", "blob") else "HEAD"
    return f"{api}/repos/{quote(segments[0])}/{quote(segments[1])}/git/trees/{quote(branch)}?recursive=1"


def search_items(body: bytes) -> list[SourceItem]:
    """Return the repositories of a search. Raises AnswerInvalid."""
    items = _object(body).get("items")
    if not isinstance(items, list):
        raise AnswerInvalid("a search without items")
    found = []
    for item in items[:MAX_LISTED]:
        name = _repository_name(item)
        if name is not None:
            topics = item.get("topics")
            about = ", ".join(str(topic) for topic in topics[:12]) if isinstance(topics, list) else ""
            description = str(item.get("description") or "")
            found.append(
                source_item(
                    f"https://github.com/{name}", name.split("/")[1], f"{description} {f'({about})' if about else ''}"
                )
            )
    return found


def tree_items(body: bytes, url: str) -> list[SourceItem]:
    """Return an item for every SKILL.md below the folder of the page `url`. Raises AnswerInvalid."""
    tree = _object(body).get("tree")
    if not isinstance(tree, list):
        raise AnswerInvalid("a tree without paths")
    segments = _segments(url)
    branch = segments[3] if len(segments) >= 4 else "HEAD"
    below = unquote("/".join([*segments[4:], ""]))
    found = []
    for node in tree[: MAX_LISTED * 5]:
        path = node.get("path") if isinstance(node, dict) else None
        if not isinstance(path, str) or path.rsplit("/", 1)[-1] != "SKILL.md" or not path.startswith(below):
            continue
        folder = path.rpartition("/")[0]
        name = folder.rsplit("/", 1)[-1] or segments[1]
        address = f"https://github.com/{segments[0]}/{segments[1]}/tree/{branch}/{quote(folder)}"
        found.append(source_item(address, name))
    return found[:MAX_LISTED]


def repository_facts(body: bytes) -> dict[str, Any]:
    """Read the fields of `adaptation.Facts`, the day in ISO form; None for unknown. Raises AnswerInvalid."""
    value = _object(body)
    name = _repository_name(value)
    if name is None:
        raise AnswerInvalid("no repository")
    stars, licence = value.get("stargazers_count"), value.get("license")
    spdx = licence.get("spdx_id") if isinstance(licence, dict) else None
    owner, _, repository = name.partition("/")
    is_licence = isinstance(spdx, str) and re.fullmatch(r"[A-Za-z0-9.+-]{1,40}", spdx) and spdx != "NOASSERTION"
    return {
        "owner": owner,
        "name": repository,
        "stars": stars if isinstance(stars, int) and not isinstance(stars, bool) and stars >= 0 else None,
        "pushed": _day(value.get("pushed_at")),
        "licence": spdx if is_licence else None,
        "archived": value.get("archived") is True,
    }


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = parse_json(body.decode("utf-8", "replace"))
    except ValueError as error:
        raise AnswerInvalid("no JSON") from error
    if not isinstance(value, dict):
        raise AnswerInvalid("no JSON object")
    return value


def _repository_name(item: object) -> str | None:
    name = item.get("full_name") if isinstance(item, dict) else None
    owner, _, repository = name.partition("/") if isinstance(name, str) else ("", "", "")
    return f"{owner}/{repository}" if _OWNER.fullmatch(owner) and _NAME.fullmatch(repository) else None


def _day(value: object) -> str | None:
    try:
        return datetime.fromisoformat(str(value)).date().isoformat()
    except ValueError:
        return None
