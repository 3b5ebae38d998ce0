"""Topics: a file and its index line, changed together."""

import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli.main import build_parser
from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.index.filters import parse_filter
from memoryvault.index.scope import ON_DEMAND
from memoryvault.pipelines.topic_index import index_lines
from memoryvault.runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound, UsageError
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.topics import Topics
from memoryvault.services.undoing import Selector
from memoryvault.tests.support import forked
from memoryvault.tests.support.command import Command, Said
from memoryvault.tests.support.files import put
from memoryvault.vault.automemory import INDEX_BYTES, INDEX_LINES, READ_COMMAND, TYPES
from memoryvault.vault.store import MAX_ENTRY_BYTES

from ..review.support import PRELUDE, Bed

FOLDER = "personal-projects/shop/memory"
WRITE = "import sys\nfrom memoryvault.services.topics import Topics\ntopics = Topics(store, journal, 'shop')\n"


def topics(bed: Bed) -> Topics:
    return Topics(bed.store, bed.journal, "shop")


def write(bed: Bed, slug: str, body: str = "Body.", **options: object) -> str:
    known: dict[str, object] = {"type_": "project", "description": f"About {slug}", **options}
    return topics(bed).write(slug, body, **known).hash  # type: ignore[arg-type]  # keyword options


def index(bed: Bed) -> str:
    return (bed.vault / FOLDER / "MEMORY.md").read_text("utf-8")


def files(bed: Bed) -> list[str]:
    return [f"{slug}.md" for _, slug in index_lines(index(bed))]


def test_a_topic_is_written_in_the_format_of_the_agent_with_its_line(bed: Bed) -> None:
    write(bed, "deploy", "Tag, then push.", name="How we deploy")
    assert index(bed) == "- [How we deploy](deploy.md) — About deploy\n"
    entry = bed.store.read(f"{FOLDER}/deploy.md")
    assert (entry.kind, entry.tags, entry.project, entry.title) == ("topic", ("project",), "shop", "About deploy")
    assert entry.written_by_agent
    assert not entry.always_load
    assert entry.extra["metadata"] == {"type": "project"}
    topic = topics(bed).read("deploy")
    assert (topic.name, topic.body) == ("How we deploy", "Tag, then push.")


def test_a_topic_of_two_versions_is_given_in_neither_and_not_added_to(bed: Bed) -> None:
    write(bed, "deploy", "Tag, then push.")
    file = bed.vault / FOLDER / "deploy.md"
    file.write_text(file.read_text() + "<<<<<<< HEAD\nOn Mondays.\n=======\nOn Fridays.\n>>>>>>> origin/main\n")
    before = file.read_text()
    with pytest.raises(EntryInvalid, match="keep one of them in personal-projects/shop/memory/deploy"):
        topics(bed).read("deploy")
    with pytest.raises(EntryInvalid, match="keep one of them"):
        topics(bed).write("deploy", "More.", append=True)
    assert file.read_text() == before


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: t\ndescription: Five seconds\ntype: feedback\noriginSessionId: x\n---\nBody.\n",
        '---\nname: t\ndescription: "Five seconds"\nmetadata: \n  node_type: memory\n  type: feedback\n---\n\nBody.\n',
    ],
)
def test_files_of_every_generation_are_read_and_keep_their_own_fields(bed: Bed, text: str) -> None:
    put(bed.vault / FOLDER / "t_1.md", text)
    topic = topics(bed).read("t_1")
    assert (topic.type, topic.description) == ("feedback", "Five seconds")
    write(bed, "t_1", "New.", replace=topic.hash, type_="user", description="Ten seconds")
    after = (bed.vault / FOLDER / "t_1.md").read_text()
    assert topics(bed).read("t_1").description == "Ten seconds"
    for kept in ("originSessionId: x", "node_type: memory"):
        assert (kept in after) == (kept in text)


def test_no_writer_overwrites_what_it_has_not_read(bed: Bed) -> None:
    first = write(bed, "deploy", "One.")
    with pytest.raises(EntryExists, match="`replace`"):
        write(bed, "deploy", "Two.")
    second = write(bed, "deploy", "Two.", replace=first)
    with pytest.raises(EditConflict, match="read it again"):
        write(bed, "deploy", "Three.", replace=first)
    with pytest.raises(EditConflict):
        write(bed, "deploy", "Three.", replace="")
    write(bed, "deploy", "And more.", append=True)
    assert topics(bed).read("deploy").body == "Two.\n\nAnd more."
    assert second != first
    with pytest.raises(EntryNotFound):
        write(bed, "none", "x", replace=first)


