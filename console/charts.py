"""Small charts as SVG, drawn on the server: where every line, bar and label lies. `charts.html` puts them on a page.

The drawing is 360 wide, about what it is shown at on a phone and in a column alike, so that its text has one size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .times import short

WIDTH, HEIGHT = 360, 170
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 24
TICKS = 3
MOST_DOTS = 14
"""Points of a line are drawn as dots too while there are so few."""


@dataclass(frozen=True)
class Series:
    """One line, or one colour of the bars; `values` has one figure for each label, None where there is none."""

    name: str
    values: Sequence[float | None]
    is_soft: bool = False
    """Of less weight than the first: drawn in the second colour."""


@dataclass(frozen=True)
class Tick:
    at: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Line:
    """One series as drawn: pieces of a line (a gap ends one), and its dots."""

    name: str
    is_soft: bool
    pieces: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    area: str = ""


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Chart:
    """A chart as it is drawn, and the same as a table."""

    id: str
    title: str
    says: str
    """What it shows, in one sentence: its description for a reader that does not see it."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    ticks: tuple[Tick, ...]
    labels: tuple[Tick, ...]
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    limit: float | None = None
    limit_name: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM
    empty: bool = False


def line_chart(
    id: str,
    title: str,
    says: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str,
    limit: float | None = None,
    limit_name: str = "",
    is_area: bool = False,
) -> Chart:
    """Lines over the labels; `limit` is one more line across."""
    known = [value for one in series for value in one.values if value is not None]
    top = _top([*known, *([limit] if limit is not None and known else [])])
    lines = tuple(_line(one, top, len(labels), is_area and not one.is_soft) for one in series)
    return Chart(
        id, title, says, ("", *(f"{one.name}, {unit}" if unit else one.name for one in series)),
        _table(labels, series), _ticks(top), _labels(labels), lines=lines,
        limit=_y(limit, top) if limit is not None else None, limit_name=limit_name, empty=not known,
    )  # fmt: skip


def bar_chart(id: str, title: str, says: str, labels: Sequence[str], series: Sequence[Series], *, unit: str) -> Chart:
    """Bars of the first series; the others stand in the table only."""
    values = series[0].values
    top = _top([value for value in values if value is not None])
    step = _span() / max(1, len(labels))
    bars = tuple(
        Bar(_r(LEFT + place * step + step * 0.15), _y(value, top), _r(step * 0.7), _r(_y(0, top) - _y(value, top)))
        for place, value in enumerate(values)
        if value
    )
    head = ("", *(f"{one.name}, {unit}" if unit else one.name for one in series))
    return Chart(
        id, title, says, head, _table(labels, series), _ticks(top), _labels(labels, step / 2), bars=bars,
        empty=not any(values),
    )  # fmt: skip


def _line(one: Series, top: float, count: int, is_area: bool) -> Line:
    step = _span() / max(1, count - 1)
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(one.values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((_r(LEFT + place * step), _y(value, top)))
    drawn = [piece for piece in pieces if piece]
    dots = tuple(point for piece in drawn for point in piece) if count <= MOST_DOTS else ()
    texts = tuple(" ".join(f"{x:g},{y:g}" for x, y in piece) for piece in drawn if len(piece) > 1)
    area = ""
    if is_area and len(drawn) == 1 and len(drawn[0]) > 1:
        floor = HEIGHT - BOTTOM
        area = f"{drawn[0][0][0]:g},{floor} {texts[0]} {drawn[0][-1][0]:g},{floor}"
    return Line(one.name, one.is_soft, texts, dots, area)


def _table(labels: Sequence[str], series: Sequence[Series]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (label, *("–" if one.values[place] is None else f"{one.values[place]:,.0f}" for one in series))
        for place, label in enumerate(labels)
    )


def _ticks(top: float) -> tuple[Tick, ...]:
    return tuple(Tick(_y(top * part / TICKS, top), short(top * part / TICKS), "end") for part in range(TICKS + 1))


def _labels(labels: Sequence[str], shift: float = 0.0) -> tuple[Tick, ...]:
    """The first, the middle and the last."""
    if not labels:
        return ()
    step = (_span() - 2 * shift) / max(1, len(labels) - 1)
    places = sorted({0, (len(labels) - 1) // 2, len(labels) - 1})
    found = []
    for place in places:
        anchor = "start" if place == 0 and len(places) > 1 else "end" if place == len(labels) - 1 else "middle"
        at = LEFT + shift + place * step
        # The outer two end where the drawing does.
        at = LEFT if anchor == "start" else WIDTH - RIGHT if anchor == "end" else at
        found.append(Tick(_r(at), labels[place], anchor))
    return tuple(found)


def _top(values: Sequence[float]) -> float:
    """A round figure that none is above, and that TICKS divides well."""
    most = max(values, default=0.0)
    if most <= 0:
        return float(TICKS)
    size = 10.0 ** math.floor(math.log10(most / TICKS))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor * TICKS >= most)
    # Whole things have no half ticks.
    return math.ceil(step) * TICKS if most >= TICKS else float(TICKS)


def _y(value: float, top: float) -> float:
    return _r(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top)


def _span() -> float:
    return float(WIDTH - LEFT - RIGHT)


def _r(value: float) -> float:
    return round(value, 1)
