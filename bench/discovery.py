"""What a weekly scan of a real, changing list finds new, against a plain reading of the same pages.

The truth is made without the code under test: the first link of every list item, compared as text without scheme,
case and closing slash, with all weeks before. Then the last week is edited in ways that make nothing new.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import time
from pathlib import Path

from ..pipelines.discovery import novelty
from ..sources.discovery.markdown_list import markdown_items

LIST = "discovery/awesome-list-weekly.jsonl.gz"
PAGE = "https://raw.githubusercontent.com/owner/list/main/README.md"
_ITEM = re.compile(r"^\s*[-*+]\s.*?(?<!!)\[[^\]]+\]\((https?://[^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((https?://[^)\s]+)\)")


def plain(url: str) -> str:
    """An address as the truth compares it."""
    return url.partition("://")[2].rstrip("/").lower()


def truth(page: str) -> set[str]:
    """Addresses of all items of a page."""
    return {plain(match[1]) for line in page.splitlines() if (match := _ITEM.match(line)) is not None}


def shuffled(page: str, chance: random.Random) -> str:
    """The page with the same items, moved, reworded, recased and linked to otherwise."""

    def other(match: re.Match[str]) -> str:
        label, url = match[1], match[2]
        edits = [
            lambda u: u.rstrip("/") + "/",
            lambda u: u.replace("https://", "http://"),
            lambda u: u + ("&" if "?" in u else "?") + "utm_source=list",
            lambda u: u + ("" if "#" in u else "#readme"),
            lambda u: u.replace("https://github.com/", "https://www.GitHub.com/"),
            lambda u: u + ".git" if re.fullmatch(r"https://github\.com/[^/]+/[^/]+", u) else u,
            lambda u: u.replace("/tree/main/", "/blob/main/"),
        ]
        return f"[{label.upper() if chance.random() < 0.3 else label}]({chance.choice(edits)(url)})"

    lines = [_LINK.sub(other, line) + " (new wording)" if _ITEM.match(line) else line for line in page.splitlines()]
    items = [number for number, line in enumerate(lines) if _ITEM.match(line)]
    for number in items:  # each changes places with one of its neighbours in the list
        swap = chance.choice(items)
        lines[number], lines[swap] = lines[swap], lines[number]
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    path = Path(os.environ["MEMORYVAULT_DATA"]) / LIST
    with gzip.open(path, "rt", encoding="utf-8") as file:
        weeks = [json.loads(line) for line in file]
    known: tuple[str, ...] = ()
    before: set[str] = set()
    found_all = right_all = true_all = 0
    print("| week | listed | new by hand | found | right | precision | recall | ms |")
    print("|---|---|---|---|---|---|---|---|")
    for number, week in enumerate(weeks):
        started = time.perf_counter()
        items = markdown_items(week["readme"], PAGE)
        brought = novelty(items, known, "list")
        spent = (time.perf_counter() - started) * 1000
        expected = truth(week["readme"]) - before
        if number:
            found = {plain(pattern.url) for pattern in brought.new}
            right = len(found & expected)
            precision, recall = (right / len(found) if found else 1.0), (right / len(expected) if expected else 1.0)
            print(
                f"| {week['date']} | {len(items)} | {len(expected)} | {len(found)} | {right} "
                f"| {precision:.3f} | {recall:.3f} | {spent:.0f} |"
            )
            found_all, right_all, true_all = found_all + len(found), right_all + right, true_all + len(expected)
        else:
            print(f"| {week['date']} | {len(items)} | first scan | | | | | {spent:.0f} |")
        known, before = brought.known, before | truth(week["readme"])
    print(f"\nAll weeks: precision {right_all / found_all:.3f}, recall {right_all / true_all:.3f} of {true_all}.")
    again = novelty(markdown_items(weeks[-1]["readme"], PAGE), known, "list")
    edited = shuffled(weeks[-1]["readme"], random.Random(0))
    moved = novelty(markdown_items(edited, PAGE), known, "list")
    print(f"The last week once more: {len(again.new)} new. With every line edited: {len(moved.new)} new.")


if __name__ == "__main__":
    main()
