"""The repository is the package: what is on disk and what pyproject.toml installs must agree."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_SHIPPED = {"tests", "docs", "build", "dist"}


def _folders_with_code() -> set[str]:
    found = set()
    for file in ROOT.rglob("*.py"):
        folder = file.parent.relative_to(ROOT)
        if folder.parts and (folder.parts[0].startswith(".") or folder.parts[0] in NOT_SHIPPED):
            continue
        if any(part.endswith(".egg-info") or part == "__pycache__" for part in folder.parts):
            continue
        found.add(".".join(("memoryvault", *folder.parts)))
    return found


def test_every_folder_with_code_is_in_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(project["tool"]["setuptools"]["packages"]) == _folders_with_code()


def test_the_package_is_found_from_any_working_directory(tmp_path: Path) -> None:
    # A user's project may have folders of our names; hooks and commands run inside it.
    for name in ("tasks", "hooks", "vault", "index"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import memoryvault.vault.layout as m; print(m.__name__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "memoryvault.vault.layout", done.stderr