@pytest.mark.parametrize(
    "slug", ["../x", "a/b", "/etc/x", "MEMORY", "memory", "", ".x", "a b", "x" * 101, "a.md", "ä", "a\n"]
)
def test_no_slug_leads_out_of_the_folder(bed: Bed, slug: str) -> None:
    for act in (lambda: write(bed, slug), lambda: topics(bed).remove(slug), lambda: topics(bed).read(slug)):
        with pytest.raises(UsageError):
            act()
    assert bed.files() == {}


@pytest.mark.parametrize("slug", ["aux", "CON", "com1"])
def test_no_new_topic_has_a_name_that_windows_reserves_and_one_that_has_can_go(bed: Bed, slug: str) -> None:
    with pytest.raises(UsageError, match="Windows reserves"):
        write(bed, slug)
    bed.note(f"{FOLDER}/{slug}.md", "From elsewhere.", kind="topic")
    assert topics(bed).read(slug).body == "From elsewhere."
    topics(bed).remove(slug)
    assert not (bed.vault / FOLDER / f"{slug}.md").exists()


def test_secrets_and_people_go(bed: Bed) -> None:
    token = "ghp_" + "b" * 36
    write(bed, "deploy", f"token {token}", description=f"token {token} of ann@example.com")
    assert not any(token in text or "ann@" in text for text in bed.files().values())
    with pytest.raises(UsageError, match="secret"):
        write(bed, token, "A token.")


