"""Commands on single entries: which ones a session would get, and how a list shows them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

import pytest

from memoryvault.cli.main import main
from memoryvault.index.recall import RecallAnswer
from memoryvault.tests.support.command import Command, Said
from memoryvault.tests.support.files import put, put_note
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

PRIVATE = "personal-private"
ANSWERS = f"{PRIVATE}/workflow/db-backup.md"
WEAK = f"{PRIVATE}/fix/wal.md"


def write(vault: Path, path: str, text: str, **fields: str) -> Path:
    values = {"status": "active", "kind": path.split("/")[-2], "created": "2026-01-31", "updated": "2026-01-31"}
    return put_note(vault, path, text, **(values | fields))


@pytest.fixture
def notes(vault: Path) -> Path:
    """One that answers a question about backups, one that only shares a word with it, and others."""
    write(vault, ANSWERS, "Take a backup of the database before every migration.")
    write(vault, WEAK, "A lock is drawn beside each invoice that was paid in the shop.")
    write(vault, f"{PRIVATE}/preferences/release-notes.md", "Release notes are bullet points.")
    assert main(["vault", "reindex"]) == 0
    return vault


QUESTION = "when do we take a backup of the database, also after a lock"


def test_recall_sets_apart_what_hardly_answers(notes: Path, memory: Command) -> None:
    lines = memory("recall", QUESTION).out.splitlines()
    assert (lines[1].strip(), lines[2], lines[4].strip()) == (ANSWERS, "these hardly answer:", WEAK)
    found = memory.json("recall", QUESTION)["hits"]
    assert [(hit["path"], hit["is_weak"]) for hit in found] == [(ANSWERS, False), (WEAK, True)]


def test_recall_says_if_nothing_answers_and_shows_the_two_nearest(notes: Path, memory: Command) -> None:
    for room in ("cellar", "attic", "kitchen"):
        write(notes, f"{PRIVATE}/fact/{room}.md", f"The lock of the {room} is new.")
    lines = memory("recall", "is the lock of my bicycle at home or in the garden shed").out.splitlines()
    assert lines[0] == "nothing in the vault answers that; the nearest:"
    assert len(lines) == 1 + 2 * 2
    told = memory("recall", "is the lock of my bicycle at home or in the garden shed", "--project", "shop")
    assert told.out.startswith(lines[0])
    assert "searched the entries of shop and those that belong to no project; --all-projects searches all" in told.err


def test_below_a_rule_stands_what_the_user_said_since_to_replace_it(
    notes: Path, memory: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = {"status": "pending", "source": "{host: claude, session: s-1}", "supersedes": f'"[[{ANSWERS[:-3]}]]"'}
    write(notes, f"{PRIVATE}/_review/nightly.md", "From now on, the nightly copy is enough.", **since)
    told = "not confirmed: From now on, the nightly copy is enough."
    assert told in memory("recall", QUESTION).out.splitlines()[2]
    assert memory.json("recall", QUESTION)["hits"][0]["said_since"].endswith(told)
    monkeypatch.setenv("MEMORY_RECALL_UNREVIEWED", "false")
    assert told not in memory("recall", QUESTION).out


def test_where_the_vault_is_gone_nothing_found_is_no_answer(notes: Path, memory: Command) -> None:
    notes.rename(notes.with_name("moved"))
    for words in (["recall", "zebra"], ["recall", "zebra", "--json"]):
        assert f"memory: the vault {notes} is not there: mount it; " in memory(*words, code=1).err


def test_a_hit_bears_the_day_on_which_it_was_said_or_changed_since(notes: Path, memory: Command) -> None:
    said = {"surfaced_at": "2024-05-17T12:00:00Z"}
    write(notes, ANSWERS, "Take a backup of the database before every migration.", **said)
    assert ", 2024-05-17)" in memory("recall", QUESTION).out
    hit = memory.json("recall", QUESTION)["hits"][0]
    assert (hit["surfaced_at"], hit["created"]) == (said["surfaced_at"], hit["updated"])
    write(notes, ANSWERS, "Take a backup of the database before every migration.", updated="2026-02-01", **said)
    assert ", 2026-02-01)" in memory("recall", QUESTION).out


def test_the_highest_number_of_hits_is_named(notes: Path, memory: Command) -> None:
    assert "memory: at most 100 are given" in memory("recall", "backup", "-k", "10000").err


@pytest.mark.parametrize("folder", [".", "till"])
@pytest.mark.parametrize(("agent", "found"), [("", 1), ("1", 0)])
def test_what_the_project_and_none_do_not_answer_another_may_for_a_person(
    notes: Path, memory: Command, monkeypatch: pytest.MonkeyPatch, folder: str, agent: str, found: int
) -> None:
    write(notes, "personal-projects/shop/fix/kettle.md", "The porcelain kettle belongs upstairs.", project="shop")
    memory("vault", "reindex")
    here = Path(os.environ["HOME"], folder)
    here.mkdir(exist_ok=True, parents=True)
    monkeypatch.chdir(here)
    if agent:
        monkeypatch.setenv("CLAUDECODE", agent)
    told = memory("recall", "where does the porcelain kettle belong")
    assert told.out.count("personal-projects/shop/fix/kettle.md") == found
    assert ("this is of other projects" in told.err) == bool(found and folder == "till")


def test_what_hardly_answers_here_is_not_listed_as_of_other_projects(
    notes: Path, memory: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, object] = {"kind": "fix", "created": "", "updated": "", "score": 0.5, "title": "Kettle"}
    here = [{**told, "path": f"{name}.md", "project": name, "is_weak": True} for name in ("till", "")]
    other = {**told, "path": "shop.md", "project": "shop"}

    def asked(*request: Any, **_: object) -> RecallAnswer:
        return RecallAnswer((other, *here) if request[3]["all_projects"] else (*here,))

    monkeypatch.setattr("memoryvault.cli.recall.recall_entries", asked)
    (folder := Path(os.environ["HOME"], "till")).mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert [line.strip() for line in memory("recall", "kettle").out.splitlines() if ".md" in line] == ["shop.md"]


def paths(memory: Command, *words: str) -> list[str]:
    """The paths of the hits, or of the entries listed."""
    answer = memory.json(*words)
    return sorted(each["path"] for each in (answer["hits"] if isinstance(answer, dict) else answer))


IDEA = f"{PRIVATE}/_idea-incubator/retry-page/_index.md"
OF_SHOP = "personal-projects/shop/fix/backup.md"


@pytest.fixture
def places(notes: Path) -> Path:
    """Beside them an idea, an entry of a project, and two notes without a header."""
    write(notes, IDEA, "A page of retries.", kind="idea", status="incubating")
    write(notes, OF_SHOP, "Take a backup of the shop.", project="shop", tags="[db]")
    for path in ("office/tea.md", "personal-projects/shop/coffee.md"):
        put(notes / path, "A backup of the kettle is bought in May.\n")
    assert main(["vault", "reindex"]) == 0
    return notes


def test_a_filter_that_names_a_kind_reaches_where_its_notes_wait(places: Path, memory: Command) -> None:
    write(places, f"{PRIVATE}/fact/leak.md", "The pool leaked.", kind="fact", status="resolved")
    write(places, f"{PRIVATE}/_archive/pool.md", "The pool was tiny.", kind="fact", status="superseded")
    memory("vault", "reindex")
    assert paths(memory, "search", "--filter", "kind=fact") == [f"{PRIVATE}/fact/leak.md"]
    assert paths(memory, "recall", "which pool leaked?", "--filter", "kind=fact") == [f"{PRIVATE}/fact/leak.md"]
    assert f"{PRIVATE}/fact/leak.md" not in paths(memory, "search", "--filter", "NOT kind=fix")
    assert paths(memory, "search", "--filter", "kind=idea") == [IDEA]
    assert paths(memory, "recall", "page of retries", "--filter", "kind=idea") == [IDEA]
    assert paths(memory, "list", "--kind", "idea") == paths(memory, "list", "--status", "incubating") == [IDEA]
    assert paths(memory, "search", "--filter", "status=incubating") == [IDEA]
    assert IDEA not in paths(memory, "search", "--filter", "NOT kind=idea")


def test_costs_answer_no_question_and_are_listed_by_the_filter_the_newest_first(notes: Path, memory: Command) -> None:
    for day in ("2026-07-01", "2026-07-09"):
        place = f"personal-projects/shop/session-cost/s-{day}.md"
        write(notes, place, "What the session cost, by its usage records.", project="shop", created=day, updated=day)
    memory("vault", "reindex")
    question = "what did the session cost by the usage records?"
    assert memory.json("recall", question, "--project", "shop")["hits"] == []
    hits = memory.json("recall", "--filter", "kind=session-cost", "--project", "shop")["hits"]
    assert [(hit["kind"], hit["created"]) for hit in hits] == [
        ("session-cost", "2026-07-09"),
        ("session-cost", "2026-07-01"),
    ]


def test_an_explicit_group_or_tag_is_not_narrowed_by_the_folder(places: Path, memory: Command) -> None:
    assert OF_SHOP not in paths(memory, "search", "backup")
    assert paths(memory, "search", "--tag", "db") == [OF_SHOP], "which needs no question"
    for words in (["--group", "personal-projects"], ["--filter", "group=personal-projects"], ["--tag", "db"]):
        assert OF_SHOP in paths(memory, "search", "backup", *words), words
        assert OF_SHOP not in paths(memory, "recall", "backup", *words, "--project", "blog"), words
    assert OF_SHOP not in paths(memory, "search", "backup", "--filter", "NOT group=office")


def test_search_by_project_brings_this_project_alone(places: Path, memory: Command) -> None:
    assert set(paths(memory, "search", "--project", "shop")) == {OF_SHOP, "personal-projects/shop/coffee.md"}
    assert ANSWERS in paths(memory, "recall", "backup", "--project", "shop")


def test_a_note_without_a_header_is_active_and_of_the_group_of_its_folder(places: Path, memory: Command) -> None:
    assert "office/tea.md" in paths(memory, "search", "kettle", "--filter", "status=active")
    for words in (["search", "--filter", "group=office"], ["search", "kettle", "--group", "office"]):
        assert paths(memory, *words) == ["office/tea.md"]
    assert paths(memory, "list", "--group", "office") == ["office/tea.md"]
    assert set(paths(memory, "list", "--group", "personal-projects/shop")) == {
        OF_SHOP,
        "personal-projects/shop/coffee.md",
    }
    plain = "personal-private/workflow/plain.md"
    put(places / plain, "A backup of the plain.\n")
    memory("vault", "reindex")
    for words in (["list", "--group"], ["search", "--group"], ["search", "backup", "--group"]):
        assert set(paths(memory, *words, "personal-private/workflow")) == {ANSWERS, plain}, "with a header and without"


def test_the_group_of_all_projects_is_that_of_the_folders_project(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Command
) -> None:
    (tmp_path / "shop/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    memory("save", "fix", "lock", "--group", "personal-projects", "--body", "The disk was full.")
    assert "project: shop\n" in (vault / "personal-projects/shop/fix/lock.md").read_text("utf-8")
    monkeypatch.chdir("/")
    said = memory("save", "fix", "other", "--group", "personal-projects", "--body", "The network was away.", code=2)
    assert "which project?" in said.err


SAID = "We take a backup of the database before each migration, since the one of last spring could not be undone"


def test_a_list_tells_of_each_entry_what_it_says_and_when_it_was_said(vault: Path, memory: Command) -> None:
    told = {"surfaced_at": "2024-05-06T10:00:00Z", "project": "shop"}
    path = "personal-projects/shop/workflow/backup.md"
    write(vault, path, f"# Backups\n\n{SAID}.\n\n## Evidence\n\n> it was said", **told)
    write(vault, WEAK, "The database was locked.", status="dismissed", updated="2026-03-01")
    assert memory("list", "--status", "all").out.splitlines() == [
        "2026-03-01  The database was locked.  (fix, any project, dismissed)",
        f"            {WEAK}",
        f"2024-05-06  {SAID}.  (workflow, shop)",
        f"            {path}",
    ]
    (one,) = memory.json("list")
    assert (one["said"], one["statement"]) == ("2024-05-06", f"{SAID}.")


@pytest.mark.parametrize("columns", [80, 120, 200])
@pytest.mark.parametrize("text", [SAID, "データベースの移行の前には必ずバックアップを取る。" * 3])
def test_on_a_terminal_a_line_of_a_list_fits(vault: Path, tmp_path: Path, columns: int, text: str) -> None:
    write(vault, WEAK, text)
    terminal = Terminal(ForkedSandbox(tmp_path), ["list"], COLUMNS=str(columns))
    line, path = terminal.rest().splitlines()
    assert terminal.close() == 0
    assert (" …  (fix, any project)" in line) == (columns < 200)
    assert columns - 24 < sum(1 + (east_asian_width(each) in "WF") for each in line) < columns or columns == 200
    assert path.strip() == WEAK


# --- saving what is there already ---

SHORT = "Answers are short and say what was done."


@pytest.fixture
def save(vault: Path, memory: Command) -> Callable[..., Said]:

    def run(*words: str, body: str = SHORT, code: int = 0) -> Said:
        return memory("save", "preferences", *words, "--body", body, code=code)

    return run


def notes_of(vault: Path) -> set[str]:
    return {str(path.relative_to(vault)) for path in vault.rglob("*.md")}


@pytest.mark.parametrize("options", [[], ["--always-load"], ["--project", "shop"]])
def test_what_is_said_already_is_not_saved_again(vault: Path, save: Callable[..., Said], options: list[str]) -> None:
    save("short", *options)
    (path,) = before = notes_of(vault)
    assert save("brief", *options, code=1).err == f"memory: {path} says that already: nothing was written\n"
    assert notes_of(vault) == before


def test_an_entry_is_saved_although_it_resembles_one(vault: Path, save: Callable[..., Said], memory: Command) -> None:
    save("short")
    told = f"memory: saved beside one that says nearly the same: {PRIVATE}/preferences/short.md"
    assert save("other", body="The answers are short, and they say what was done.").err == f"{told}\n"
    (vault / f"{PRIVATE}/preferences/other.md").unlink()
    shown = save("always", "--always-load", "--json")
    assert (json.loads(shown.out)["like"], shown.err) == ([f"{PRIVATE}/preferences/short.md"], f"{told}\n")
    (vault / f"{PRIVATE}/_always-load/always.md").unlink()
    memory("dismiss", "short", "--yes")
    assert save("anew").err == f"{told} (dismissed)\n"


def test_what_says_something_else_or_is_of_another_project_is_saved_without_a_word(save: Callable[..., Said]) -> None:
    save("short", "--project", "shop")
    assert save("short", "--project", "attic").err == ""
    assert save("long", body="Reports are long and say what is left to do.").err == ""
    assert save("not", body="Answers are never short and never say what was done.").err == ""


def test_writing_a_topic_warns_of_an_index_that_is_too_long(vault: Path, memory: Command) -> None:
    put(vault / "personal-projects/shop/memory/MEMORY.md", "- a line\n" * 200)
    write_topic = "vault topics write deploy --project shop --type project --description How --body Tag"
    assert "memory: the index has 201 lines; sessions see the first 200" in memory(*write_topic.split()).err
