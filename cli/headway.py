"""What a run of the worker is at, what it leaves for later: jobs by what they are for their user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from ..tasks.queue.headway import Headway
from ..tasks.queue.records import DueLater
from .output import counted

_MINING = ("session to mine", "sessions to mine")
_INDEXING = ("pass over the index", "passes over the index")
NAMES: Mapping[str, tuple[str, str]] = {
    "reflect.session": _MINING,
    "reflect.corpus": _MINING,
    "review.apply": ("look for decisions of yours", "looks for decisions of yours"),
    "research.idea": ("idea to look up", "ideas to look up"),
    "discover.scan": ("source to look through", "sources to look through"),
    "adapt.evaluate": ("find to judge", "finds to judge"),
    "memory.import": ("look for memories of your agent", "looks for memories of your agent"),
    "index.reconcile": _INDEXING,
    "embed.drain": _INDEXING,
    "model.upgrade": ("change of the model", "changes of the model"),
    "dashboard.write": ("dashboard note to write", "dashboard notes to write"),
}
"""Kind of a job -> one, many. The order is that in which they are told; kinds that are not here are `others`."""
_OTHERS = ("other", "others")


def headway_line(headway: Headway) -> str:
    """`working for 34 s: 5 done, left: 9 sessions to mine, 2 ideas to look up`."""
    counts: Counter[tuple[str, str]] = Counter()
    for kind, number in headway.left.items():
        counts[NAMES.get(kind, _OTHERS)] += number
    names = [*dict.fromkeys(NAMES.values()), _OTHERS]
    left = [counted(counts[name], *name) for name in names if counts[name]]
    by = "the worker that is running works" if headway.elsewhere else "working"
    done = [] if headway.elsewhere else [f"{headway.done:,} done"]
    return f"{by} for {headway.seconds:.0f} s: {', '.join([*done, 'left: ' + ', '.join(left) if left else 'ending'])}"


def later_line(later: Iterable[DueLater], now: datetime, *, running: bool) -> str:
    """`due later: 2 ideas to look up (from 14:05), 1 other (15:00); a running worker does that (`memory service up`)`;
    '' if nothing is. `now` has the zone in which times are told; `running`: a worker is."""
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for each in later:
        name = NAMES.get(each.kind, _OTHERS)
        jobs, first_at = found.get(name, (0, each.first_at))
        found[name] = jobs + each.jobs, min(first_at, each.first_at)
    if not found:
        return ""
    told = [
        f"{counted(jobs, *name)} ({'from ' if jobs > 1 else ''}{_clock(first_at, now)})"
        for name, (jobs, first_at) in sorted(found.items(), key=lambda item: item[1][1])
    ]
    who = "the worker that is running does that" if running else "a running worker does that (`memory service up`)"
    return f"due later: {', '.join(told)}; {who}"


def _clock(moment: float, now: datetime) -> str:
    then = datetime.fromtimestamp(moment, now.tzinfo)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"
