import string

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.chunking import CHUNK_CHARACTERS, MAX_PARAGRAPH_CHARACTERS, chunk_entry
from memoryvault.vault.entry import Entry, parse_entry


def entry(body: str, head: str = "") -> Entry:
    front = f"---\n{head}---\n\n" if head else ""
    return parse_entry("personal-private/fix/some-note.md", (front + body).encode())


def test_a_short_note_is_one_chunk_of_title_tags_aliases_and_text() -> None:
    (chunk,) = chunk_entry(
        entry("# Use pnpm\n\nNever npm.\n\nNor yarn.", "tags: [javascript]\naliases: [package manager]\n")
    )

    assert chunk.ordinal == 0
    assert (chunk.title, chunk.tags, chunk.body) == (
        "Use pnpm",
        "javascript package manager",
        "Never npm.\n\nNor yarn.",
    )
    assert chunk.embed_text == "Use pnpm\njavascript package manager\nNever npm.\n\nNor yarn."


def test_a_name_made_of_the_statement_is_not_embedded_twice() -> None:
    statement = "Some note, said once."
    (chunk,) = chunk_entry(entry(statement))

    assert chunk.title == "some note"
    assert chunk.embed_text == statement


def test_the_model_gets_the_usual_form_of_letters_and_the_mark_of_a_cut_as_it_is() -> None:
    (chunk,) = chunk_entry(entry("# Ｇａｔｅｗａｙ …\n\nIts ﬁrst key …"))

    assert chunk.embed_text == "Gateway …\nIts first key …"


def test_an_empty_note_still_has_a_chunk() -> None:
    (chunk,) = chunk_entry(entry(""))

    assert chunk.body == ""
    assert chunk.embed_text == "some note"


def test_a_long_note_has_a_chunk_for_each_few_paragraphs_and_each_carries_the_title() -> None:
    body = "# Handbook\n\n" + "\n\n".join(f"Paragraph {n}. " + "words " * 60 for n in range(8))
    chunks = chunk_entry(entry(body, "tags: [ops]\n"))

    assert [chunk.ordinal for chunk in chunks] == list(range(8))
    assert all(chunk.title == "Handbook" and chunk.embed_text.startswith("Handbook") for chunk in chunks)
    assert [chunk.tags for chunk in chunks] == ["ops"] + [""] * 7


def test_what_stands_under_a_heading_carries_it() -> None:
    chunks = chunk_entry(entry("# Handbook\n\nIntro.\n\n## Alarms\n\nPages go to extension 4417.\n"))

    assert [chunk.embed_text for chunk in chunks][1] == "Handbook – Alarms\nPages go to extension 4417."
    assert chunks[1].title == "Handbook Alarms"


def test_a_fenced_block_is_not_torn_at_its_blank_lines_nor_read_as_headings() -> None:
    chunks = chunk_entry(entry("# T\n\nText.\n\n```sh\nls\n\n# no heading\nrm x\n```\n"))

    assert chunks[0].body == "Text.\n\n```sh\nls\n\n# no heading\nrm x\n```"


def test_a_paragraph_without_end_is_cut() -> None:
    chunks = chunk_entry(entry("word " * 2000))

    assert len(chunks) > 10
    assert all(len(chunk.body) <= MAX_PARAGRAPH_CHARACTERS for chunk in chunks)


@given(st.text(alphabet=string.ascii_letters + string.digits + " .\n#`*-äß漢", max_size=4000))
def test_no_word_of_a_note_is_lost_and_no_chunk_is_too_long(body: str) -> None:
    made = entry(body)
    chunks = chunk_entry(made)
    kept = "".join("".join(f"{chunk.title}{chunk.body}".split()) for chunk in chunks)

    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert all(len(chunk.body) <= CHUNK_CHARACTERS + MAX_PARAGRAPH_CHARACTERS for chunk in chunks)
    for word in made.body.split():
        if word.strip("#"):
            assert word.strip("#") in kept or len(word) > CHUNK_CHARACTERS // 2
