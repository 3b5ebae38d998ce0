"""The drain: batches, failures, and doing it twice."""

from collections.abc import Sequence

import pytest

from memoryvault.index.drain import BATCH_TEXTS, EmbeddedBatch, drain, embed_with
from memoryvault.index.embedder import micro_batches
from memoryvault.runtime.errors import IndexUnavailable, ModelUnavailable
from memoryvault.tests.index.bed import Bed


def write_texts(bed: Bed, count: int) -> None:
    for number in range(count):
        bed.write(f"{number}.md", f"Text {number}.")
    bed.index()


def test_each_text_is_embedded_once_however_often_the_drain_runs(bed: Bed) -> None:
    for number in range(20):
        bed.write(f"{number}.md", "word " * (number + 1))
    bed.index()
    report = drain(bed.store, embed_with(bed.embedder), model="fake", batch_texts=6)
    assert (report.processed, report.errors, report.remaining) == (20, 0, 0)
    assert [size for size, _ in bed.embedder.calls] == [6, 6, 6, 2]
    assert bed.embed().processed == 0
    assert len(bed.embedder.calls) == 4


def test_a_model_that_fails_at_every_text_is_not_asked_for_all(bed: Bed) -> None:
    for number in range(BATCH_TEXTS + 20):
        bed.write(f"{number}.md", f"POISON {number}")
    bed.index()
    report = bed.embed()
    assert (report.processed, report.errors) == (0, BATCH_TEXTS)
    assert report.reason == "the model fails at every text (ValueError)"


def test_what_is_not_tried_because_the_model_went_away_is_no_error(bed: Bed) -> None:
    write_texts(bed, 6)
    calls = []

    def embed(texts: Sequence[str]) -> EmbeddedBatch:
        calls.append(len(texts))
        if len(calls) == 4:
            raise ModelUnavailable("the service has gone")
        if len(texts) > 1 or len(calls) == 3:
            raise ValueError("it cannot be embedded")
        return embed_with(bed.embedder)(texts)

    report = drain(bed.store, embed, model="fake")
    assert calls == [6, 1, 1, 1]
    assert (report.processed, report.errors, report.remaining) == (1, 1, 5)
    assert report.reason == "the service has gone"
    assert bed.embed().processed == 5


def test_vectors_of_another_model_or_of_a_wrong_size_are_never_mixed_in(bed: Bed) -> None:
    write_texts(bed, 1)
    with pytest.raises(ModelUnavailable, match="kill NUMBER"):
        drain(bed.store, embed_with(bed.embedder), model="another")
    with pytest.raises(IndexUnavailable, match="another size"):
        drain(bed.store, lambda texts: EmbeddedBatch("fake", 64, (b"1234",), (b"",)), model="fake")
    assert bed.store.stats().embedded == 0


def test_it_stops_between_two_batches_and_goes_on_later(bed: Bed) -> None:
    write_texts(bed, 10)
    progress: list[tuple[int, int]] = []
    report = drain(
        bed.store,
        embed_with(bed.embedder),
        model="fake",
        batch_texts=2,
        should_stop=lambda: len(progress) >= 2,
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert progress[:2] == [(2, 10), (4, 10)]
    assert 0 < report.processed < 10
    assert report.remaining == 10 - report.processed
    assert bed.embed().remaining == 0


def test_micro_batches_hold_every_text_once_and_texts_of_like_length() -> None:
    texts = ["w " * (number % 200) for number in range(300)]
    groups = micro_batches(texts, max_tokens=400)
    assert sorted(index for group in groups for index in group) == list(range(300))
    for group in groups:
        longest = max(len(texts[index]) for index in group)
        assert len(group) == 1 or len(group) * max(longest // 4, 4) <= 400
    assert micro_batches([]) == []
