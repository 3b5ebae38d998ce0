"""Options that exclude one another, or that the action would pass over: refused in one line, and nothing is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.cli.main import main

NOT_ALLOWED = "not allowed with argument"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("review --list --undo", NOT_ALLOWED),
        ("review --undo --decide a=approve", NOT_ALLOWED),
        ("review --list --decide a=approve", NOT_ALLOWED),
        ("review --inbox --undo", "leave --inbox out"),
        ("vault inbox --yes", "--yes belongs to `memory vault inbox triage`"),
        ("jobs retry 42 --watch", "unrecognized arguments: --watch"),
        ("jobs retry all --state dead", "unrecognized arguments: --state"),
        ("jobs cancel 42 --kind reflect.corpus", "unrecognized arguments: --kind"),
        ("jobs retry 42 --kind reflect.corpus", "--kind belongs to `memory jobs retry all`"),
        ("jobs pause reflect.corpus --limit 2", "unrecognized arguments: --limit 2"),
        ("service worker --timeout 0", "--timeout belongs to `memory service worker --until-idle`"),
        ("jobs list --watch --state dead", "leave --state out"),
        ("jobs list --watch --json", "leave --json out"),
        ("vault topics rm deploy --dry-run", "--dry-run belongs to `memory vault topics import`"),
        ("vault topics write deploy --body x --dry-run", "--dry-run belongs to `memory vault topics import`"),
        ("vault topics read deploy --append", "--append belongs to `memory vault topics write`"),
        ("vault topics import --project shop", "every project"),
        ("vault topics import deploy", "every project"),
        ("vault topics write deploy --body x --body-file y", NOT_ALLOWED),
        ("vault topics write deploy --body x --append --replace 1f2e3d4c5b6a", NOT_ALLOWED),
        ("config model --yes", "--yes belongs to `memory config model use`"),
        ("config model list a/model", "`memory config model use` changes to one"),
        ("vault incident find --body x --project shop", "--project belongs to `memory vault incident add`"),
        ("skills watchlist promote a b --all", "--all belongs to `memory skills watchlist list`"),
        ("skills watchlist --reason because", "--reason belongs to `memory skills watchlist promote`"),
        ("vault scrub --stdin --json", "leave --json out"),
        ("config show --reference --json", "leave --json out"),
        ("service worker --timeout 5", "--timeout belongs to `memory service worker --until-idle`"),
        ("service worker --json", "--json belongs to `memory service worker --until-idle`"),
        ("reflect corpus --dry-run --execute", "--dry-run changes nothing"),
        ("reflect corpus --execute --miner claude", "--miner belongs to `memory reflect --session PATH`"),
        ("reflect corpus --host codex", "--host belongs to `memory reflect --session PATH`"),
        ("reflect --session x.jsonl --reset", "--reset belongs to `memory reflect corpus`"),
        ("reflect --session x.jsonl --project shop", "--project belongs to `memory reflect corpus`"),
        ("idea delete a-slug --all", "--all belongs to `memory idea list`"),
        ("idea archive a-slug --as b", "--as belongs to `memory idea promote`"),
        ("idea list --session s1", "--session is that of a new idea"),
        ("skills index --path . --forget .", "by --path and by --forget"),
    ],
)
def test_what_would_be_passed_over_is_refused_in_one_line(
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
def test_what_goes_together_goes_on(line: str) -> None:
    assert main(line.split()) == 0
