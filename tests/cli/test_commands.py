"""Every command: help with an example, a place in README, and one clear line with exit code 2 for bad usage."""

import argparse
import json
import re
import shlex
from datetime import date, timedelta
from pathlib import Path

import pytest

from memoryvault.cli import topics
from memoryvault.cli.context import Context
from memoryvault.cli.main import COMMANDS, GROUPS, build_parser, main
from memoryvault.runtime.errors import UsageError
from memoryvault.runtime.settings import load_settings
from memoryvault.services.corpus.backfill import newest_session
from memoryvault.services.stores import open_index
from memoryvault.tests.corpus.sessions import old_session
from memoryvault.tests.support.files import put_note
from memoryvault.tests.support.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_every_command_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser(name.split()).parse_args([*name.split(), "--help"])
    assert ended.value.code == 0
    assert re.search(rf"example:\n\s+(echo .*\| )?memory {name}\b", capsys.readouterr().out)


def test_help_has_no_colours_in_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python 3.14 colours it, and what is printed as it is shows the codes."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for words in (["--help"], ["recall", "--help"], ["vault", "topics", "rm", "--help"]):
        with pytest.raises(SystemExit):
            build_parser(words).parse_args(words)
        said = capsys.readouterr().out
        assert said.startswith("usage: memory")
        assert "\x1b" not in said


def test_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in COMMANDS if " " not in name and f"`{name}`" not in readme] == []
    assert [group for group in GROUPS if f"`{group} …`" not in readme] == []


def test_without_a_vault_the_line_says_what_to_do(sandbox: Sandbox) -> None:
    assert "memory init" in sandbox.refused("save", "fix", "x", stdin="text", env={"MEMORY_VAULT_PATH": ""})


def test_save_prints_the_path_and_refuses_a_second_one(sandbox: Sandbox) -> None:
    arguments = ("save", "preferences", "tabs", "--tags", "style,editor", "--body", "Tabs, never spaces.")
    path = sandbox.memory(*arguments).strip()
    assert path == str(sandbox.vault / "personal-private" / "preferences" / "tabs.md")
    before = Path(path).read_text("utf-8")
    assert "tags: [style, editor]" in before
    assert "`memory evolve tabs 'TEXT' 'REASON'` replaces it" in sandbox.refused(*arguments)
    assert Path(path).read_text("utf-8") == before


def test_save_takes_its_text_from_standard_input_or_a_file(sandbox: Sandbox) -> None:
    assert "from a pipe" in Path(sandbox.memory("save", "fix", "one", stdin="from a pipe").strip()).read_text("utf-8")
    (sandbox.root / "text.txt").write_text("from a file", "utf-8")
    path = sandbox.memory("save", "fix", "two", "--body-file", str(sandbox.root / "text.txt")).strip()
    assert "from a file" in Path(path).read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Always indent with tabs.", "preferences/always-indent-with-tabs.md"),
        ("The staging database is in Frankfurt.", "fact/the-staging-database-is-in-frankfurt.md"),
    ],
)
def test_a_sentence_alone_is_saved_once(sandbox: Sandbox, text: str, place: str) -> None:
    path = Path(sandbox.memory("save", text).strip())
    assert path == sandbox.vault / "personal-private" / place
    assert text in path.read_text("utf-8")
    assert "says that already" in sandbox.run("save", text).stderr
    other = Path(sandbox.memory("save", text.replace(" ", "  ") + " Nowhere else: 7.").strip())
    assert other.parent == path.parent


def test_a_sentence_after_its_kind_is_the_text(sandbox: Sandbox) -> None:
    sandbox.memory("save", "workflow", "Tag the commit, then push the tag.")
    (path,) = sandbox.vault.glob("personal-private/workflow/*.md")
    assert "Tag the commit, then push the tag." in path.read_text("utf-8")


