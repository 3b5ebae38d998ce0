"""Options that exclude one another or would be ignored are refused in one line, and nothing is done."""

from pathlib import Path

import pytest

from memoryvault.cli.main import main

NOT_ALLOWED = "not allowed with argument"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("review --list --undo", NOT_ALLOWED),
        ("review --inbox --undo", "leave --inbox out"),
        ("vault inbox --yes", "--yes belongs to `memory vault inbox triage`"),
        ("jobs retry 42 --watch", "unrecognized arguments: --watch"),
        ("jobs retry 42 --kind reflect.corpus", "--kind belongs to `memory jobs retry all`"),
        ("jobs list --watch --state dead", "leave --state out"),
        ("vault topics rm deploy --dry-run", "--dry-run belongs to `memory vault topics import`"),
        ("vault topics read deploy --append", "--append belongs to `memory vault topics write`"),
        ("vault topics import --project shop", "every project"),
        ("vault topics write deploy --body x --body-file y", NOT_ALLOWED),
        ("config model --yes", "--yes belongs to `memory config model use`"),
        ("config model list a/model", "`memory config model use` changes to one"),
        ("vault incident find --body x --project shop", "--project belongs to `memory vault incident add`"),
        ("skills watchlist promote a b --all", "--all belongs to `memory skills watchlist list`"),
        ("vault scrub --stdin --json", "leave --json out"),
        ("config show --reference --json", "leave --json out"),
        ("service worker --timeout 5", "--timeout belongs to `memory service worker --until-idle`"),
        ("reflect corpus --dry-run --execute", "--dry-run changes nothing"),
        ("reflect corpus --execute --miner claude", "--miner belongs to `memory reflect --session PATH`"),
        ("reflect --session x.jsonl --reset", "--reset belongs to `memory reflect corpus`"),
        ("idea delete a-slug --all", "--all belongs to `memory idea list`"),
        ("idea archive a-slug --as b", "--as belongs to `memory idea promote`"),
        ("idea list --session s1", "--session is that of a new idea"),
        ("skills index --path . --forget .", "by --path and by --forget"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused_in_one_line(
    vault: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    try:
        code = main(line.split())
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
