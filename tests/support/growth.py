"""How the time of a computation grows with the length of its input, told apart from how busy the machine is."""

import gc
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

STEP = 4
"""Each length is so many times the one before."""
MOST = STEP**1.5
"""So many times the time may a step take: linear time takes 4 times as much, quadratic time 16 times; this is 8."""
NOISE_SECONDS = 0.02
"""Less than this is the clock's and the caches' own."""
ROUNDS = 8
ROUNDS_BEYOND = 3


def assert_linear(make: Callable[[int], Callable[[], object]], longest: int) -> None:
    """Fail if the time of `make(length)()` grows clearly faster than the length, up to `longest`.

    `make` prepares the input of a length, which is not timed. The lengths are a sixteenth, a fourth and the whole of
    `longest`, each measured in processor time, in turn, and the best of each kept, until they agree with linear time:
    a busy machine makes some measures slow, quadratic code makes all of the long ones slow.

    Where they do not agree, and yet the whole is less than quadratic, one more length decides, four times as long: a
    machine whose caches somebody else fills is slow by the same factor there, code that is quadratic in part by more.
    """
    lengths = [longest // STEP**power for power in (2, 1, 0)]
    runs = [make(length) for length in lengths]
    runs[0]()
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        _measure(runs, best)
        if _is_linear(best):
            return
    whole = best[-1] < MOST**2 * best[0] + NOISE_SECONDS
    if whole:
        lengths = [*lengths[1:], longest * STEP]
        runs = [*runs[1:], make(longest * STEP)]
        best = [float("inf")] * len(runs)
        for _ in range(ROUNDS_BEYOND):
            _measure(runs, best)
            if _is_linear(best[-2:]):
                return
    told = ", ".join(f"{length}: {seconds:.3f} s" for length, seconds in zip(lengths, best, strict=True))
    raise AssertionError(f"more than linear time; the best of {ROUNDS_BEYOND if whole else ROUNDS} for each: {told}")


def _measure(runs: Sequence[Callable[[], object]], best: list[float]) -> None:
    for place, run in enumerate(runs):
        for _ in range(2 if place < len(runs) - 1 else 1):
            best[place] = min(best[place], processor_seconds(run))


def _is_linear(best: Sequence[float]) -> bool:
    return all(after < MOST * before + NOISE_SECONDS for before, after in pairwise(best))


def processor_seconds(run: Callable[[], object]) -> float:
    """Of one run, in this process, without the garbage collector: what that takes depends on what else lives here."""
    collects = gc.isenabled()
    gc.disable()
    try:
        start = time.process_time()
        run()
        return time.process_time() - start
    finally:
        if collects:
            gc.enable()


def best_processor_seconds(run: Callable[[], object], enough: float, rounds: int = 5) -> float:
    """The best of some runs; the first that takes less than `enough` seconds ends them."""
    best = float("inf")
    for _ in range(rounds):
        best = min(best, processor_seconds(run))
        if best < enough:
            break
    return best