@pytest.mark.parametrize("words", [("fix",), ("We deploy.", "--body", "On Tuesdays.")])
def test_what_is_neither_a_sentence_nor_a_kind_with_a_name_is_refused(sandbox: Sandbox, words: tuple[str, ...]) -> None:
    assert "an entry needs a kind and a name, or a text alone" in refused(sandbox, "save", *words)
    assert list(sandbox.vault.rglob("*")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("Indent with four spaces.", "the team agreed"),
        ("the team agreed", "--body", "Indent with four spaces."),
    ],
)
def test_the_new_text_and_the_reason_may_follow_the_name(sandbox: Sandbox, words: tuple[str, ...]) -> None:
    sandbox.memory("save", "preferences", "indent", "--body", "Indent with tabs.")
    new, old = sandbox.memory("evolve", "indent", *words).strip().split("\t")
    assert "Indent with four spaces." in Path(new).read_text("utf-8")
    assert "the team agreed" in Path(old).read_text("utf-8")


def test_a_text_or_a_reason_that_is_given_twice_is_refused(sandbox: Sandbox) -> None:
    sandbox.memory("save", "preferences", "indent", "--body", "Indent with tabs.")
    for words in (("A", "b", "c"), ("A", "b", "--body", "C"), ("A", "b", "--reason", "c")):
        assert "give the new text once and the reason once" in refused(sandbox, "evolve", "indent", *words)


@pytest.mark.parametrize("add", [(), ("add",)])
def test_an_idea_may_be_one_sentence(sandbox: Sandbox, add: tuple[str, ...]) -> None:
    sandbox.memory("idea", *add, "Show the retried charges by day. Nobody knows how many there are.")
    (note,) = sandbox.vault.rglob("_idea-incubator/*/_index.md")
    assert note.parent.name == "show-the-retried-charges-by-day"
    assert "# Show the retried charges by day\n" in note.read_text("utf-8")
    assert "Nobody knows how many there are." in note.read_text("utf-8")


def test_what_holds_in_one_project_is_saved_in_its_folder(sandbox: Sandbox) -> None:
    rule = ("save", "convention", "deploy-day", "--body", "We deploy on Tuesdays.")
    path = sandbox.memory(*rule, "--project", "My Shop").strip()
    assert path == str(sandbox.vault / "personal-projects/my-shop/convention/deploy-day.md")
    text = Path(path).read_text("utf-8")
    assert ("\ngroup: personal-projects/my-shop\n" in text, "\nproject: my-shop\n" in text) == (True, True)
    always = sandbox.memory("save", "convention", "tone", "--project", "shop", "--always-load", "--body", "Brief.")
    assert always.strip().endswith("/personal-projects/shop/_always-load/tone.md")
    assert "always_load: true\n" in Path(always.strip()).read_text("utf-8")
    elsewhere = sandbox.memory(*rule, "--project", "shop", "--group", "office").strip()
    assert elsewhere.endswith("/office/convention/deploy-day.md"), "where the user says"
    sandbox.refused(*rule, "--project", " ", code=2)


@pytest.mark.parametrize("slug", ["../escape", "/etc/passwd", "Bad_Slug", "a b", "x" * 300])
def test_no_slug_leads_out_of_the_vault(sandbox: Sandbox, slug: str) -> None:
    done = sandbox.run("save", "fix", slug, "--body", "x")
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(sandbox.vault.rglob("*.md")) == []


def test_a_secret_in_a_saved_text_never_reaches_the_disk(sandbox: Sandbox) -> None:
    done = sandbox.run(
        "save", "reference", "deploy", "--body", "token ghp_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb of ann@example.com"
    )
    text = Path(done.stdout.strip()).read_text("utf-8")
    assert "ghp_" not in text
    assert "ann@example.com" in text, "whom the user names on purpose is not a secret"


