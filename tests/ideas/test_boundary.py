"""Only one module writes outside `MemoryVault/`: checked in the code, and by the files after whole flows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from memoryvault.pipelines.incubation import Answer
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.services.ideas.archive import promote, put_away, restore
from memoryvault.services.ideas.incubator import refresh_list
from memoryvault.services.undoing import Selector

from ..review.support import CHOICE, GUESS, RULE, Bed, said
from .support import IDEA, INCUBATOR, OTHER, ideas_file, old_idea, outside, write_down

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NOT_PRODUCT = {"training", "tests", "bench", "demo", "docs", "build", "dist"}

DOOR = "services/boundary.py"
WRITERS_BY_FOLDER = {
    "cli": "console doctor editor settings_file standard_streams uninstall",
    "hooks": "autostart client enqueue extension injected install once opencode recall skill",
    "index": "daemon database evaluation model_download mpnet_files reconcile service",
    "runtime": "atomic_file background hooklog large_change layout lock paths priority process_lock snapshot",
    "services": "action_index forgetting journal model_mining pausing scrubbing sessions skills state_db stores "
    "tombstones",
    "sources/completion": "agent_cli",
    "tasks/jobs": "indexing research research_child upkeep",
    "tasks/queue": "damage enqueue schema units wakeup",
    "vault": "marker store",
}
"""Every module that opens files for writing, moves or removes them, by its folder. A new module belongs here only if it
writes neither into the user's notes nor around VaultStore: most write to the state folder."""
WRITERS = {f"{folder}/{name}.py" for folder, names in WRITERS_BY_FOLDER.items() for name in names.split()}
KNOW_THE_USERS_FOLDER = {
    "cli/idea.py": "to print where the section is",
    "services/ideas/ledger.py": "makes changes of it, which the journal hands to the door",
    "services/ideas/incubator.py": "reads notes for links",
    "tasks/jobs/research.py": "hands the folder to a child that reads the notes in it",
    "services/ideas/scrubbing.py": "hands what it has scrubbed to the door",
    "runtime/settings.py": "says where it is",
    "runtime/settings_table.py": "says where it is",
}
"""Modules that can name a file of the user outside MemoryVault/. All except one neither open nor remove files."""
READ_HERE_WRITE_THERE = {"tasks/jobs/research.py"}

_CALLS = {"write_text", "write_bytes", "symlink_to", "hardlink_to", "touch", "unlink", "rename", "rmdir"}
"""Methods of Path; `replace` is one too, with one argument."""
_OURS = {"replace_file", "append_synced"}
"""Functions of `runtime/atomic_file.py`."""
_MODULE_CALLS = {
    "os": {"replace", "rename", "renames", "link", "symlink", "unlink", "remove", "rmdir", "removedirs", "truncate",
           "makedirs"},
    "shutil": {"rmtree", "move", "copy", "copy2", "copyfile", "copytree", "copyfileobj"},
}  # fmt: skip

_READING = re.compile(r"os\.O_(RDONLY|CLOEXEC|NONBLOCK|NOFOLLOW|DIRECTORY|NOCTTY)")
_WRITING = re.compile(r"[rbt]*[wax+][rwaxbt+]*")


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Every module of the product by its path, without other folders such as a virtual environment."""
    folders = [path for path in ROOT.iterdir() if path.is_dir()]
    product = [path for path in folders if path.name not in NOT_PRODUCT and not path.name.startswith(".")]
    found = sorted([*ROOT.glob("*.py"), *(file for folder in product for file in folder.rglob("*.py"))])
    return tuple((str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))) for path in found)


def writes(node: ast.AST) -> bool:
    """Whether the call opens a file for writing, or may do so, or creates, moves or removes one."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    owner, _, name = called.rpartition(".")
    if called == "os.open":  # Flags that are known not to write: a variable might.
        flags = "".join(map(ast.unparse, node.args[1:2])).split(" | ")
        return not all(_READING.fullmatch(flag) for flag in flags)
    if name == "open":  # open(path, mode) and path.open(mode); a computed mode may be anything.
        named = [word.value for word in node.keywords if word.arg == "mode"]
        modes = [*node.args[called in ("open", "io.open") : 2], *named]
        return any(not isinstance(mode, ast.Constant) or _WRITING.fullmatch(str(mode.value)) for mode in modes)
    if name == "replace" and owner != "os":
        return len(node.args) == 1 and not node.keywords  # Of a string it takes two.
    return name in _OURS or (owner != "" and name in _CALLS) or name in _MODULE_CALLS.get(owner, ())


@cache
def names(tree: ast.Module) -> frozenset[str]:
    """Attributes and names that are read, written or called."""
    return frozenset(
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    )