@pytest.mark.parametrize(
    "wrong",
    [{"body": " "}, {"type_": "rule"}, {"type_": None}, {"description": ""}, {"description": "x" * 400}],
)
def test_invalid_topic_is_refused(bed: Bed, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        write(bed, "deploy", **wrong)  # type: ignore[arg-type]  # wrong on purpose
    assert bed.files() == {}


def test_a_topic_does_not_grow_without_end(bed: Bed) -> None:
    write(bed, "deploy", "x" * 99_000)
    with pytest.raises(EntryInvalid, match="another one"):
        write(bed, "deploy", "y" * 2000, append=True)


def test_a_removed_topic_is_kept_in_the_archive(bed: Bed) -> None:
    write(bed, "deploy", "Tag, then push.")
    write(bed, "other")
    archived = topics(bed).remove("deploy")
    assert files(bed) == ["other.md"]
    assert "Tag, then push." in bed.files()[archived]
    assert bed.store.read(archived).effective_status == "archived"


def test_the_users_own_lines_survive(bed: Bed) -> None:
    mine = "# Mine\r\n\r\n<!-- how to -->\r\n- [Old](old.md) — gone\r\nProse.\r\n"
    put(bed.vault / FOLDER / "MEMORY.md", mine)
    write(bed, "deploy")
    topics(bed).remove("deploy")
    assert (bed.vault / FOLDER / "MEMORY.md").read_bytes() == mine.encode()


def test_rebuild_keeps_the_line_of_a_topic_that_cannot_be_read(bed: Bed) -> None:
    wanted = "- [Deploy](deploy.md) — how we deploy"
    topics(bed).write("deploy", "x", type_="project", description="how we deploy", name="Deploy")
    (bed.vault / topics(bed).folder / "deploy.md").write_bytes(b"x" * (MAX_ENTRY_BYTES + 1))
    assert not topics(bed).rebuild_index()
    assert wanted in bed.files()[topics(bed).index_path]


def test_rebuild_gives_each_topic_one_line_and_removes_dead_ones(bed: Bed) -> None:
    write(bed, "deploy")
    (bed.vault / FOLDER / "lost.md").write_text("No header.\n")
    (bed.vault / FOLDER / "a b.md").write_text("x\n")
    with (bed.vault / FOLDER / "MEMORY.md").open("a") as file:
        file.write("- [Gone](gone.md)\n- [Twice](deploy.md)\n" + "line\n" * 300)
    assert topics(bed).rebuild_index()
    assert sorted(files(bed)) == ["deploy.md", "lost.md"]
    assert not topics(bed).rebuild_index()


def test_a_file_that_can_not_be_read_stands_in_nobodys_way_and_is_named(bed: Bed) -> None:
    write(bed, "deploy")
    folder = bed.vault / FOLDER
    (folder / "folder.md").mkdir()
    (bed.root / "secret.md").write_text("Secret.\n")
    (folder / "link.md").symlink_to(bed.root / "secret.md")
    (folder / "huge.md").write_bytes(b"x" * (MAX_ENTRY_BYTES + 1))
    (folder / "a b.md").write_text("x\n")
    store = bed.store
    assert [topic.slug for topic in Topics(store, bed.journal, "shop").all()] == ["deploy"]
    assert {path.rpartition("/")[2] for path in store.passed_over} == {"folder.md", "link.md", "huge.md", "a b.md"}
    assert "a b.md" in store.passed_over[f"{FOLDER}/a b.md"], "lists print the reason alone"
    assert not topics(bed).rebuild_index()
    (folder / "MEMORY.md").write_text("- [Folder](folder.md)\n")
    assert topics(bed).rebuild_index()
    assert files(bed) == ["deploy.md"]


def test_the_command_from_end_to_end(ask: Bed, memory: Command) -> None:

    def topics(*words: str, project: str = "shop", code: int = 0) -> Said:
        return memory("vault", "topics", *words, "--project", project, code=code)

    for name, slug in (("shop", "shop"), ("My Shop", "my-shop"), ("con", "con-it")):
        assert topics("list", project=name).out == f"{slug} has no topics\n", "a name is given as in any other command"
    write_it = ("write", "deploy", "--type", "project", "--description", "Deploying", "--body", "Tag. See [[b]].")
    assert topics(*write_it).out.strip() == str(ask.vault / FOLDER / "deploy.md")
    topic = json.loads(topics("read", "deploy", "--json").out)
    assert "use `replace`" in topics("write", "deploy", "--body", "x", code=1).err
    topics("write", "deploy", "--replace", topic["hash"], "--body", "Push.")
    assert "Push." in topics("read", "deploy").out
    (ask.vault / FOLDER / "MEMORY.md").write_text("")
    assert "was repaired" in topics("rebuild-index").out
    (ask.vault / FOLDER / "MEMORY.md").write_text("line\n" * 300)
    assert "sessions see the first 200" in topics("rebuild-index").err
    topics("rm", "deploy")
    memory("vault", "topics", "read", code=2)
    topics("read", "deploy", code=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["journal-pending", "vault-before-rename", "journal-applied", "journal-applied@2", "journal-recorded"]
)
@pytest.mark.parametrize("repair", ["next write", "start of the worker", "rebuild-index"])
def test_a_write_that_is_killed_is_whole_or_not_there(bed: Bed, point: str, repair: str) -> None:
    write(bed, "old")
    code = WRITE + "topics.write('new', 'Body.', type_='user', description='New')\n"
    assert bed.run_python(code, point) == -signal.SIGKILL
    if repair == "next write":
        write(bed, "third")
    elif repair == "rebuild-index":
        topics(bed).rebuild_index()
    else:
        assert forked.memory(bed.env, "service", "worker", "--until-idle").returncode == 0
    on_disk = {path.rsplit("/", 1)[-1] for path in bed.files() if path.startswith(FOLDER)} - {"MEMORY.md"}
    assert on_disk == set(files(bed))
    if point.startswith("journal-applied") or point == "journal-recorded":
        assert "new.md" in on_disk
    write(bed, "new" if "new.md" not in on_disk else "newer")


@pytest.mark.slow
def test_two_writers_at_once_lose_nothing(bed: Bed) -> None:
    code = (
        PRELUDE
        + WRITE
        + (
            "me = sys.argv[1]\n"
            "for number in range(25):\n"
            "    topics.write(f'{me}-{number}', 'Body.', type_='user', description=f'About {number}')\n"
            "    topics.write('shared', f'{me} said {number}.', type_='user', description='Shared', append=True)\n"
        )
    )
    running = [subprocess.Popen([sys.executable, "-c", code, me], env={**bed.env}) for me in ("ann", "bob")]
    assert [process.wait(60) for process in running] == [0, 0]
    wanted = {f"{me}-{number}" for me in ("ann", "bob") for number in range(25)}
    assert {topic.slug for topic in topics(bed).all()} == wanted | {"shared"}
    assert sorted(files(bed)) == sorted(f"{slug}.md" for slug in wanted | {"shared"})
    said = topics(bed).read("shared").body.split("\n\n")
    assert sorted(said) == sorted(f"{me} said {number}." for me in ("ann", "bob") for number in range(25))
    assert not topics(bed).rebuild_index()


def test_topics_are_recalled_when_asked_and_never_into_a_prompt(bed: Bed) -> None:
    write(bed, "deploy", "The widgets travel on the blue crane.", type_="feedback", description="How widgets travel")
    reconcile_now(bed.settings)
    engine = RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)

    def paths(filter: str = "", **asked: Any) -> list[str]:
        tree = parse_filter(filter, date.max)
        query = RecallQuery("where do the widgets travel, on the blue crane?", project="shop", filter=tree, **asked)
        return [hit.path for hit in engine.recall(query).hits]

    with closing(engine):
        assert paths() == [f"{FOLDER}/deploy.md"], "and not the index as well"
        assert paths(filter="kind=topic AND tag=feedback") == [f"{FOLDER}/deploy.md"]
        assert paths(filter="kind=topic AND tag=user") == []
        assert paths(filter="kind=topic-index") == [f"{FOLDER}/MEMORY.md"]
        assert paths(exclude_kinds=ON_DEMAND) == []


