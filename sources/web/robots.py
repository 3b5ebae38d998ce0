"""What a site's robots.txt asks of us. For pages; an API that is published for programs is not asked."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

from .fetch import USER_AGENT, Fetcher, FetchFailed, FetchRefused

ROBOTS_PATH = "/robots.txt"


class Robots:
    """Asks each site once; kept for the life of the object."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, RobotFileParser | bool] = {}

    def allows(self, url: str) -> bool:
        """Whether our name may fetch it: all of a site without the file, nothing of one that fails (RFC 9309)."""
        parts = urlsplit(url)
        site = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        if site not in self._rules:
            self._rules[site] = self._read(site)
        rules = self._rules[site]
        return rules if isinstance(rules, bool) else rules.can_fetch(USER_AGENT, url)

    def _read(self, site: str) -> RobotFileParser | bool:
        try:
            page = self._fetcher.get(site + ROBOTS_PATH)
        except FetchRefused:
            return False
        except FetchFailed as error:
            return error.status is not None and 400 <= error.status < 500 and error.status != 429
        rules = RobotFileParser()
        rules.parse(page.text.splitlines())
        return rules
