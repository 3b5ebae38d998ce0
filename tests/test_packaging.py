"""The repository is the package: what is on disk and what pyproject.toml installs must agree."""

import ast
import posixpath
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from memoryvault.cli.output import HOW_TO, how_to

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("cli", "services", "tasks", "vault", "runtime", "index")
PRODUCT = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]


def test_marks_that_make_looks_for_stand_in_the_files_of_the_tests_themselves() -> None:
    """`make test` gives pytest only files that name them: one put by a helper would leave tests out."""
    named = re.compile(r"\bmark\.(slow|alone)\b")
    files = [path for path in (ROOT / "tests").rglob("*.py") if named.search(path.read_text("utf-8"))]
    assert [path.name for path in files if not path.name.startswith("test_")] == []
    assert len(files) > 50, "they are found"


@pytest.mark.slow
def test_every_page_that_a_command_names_is_installed_with_it() -> None:
    """Of pages elsewhere in docs/ whoever has no clone of the repository would look in vain."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    carried = {
        path.name
        for pattern in project["tool"]["setuptools"]["package-data"]["memoryvault"]
        for path in ROOT.glob(pattern)
        if path.parent == HOW_TO
    }
    told = [text for file in PRODUCT for text in _strings(ast.parse(file.read_text("utf-8")))]
    named = {name for text in told for name in re.findall(r"docs/how-to/([\w-]+\.md)", text)}
    asked = {
        f"{name}.md"
        for file in (ROOT / "cli").glob("*.py")
        for name in re.findall(r"""how_to\(["'](.+?)["']\)""", file.read_text("utf-8"))
    }
    assert {"miners.md", "research.md"} <= named
    assert "troubleshooting.md" in asked
    assert named | asked <= carried
    assert Path(how_to("models")).is_file()


def test_nobody_is_told_to_install_the_bare_name() -> None:
    """That name is somebody else's on the index; ours is memoryvault-agent."""
    told = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "plugin").rglob("*"), *PRODUCT]
    told = [file for file in told if file.suffix in (".md", ".py", ".sh")]
    bare = re.compile(r"(?:pip|pipx|uv tool) install (?:-\S+ )*['\"]?memoryvault(?!-agent)")
    assert [str(file.relative_to(ROOT)) for file in told if bare.search(file.read_text("utf-8"))] == []


def dead_links(pages: Mapping[str, str], files: Collection[str]) -> list[str]:
    """Of pages (name -> text): each relative link that leads to none of the files."""
    return [
        f"{name} -> {target}"
        for name, text in sorted(pages.items())
        for target in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", text)
        if posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) not in files
    ]


def _strings(tree: ast.Module) -> Iterator[str]:
    """Those that are not there for the reader of the code."""
    notes = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.value


def test_the_package_is_found_from_any_working_directory(tmp_path: Path) -> None:
    # A user's project may have folders of our names; hooks and commands run inside it.
    for name in (*FOLDERS, "hooks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import memoryvault.runtime.layout as m; print(m.__name__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "memoryvault.runtime.layout", done.stderr
