"""A question in another language is compared by its subject, not by its language."""

import json

import numpy
import pytest

from memoryvault.bench.small import Prompt, given
from memoryvault.bench.train_languages import SAMPLES, measure
from memoryvault.index.embedder import DEFAULT_MODEL, Embedder, load_embedder, model_name
from memoryvault.index.languages import LanguageDirections, directions_of, is_foreign, load_directions
from memoryvault.index.late_interaction import WordVectors
from memoryvault.index.query_embedding import QueryEmbedding
from memoryvault.index.ranking import DenseHit

NOTE, OTHER_NOTE = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LANGUAGE = numpy.array([1.0, 0.0, 0.0], dtype=numpy.float32)


def unit(*values: float) -> numpy.typing.NDArray[numpy.float32]:
    vector = numpy.array(values, dtype=numpy.float32)
    return vector / numpy.linalg.norm(vector)


@pytest.fixture
def directions() -> LanguageDirections:
    return directions_of(LANGUAGE[None, :], LANGUAGE[None, :])


def test_what_the_language_has_in_common_goes_and_the_subject_stays(directions: LanguageDirections) -> None:
    question, note, other = unit(1.0, 0.8, 0.0), unit(1.0, *NOTE[1:]), unit(1.0, *OTHER_NOTE[1:])
    assert question @ other > 0.5, "two texts of that language"

    neutral, _, scale = directions.neutralise(question, None)

    assert neutral @ other == pytest.approx(0.0, abs=1e-6)
    assert neutral @ LANGUAGE == pytest.approx(0.0, abs=1e-6)
    assert scale * (neutral @ note) == pytest.approx(1.13, abs=0.01), "about the same subject"


def test_similarities_are_those_of_vectors_without_it() -> None:
    hits = [DenseHit(1, 1, 0.4), DenseHit(2, 2, 0.9)]
    assert QueryEmbedding(b"", None).scaled(hits) == hits
    scaled = QueryEmbedding(b"", None, similarity_scale=1.25).scaled(hits)
    assert [hit.similarity for hit in scaled] == [0.5, 1.0], "a cosine is 1 at most"


def test_the_words_lose_it_too(directions: LanguageDirections) -> None:
    words = WordVectors(("eins",), unit(1.0, 1.0, 0.0)[None, :])
    _, neutral, _ = directions.neutralise(unit(1.0, 0.5, 0.0), words)
    assert neutral is not None
    assert neutral.words == ("eins",)
    assert numpy.allclose(neutral.vectors @ LANGUAGE, 0.0, atol=1e-6)


def test_a_question_in_none_of_the_languages_is_left_alone(directions: LanguageDirections) -> None:
    question = unit(0.1, 1.0, 0.0)
    assert directions.neutralise(question, None) == (question, None, 1.0)


def test_a_question_that_is_nothing_but_its_language_is_left_alone(directions: LanguageDirections) -> None:
    assert directions.neutralise(LANGUAGE, None) == (LANGUAGE, None, 1.0)


def test_of_other_models_nothing_is_known() -> None:
    assert load_directions(model_name(DEFAULT_MODEL)) is not None
    assert load_directions("BAAI/bge-m3") is None


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return load_embedder(DEFAULT_MODEL, models_folder=tmp_path_factory.mktemp("models"))


@pytest.mark.model
def test_the_directions_are_those_of_the_samples(embedder: Embedder) -> None:
    kept = load_directions(embedder.name)
    assert kept is not None
    samples = json.loads(SAMPLES.read_text(encoding="utf-8"))
    means = numpy.stack([measure(embedder, texts)[0] for texts in samples.values()])
    assert numpy.allclose(kept.means, means, atol=2e-3)


@pytest.mark.model
def test_an_english_prompt_is_not_taken_for_another_language(embedder: Embedder) -> None:
    kept = load_directions(embedder.name)
    assert kept is not None
    prompts = ["fix the failing login test", "when do we release?", "rename getUser to fetchUser", "git rebase", "ok"]
    vectors = embedder.encode(prompts, query=True).vectors
    taken = [prompt for prompt, vector in zip(prompts, vectors, strict=True) if kept.neutralise(vector, None)[2] != 1.0]
    assert taken == []


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("배포는 언제?", True),
        ("部署 ok?", False),
        ("когда мы deploy?", True),
        ("when do we 部署?", False),
        ("3 + 4", False),
    ],
)
def test_a_question_is_foreign_to_an_english_model_by_its_script(text: str, foreign: bool) -> None:
    assert is_foreign(DEFAULT_MODEL, text) is foreign
    assert not is_foreign("of-many-languages", text)


@pytest.mark.model
def test_a_word_that_is_there_outvotes_what_an_english_model_makes_of_another_script(embedder: Embedder) -> None:
    texts = {
        "ko": "배포는 화요일에만 한다",
        "effect": "Never call setState in useEffect without a guard.",
        "zh": "部署只在星期二进行",
        "deploys": "Deploy on Tuesdays only.",
    }
    notes = [{"slug": slug, "kind": "preferences", "title": text, "text": text} for slug, text in texts.items()]
    asked = [Prompt("note", "배포는 언제?", frozenset({"ko"}), frozenset())]
    tally = given(notes, (), asked, embedder)["note"]
    assert (tally.right, tally.wrong_notes) == (1, 0)
