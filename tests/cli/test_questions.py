"""Questions before a change: no changes nothing, and the exit code says so."""

import ast
from pathlib import Path

import pytest

from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.terminal import answered

CLI = Path(__file__).resolve().parents[2] / "cli"
ASKING = {
    "dismiss": ("dismiss", "ship-day"),
    "init": ("init", "--vault", "{root}/vault"),
    "model": ("config", "model", "use", "nobody/nothing"),
    "seed": ("import", "seed", "{root}/repository"),
    "undo": ("undo", "--of", "seed"),
}
"""By the module that asks: a command that comes to the question."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> ForkedSandbox:
    """With something to propose, and something to take back."""
    sandbox = ForkedSandbox(tmp_path_factory.mktemp("asked"))
    for name, rule in (("repository", "Always run the linter before a commit."), ("other", "Never push to main.")):
        (sandbox.root / name).mkdir()
        (sandbox.root / name / "CLAUDE.md").write_text(f"# Rules\n\n- {rule}\n", "utf-8")
    sandbox.memory("import", "seed", str(sandbox.root / "other"), "--yes")
    sandbox.memory("save", "convention", "ship-day", "--body", "We ship on Tuesdays.")
    return sandbox


def notes(sandbox: ForkedSandbox) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sandbox.vault.rglob("*.md")}


@pytest.mark.parametrize("typed", ["n\n", "\n", "\x04"], ids=["no", "nothing", "end"])
@pytest.mark.parametrize("module", ASKING)
def test_after_the_answer_no_nothing_is_done(sandbox: ForkedSandbox, module: str, typed: str) -> None:
    before = notes(sandbox)
    arguments = tuple(word.format(root=sandbox.root) for word in ASKING[module])
    status, told = answered(sandbox, arguments, typed)
    assert "[y/N]" in told
    assert "memory: nothing was" in told
    assert status == 1, told
    assert notes(sandbox) == before
    assert not (sandbox.root / "vault").exists()


def test_yes_dismisses_what_was_shown(sandbox: ForkedSandbox) -> None:
    status, told = answered(sandbox, ASKING["dismiss"], "y\n")
    assert (status, "We ship on Tuesdays." in told) == (0, True)
    assert "status: dismissed\n" in (sandbox.vault / "personal-private/convention/ship-day.md").read_text("utf-8")
    sandbox.memory("review", "--undo")


def test_no_other_command_asks_whether_to_go_ahead() -> None:
    asking = {
        file.stem
        for file in CLI.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "[y/N]" in node.value
    }
    # `memory guard` asks only where Claude Code has our other hooks (tests/hooks/test_install.py).
    assert asking == {*ASKING, "guard"}
