"""Find the items of an awesome-list or a README: names, addresses and descriptions.

It is read line by line, not as CommonMark: real lists are half HTML, with items after unclosed tags that a strict
parser takes for text (docs/adr/0019). An item is a line whose subject is a link: a list item, a table row, a heading or
a paragraph that begins with it. Links in prose, pictures, badges, tables of contents, sponsors and pages about the list
are no items. Takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import islice
from urllib.parse import urljoin, urlsplit

from ...vault.note_text import unfenced
from .markdown_text import text_of_html
from .source_item import MAX_LISTED, SourceItem, source_item

MAX_LINE_CHARACTERS = 20_000
_LINKS_A_LINE = 200
_WORDS_OF_A_NAME = 8
_BULLET = re.compile(r"[ \t>]*(?:[-*+•◦▪‣]|\d{1,6}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<rest>\S.*)")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<rest>\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_HTML_HEADING = re.compile(r"<h[1-6]\b", re.IGNORECASE)
_HTML_ITEM = re.compile(r"<(?:li|td|dt|h[1-6])\b[^<>]{0,500}>", re.IGNORECASE)
_TAG_OVER_LINES = re.compile(r"<(?:a|li|td|dt)\b[^<>\n]{0,500}\n[^<>]{0,1000}>", re.IGNORECASE)
_TABLE_DASHES = re.compile(r"[ \t|:-]{0,1000}")
_DEFINITION = re.compile(r"[ \t]{0,3}\[(?P<label>[^\]\n]{1,200})\]:[ \t]*<?(?P<url>[^\s>]+)")
_ANCHOR = re.compile(
    r"<a\s(?=(?P<head>[^<>]{0,1000}?href\s{0,4}=))(?P=head)\s{0,4}"
    r"[\"']?(?P<url>[^\"'<>\s]{1,2000})(?![^\"'<>\s])[^<>]{0,1000}>(?P<label>[^\n]{0,500}?)</a\s{0,4}>",
    re.IGNORECASE,
)
_TARGET = r"\([ \t]{0,9}<?(?P<url>[^\s()<>]{0,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500})?)>?[^()\n]{0,300}\)"
_PICTURE = re.compile(
    r"!\[[^\[\]\n]{0,500}\](?:" + _TARGET.replace("?P<url>", "?:") + r"|\[[^\[\]\n]{0,200}\])?|<img\b[^<>]{0,1000}>",
    re.I,
)
_LINK = re.compile(
    r"\[(?P<label>[^\[\]\n]{0,500}(?:\[[^\[\]\n]{0,200}\](?!\()[^\[\]\n]{0,300})?)\]"
    rf"(?:{_TARGET}|\[(?P<ref>[^\[\]\n]{{0,200}})\])?"
    r"|<?(?P<bare>https?://[^\s<>()\[\]\"'`|]{1,2000})>?"
)
_AFTER_LINK = re.compile(r"[\s*_`~]*(?:$|[-–—:|·•(]|by\b|<br|⭐|★)", re.IGNORECASE)
_SEPARATOR_END = re.compile(r"[-–—:|·→]\s*$")
_NAME_THEN_WORDS = re.compile(r"\s[-–—]\s|:\s|\s\|\s")
_TAG = re.compile(r"[`(\[][^`()\[\]]{1,40}[`)\]]|\b\d{4}-\d\d(?:-\d\d)?\b:?|\B@[\w-]{1,40}/")
"""A date, a language in parentheses, or an owner before the name."""

_PICTURES = (".png", ".svg", ".gif", ".jpg", ".jpeg", ".webp", ".ico", ".avif")
_NO_ITEMS_AT = re.compile(
    r"(?:img\.)?shields\.io|badge\.fury\.io|awesome\.re|badgen\.net|contrib\.rocks"
    r"|star-history\.com|api\.star-history\.com|camo\.githubusercontent\.com"
    r"|visitor-badge\S*|deepwiki\.com|trendshift\.io"
    r"|(?:www\.)?(?:creativecommons|choosealicense|opensource)\.(?:org|com)"
)
"""Hosts of badges and licences."""
_HOUSEKEEPING = re.compile(
    r"(?:license|licence|contributing|code[-_]of[-_]conduct|changelog|security|codeowners|"
    r"readme(?:[-_.][a-z]{2}(?:[-_][a-z]{2,4})?)?|pull_request_template)(?:\.(?:md|rst|txt))?",
    re.IGNORECASE,
)
_HOUSEKEEPING_PAGES = re.compile(
    r"/sponsors(?:/|$)"
    r"|^(?:/[^/]+){2}/(?:issues|pulls?|stargazers|network|graphs|actions|edit|compare|fork|discussions)(?:/|$)"
)
_HOUSEKEEPING_SECTION = re.compile(
    r"(?:licen[cs]e|licensing|(?:table of )?contents|toc|contribut(?:ing|e|ors|ions?)|how to contribute|"
    r"code of conduct|star history|stargazers|sponsors?|our sponsors|backers)\W*",
    re.IGNORECASE,
)
"""Headings of sections about the list itself."""
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
_WITHIN = (
    "a an the this that these see at in on of via from to with for and or by read our your its is are use using "
    "like visit check check-out follow join"
)
_WITHIN_A_SENTENCE = frozenset(_WITHIN.split())
"""Words in which a name does not end, so that what they end is prose."""


@dataclass(frozen=True)
class _Link:
    start: int
    end: int
    label: str
    """Its words; '' for an address alone."""
    url: str

    @property
    def is_generic(self) -> bool:
        return not self.label or self.label.casefold() in GENERIC


def markdown_items(text: str, base: str) -> list[SourceItem]:
    """Return the items in order, each name at an address once. `base`: the list's own address."""
    text = _without_comments(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _TAG_OVER_LINES.sub(lambda tag: tag[0].replace("\n", " "), text)
    rows = text.split("\n")
    lines = [""] * len(rows)
    for number, line in unfenced(rows):
        lines[number] = _with_plain_links(line[:MAX_LINE_CHARACTERS])
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
    first, *others = text.split("<!--")
    parts = [first]
    for each in others:
        _, closed, after = each.partition("-->")
        if not closed:
            break
        parts.append(after)
    return "".join(parts)


def _with_plain_links(line: str) -> str:
    """Remove pictures from a line, and write its links in HTML as markdown."""
    line = _PICTURE.sub("", line)
    return _ANCHOR.sub(lambda anchor: f"[{_words(anchor['label'])}](<{unescape(anchor['url'])}>)", line)


class _Reader:
    def __init__(self, lines: Sequence[str], definitions: Mapping[str, str], base: str) -> None:
        self._lines = lines
        self._definitions = definitions
        self._base = _folder_of(base)
        self._own = _own_repository(base)
        self._chapter, self._chapter_line = "", 0
        """Text and line of the last heading."""
        self._named: str | None = None
        """Address of the item that has the heading as its title, if there is one."""

    def items(self) -> Iterator[SourceItem]:
        is_table = housekeeping = False
        for number, line in enumerate(self._lines):
            if not line.strip() or _DEFINITION.match(line):
                is_table = False
                continue
            title = self._heading_text(number)
            if title is not None or _HTML_HEADING.search(line):
                self._chapter, self._chapter_line, self._named = _words(title or line), number, None
                housekeeping = _HOUSEKEEPING_SECTION.fullmatch(self._chapter) is not None
            if housekeeping:
                continue
            previous = self._lines[number - 1].strip() if number else ""
            is_table = is_table or ("|" in line and self._has_dashes_below(number))
            if title is not None:
                yield from self._heading(number, title)
            elif line.lstrip().startswith("|") or (is_table and "|" in line):
                yield from self._row(line.strip())
            elif (bullet := _BULLET.match(line)) is not None:
                yield from self._first_item(bullet["rest"])
            elif _HTML_ITEM.search(line):
                yield from self._html(line)
            elif not previous or _HTML_ITEM.search(previous) or previous.startswith("<"):
                yield from self._first_item(line.strip(), paragraph=number)

    def _heading_text(self, number: int) -> str | None:
        line = self._lines[number]
        if (heading := _HEADING.match(line)) is not None:
            return heading["rest"]
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        above = self._lines[number - 1] if number else ""
        if _UNDERLINE.fullmatch(below) and len(below.strip()) > 1 and not above.strip() and "|" not in line:
            return None if _BULLET.match(line) or _HTML_ITEM.search(line) else line.strip()
        return None

    def _has_dashes_below(self, number: int) -> bool:
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        return "-" in below and "|" in below and _TABLE_DASHES.fullmatch(below) is not None

    def _html(self, line: str) -> Iterator[SourceItem]:
        """Yield each list item or cell that begins with a link, and the first one with words before its link."""
        found = False
        for part in _HTML_ITEM.split(line)[1:]:
            links = self._links(part)
            if links and found and (_words(part[: links[0].start]) or _is_profile(links[0].url)):
                continue
            for item in self._first_item(part):
                found = True
                yield item

    def _first_item(self, text: str, paragraph: int | None = None) -> Iterator[SourceItem]:
        """Yield the item whose subject is the first link. `paragraph`: number of its line, which may be prose."""
        links = self._links(text)
        if len(links) > 1 and _words(text[: links[0].start]) and _is_profile(links[0].url):
            links = links[1:]  # **tool** by [@ann](…): … [Source](…)
        if not links:
            return
        link = links[0]
        lead = _words(text[: link.start])
        if paragraph is not None:
            after = unescape(text[link.end : link.end + 200])
            if not (_AFTER_LINK.match(after) or (link.is_generic and after.lstrip().startswith("["))):
                return
            if lead and not (link.is_generic and lead.rstrip(" :").casefold() in GENERIC):
                return
        elif lead and (link.is_generic or _words(_TAG.sub(" ", text[: link.start]))):
            if lead.rstrip(" :").casefold() in REMARKS:
                return
            link = _address_of(lead, links)
            lead = _words(self._without_links(text[: link.start]))
            if not _names_it(text[: link.start], lead, link):
                return
        else:
            lead = ""
        url, after_line = link.url, paragraph
        title = (_name_in(lead) or link.label) if link.is_generic else link.label
        description = _description(self._without_links(text[link.end :]))
        if self._named == url:
            return
        if (not title or title.casefold() in GENERIC) and self._chapter and not description:
            # `### tool` with `[Repository](…)` or `- Link: …` below: the first one is the tool, others add to it.
            if self._named is not None:
                return
            self._named, title, after_line = url, self._chapter, self._chapter_line
        if not description and after_line is not None:
            description = self._paragraph_after(after_line)
        yield source_item(url, title or url, description)

    def _row(self, row: str) -> Iterator[SourceItem]:
        """Yield the item of a table's row, or one for each cell where all cells begin with links."""
        cells = [cell.replace("\0", "|").strip() for cell in row.replace("\\|", "\0").strip("|").split("|")]
        links = [self._links(cell) for cell in cells]
        begin = [
            bool(one) and not one[0].is_generic and not _words(cell[: one[0].start])
            for cell, one in zip(cells, links, strict=True)
        ]
        if (
            sum(begin) > 1
            and all(begun or not cell for begun, cell in zip(begin, cells, strict=True))
            and not any(_is_profile(one[0].url) for one in links if one)
        ):
            for cell in cells:
                yield from self._first_item(cell)
            return
        linked = [at for at, one in enumerate(links) if one]
        linked = [at for at in linked if not _is_profile(links[at][0].url)] or linked
        if not linked:
            return
        at = linked[0]
        link, cell = links[at][0], cells[at]
        words = (_words(self._without_links(one)) for one in cells[:at])
        before = [one for one in words if any(map(str.isalpha, one))]
        if not link.is_generic and len(before) > 1:  # It only adds to an item that is named in words.
            return
        title = link.label
        if link.is_generic:
            title = before[0] if before else _name_in(_words(cell[: link.start])) or title
        others = [one for one in before if one != title]
        rest = others + [_words(self._without_links(one)) for one in [cell[link.end :], *cells[at + 1 :]]]
        yield source_item(link.url, title or link.url, _description(" ".join(filter(None, rest))))

    def _heading(self, number: int, text: str) -> Iterator[SourceItem]:
        for link in self._links(text)[:1]:
            lead = _words(_TAG.sub(" ", text[: link.start]))
            if not any(map(str.isalpha, lead)) or _names_it(text[: link.start], lead, link):
                yield source_item(link.url, link.label or link.url, self._paragraph_after(number))

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

    def _links(self, text: str) -> list[_Link]:
        """Return the links that may be those of an item, with absolute addresses."""
        found = []
        for match in islice(_LINK.finditer(text), _LINKS_A_LINE):
            label, bare = _words(match["label"] or ""), match["bare"]
            url = bare.rstrip(".,;:!?*_") if bare else self._address(match)
            if (bare or label) and url and (absolute := self._item_address(url)):
                found.append(_Link(match.start(), match.end(), label, absolute))
        return found

    def _address(self, match: re.Match[str]) -> str:
        """Return the address of `[label](url)`, `[label][id]` or `[id]`; '' for no link."""
        if match["url"] is not None:
            return unescape(match["url"])
        return self._definitions.get((match["ref"] or match["label"]).casefold(), "") if self._definitions else ""

    def _without_links(self, text: str) -> str:
        """Replace links by their labels."""
        return _LINK.sub(
            lambda match: (match["label"] or "") if match["bare"] or self._address(match) else match[0], text
        )

    def _item_address(self, url: str) -> str:
        """Return the absolute address; '' for a badge, picture, licence, or page about the list."""
        if url.startswith(("#", "?")) or len(url) > 2000:
            return ""
        try:
            absolute = urljoin(self._base, url)
            parts = urlsplit(absolute)
            host, path = (parts.hostname or "").lower(), parts.path
        except ValueError:
            return ""
        if parts.scheme not in ("http", "https") or not host or _NO_ITEMS_AT.fullmatch(host):
            return ""
        if path.lower().endswith(_PICTURES) or (host.endswith("github.com") and _HOUSEKEEPING_PAGES.search(path)):
            return ""
        if self._own and _own_repository(absolute) == self._own:
            inside = _path_in_repository(path)
            return absolute if inside and not _HOUSEKEEPING.fullmatch(inside) else ""
        return absolute


def _address_of(lead: str, links: Sequence[_Link]) -> _Link:
    """Return the link to the item of a line with its name in plain words, not one of its description."""
    if len(links) == 1 or not _NAME_THEN_WORDS.search(lead):
        return links[0]
    primary = (link for link in links if link.label.casefold() in PRIMARY)
    bare = (link for link in links if not link.label)
    return next(primary, None) or next(bare, links[0])


def _names_it(markup: str, lead: str, link: _Link) -> bool:
    """Whether the words before the link are the item's name, or its name and description before `[GitHub](…)`."""
    if not _SEPARATOR_END.search(lead) and not link.is_generic:
        return False
    if markup.lstrip().startswith(("**", "__", "`", "<b>", "<strong>")):
        return True
    name = _name_in(lead) if link.is_generic and _NAME_THEN_WORDS.search(lead) else lead
    is_prose = name is lead and name.casefold().split()[-1:] and name.casefold().split()[-1] in _WITHIN_A_SENTENCE
    return len(name.split()) <= _WORDS_OF_A_NAME and not is_prose


def _words(markup: str) -> str:
    """Return the words of a piece of markdown, without tags, emphasis and code marks."""
    text = text_of_html(markup) if "<" in markup or "&" in markup else markup
    text = re.sub(r"[*`~\\]+|(?<!\w)_+|_+(?!\w)", " ", text)
    return " ".join(text.split()) if any(c.isalnum() for c in text) else ""


def _name_in(lead: str) -> str:
    return re.split(r"\s\(?by\s+@", _NAME_THEN_WORDS.split(lead, maxsplit=1)[0], maxsplit=1)[0].strip(" -–—:|·→([,")


def _description(text: str) -> str:
    return _words(text).strip(" -–—:|·•*").strip()


def _is_profile(url: str) -> bool:
    """Whether an address is a profile page at GitHub, such as that of an item's author."""
    parts = urlsplit(url)
    return (parts.hostname or "").lower().removeprefix("www.") == "github.com" and "/" not in parts.path.strip("/")


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
