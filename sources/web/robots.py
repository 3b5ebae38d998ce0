"""What a site's robots.txt asks of us. For pages; an API that is published for programs is not asked."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

from .fetch import USER_AGENT, Fetcher, FetchFailed

ROBOTS_PATH = "/robots.txt"


class Robots:
    """Asks each site once; kept for the life of the object."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, RobotFileParser | str] = {}
        """By site: its rules, or why nothing of it may be fetched; '' where everything may."""

    def refusal(self, url: str) -> str:
        """Why our name may not fetch it; '' if it may: all of a site without the file, nothing of one that fails
        (RFC 9309).

        Raises FetchRefused; FetchFailed where nobody answered at all.
        """
        parts = urlsplit(url)
        site = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        if site not in self._rules:
            self._rules[site] = self._read(site)
        rules = self._rules[site]
        if isinstance(rules, str):
            return rules
        return "" if rules.can_fetch(USER_AGENT, url) else "its robots.txt asks us not to read it"

    def _read(self, site: str) -> RobotFileParser | str:
        try:
            page = self._fetcher.get(site + ROBOTS_PATH)
        except FetchFailed as error:
            if error.status is None:
                raise
            is_open = 400 <= error.status < 500 and error.status != 429
            return "" if is_open else f"its robots.txt cannot be read (status {error.status})"
        rules = RobotFileParser()
        rules.parse(page.text.splitlines())
        return rules