def names_the_users_folder(tree: ast.Module) -> bool:
    parents = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "parent")
    of_vault = any(
        isinstance(p.value, ast.Attribute) and p.value.attr in ("vault", "vault_path", "required_vault_path")
        for p in parents
    )
    # A field is a name that is written to; a function or property is not among the names.
    declares = any(isinstance(n, ast.FunctionDef) and n.name == "ideas_path" for n in ast.walk(tree))
    return of_vault or declares or "ideas_path" in names(tree)


def test_only_one_module_writes_outside() -> None:
    users = {name for name, tree in modules() if names(tree) & {"write_outside", "Approval"}}
    assert users == {DOOR, "vault/boundary.py", "vault/store.py"}, (
        "vault/store.py asks for the approval that DOOR gives"
    )
    approvals = [name for name, tree in modules() for node in ast.walk(tree)
                 if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Approval"]  # fmt: skip
    assert approvals == [DOOR]


def test_no_other_module_both_knows_the_users_folder_and_writes_files() -> None:
    assert {name for name, tree in modules() if names_the_users_folder(tree)} == set(KNOW_THE_USERS_FOLDER)
    assert set(KNOW_THE_USERS_FOLDER) & WRITERS == READ_HERE_WRITE_THERE


def test_every_module_that_writes_files_is_known() -> None:
    found = {name for name, tree in modules() if any(writes(node) for node in ast.walk(tree))}
    assert found - WRITERS == set(), "write through VaultStore, or enter it in WRITERS_BY_FOLDER"


def test_the_walk_finds_a_write() -> None:
    for code in ("open(x, 'w')", "Path(x).open('ab')", "p.write_text('x')", "os.replace(a, b)",
                 "os.open(x, os.O_WRONLY)", "shutil.rmtree(x)", "io.open(x, mode='r+')",
                 "p.unlink()", "p.rename(q)", "p.replace(q)", "p.rmdir()", "shutil.move(a, b)", "shutil.copy(a, b)",
                 "os.makedirs(x)", "open(x, mode)", "p.open(mode)", "os.open(x, flags)",
                 "os.open(x, os.O_RDONLY | extra)", "open(x, mode=how())"):  # fmt: skip
        assert any(writes(node) for node in ast.walk(ast.parse(code))), code
    for code in ("open(x)", "open(x, 'rb')", "os.open(x, os.O_RDONLY | os.O_CLOEXEC)", "'a'.replace('b', 'c')",
                 "day.replace(tzinfo=UTC)", "dataclasses.replace(x, a=1)", "p.open('rb')", "p.open()"):  # fmt: skip
        assert not any(writes(node) for node in ast.walk(ast.parse(code))), code


@pytest.mark.parametrize("mode", ["interactive", "auto"])
def test_whole_flows_leave_every_byte_outside_as_it_was(bed: Bed, mode: str) -> None:
    bed.env = {**bed.env, "MEMORY_REVIEW_MODE": mode}
    (bed.root / "Ideas.md").write_bytes(b"# Mine\r\n\r\nno end")
    (bed.root / "Diary").mkdir()
    (bed.root / "Diary" / "today.md").write_text(f"[[{INCUBATOR}/old/_index]]")
    before = outside(bed)
    bed.remember(IDEA, OTHER, RULE, CHOICE, GUESS)
    bed.remember(said(IDEA, "s2"), said(CHOICE, "s2"))
    old_idea(bed, "old", 400)
    old_idea(bed, "older", 500)
    refresh_list(bed.settings, bed.journal)
    for note in bed.reviewer.waiting():
        if note.kind == "idea-surface":
            bed.reviewer.decide(note.path, Reject(), run="t")
        elif note.kind != "incubator-gc":
            bed.reviewer.decide(note.path, Approve(), run="t")
    put_away(bed.journal, "old", Answer.DELETE, run="t", actor="idea")
    put_away(bed.journal, "older", Answer.ARCHIVE, run="t", actor="idea")
    restore(bed.journal, "old")
    promote(bed.journal, "old", ideas_file=bed.settings.ideas_path)
    bed.reviewer.undo_last()
    bed.undo.carry_out(Selector(last=True))
    assert outside(bed) == before


def test_with_consent_the_list_of_ideas_changes_and_nothing_else(silent: Bed) -> None:
    (silent.root / "Diary.md").write_text("private")
    silent.remember(IDEA, OTHER)
    write_down(silent, "Retry page")
    promote(silent.journal, "retry-page", ideas_file=silent.settings.ideas_path)
    assert outside(silent).keys() == {"Diary.md", "Ideas.md"}
    assert outside(silent)["Diary.md"] == b"private"
    assert ideas_file(silent).count("\n## ") == 3
    silent.undo.carry_out(Selector(last=True))
    assert ideas_file(silent).count("\n## ") == 1, "what the user wrote down stays"
