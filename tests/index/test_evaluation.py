"""`memory config eval`: what it reads, and that the order of documents says nothing."""

import json
from pathlib import Path

import pytest

from memoryvault.index.evaluation import Document, Question, load_documents, load_questions, open_documents
from memoryvault.runtime.errors import UsageError
from memoryvault.tests.support.fake_embedder import FakeEmbedder


def written(folder: Path, text: str) -> Path:
    file = folder / "lines.jsonl"
    file.write_bytes(text.encode("utf-8"))
    return file


def test_a_line_ends_where_json_says_so(tmp_path: Path) -> None:
    """U+2028 and its like stand in texts from the web; Python's splitlines would cut there."""
    texts = ["one\u2028two", "three\u0085four\x0b", "five"]
    lines = "\ufeff" + "\r\n".join(
        json.dumps({"id": str(n), "text": t}, ensure_ascii=False) for n, t in enumerate(texts)
    )
    file = written(tmp_path, lines + "\n\n")

    assert [document.text for document in load_documents(file)] == texts
    assert [question.id for question in load_questions(file)] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a"}', "text must be a string"),
        ('{"text": "a"}', "id must be a string"),
        ('{"id": 7, "text": "a"}', "id must be a string"),
        ('{"id": "a", "text": "b", "group": 3}', "group must be a string"),
        ("[1]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"id": "a", "text": "b"}\n{"id": "a", "text": "c"}', "'a' is there already"),
    ],
)
def test_a_bad_line_is_named_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    for load in (load_documents, load_questions):
        with pytest.raises(UsageError, match=said) as raised:
            load(written(tmp_path, text))
        assert "lines.jsonl:" in str(raised.value)
        assert "\n" not in str(raised.value)


def test_bytes_that_are_no_text_are_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(UsageError, match="not UTF-8"):
        load_documents(file)


def test_two_groups_may_have_the_same_ids(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "x", "group": group} for group in ("one", "two", None)]
    assert len(load_documents(written(tmp_path, "\n".join(map(json.dumps, rows))))) == 3


def ranked(folder: Path, documents: list[Document], question: str) -> tuple[str, ...]:
    folder.mkdir()
    with open_documents(documents, folder, FakeEmbedder()) as evaluation:
        (ranking,) = evaluation.rank([Question("q", question, "g")], 10)
    return ranking.ids


def test_documents_are_a_set_and_other_groups_are_not_seen(tmp_path: Path) -> None:
    documents = [Document(f"d{n}", f"deploy {'twice ' * (n % 2)}", "g") for n in range(6)]
    others = [Document("x", "deploy deploy deploy", "other"), Document("y", "deploy", None)]

    in_order = ranked(tmp_path / "one", documents, "deploy twice")
    assert set(in_order) == {f"d{n}" for n in range(6)}
    assert ranked(tmp_path / "two", [*others, *reversed(documents)], "deploy twice") == in_order


def test_nothing_that_a_document_says_of_itself_hides_it(tmp_path: Path) -> None:
    heads = ["kind: topic-index", "status: superseded", "always_load: true", "project: other"]
    documents = [Document(head, f"---\n{head}\n---\ndeploy", "g") for head in heads]
    assert set(ranked(tmp_path / "index", documents, "deploy on friday")) == set(heads)
