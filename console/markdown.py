"""Render notes as HTML. Templates do not escape this output, so it contains no HTML of the note."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from ..pipelines.dashboard import BEGIN, END
from ..pipelines.research import RECEIPT_END

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
MAX_CHARACTERS = 200_000
"""A longer note is cut, so that the page stays fast."""
DEEPEST_HEADING = 6
HEADINGS_ABOVE = 2
"""Levels of the page's own headings; a note's headings start below them without gaps."""

OWN_MARKS = frozenset({RECEIPT_END, BEGIN, END})
"""Our own comment lines, which are not shown. Other comments are, since approved notes reach agents with them."""

_WIKILINK = re.compile(r"\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")

LinkTo = Callable[[str], str]


def render_markdown(text: str, link_to: LinkTo, below: int = HEADINGS_ABOVE) -> Markup:
    """Render a note. `link_to`: target of a `[[wikilink]]` -> address; `below`: level of the heading above the text.

    Raw HTML, images, and links with other schemes than LINK_SCHEMES are shown as text.
    """
    text = "\n".join(line for line in text.split("\n") if line.strip() not in OWN_MARKS)
    cut = text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "\n\n…"
    html = _renderer().render(cut, {"link_to": link_to, "below": below})
    return Markup(html)


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    made.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline", "reference"])
    made.validateLink = _is_allowed  # type: ignore[method-assign]  # the library's documented way
    made.inline.ruler.before("link", "wikilink", _wikilink)
    made.core.ruler.push("own_headings_and_links", lambda state: _adapt(state.tokens, state.env["below"]))
    return made


def _is_allowed(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.lower() in LINK_SCHEMES
    except ValueError:
        return False


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        target, shown = match[1].strip(), (match[2] or match[1]).strip()
        opening = state.push("link_open", "a", 1)
        opening.attrs = {"href": state.env["link_to"](target)}
        opening.meta = {"inside": True}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _adapt(tokens: Sequence[Token], below: int) -> None:
    levels = sorted({token.tag for token in tokens if token.type == "heading_open"})
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(DEEPEST_HEADING, below + 1 + levels.index(token.tag))}"
        elif token.type == "link_open" and not token.meta.get("inside"):
            token.attrs |= {"rel": "noreferrer noopener", "target": "_blank"}
        elif token.type in ("th_open", "td_open") and "style" in token.attrs:
            # The content security policy blocks inline styles.
            token.attrs["align"] = str(token.attrs.pop("style")).removeprefix("text-align:")
        if token.children:
            _adapt(token.children, below)
