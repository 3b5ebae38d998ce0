"""Items of Markdown lists, in all common formats."""

import time

import pytest

from memoryvault.pipelines.discovery import novelty
from memoryvault.sources.discovery.markdown_list import markdown_items
from memoryvault.sources.discovery.source_item import SourceItem

PAGE = "https://raw.githubusercontent.com/owner/list/main/README.md"


def items(text: str) -> list[tuple[str, str, str]]:
    return [(item.title, item.url, item.description) for item in markdown_items(text, PAGE)]


@pytest.mark.parametrize(
    ("line", "title", "description"),
    [
        ("- [tool](https://x.org/t) - Does things", "tool", "Does things"),
        ("1. [`tool`](https://x.org/t): Does things", "tool", "Does things"),
        ("- [ ] [tool](https://x.org/t)", "tool", ""),
        ("- 🔥 [tool](https://x.org/t) ⭐ - Does things", "tool", "⭐ - Does things"),
        ("- ![logo](l.png) [tool](https://x.org/t) [![b](https://img.shields.io/x)](https://y.org)", "tool", ""),
        ("- [tool](https://x.org/t) by [ann](https://github.com/ann) - Does", "tool", "by ann - Does"),
        ("- **tool** - Does things. [GitHub](https://x.org/t)", "tool", ""),
        ("| [tool](https://x.org/t) | Does \\| things |", "tool", "Does | things"),
        ("| 1 | tool | [link](https://x.org/t) | Does |", "tool", "Does"),
        ("| tool | Does | [repo](https://x.org/t) |", "tool", "Does"),
        ("- [tool](https://x.org/t) [![s](https://x.org/s.svg)](https://y.org/s) Does", "tool", "Does"),
        ("### [tool](https://x.org/t)\n\nDoes things.\n", "tool", "Does things."),
        ("[`tool`](https://x.org/t) &nbsp; by &nbsp; [ann](https://github.com/ann)\nDoes", "tool", "by ann"),
        ("<li><a href=\"https://x.org/t\">tool</a> - Does</li>", "tool", "Does"),
        ("<td><a class='x' href='https://x.org/t'><b>tool</b></a></td>", "tool", ""),
        ("- [tool][t] - Does\n\n[t]: https://x.org/t", "tool", "Does"),
        ("Name | Link | What\n--- | --- | ---\ntool | [link](https://x.org/t) | Does", "tool", "Does"),
        ("[tool](https://x.org/t) | Does", "tool", "Does"),
        ("|Author|Project|\n|-|-|\n|[@ann](https://github.com/ann)|[tool](https://x.org/t)|", "tool", "@ann"),
        ("- **tool** - Made with [another](https://y.org/a). ([source](https://x.org/t))", "tool", ""),
        ("- tool - Does what the [docs](https://y.org/d) of it say, and more of it: <https://x.org/t>", "tool", ""),
        ("- **tool** by [@ann](https://github.com/ann): does. [Source](https://x.org/t)", "tool", ""),
        ("- **tool** ([repo](https://x.org/t), [site](https://y.org)) - Does", "tool", ", site) - Does"),
        ("- (Python) [tool](https://x.org/t) Does", "tool", "Does"),
        ("- 2026-01-02 - [Skills] [tool](https://x.org/t)", "tool", ""),
        ("- [GitHub](https://x.org/t) - Reads issues", "GitHub", "Reads issues"),
        ("## Skill: [tool](https://x.org/t)\n\nDoes.", "tool", "Does."),
        ("### My tool\n\nDoes.\n\n[Repository](https://x.org/t)\n\n[Website](https://y.org)", "My tool", "Does."),
        ("### My tool\n- Author: [a](https://y.org)\n- Link: https://x.org/t\n- Demo: https://y.org", "My tool", ""),
        ("<li>\n <a\n  href='https://x.org/t'>tool</a>\n</li>", "tool", ""),
        ("<td><a href='https://x.org/t'>tool</a></td><td><a href='https://github.com/a'>a</a></td>", "tool", ""),
    ],
)  # fmt: skip
def test_an_item_is_read_in_every_shape(line: str, title: str, description: str) -> None:
    assert items(line) == [(title, "https://x.org/t", description)]


@pytest.mark.parametrize(
    "text",
    [
        "- [Contents](#contents)",
        "- See the [docs of another](https://x.org/t) before you write a skill",
        "We like [this](https://x.org/t).",
        "[Become a sponsor](https://x.org/t) to be shown here",
        "- [Contributing](CONTRIBUTING.md)",
        "- [License](https://github.com/owner/list/blob/main/LICENSE)",
        "![picture](https://x.org/t.png)",
        "- [![Stars](https://img.shields.io/x)](https://img.shields.io/y)",
        "- [sponsor](https://github.com/sponsors/owner)",
        "- [open an issue](https://github.com/owner/list/issues/new)",
        "- [x](javascript:alert(1))",
        "```\n- [x](https://x.org/t)\n```",
        "<!-- - [x](https://x.org/t) -->",
        "| [A](#a) | [B](#b) |\n|---|---|",
        "| Tool | `path` | `~/path` | [Guide to another](https://x.org/t) |",
        "## Contributing\n- [How to](https://x.org/t)",
        "Star History\n---\n[Chart](https://x.org/t)",
        "<h2>License</h2>\n\n- [MIT](https://x.org/mit)",
        "- [CC0](https://creativecommons.org/publicdomain/zero/1.0/)",
        "- Turns issues into plans, see [docs](https://x.org/t)",
    ],
)
def test_lines_that_are_not_items_are_left_out(text: str) -> None:
    assert items(text) == []