@pytest.mark.parametrize("env", [{}, {"CLAUDECODE": "1"}])
@pytest.mark.parametrize(
    "words",
    [
        ("fix", "ghp_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
        ("fix", "aws-akiaq3egrzt7yunb5kpl"),
        ("ghp_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "deploy"),
        ("fix", "deploy", "--project", "AKIAQ3EGRZT7YUNB5KPL"),
    ],
)
def test_a_secret_is_refused_as_a_name(sandbox: Sandbox, words: tuple[str, ...], env: dict[str, str]) -> None:
    done = sandbox.run("save", *words, "--body", "We deploy on Tuesdays.", env=env)
    assert (done.returncode, done.stderr.count("must not hold a secret")) == (2, 1)
    assert list(sandbox.vault.rglob("*.md")) == []


@pytest.mark.parametrize("env", [{}, {"CLAUDECODE": "1"}])
@pytest.mark.parametrize(
    "words",
    [
        ("Never tell that the vault password is Hermelin#81v to anybody",),
        ("failure-incident", "the mail to hermelin81v@acme.test bounced"),
    ],
)
def test_what_is_scrubbed_from_a_saved_text_is_no_part_of_the_notes_name(
    sandbox: Sandbox, words: tuple[str, ...], env: dict[str, str]
) -> None:
    assert sandbox.run("save", *words, env=env).returncode == 0
    assert not [path for path in sandbox.vault.rglob("*") if "81v" in str(path).lower()]
    assert "81v" not in "".join(path.read_text("utf-8").lower() for path in sandbox.vault.rglob("*.md"))


def refused(sandbox: Sandbox, *words: str) -> str:
    """The line of a UsageError that the command ends with, run in this process."""
    parsed = build_parser(words).parse_args(words)
    with pytest.raises(UsageError) as told:
        parsed.run(parsed, Context(sandbox.environment))
    return str(told.value)


@pytest.mark.parametrize(
    "content", [b"FAILED test_x\nE  assert 1\n", b'{"a": 1}\n', b"[1, 2]\n", b"\x00\xff\x89PNG\n\n", b"# A note"]
)
def test_a_file_that_is_no_session_is_refused(sandbox: Sandbox, content: bytes) -> None:
    """It said that nothing in it was worth keeping, as if it had been understood."""
    path = sandbox.root / "fail.log"
    path.write_bytes(content)
    assert refused(sandbox, "reflect", "--session", str(path)).startswith(f"{path} is not a session of an agent (")
    if content != b'{"a": 1}\n':
        assert "not a session of codex" in refused(sandbox, "reflect", "--session", str(path), "--host", "codex")
    assert list(sandbox.vault.rglob("*")) == []


def test_reflect_alone_reads_the_newest_session_of_the_current_folder(sandbox: Sandbox) -> None:
    assert f"no session was found that ran in {sandbox.root}" in sandbox.refused("reflect", code=2)
    folder = sandbox.projects / "-any-name"
    old_session(folder, 1, cwd=str(sandbox.root))
    newest = old_session(folder, 3, cwd=str(sandbox.root))
    old_session(folder, 4, cwd="/home/dev/shop")
    done = sandbox.run("reflect", "--dry-run")
    assert (done.returncode, newest.name in done.stderr) == (0, True), done.stderr


def test_without_a_repository_the_folders_above_are_the_same_project(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = sandbox.root / "home" / "notes" / "2026" / "deep"
    deep.mkdir(parents=True)
    (sandbox.root / "home" / ".git").mkdir()  # Of dotfiles, it is nobody's project.
    monkeypatch.setenv("HOME", str(sandbox.root / "home"))
    above = old_session(sandbox.projects / "-any-name", 3, cwd=str(sandbox.root / "home" / "notes"))
    old_session(sandbox.projects / "-any-name", 4, cwd=str(sandbox.root))
    old_session(sandbox.projects / "-any-name", 5, cwd=f"{deep}er")
    found = newest_session(load_settings(sandbox.environment), str(deep))
    assert found is not None
    assert found.path.name == above.name
    (deep / ".git").mkdir()
    assert newest_session(load_settings(sandbox.environment), str(deep)) is None


def test_reflect_warns_of_a_full_inbox_and_incubator_as_health_does(sandbox: Sandbox) -> None:
    session = str(old_session(sandbox.projects / "-any-name", 1))
    for number in range(51):
        put_note(sandbox.vault, f"personal-private/_inbox/guess-{number}.md", kind="preferences", status="inbox")
    for number in range(21):
        place = f"personal-private/_idea-incubator/page-{number}/_index.md"
        put_note(sandbox.vault, place, kind="idea", status="incubating")
    told = sandbox.run("reflect", "--session", session, "--dry-run").stderr
    warnings = [
        "the inbox holds 51 entries, more than 50: `memory vault inbox`",
        "the incubator holds 21 ideas, more than 20: `memory idea list`",
    ]
    assert all(f"memory: {warning}\n" in told for warning in warnings)
    health = sandbox.run("health")
    assert all(warning in health.stdout + health.stderr for warning in warnings)


@pytest.mark.slow
def test_a_session_is_known_wherever_its_first_known_record_stands(sandbox: Sandbox) -> None:
    said = {"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u", "sessionId": "s"}
    path = sandbox.transcript("s", '{"type": "new-in-this-version"}\n' * 60 + json.dumps(said) + "\n")
    assert "nothing in it was worth keeping" in sandbox.memory("reflect", "--session", str(path))


def test_list_compares_as_the_filter_of_recall_does(sandbox: Sandbox) -> None:
    """Whatever their case, a group with what lies below it, and dates as they are said: else nothing is found and
    nobody is told why."""
    # The command may see another day: one more or less changes nothing.
    day = (date.today() - timedelta(days=4)).isoformat()  # noqa: DTZ011
    put_note(sandbox.vault, "a.md", kind="fix", updated=day, tags="[DB]", group="work/shop", project="shop")

    def found(*arguments: str) -> int:
        return len(sandbox.json("list", *arguments))

    assert found("--kind", "Fix", "--tag", "#db", "--project", "Shop", "--group", "work", "--updated-since", "1w") == 1
    assert found("--updated-since", "2d") == 0
    assert "recently" in sandbox.refused("list", "--updated-since", "recently", code=2)


def test_what_was_saved_without_a_worker_is_recalled_at_once(sandbox: Sandbox) -> None:
    sandbox.memory("save", "convention", "invoices", "--body", "We send invoices on the first Friday of the month.")
    sandbox.memory("service", "worker", "--until-idle")
    sandbox.memory("save", "convention", "payments", "--body", "Payments are matched by the reference number.")
    done = sandbox.run("recall", "how are payments matched?", "--json")
    assert [hit["slug"] for hit in json.loads(done.stdout)["hits"]] == ["payments"]
    assert "no embedding model" not in done.stderr, "nobody has looked for one"
    sandbox.vault.rename(sandbox.root / "away")
    sandbox.vault.mkdir()  # as the place is where a disk is mounted
    sandbox.run("recall", "how are payments matched?")
    sandbox.vault.rmdir()
    (sandbox.root / "away").rename(sandbox.vault)
    with open_index(load_settings(sandbox.environment)) as index:
        assert index.stats().entries == 2, "what lies on a disk that is not mounted is not forgotten"


def test_the_command_alone_shows_its_help(sandbox: Sandbox) -> None:
    done = sandbox.run()
    assert done.returncode == 2
    assert "memory init" in done.stderr
    assert "usage: memory" in done.stderr


@pytest.mark.slow
def test_a_dry_run_of_reflect_says_that_nothing_was_written(sandbox: Sandbox) -> None:
    path = str(sandbox.transcript("s1", (ROOT / "demo" / "session.jsonl").read_text("utf-8")))
    shown = sandbox.run("reflect", "--session", path, "--dry-run")
    assert shown.stderr.splitlines()[-1] == "memory: a dry run: nothing was written"
    assert list(sandbox.vault.rglob("*.md")) == []
    done = sandbox.run("reflect", "--session", path)
    assert done.stdout == shown.stdout
    assert "nothing was written" not in done.stderr


def test_uninstall_names_what_stays_only_where_it_is(sandbox: Sandbox) -> None:
    told = sandbox.memory("uninstall")
    assert f"your vault stays where it is: {sandbox.vault}\n" in told
    assert "config.toml" not in told, "there was no init"
    (ideas := sandbox.vault.parent / "Ideas.md").touch()
    (sandbox.root / "config.toml").write_text("[memory]\n")
    sandbox.memory("list")
    told = sandbox.memory("uninstall")
    assert str(sandbox.state) in told
    assert str(sandbox.root / "config.toml") in told
    assert f"list of your ideas: {ideas}\n" in told
    sandbox.vault.rmdir()
    assert f"your vault is not touched; it is not there now: {sandbox.vault}\n" in sandbox.memory("uninstall")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("config", "model", "use", "--yes", "a/model"), {"action": "use", "model": "a/model", "yes": True}),
        (("skills", "watchlist", "defer", "--until", "2026-08-01", "a", "b"), {"source": "a", "pattern": "b"}),
        (("reflect", "--dry-run", "corpus"), {"what": "corpus", "dry_run": True}),
        (("idea", "x", "--json", "--", "-y"), {"words": ["x", "-y"], "json": True}),
        (("save", "convention", "--body", "-x- text", "a-slug"), {"slug": "a-slug", "body": "-x- text"}),
    ],
)
def test_options_may_stand_between_the_words(words: tuple[str, ...], expected: dict[str, object]) -> None:
    assert vars(build_parser(words).parse_args(words)).items() >= expected.items()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_option_of_any_command_may_be_cut_short(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a script calls `--dry` today would be another option's name, or two options', in the next version."""
    parser = build_parser(name.split())
    alone = argparse.ArgumentParser()
    COMMANDS[name].configure(alone)
    actions = alone._actions
    words = [
        str(next(iter(action.choices or ["1"])))
        for action in actions
        if not action.option_strings and action.nargs not in ("?", "*")
    ]
    words += [word for action in actions if action.required and (o := action.option_strings) for word in (o[-1], "1")]
    known = {option for action in actions for option in action.option_strings}
    cut = {option[:-1] for option in known if option.startswith("--")} - known
    assert "--hel" in cut
    for option in sorted(cut):
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([*name.split(), *words, option])
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert f"unrecognized arguments: {option}; did you mean {option}" in said
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lits",), "there is no command 'lits'; did you mean `memory list`?"),
        (("init", "--history-days", "x"), "argument --history-days: 'x' is not a whole number"),
        (("review", "--decide"), "argument --decide: it needs a value"),
        (("bogus",), "there is no command 'bogus' ("),
        (("jobs", "lst"), "memory jobs: there is no command 'lst'; did you mean `memory jobs list`?"),
        (("import", "migrate", "~/notes", "~/vault"), "argument system: '~/notes' is not 'contextvault'"),
        (("recall", "how", "do", "we"), "do we; put words that belong together in quotes"),
        (("save", "fix", "a-slug", "Always this"), "Always this; give a text with --body, in quotes: --body 'TEXT'"),
        (("review", "list"), "unrecognized arguments: list; did you mean --list?"),
        (("vault", "topics", "check"), "rebuild-index ("),
        (("reflect", "old.jsonl"), "argument what: name one transcript with --session: --session old.jsonl ("),
    ],
)
def test_a_mistyped_word_is_an_error_of_one_line_with_the_right_word(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        build_parser(words).parse_args(words)
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert said in line
    assert "--help` says more" in line
    assert line.count("\n") == 1


def test_the_line_of_topics_names_words_that_it_takes() -> None:
    assert set(COMMANDS["vault topics"].line.partition(": ")[2].split(", ")) <= set(topics.ACTIONS)


@pytest.mark.parametrize(
    "line", ["shw", "shw a-slug", "Dashboard", "promote", "add Dashboard", "add", "list all", "gc now"]
)
def test_a_mistyped_word_of_idea_writes_no_idea(sandbox: Sandbox, line: str) -> None:
    said = refused(sandbox, "idea", *line.split())
    assert said.startswith("say the idea in a sentence, or give a title and a summary")
    assert "`memory idea add TITLE SUMMARY` takes any" in said
    assert list(sandbox.vault.rglob("*")) == []


def test_an_unreadable_text_is_explained(sandbox: Sandbox) -> None:
    file = sandbox.root / "text.txt"
    said = refused(sandbox, "save", "fix", "two", "--body-file", str(file))
    assert said == f"can't read {file}: No such file or directory"
    file.write_bytes(b"\xff\xfe")
    assert "it is no UTF-8 text" in refused(sandbox, "save", "fix", "two", "--body-file", str(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a b c", "..", "BAAI/../../etc"])
def test_a_model_that_can_have_no_such_name_is_refused_in_one_line(sandbox: Sandbox, name: str) -> None:
    done = sandbox.run("config", "model", "use", name, "--yes")
    assert done.returncode in (1, 2)
    assert "downloads it" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if "measuring" not in line]) == 1


# Options that exclude one another or would be ignored, and empty values, are refused, and nothing is done


NOT_ALLOWED = "not allowed with argument"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("review --list --undo", NOT_ALLOWED),
        ("vault inbox --yes", "--yes belongs to `memory vault inbox triage`"),
        ("jobs retry 42 --all", "unrecognized arguments: --all"),
        ("jobs retry 42 --kind reflect.corpus", "--kind belongs to `memory jobs retry all`"),
        ("vault topics write deploy --body x --body-file y", NOT_ALLOWED),
        ("config model --yes", "--yes belongs to `memory config model use`"),
        ("config model list a/model", "`memory config model use` changes to one"),
        ("vault incident find --body x --project shop", "--project belongs to `memory vault incident add`"),
        ("skills watchlist promote a b --all", "--all belongs to `memory skills watchlist list`"),
        ("vault scrub --stdin --json", "leave --json out"),
        ("service worker --timeout 5", "--timeout belongs to `memory service worker --until-idle`"),
        ("reflect corpus --dry-run --execute", "--dry-run changes nothing"),
        ("reflect corpus --session x.jsonl", "give one of the two"),
        ("reflect corpus --since yesterday", "'yesterday' is not a time"),
        ("reflect corpus --execute --miner claude", "--miner belongs to `memory reflect --session PATH`"),
        ("reflect --session x.jsonl --reset", "--reset belongs to `memory reflect corpus`"),
        ("idea delete a-slug --all", "--all belongs to `memory idea list`"),
        ("idea list --session s1", "--session is that of a new idea"),
        ("skills index --path . --forget .", "by --path and by --forget"),
        ("save fix x --body '   '", "the entry has no text"),
        ("recall ''", "what should be recalled?"),
        ("recall 'x y z' --filter nonsense", "'nonsense' is not a clause"),
        ("idea Title '   '", "say the idea in a sentence"),
        ("idea '  ' summary", "say the idea in a sentence"),
        ("idea a b c", "say the idea in a sentence"),
        ("promote project x", "did you mean `memory idea promote`?"),
        ("config hook-command NoSuchEvent", "claude has no hook for 'NoSuchEvent'"),
    ],
)
def test_what_makes_no_sense_or_would_be_ignored_is_refused_in_one_line(
    vault: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    try:
        code = main(shlex.split(line))
    except SystemExit as ended:
        code = int(str(ended.code))
    told = capsys.readouterr()
    assert said in told.err
    assert (code, told.err.count("\n"), told.out) == (2, 1, "")
    assert list(vault.rglob("*")) == []


@pytest.mark.parametrize(
    "line",
    ["jobs list --state dead --kind reflect.corpus --limit 2 --json", "jobs retry all",
     "vault incident add --body x --project shop", "idea list --all", "review --inbox --list", "config model list"],
)  # fmt: skip
@pytest.mark.usefixtures("vault")
def test_options_that_belong_together_are_accepted(line: str) -> None:
    assert main(line.split()) == 0
