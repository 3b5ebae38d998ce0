"""Print the size of the project beside its goals: `make size`.

Counts the files that git tracks: Python, and the product's tables in TOML, which are to be read as code is. A module
counts as a crumb when it has fewer than 60 lines and one importer.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

from ..cli.main import COMMANDS
from ..runtime.settings_table import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = ("tests", "bench", "training", "demo", "docs", "pyproject.toml")
CRUMB_LINES = 60
WIDEST = 120
_PRIVATE = re.compile(r"^\s*(?:from|import)\s+(?:_(?!_)\w+|\w+\._\w+)", re.MULTILINE)


def tracked(pattern: str) -> list[Path]:
    """Return the tracked files of a pattern, relative to the repository."""
    done = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file."""
    return (ROOT / path).read_text("utf-8").splitlines()


def imported_modules(path: Path) -> set[str]:
    """Return the dotted names below the package that a module imports."""
    here = path.with_suffix("").parts
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level]
            target = (*base, *(node.module.split(".") if node.module else ()))
            found.add(".".join(target))
            found.update(".".join((*target, alias.name)) for alias in node.names)
    return found


def crumbs(product: list[Path]) -> list[Path]:
    """Return the small modules with a single importer in the product."""
    importers: Counter[str] = Counter()
    for path in product:
        importers.update(imported_modules(path))
    small = [path for path in product if path.name != "__init__.py" and len(lines_of(path)) < CRUMB_LINES]
    return [path for path in small if importers[".".join(path.with_suffix("").parts)] == 1]


def main() -> int:
    """Print the table."""
    modules = tracked("*.py")
    product = [path for path in modules if path.parts[0] not in OUTSIDE]
    tables = [path for path in tracked("*.toml") if path.parts[0] not in OUTSIDE]
    tests = [path for path in modules if path.parts[0] == "tests"]
    wide = [path for path in modules if any(len(line) > WIDEST for line in lines_of(path))]
    private = [path for path in product if _PRIVATE.search("\n".join(lines_of(path)))]
    pages = tracked("*.md")
    terms = [line for line in lines_of(Path("docs/glossary.md")) if line.startswith("| ")][1:]
    rows = (
        ("product, lines", sum(len(lines_of(path)) for path in (*product, *tables)), 56_000),
        ("tests, lines", sum(len(lines_of(path)) for path in tests), 50_000),
        ("commands at the top level", len({name.split()[0] for name in COMMANDS}), 25),
        ("settings", len(SETTINGS), 50),
        ("terms in the glossary", len(terms), 35),
        ("modules under 60 lines with one importer", len(crumbs(product)), 10),
        (f"files with a line over {WIDEST} characters", len(wide), 0),
        ("modules that import a private module of the interpreter", len(private), 0),
        (
            "words in docs",
            sum(len((ROOT / path).read_text("utf-8").split()) for path in pages if path.parts[0] == "docs"),
            35_500,
        ),
    )
    print("| what | now | goal |\n|---|---|---|")
    for what, now, goal in rows:
        print(f"| {what} | {now:,} | {goal:,} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