def test_a_relative_link_leads_into_the_list_s_own_repository() -> None:
    assert items("- [Guide](./skills/guide.ipynb)") == [
        ("Guide", "https://github.com/owner/list/blob/main/skills/guide.ipynb", "")
    ]


def test_a_grid_without_a_header_has_an_item_in_each_cell() -> None:
    text = "| | |\n|---|---|\n| [a](https://x.org/a) | [b](https://x.org/b) |"
    assert [title for title, *_ in items(text)] == ["a", "b"]


@pytest.mark.parametrize(
    "heading", ["## Skills", "Skills\n---", "<h2>Skills</h2>", "<details><summary><h3>Skills</h3></summary>\n"]
)
def test_a_section_about_the_list_ends_with_the_next_heading(heading: str) -> None:
    text = f"## Contents\n\n- [Skills](https://x.org/#skills)\n\n{heading}\n\n- [tool](https://x.org/t)"
    assert [title for title, *_ in items(text)] == ["tool"]


def test_items_named_like_a_generic_link_count_if_they_have_a_description() -> None:
    text = "## Servers\n- [GitHub](https://x.org/gh) - Issues\n- [GitLab](https://x.org/gl) - Merge requests"
    assert [title for title, *_ in items(text)] == ["GitHub", "GitLab"]


def _bullets(things: list[tuple[str, str]]) -> str:
    return "\n".join(f"- [{name}]({url}) - Does {name}" for name, url in things)


def _table(things: list[tuple[str, str]]) -> str:
    rows = (f"| {name} | [link]({url}) | Does {name}, see [docs](https://d.org) |" for name, url in things)
    return "| Name | Link | What |\n|:--|---|--:|\n" + "\n".join(rows)


def test_a_list_in_another_layout_brings_only_its_new_items() -> None:
    things = [(f"tool-{n}", f"https://github.com/o/tool-{n}") for n in range(9)]
    edits = [
        "http://github.com/o/{}",
        "https://www.GitHub.com/o/{}/",
        "https://github.com/o/{}.git?utm_source=l#readme",
    ]
    known: tuple[str, ...] = ()
    for week, layout in enumerate([_bullets, _table, _bullets, _table]):
        new = (f"new-{week}", f"https://x.org/new-{week}")
        edited = [(name, edits[week % 3].format(name)) if "tool" in name else (name, url) for name, url in things]
        brought = novelty(markdown_items(layout([*reversed(edited), new]), PAGE), known, "s")
        if week:
            assert [pattern.url for pattern in brought.new] == [new[1]], layout
        known = brought.known
        things.append(new)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://github.com@evil.example/x", "https://evil.example/x"),
        ("https://me:pw@evil.example/x", "https://evil.example/x"),
        ("http://a@b@evil.example/", "http://evil.example/"),
        ("https://example.org/@scope/x", "https://example.org/@scope/x"),
        ("https://example.org?mail=a@b.org", "https://example.org?mail=a@b.org"),
    ],
)
def test_user_name_and_password_are_removed_from_an_address(url: str, kept: str) -> None:
    assert [item.url for item in markdown_items(f"- [skill]({url}) - does it", "https://x.org/")] == [kept]


def test_invisible_and_reordering_characters_are_removed_from_names() -> None:
    (item,) = markdown_items("- [sk\u202eill\u200b\x07](https://x.org/t) - a\u2066b<script>alert(1)</script>", PAGE)
    assert (item.title, item.description) == ("skill", "ab")


def test_two_names_at_a_new_address_are_two_patterns_and_a_new_name_at_a_known_one_is_none() -> None:
    first = [SourceItem("https://x.org/a", "a")]
    known = novelty(first, (), "s").known
    both = [
        *first,
        SourceItem("https://x.org/b", "one"),
        SourceItem("http://x.org/b/", "two"),
        SourceItem("https://x.org/b", "One"),
    ]
    brought = novelty(both, known, "s")
    assert [pattern.title for pattern in brought.new] == ["one", "two"]
    assert len({pattern.key for pattern in brought.new}) == 2
    assert novelty([SourceItem("https://x.org/a", "renamed")], brought.known, "s").new == ()


def test_item_that_goes_and_comes_back_is_known() -> None:
    known = novelty([SourceItem("https://x.org/a", "a")], (), "s").known
    gone = novelty([], known, "s").known
    assert novelty([SourceItem("https://x.org/a", "a")], gone, "s").new == ()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300_000,
        "- " + "[a](" * 80_000,
        "- <a href='" + "x" * 300_000,
        "<!--" * 100_000,
        ("- " + "[a](https://x.org/t) " * 900 + "\n") * 15,
        ("|\n-" + " " * 990 + "-\n") * 300,
        "<a \n" + "x" * 300_000,
        ("- " + "(x) `y` " * 2000 + "[a](https://x.org/a)\n") * 18,
        "### a-b\ntext [x](https://x.org/x) " * 10_000,
        "a\n-\n" * 60_000,
    ],
)
@pytest.mark.slow
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    """300 kB each. A few hundred milliseconds here; a quadratic reader takes minutes."""
    started = time.process_time()
    markdown_items(text, PAGE)
    assert time.process_time() - started < 5.0
