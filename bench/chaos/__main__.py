"""Run the chaos bench: `make chaos`, and in CI `python -m memoryvault.bench.chaos --short`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from .bed import Bed
from .huey_baseline import PlainVerdict, run_plain
from .restarts import RESTARTS, come_and_go
from .rounds import POINTS, at_point, plan
from .verdict import Verdict, judge

SHORT_KILLS = 24
SHORT_SECONDS = 300.0
"""Usually 15 s suffice; on a busy machine reaching every kill point takes longer."""
FULL_KILLS = 300
FULL_SECONDS = 3600.0
PLAIN_JOBS = 60
PLAIN_KILLS = 15


def main(argv: list[str]) -> int:
    """Run the bench; return 1 if anything was lost, doubled or left running."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=None, help=f"at least so many (default {FULL_KILLS})")
    parser.add_argument("--seconds", type=float, default=None, help="start no round after this time")
    parser.add_argument("--short", action="store_true", help="every way to die a few times, in about a minute")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--no-plain", action="store_true", help="leave out the comparison with plain huey")
    options = parser.parse_args(argv)
    kills = options.kills or (SHORT_KILLS if options.short else FULL_KILLS)
    seconds = options.seconds or (SHORT_SECONDS if options.short else FULL_SECONDS)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    chance = random.Random(seed)
    print(f"seed {seed}: at least {kills} kills", flush=True)
    with tempfile.TemporaryDirectory(prefix="memoryvault-chaos-") as folder:
        bed = Bed(Path(folder, "bed"), chance)
        try:
            rounds, took = _disturb(bed, kills, seconds)
            verdict = judge(bed)
        except BaseException:
            print(bed.errors()[-4000:], file=sys.stderr)
            raise
        finally:
            bed.stop_all()
        plain = None
        if not options.no_plain:
            transcripts = [session.transcript for session in bed.sessions][:PLAIN_JOBS]
            share = 4 if options.short else 1
            plain = run_plain(Path(folder, "plain"), transcripts[: PLAIN_JOBS // share], PLAIN_KILLS // share, chance)
        left = [] if options.short else _restart(Path(folder, "restarts"), chance)
        _report(bed, verdict, plain, rounds, took)
        if not options.short:
            print(f"{RESTARTS} restarts have left: {', '.join(left) or 'nothing'}")
        if not verdict.clean or bed.tally.unexpected:
            print(bed.errors()[-4000:], file=sys.stderr)
    short_of = bed.tally.total < kills and not options.short
    if short_of:
        print(f"only {bed.tally.total} kills in {took:.0f} s", file=sys.stderr)
    return 0 if verdict.clean and not bed.tally.unexpected and not short_of and not left else 1


def _restart(root: Path, chance: random.Random) -> list[str]:
    bed = Bed(root, chance)
    try:
        return come_and_go(bed, RESTARTS)
    finally:
        bed.stop_all()


def _disturb(bed: Bed, kills: int, seconds: float) -> tuple[int, float]:
    started, number = time.monotonic(), 0
    while time.monotonic() - started < seconds:
        if bed.tally.total < kills:
            plan(bed, number)
        elif missing := [point for point in POINTS if point not in bed.tally.points]:
            at_point(bed, missing[0])  # On a busy machine a round may end before this point.
        else:
            break
        number += 1
        if number % 25 == 0:
            print(f"  {number} rounds, {bed.tally.total} kills, {len(bed.sessions)} sessions", flush=True)
    return number, time.monotonic() - started


def _report(bed: Bed, verdict: Verdict, plain: PlainVerdict | None, rounds: int, took: float) -> None:
    tally = bed.tally
    print(f"\n{rounds} rounds in {took:.0f} s\n")
    print("| queue | kills | jobs | memories | lost | doubled | orphan processes |\n|---|---|---|---|---|---|---|")
    print(
        f"| this one | {tally.total} | {verdict.jobs} | {verdict.memories} | {verdict.lost} | {verdict.doubled} "
        f"| {verdict.orphans} |"
    )
    if plain is not None:
        print(
            f"| plain huey | {plain.kills} | {plain.jobs} | {plain.jobs} | {plain.lost} | {plain.doubled} "
            f"| {plain.orphans} |"
        )
    print("\nHow: " + ", ".join(f"{count} {what}" for what, count in sorted(tally.kills.items())))
    print("Where: " + ", ".join(f"{count} {point}" for point, count in sorted(tally.points.items())))
    if missing := [point for point in POINTS if point not in tally.points]:
        print("Not reached: " + ", ".join(missing))
    print(f"Dead jobs that were retried at the end: {verdict.replayed}")
    for line in (*verdict.details, *tally.unexpected):
        print(f"!! {line}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
