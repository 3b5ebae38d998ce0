"""Python 3.11.2, which Debian 12 has, matches possessive and atomic groups wrongly (mended in 3.11.5)."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import memoryvault

PURE = ("runtime", "vault", "pipelines", "sources", "schedules")
FOLDERS = (*PURE, "hooks", "index", "services", "tasks", "console", "cli")


def patterns_in(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """Those of a module's constant, in tuples and tables too."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (tuple, list, frozenset)):
        for item in value:
            yield from patterns_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from patterns_in(item, depth - 1)


def needs_new_python(pattern: re.Pattern[Any]) -> bool:
    parsed = repr(list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)))
    return "POSSESSIVE_REPEAT" in parsed or "ATOMIC_GROUP" in parsed


def test_no_pattern_has_a_possessive_or_atomic_group() -> None:
    seen: set[re.Pattern[Any]] = set()
    found = []
    for folder in FOLDERS:
        package = importlib.import_module(f"memoryvault.{folder}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                for pattern in set(patterns_in(value)) - seen:
                    seen.add(pattern)
                    if needs_new_python(pattern):
                        found.append(f"{info.name}.{name}")
    assert len(seen) > 200, memoryvault.__file__
    assert needs_new_python(re.compile(r"(?:a|b)*+(?>c)")), "they are found"
    assert found == []
