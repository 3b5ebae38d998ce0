"""Find the items of an awesome-list or a README: names, addresses and descriptions.

It is read line by line, not as CommonMark: real lists are half HTML, with items after unclosed tags that a strict
parser takes for text (docs/adr/0019). An item is a line whose subject is a link: a list item, a table row, a heading or
a paragraph that begins with it. Links in prose, pictures, badges, tables of contents, sponsors and pages about the list
are no items. Takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urljoin, urlsplit

from .markdown_text import text_of_html, unescape
from .source_item import MAX_LISTED, SourceItem, source_item

MAX_LINE_CHARACTERS = 20_000
_LINKS_A_LINE = 200
_WORDS_OF_A_NAME = 8
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_BULLET = re.compile(r"[ \t>]*(?:[-*+•◦▪‣]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<rest>\S.*)")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<rest>\S.*)")
_DEFINITION = re.compile(r"[ \t]{0,3}\[(?P<label>[^\]\n]{1,200})\]:[ \t]*<?(?P<url>[^\s>]+)")
_HTML_ITEM = re.compile(r"<(?:li|td|dt|h[1-6])\b[^<>]{0,500}>", re.IGNORECASE)
_ANCHOR = re.compile(
    r"<a\s(?=(?P<head>[^<>]{0,1000}?href\s{0,4}=))(?P=head)\s{0,4}"
    r"[\"']?(?P<url>[^\"'<>\s]{1,2000})(?![^\"'<>\s])[^<>]{0,1000}>(?P<label>[^\n]{0,500}?)</a\s{0,4}>",
    re.IGNORECASE,
)
_AUTOLINK = re.compile(r"<(?P<angle>https?://[^\s<>]{1,2000})>|(?P<bare>https?://[^\s<>()\[\]\"'`|]{1,2000})")
_EMPTY_LINK = re.compile(r"\[\s{0,10}\]\([^()\s]{0,2000}\)")
_AFTER_LINK = re.compile(r"[\s*_`~]*(?:$|[-–—:|·•(]|by\b|<br|⭐|★)", re.IGNORECASE)
_SEPARATOR_END = re.compile(r"[-–—:|·→]\s*$")
_NAME_THEN_WORDS = re.compile(r"\s[-–—]\s|:\s|\s\|\s")
_TAG = re.compile(r"[`(\[][^`()\[\]]{1,40}[`)\]]|\b\d{4}-\d\d(?:-\d\d)?\b:?|\B@[\w-]{1,40}/")
_DELIMITERS = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?|[ \t]*\|[ \t]*:?-+:?[ \t]*")
_TAG_OVER_LINES = re.compile(r"<(?:a|li|td|dt)\b[^<>\n]{0,500}\n[^<>]{0,1000}>", re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h[1-6]\b", re.IGNORECASE)
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")

_PICTURES = (".png", ".svg", ".gif", ".jpg", ".jpeg", ".webp", ".ico", ".avif")
_BADGES = re.compile(
    r"(?:img\.)?shields\.io|badge\.fury\.io|awesome\.re|badgen\.net|contrib\.rocks"
    r"|star-history\.com|api\.star-history\.com|camo\.githubusercontent\.com"
    r"|visitor-badge\S*|deepwiki\.com|trendshift\.io"
)
_HOUSEKEEPING = re.compile(
    r"(?:license|licence|contributing|code[-_]of[-_]conduct|changelog|security|codeowners|"
    r"readme(?:[-_.][a-z]{2}(?:[-_][a-z]{2,4})?)?|pull_request_template)(?:\.(?:md|rst|txt))?",
    re.IGNORECASE,
)
_HOUSEKEEPING_PAGES = re.compile(
    r"/sponsors(?:/|$)"
    r"|^(?:/[^/]+){2}/(?:issues|pulls?|stargazers|network|graphs|actions|edit|compare|fork|discussions)(?:/|$)"
)
_PRIMARY = "github gitlab git repo repository source code link website site url homepage project"
PRIMARY = frozenset(_PRIMARY.split()) | frozenset(
    ["source code", "github repo", "github repository", "project page", "official website", "home page"]
)
"""Labels of a link to the item itself."""
_GENERIC = "here web docs documentation demo page blog readme view visit open details more npm pypi"
GENERIC = PRIMARY | frozenset(_GENERIC.split())
"""Labels that do not name the item."""
_REMARKS = (
    "author authors maintainer maintainers by owner license licence docs documentation demo video paper blog "
    "tutorial discord twitter x slack see note related source-of credit credits"
)
REMARKS = frozenset(_REMARKS.split()) | frozenset(
    ["see also", "related to", "created by", "made by", "inspired by", "based on"]
)
"""Words before a link that only adds to an item named elsewhere."""
_NAME_COLUMNS = (
    "name tool project skill skills server plugin package resource title library repository repo link url github "
    "website agent app command hook item extension framework"
)
NAME_COLUMNS = frozenset(_NAME_COLUMNS.split())
REMARK_COLUMNS = REMARKS | frozenset(["stars", "badges", "status", "language", "creator", "maintained-by"])

LICENCE_HOSTS = frozenset(["creativecommons.org", "choosealicense.com", "opensource.org"])

HOUSEKEEPING_SECTION = re.compile(
    r"(?:licen[cs]e|licensing|(?:table of )?contents|toc|contribut(?:ing|e|ors|ions?)|how to contribute|"
    r"code of conduct|star history|stargazers|sponsors?|our sponsors|backers)\W*",
    re.IGNORECASE,
)
"""Headings of sections about the list itself."""

_WITHIN = (
    "a an the this that these see at in on of via from to with for and or by read our your its is are use using "
    "like visit check check-out follow join"
)
_WITHIN_A_SENTENCE = frozenset(_WITHIN.split())


@dataclass(frozen=True)
class _Link:
    start: int
    end: int
    label: str
    url: str


def markdown_items(text: str, base: str) -> list[SourceItem]:
    """Return the items in order, each name at an address once. `base`: the list's own address."""
    text = _without_comments(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _TAG_OVER_LINES.sub(lambda tag: tag[0].replace("\n", " "), text)
    lines = [line[:MAX_LINE_CHARACTERS] for line in _outside_fences(text.split("\n"))]
    definitions = {
        match["label"].casefold(): match["url"] for line in lines if (match := _DEFINITION.match(line)) is not None
    }
    found: dict[tuple[str, str, str], SourceItem] = {}
    for item in _Reader(lines, definitions, base).items():
        found.setdefault((item.url, item.anchor, item.title.casefold()), item)
        if len(found) >= MAX_LISTED:
            break
    return list(found.values())


def _without_comments(text: str) -> str:
    """Remove `<!-- … -->`; one that is not closed removes the rest, as in a browser."""
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        parts.append(text[position:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(parts)
        position = end + 3
    return "".join([*parts, text[position:]])


def _outside_fences(lines: Sequence[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        opening = _FENCE.match(line)
        if fence:
            if opening is not None and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield ""
        elif opening is not None:
            fence = opening[1]
            yield ""
        else:
            yield line


class _Reader:
    def __init__(self, lines: Sequence[str], definitions: dict[str, str], base: str) -> None:
        self._lines = lines
        self._definitions = definitions
        self._base = base
        self._own = _own_repository(base)
        self._chapter, self._chapter_line = "", 0
        """Text and line of the last heading."""
        self._named: str | None = None
        """Address of the item that has the heading as its title, if there is one."""
        self._columns: list[str] | None = None
        """Headers of the present table; None outside of one."""

    def items(self) -> Iterator[SourceItem]:
        grid = housekeeping = False
        for number, line in enumerate(self._lines):
            if not line.strip() or _DEFINITION.match(line):
                self._columns = None
                continue
            if (title := self._heading_text(number)) is not None:
                housekeeping = HOUSEKEEPING_SECTION.fullmatch(_words(title)) is not None
                self._chapter, self._chapter_line, self._named = _words(title), number, None
                if not housekeeping:
                    yield from self._heading(number, title)
                continue
            if _HTML_HEADING.search(line):
                self._chapter, self._chapter_line, self._named = _words(line), number, None
                housekeeping = HOUSEKEEPING_SECTION.fullmatch(self._chapter) is not None
            if housekeeping:
                continue
            previous = self._lines[number - 1].strip() if number else ""
            if self._begins_table(number):
                self._columns = [_words(cell).casefold() for cell in _cells(line.strip())]
                # If the header is empty, or has a link in each cell, each cell is an item.
                grid = not any(self._columns) or all("](" in cell for cell in _cells(line.strip()))
                yield from self._row(line.strip(), grid=grid)
            elif line.lstrip().startswith("|") or (self._columns is not None and "|" in line):
                if self._columns is None and not previous.startswith("|"):
                    grid = not any(cell.strip() for cell in line.strip().strip("|").split("|"))
                yield from self._row(line.strip(), grid=grid)
            elif (bullet := _BULLET.match(line)) is not None:
                yield from self._first_item(bullet["rest"], strict=False)
            elif _HTML_ITEM.search(line):
                yield from self._html(line)
            elif not previous or _HTML_ITEM.search(previous) or previous.startswith("<"):
                yield from self._first_item(line.strip(), strict=True, after=number)

    def _heading_text(self, number: int) -> str | None:
        line = self._lines[number]
        heading = _HEADING.match(line)
        if heading is not None:
            return heading["rest"]
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        above = self._lines[number - 1] if number else ""
        if _UNDERLINE.fullmatch(below) and len(below.strip()) > 1 and not above.strip() and "|" not in line:
            return None if _BULLET.match(line) or _HTML_ITEM.search(line) else line.strip()
        return None

    def _begins_table(self, number: int) -> bool:
        """Whether the line is the header of a table, with a line of dashes below."""
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        return "|" in self._lines[number] and "-" in below and _DELIMITERS.fullmatch(below.strip()[:1000]) is not None

    def _html(self, line: str) -> Iterator[SourceItem]:
        """Yield each list item or cell that begins with a link, and the first one with words before its link."""
        found = False
        for part in _HTML_ITEM.split(line)[1:]:
            links = [link for link in self._links(part) if self._is_item(link.url)]
            if links and found and (_words(part[: links[0].start]) or _is_profile(links[0].url)):
                continue
            for item in self._first_item(part, strict=False):
                found = True
                yield item

    def _first_item(self, text: str, *, strict: bool, after: int | None = None) -> Iterator[SourceItem]:
        """Yield the item whose subject is the first link. `strict`: for a paragraph, which may be prose."""
        links = [link for link in self._links(text) if self._is_item(link.url)]
        if not links:
            return
        if len(links) > 1 and _words(text[: links[0].start]) and _is_profile(links[0].url):
            links = links[1:]  # **tool** by [@ann](…): … [Source](…)
        link = links[0]
        lead = _words(text[: link.start])
        title = _words(link.label)
        generic = not title or title.casefold() in GENERIC
        if not generic and not _words(_TAG.sub(" ", text[: link.start])):
            lead = ""  # Only a date, a language in parentheses, or an owner before the name.
        after_link = unescape(text[link.end : link.end + 200])
        if strict and not (_AFTER_LINK.match(after_link) or (generic and after_link.lstrip().startswith("["))):
            return
        if strict and lead:
            if not (generic and lead.rstrip(" :").casefold() in GENERIC):
                return
        elif lead:
            if lead.rstrip(" :").casefold() in REMARKS:
                return
            link = self._address_of(lead, links)
            lead = _words(self._without_links(text[: link.start]))
            title = _words(link.label)
            generic = not title or title.casefold() in GENERIC
            if not self._names_it(text[: link.start], lead, title):
                return
        if generic:
            title = _name_in(lead) or title
        url = self._absolute(link.url)
        description = _description(self._without_links(text[link.end :]))
        if self._named == url:
            return
        if (not title or title.casefold() in GENERIC) and self._chapter and not description:
            # `### tool` with `[Repository](…)` or `- Link: …` below: the first one is the tool, others add to it.
            if self._named is not None:
                return
            self._named, title, after = url, self._chapter, self._chapter_line
        if not description and after is not None:
            description = self._paragraph_after(after)
        yield source_item(url, title or link.url, description)

    @staticmethod
    def _address_of(lead: str, links: list[_Link]) -> _Link:
        """Return the link to the item of a line with its name in plain words, not one of its description."""
        if len(links) == 1 or not _NAME_THEN_WORDS.search(lead):
            return links[0]
        primary = (link for link in links if _words(link.label).casefold() in PRIMARY)
        bare = (link for link in links if not link.label)
        return next(primary, None) or next(bare, links[0])

    @staticmethod
    def _names_it(markup: str, lead: str, label: str) -> bool:
        """Whether the words before the link are the item's name, or its name and description before `[GitHub](…)`."""
        generic = not label or label.casefold() in GENERIC
        if not _SEPARATOR_END.search(lead) and not generic:
            return False
        if markup.lstrip().startswith(("**", "__", "`", "<b>", "<strong>")):
            return True
        if generic and _NAME_THEN_WORDS.search(lead):
            return len(_name_in(lead).split()) <= _WORDS_OF_A_NAME
        return len(lead.split()) <= _WORDS_OF_A_NAME and not _ends_within_a_sentence(lead)

    def _row(self, row: str, *, grid: bool) -> Iterator[SourceItem]:
        cells = [cell.strip() for cell in _cells(row)]
        if grid:
            for cell in cells:
                yield from self._first_item(cell, strict=False)
            return
        columns = self._columns or []
        linked: dict[int, list[_Link]] = {}
        for position, cell in enumerate(cells):
            links = [link for link in self._links(cell) if self._is_item(link.url)]
            if links and not (position < len(columns) and columns[position] in REMARK_COLUMNS):
                linked[position] = links
        if not linked:
            return
        named = [position for position in linked if position < len(columns) and columns[position] in NAME_COLUMNS]
        position = (named or list(linked))[0]
        cell, first = cells[position], linked[position][0]
        words = (_words(self._without_links(c)) for c in cells[:position])
        before = [c for c in words if any(x.isalpha() for x in c)]
        title = _words(first.label)
        # The name comes before its link. A link with another name further to the right only adds to the item.
        nameless = not title or title.casefold() in GENERIC
        if not (nameless or named or len(before) <= 1):
            return
        if nameless and before:
            title = before[0]
        elif nameless:
            title = _name_in(_words(cell[: first.start])) or title
        others = [c for c in before if c != title]
        rest = others + [_words(self._without_links(c)) for c in [cell[first.end :], *cells[position + 1 :]]]
        yield source_item(self._absolute(first.url), title or first.url, _description(" ".join(c for c in rest if c)))

    def _heading(self, number: int, text: str) -> Iterator[SourceItem]:
        links = [link for link in self._links(text) if self._is_item(link.url)]
        if not links:
            return
        lead = _words(_TAG.sub(" ", text[: links[0].start]))
        if self._names_it(text[: links[0].start], lead, _words(links[0].label)) or not any(map(str.isalpha, lead)):
            line = self._paragraph_after(number)
            yield source_item(self._absolute(links[0].url), _words(links[0].label) or links[0].url, line)

    def _paragraph_after(self, number: int) -> str:
        """Return the paragraph below a line as a description; '' if there is none."""
        taken: list[str] = []
        for line in self._lines[number + 1 : number + 12]:
            stripped = line.strip()
            if not stripped and not taken:
                continue
            if not stripped or _HEADING.match(line) or _BULLET.match(line) or stripped.startswith(("|", "<li", "<td")):
                break
            taken.append(stripped.lstrip("> "))
        return _description(self._without_links(" ".join(taken)))

    # Links

    def _links(self, text: str) -> list[_Link]:
        found = [*self._markdown_links(text)]
        taken = [(link.start, link.end) for link in found]

        def free(start: int, end: int) -> bool:
            return all(end <= a or start >= b for a, b in taken)

        for match in islice(_ANCHOR.finditer(text), _LINKS_A_LINE):
            if free(*match.span()):
                label = "" if "<img" in match["label"].lower() and not _words(match["label"]) else match["label"]
                if _words(label):
                    found.append(_Link(match.start(), match.end(), label, unescape(match["url"])))
                taken.append(match.span())
        for match in islice(_AUTOLINK.finditer(text), _LINKS_A_LINE):
            if free(*match.span()) and not _inside_tag(text, match.start()):
                url = (match["angle"] or match["bare"]).rstrip(".,;:!?*_")
                found.append(_Link(match.start(), match.end(), "", url))
        return sorted(found, key=lambda link: link.start)

    def _markdown_links(self, text: str) -> Iterator[_Link]:
        """Yield `[label](url "title")` and `[label][id]`, but not pictures and links with only a picture as label."""
        position = 0
        count = 0
        while (start := text.find("[", position)) >= 0 and count < _LINKS_A_LINE:
            count += 1
            close = _closing(text, start, "[", "]")
            if close < 0:
                return
            picture = start > 0 and text[start - 1] == "!"
            label = text[start + 1 : close]
            url, end = self._target(text, close + 1, label)
            if not url:
                position = start + 1
                continue
            if not picture and _words(_without_pictures(label)):
                yield _Link(start, end, _without_pictures(label), unescape(url))
            position = end

    def _target(self, text: str, at: int, label: str) -> tuple[str, int]:
        """Return (address, end of the link); ('', at) if the brackets are no link."""
        if text[at : at + 1] == "(":
            close = _closing(text, at, "(", ")")
            if close < 0:
                return "", at
            inner = text[at + 1 : close].strip()
            if inner.startswith("<"):
                return inner[1:].split(">", 1)[0].strip(), close + 1
            return (inner.split(None, 1)[0] if inner else ""), close + 1
        if text[at : at + 1] == "[":
            close = text.find("]", at, at + 210)
            if close > 0:
                name = text[at + 1 : close] or label
                return self._definitions.get(name.casefold(), ""), close + 1
        return self._definitions.get(label.casefold(), "") if self._definitions else "", at

    def _without_links(self, text: str) -> str:
        """Replace links by their labels."""
        parts: list[str] = []
        position = 0
        for link in self._links(text):
            parts += [text[position : link.start], link.label]
            position = link.end
        return "".join([*parts, text[position:]])

    # Addresses

    def _absolute(self, url: str) -> str:
        return urljoin(_folder_of(self._base), url)

    def _is_item(self, url: str) -> bool:
        """Whether an address may be that of an item: no badge, picture, licence, or page about the list."""
        if not url or url.startswith(("#", "?")) or len(url) > 2000:
            return False
        try:
            parts = urlsplit(self._absolute(url))
            host, path = (parts.hostname or "").lower(), parts.path
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not host or _BADGES.fullmatch(host):
            return False
        if host.removeprefix("www.") in LICENCE_HOSTS:
            return False
        if path.lower().endswith(_PICTURES) or (host.endswith("github.com") and _HOUSEKEEPING_PAGES.search(path)):
            return False
        own = _own_repository(self._absolute(url)) == self._own and self._own != ""
        if own:
            inside = _path_in_repository(path)
            return bool(inside) and not _HOUSEKEEPING.fullmatch(inside)
        return True


def _words(markup: str) -> str:
    """Return the words of a piece of markdown, without tags, pictures, emphasis and code marks."""
    text = _without_pictures(markup)
    if "<" in text or "&" in text:
        text = text_of_html(text)
    text = re.sub(r"[*`~\\]+|(?<!\w)_+|_+(?!\w)", " ", text)
    return " ".join(text.split()) if any(c.isalnum() for c in text) else ""


def _without_pictures(text: str) -> str:
    if "![" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (start := text.find("![", position)) >= 0:
        close = _closing(text, start + 1, "[", "]")
        if close < 0:
            break
        parts.append(text[position:start])
        position = close + 1
        if text[position : position + 1] in ("(", "["):
            pair = "()" if text[position] == "(" else "[]"
            end = _closing(text, position, *pair)
            position = end + 1 if end > 0 else position
    return _EMPTY_LINK.sub(" ", "".join([*parts, text[position:]]))


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    """Return the index of the bracket that closes the one at `start`; -1 if there is none within a link's length."""
    depth = 0
    for index in range(start, min(len(text), start + 4000)):
        character = text[index]
        if character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
            if depth == 0:
                return index
        if depth > 32:
            return -1
    return -1


def _cells(row: str) -> list[str]:
    """Split a table's row into cells; `\\|` is a character."""
    return [cell.replace("\0", "|") for cell in row.replace("\\|", "\0").strip("|").split("|")]


def _name_in(lead: str) -> str:
    return re.split(r"\s\(?by\s+@", _NAME_THEN_WORDS.split(lead, maxsplit=1)[0], maxsplit=1)[0].strip(" -–—:|·→([,")


def _ends_within_a_sentence(words: str) -> bool:
    """Whether the words before a link end in one that a name does not end in, so that they are prose."""
    last = words.casefold().split()[-1:] or [""]
    return last[0] in _WITHIN_A_SENTENCE


def _description(text: str) -> str:
    return _words(text).strip(" -–—:|·•*").strip()


def _is_profile(url: str) -> bool:
    """Whether an address is a profile page at GitHub, such as that of an item's author."""
    parts = urlsplit(url)
    return (parts.hostname or "").lower().removeprefix("www.") == "github.com" and "/" not in parts.path.strip("/")


def _inside_tag(text: str, position: int) -> bool:
    return text.rfind("<", max(0, position - 300), position) > text.rfind(">", max(0, position - 300), position)


def _folder_of(base: str) -> str:
    """Return the base of the list's relative links; for a raw file of GitHub its page in the repository."""
    parts = urlsplit(base)
    segments = parts.path.strip("/").split("/")
    if (parts.hostname or "").lower() == "raw.githubusercontent.com" and len(segments) >= 4:
        rest = segments[4:] if segments[2:4] == ["refs", "heads"] else segments[2:]
        return f"https://github.com/{segments[0]}/{segments[1]}/blob/{'/'.join(rest)}"
    if (parts.hostname or "").lower().removeprefix("www.") == "github.com" and len(segments) == 2:
        return f"https://github.com/{segments[0]}/{segments[1]}/blob/HEAD/README.md"
    return base


def _own_repository(url: str) -> str:
    """Return `owner/name` of an address on GitHub, in lower case; else ''."""
    parts = urlsplit(url)
    segments = [segment for segment in parts.path.lower().split("/") if segment]
    if (parts.hostname or "").lower() in ("raw.githubusercontent.com", "github.com", "www.github.com") and segments[1:]:
        return f"{segments[0]}/{segments[1].removesuffix('.git')}"
    return ""


def _path_in_repository(path: str) -> str:
    segments = [segment for segment in path.split("/") if segment][2:]
    if segments[:1] and segments[0] in ("blob", "tree", "raw", "edit"):
        segments = segments[2:]
    return "/".join(segments)
