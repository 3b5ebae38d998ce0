"""Recognise addresses that lead to the same thing. Pure.

Lists change how they link to an item: http for https, a trailing slash, `.git`, `?utm_source=`, `#readme`,
`blob/master` for `tree/main`. The item stays the same. A renamed repository looks like a new one.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

MAX_URL_CHARACTERS = 2000

_TRACKING = re.compile(
    r"utm_\w+|mc_[ce]id|fbclid|gclid|dclid|msclkid|yclid|igshid|twclid|ref|ref_\w+|referrer|"
    r"source|si|spm|_hs\w+|mkt_tok|trk|tab|readme-ov-file"
)
_FORGES = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
_MAIN_BRANCHES = frozenset({"main", "master", "head", "trunk", "default"})
_FILES_OF_A_FOLDER = frozenset({"readme.md", "readme.rst", "readme", "skill.md", "index.md"})
_INDEX_PAGES = frozenset({"index.html", "index.htm", "index.php"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical_url(url: str) -> str | None:
    """Return an address in a canonical spelling for comparison, not for opening; None if it is no web address.

    Removed are the scheme, `www.`, fragment, tracking parameters and trailing slash, `.git`, the name of a main branch,
    and a folder's README or SKILL.md. All is in lower case: addresses of one list that differ only in case are the same
    page in practice.
    """
    if len(url) > MAX_URL_CHARACTERS:
        return None
    try:
        parts = urlsplit(url.strip())
        host, port = _host(parts.hostname or ""), parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    if port is not None and port != _DEFAULT_PORTS[parts.scheme.lower()]:
        host = f"{host}:{port}"
    path = [_segment(segment) for segment in parts.path.split("/") if segment not in ("", ".")]
    fragment = parts.fragment
    query = _query(parts.query)
    if host == "raw.githubusercontent.com" and len(path) >= 3:
        rest = path[4:] if path[2:4] == ["refs", "heads"] else path[2:]
        host, path = "github.com", [*path[:2], "blob", *rest]
    if host == "gist.github.com":
        path, query = path[:2], ""
    elif host in _FORGES:
        path, query = _repository_path(path), ""
    elif path and path[-1] in _INDEX_PAGES:
        path = path[:-1]
    route = fragment if fragment.startswith(("/", "!")) else ""  # of a page that only its fragment identifies
    return "/".join([host, *path]) + (f"?{query}" if query else "") + (f"#{route.casefold()}" if route else "")


def repository_of(url: str) -> tuple[str, str] | None:
    """Return (owner, name), in lower case, of the GitHub repository of an address; None for any other address."""
    canonical = canonical_url(url)
    if canonical is None or not canonical.startswith("github.com/"):
        return None
    parts = canonical.split("/")
    if len(parts) < 3 or parts[1] in _NOT_OWNERS or not all(_GITHUB_NAME.fullmatch(part) for part in parts[1:3]):
        return None
    return parts[1], parts[2]


_GITHUB_NAME = re.compile(r"[a-z0-9_.-]{1,100}")
_NOT_OWNERS = frozenset(
    {"topics", "sponsors", "orgs", "features", "apps", "marketplace", "search", "settings", "login", "about", "users"}
)


def _host(host: str) -> str:
    host = host.rstrip(".").casefold()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise ValueError("no host name") from error
    return host.removeprefix("www.")


def _segment(segment: str) -> str:
    """Return a path segment in lower case with canonical escapes."""
    return quote(unquote(segment).casefold(), safe="~!$&'()*+,;=:@-._")


def _query(query: str) -> str:
    if not query:
        return ""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=200)
    kept = sorted(
        (name.casefold(), value.casefold()) for name, value in pairs if not _TRACKING.fullmatch(name.casefold())
    )
    return urlencode(kept)


def _repository_path(path: list[str]) -> list[str]:
    """Shorten `owner/name/tree/main/docs/README.md` to `owner/name/docs`; other branches stay."""
    if len(path) < 2:
        return path
    owner, name, *rest = path
    name = name.removesuffix(".git")
    if rest[:1] == ["-"]:  # GitLab
        rest = rest[1:]
    if rest[:1] in (["src"], ["tree"], ["blob"], ["raw"]):
        rest = rest[1:]
        if rest[:1] == ["branch"]:  # Codeberg
            rest = rest[1:]
        if rest[:1] and rest[0] in _MAIN_BRANCHES:
            rest = rest[1:]
        elif rest:
            rest = [f"@{rest[0]}", *rest[1:]]
    if rest and rest[-1] in _FILES_OF_A_FOLDER:
        rest = rest[:-1]
    return [owner, name, *rest]