def test_switched_off_the_notes_count_in_no_word_of_a_prompt_and_are_back_when_it_is_on(bed: Bed) -> None:
    for name, text in (("ledger", "Run the ledger migration before the deploy."), ("cache", "Clear the ledger cache.")):
        bed.note(f"personal-projects/shop/fix/{name}.md", text, kind="fix", project="shop")

    def asked() -> list[tuple[str, float | None, float | None]]:
        reconcile_now(bed.settings)
        query = RecallQuery("run the ledger migration", project="shop", exclude_kinds=ON_DEMAND, is_prompt=True)
        with closing(RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)) as engine:
            return [(hit.slug, hit.keyword, hit.answers) for hit in engine.recall(query).hits]

    before = asked()
    assert before
    for number in range(9):
        write(bed, f"ledger-{number}", f"The ledger migration, part {number}.")
    with_topics = asked()
    assert with_topics != before
    on, bed.env = bed.env, {**bed.env, "MEMORY_DISABLE_AUTO_MEMORY": "1"}
    assert asked() == before
    bed.env = on
    assert asked() == with_topics
    known = {change.path for act in bed.journal.acts() for change in act.changes}
    assert f"{FOLDER}/ledger-8.md" in known, "they are not forgotten as deleted ones"


def test_the_index_goes_and_comes_back_with_the_last_topic_but_for_lines_of_the_users_own(bed: Bed) -> None:
    write(bed, "build")
    before = bed.files()
    Topics(bed.store, bed.journal, "shop", actor="agent").remove("build")
    assert not (bed.vault / FOLDER).exists(), "neither an empty index nor its folder"
    bed.undo.carry_out(Selector(last=True))
    assert bed.files() == before
    topics(bed).remove("build")
    write(bed, "build", "Again.")
    assert files(bed) == ["build.md"]
    (bed.vault / FOLDER / "MEMORY.md").write_text("# Mine\n\n" + index(bed), "utf-8")
    topics(bed).remove("build")
    assert index(bed) == "# Mine\n\n"


# The protocol that the plugin ships matches the code


ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "plugin" / "skills" / "memory" / "topics.md"
TEXT = SKILL.read_text("utf-8")


def test_skill_names_the_four_types_and_no_other_and_the_current_limits() -> None:
    table = TEXT.split("## The four types")[1].split("##")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == TYPES
    assert f"first {INDEX_LINES} lines ({INDEX_BYTES // 1000} KB)" in TEXT
    assert "<auto-memory>" in TEXT


def test_command_named_in_the_block_exists() -> None:
    arguments = shlex.split(READ_COMMAND)[1:]
    assert build_parser(arguments).parse_args(arguments).action == "read"
