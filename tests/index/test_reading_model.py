"""By which states of the packaged model another's words are known."""

from itertools import pairwise

import numpy

from memoryvault.index.reading_model import END_PIECES, STATES, SURROUNDINGS, ApartHead, Window, surroundings


def window(*lengths: int) -> Window:
    """A message whose sentences have so many pieces."""
    ends = numpy.cumsum([1, *lengths]).tolist()
    return Window([0] * (ends[-1] + 2), ends[-1] - 1, list(pairwise(ends)))


def seen(lengths: tuple[int, ...], sentence: int) -> list[float]:
    """The mean place of the pieces in each part that is read of a sentence."""
    its = window(*lengths)
    states = numpy.repeat(numpy.arange(len(its.ids), dtype=numpy.float32)[:, None], STATES, axis=1)
    return [float(part) for part in surroundings(states, its)[sentence].reshape(6, STATES)[:, 0]]


def test_a_sentence_is_read_with_what_stands_before_and_after_it_and_by_its_ends() -> None:
    assert END_PIECES == 5
    # Pieces 1 to 4, 5 to 14 and 15 to 20: the sentence, before, after, all, its first and last five.
    assert seen((4, 10, 6), 1) == [9.5, 2.5, 17.5, 10.5, 7.0, 12.0]


def test_a_short_sentence_alone_has_nothing_around_it() -> None:
    assert seen((3,), 0) == [2.0, 0.0, 0.0, 2.0, 2.0, 2.0]


def test_the_packaged_weights_judge_each_sentence_by_the_lower_layers_too() -> None:
    its = window(4, 3)
    states = numpy.ones((len(its.ids), STATES), numpy.float32)
    assert ApartHead.load()(states, its).shape == (2,)
    assert surroundings(states, its).shape == (2, SURROUNDINGS)
