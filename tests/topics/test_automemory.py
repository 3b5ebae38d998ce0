"""What a session sees of an index."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.pipelines.topic_index import index_lines, line_for, rebuilt, with_line, without_lines
from memoryvault.tests.support.growth import best_processor_seconds
from memoryvault.tests.support.hurry import patience
from memoryvault.vault.automemory import INDEX_BYTES, INDEX_LINES, kind_by_path, render_index_block, strip_comments


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <!-- x --> b", "a  b"),
        ("a\n<!-- x -->\nb", "a\nb"),
        ("<!-- x\ny -->\nb", "b"),
        ("a\n  <!-- x -->  \nb\n", "a\nb\n"),
        # A greedy strip would take what stands between two comments.
        ("<!-- a -->keep<!-- b -->", "keep"),
        ("<!-- a > b -- c -->d", "d"),
        ("<!-->a", "a"),
        ("half <!-- a comment\nhides nothing", "half <!-- a comment\nhides nothing"),
        ("```html\n<!-- code -->\n```\n<!-- x -->\n", "```html\n<!-- code -->\n```\n"),
        ("~~~\n```\n<!-- code -->\n~~~~\n<!-- x -->\n", "~~~\n```\n<!-- code -->\n~~~~\n"),
        ("````\n```\n<!-- code -->\n````\n", "````\n```\n<!-- code -->\n````\n"),
        ("- item\n  ```\n  <!-- code -->\n  ```\n", "- item\n  ```\n  <!-- code -->\n  ```\n"),
        ("> ```\n> <!-- code -->\n> ```\n", "> ```\n> <!-- code -->\n> ```\n"),
        ("```\n<!-- open to the end -->", "```\n<!-- open to the end -->"),
        # A fence within a comment opens nothing.
        ("<!--\n```\n-->\na <!-- x -->b", "a b"),
        ("use `<!-- x -->` here <!-- y -->", "use `<!-- x -->` here "),
        ("``a ` <!-- x -->`` b", "``a ` <!-- x -->`` b"),
        # A lone backtick opens nothing; nor does one whose partner is in the next paragraph.
        ("it's a ` tick <!-- x -->", "it's a ` tick "),
        ("a ` b\n\nc ` <!-- x -->", "a ` b\n\nc ` "),
        ("``` not ` a fence\n<!-- x -->\nb", "``` not ` a fence\nb"),
        ("a<!-- x\n\ny -->b", "ab"),
    ],
)
def test_comments_go_and_code_stays(text: str, kept: str) -> None:
    assert strip_comments(text) == kept


@given(st.text(alphabet="`~<!->\n ab"))
def test_stripping_only_takes_away(text: str) -> None:
    rest = iter(text)
    assert all(character in rest for character in strip_comments(text))


HOSTILE = {
    "comments left open": "<!--x\n",
    "comments on one line": "<!--x-->",
    "spans on one line": "`a ",
    "a list in a list": "- ",
    "runs of many lengths": "".join("`" * (number % 90 + 1) + " <!-- " for number in range(1_000)),
    "runs that nothing closes": "".join("`" * length + " " for length in range(2, 300)) + "` " * 20_000,
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.hurried
def test_a_hostile_index_takes_time_in_proportion_to_its_size(pattern: str) -> None:
    def seconds(characters: int) -> float:
        text = (pattern * (characters // len(pattern) + 1))[:characters]
        return best_processor_seconds(partial(strip_comments, text), enough=0.25 * patience(), rounds=8)

    assert seconds(100_000) < 0.25 * patience(), "a session start has half a second for everything"


def test_a_comment_that_ends_beyond_what_was_read_is_left_out() -> None:
    opened = "- [A](a.md)\n<!-- cut\n" + "words of a comment\n" * 1000
    block = render_index_block(opened, "/v/MEMORY.md", 1, is_whole=False)
    assert "- [A](a.md)" in block
    assert "cut" not in block.replace("truncated", "")
    assert "words of a comment" not in block
    assert "words of a comment" in render_index_block(opened, "/v/MEMORY.md", 1)
    closed = render_index_block("- [A](a.md)\n<!-- b -->\n- [C](c.md)\n", "/v/MEMORY.md", 1, is_whole=False)
    assert "- [C](c.md)" in closed
    assert "-->" not in closed


def test_the_block_names_its_file_and_counts_topics() -> None:
    assert render_index_block("", "/v/M.md", 0) == ""
    block = render_index_block("- [A](a.md) — x\n", '/v/"M".md', 3).split("\n")
    assert block[0] == '<auto-memory path="/v/&quot;M&quot;.md" topic_count="3">'
    assert block[-2:] == ["- [A](a.md) — x", "</auto-memory>"]


def test_a_long_index_is_cut_at_a_line_and_says_so() -> None:
    block = render_index_block("".join(f"line {number}\n" for number in range(INDEX_LINES + 5)), "/m", 1)
    assert f"line {INDEX_LINES - 1}\n\n(truncated: 200 of 205 lines; the whole index is /m)\n" in block
    wide = render_index_block("".join(f"{number:03} " + "ä" * 500 + "\n" for number in range(50)), "/m", 1)
    assert len(wide.encode()) < INDEX_BYTES + 500
    assert "(truncated: 24 of 50 lines" in wide
    assert "\n  023 " in wide
    exact = "".join(f"line {number}\n" for number in range(INDEX_LINES))
    assert "truncated" not in render_index_block("<!-- a\nb -->\n" + exact, "/m", 1), "comments cost no lines"


INDEX = """\
# Notes

- [A](a.md) — first
<!-- - [X](x.md) -->
```
- [Y](y.md)
```
* [B b](./b.md): second
- [C](c/d.md)
"""


def test_lines_of_topics_are_found_outside_comments_and_code() -> None:
    assert [slug for _, slug in index_lines(INDEX)] == ["a", "b"]


def test_a_line_takes_its_old_place_and_all_else_stays() -> None:
    assert with_line(INDEX, "a", "- [A2](a.md)") == INDEX.replace("- [A](a.md) — first", "- [A2](a.md)")
    assert with_line(INDEX, "n", "- [N](n.md)") == INDEX + "- [N](n.md)\n"
    assert with_line("no line end", "n", "- [N](n.md)") == "no line end\n- [N](n.md)\n"
    assert without_lines(INDEX, {"a"}) == INDEX.replace("- [A](a.md) — first\n", "")


def test_a_line_is_not_added_to_code_that_was_left_open() -> None:
    text = with_line("```\ncode\n", "n", "- [N](n.md)")
    assert [slug for _, slug in index_lines(text)] == ["n"]
    closed = "```\ncode\n```\n"
    assert with_line(closed, "n", "- [N](n.md)") == closed + "- [N](n.md)\n"


def test_a_rebuilt_index_has_each_topic_once() -> None:
    text = rebuilt(INDEX + "- [A again](a.md)\n", {"a": "- [A](a.md)", "z": "- [Z](z.md)"})
    assert [slug for _, slug in index_lines(text)] == ["a", "z"]
    assert "— first" in text, "a line that stands keeps its words"
    assert rebuilt(text, {"a": "", "z": ""}) == text


def test_a_line_is_one_line_whatever_it_is_made_of() -> None:
    assert line_for("a]\n(b", "s", "x\ny") == "- [a) (b](s.md) — x y"


@pytest.mark.parametrize("text", ["how to <!-- hide", "a lone ` tick", "``` and `code`", "a `<!--` in code"])
def test_no_description_hides_the_lines_of_other_topics(text: str) -> None:
    index = with_line("", "one", line_for("One", "one", text))
    index = with_line(index, "two", line_for("Two -->", "two", "a lone ` tick ``` -->"))
    index = with_line(index, "three", line_for("Three", "three", "ends -->"))
    assert [slug for _, slug in index_lines(index)] == ["one", "two", "three"]
    assert line_for("Code", "code", "run `make`") == "- [Code](code.md) — run `make`"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("personal-projects/p/memory/a.md", "topic"),
        ("personal-projects/p/memory/MEMORY.md", "topic-index"),
        ("personal-projects/p/memory/memory.md", "topic-index"),
        ("personal-projects/p/memory/_a.md", ""),
        ("personal-projects/p/memory/x/a.md", ""),
        ("personal-private/p/memory/a.md", ""),
    ],
)
def test_the_place_tells_the_kind(path: str, kind: str) -> None:
    assert kind_by_path(path) == kind
