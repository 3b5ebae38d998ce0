"""The documentation says what the code does."""

import json
import re
from pathlib import Path

import pytest

from memoryvault.bench import recording
from memoryvault.bench.reference import render_commands_reference
from memoryvault.cli.main import COMMANDS, GROUPS
from memoryvault.runtime.settings_table import render_settings_reference

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_settings_reference_is_the_one_the_code_makes() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert render_settings_reference().strip() in page, (
        "make it anew: python -m memoryvault config show --reference > docs/reference/settings.md"
    )


def test_the_commands_reference_is_the_one_the_parsers_make() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert render_commands_reference(COMMANDS, GROUPS).strip() in page, (
        "make it anew: python -m memoryvault.bench.reference > docs/reference/commands.md"
    )
    for name in COMMANDS:
        assert f"# memory {name}\n" in page


def test_the_commands_reference_tells_json_once_and_names_who_lacks_it() -> None:
    page = render_commands_reference(COMMANDS, GROUPS)
    first, rest = page.split("\n\n", 1)
    told = {name for name in COMMANDS if f"`{name}`" in first}
    assert told == {"console", "service up", "service serve", "service mcp", "vault demo"}
    assert [line for line in rest.splitlines() if line.startswith("- `--json`")] == [
        "- `--json`: print the lines as they are in the file"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_to_a_file_and_its_heading(page: Path) -> None:
    for target, section in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text("utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if section:
            assert section in _sections(linked.read_text("utf-8")), f"{page.name} links to {target}#{section}"


def _sections(text: str) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them: lower case, hyphens for blanks, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_test_that_a_page_names_exists() -> None:
    named = [
        (page.name, path, test)
        for page in PAGES
        for path, test in re.findall(r"`([\w/]+\.py)::(\w+)`", page.read_text("utf-8"))
    ]
    assert named
    for page, path, test in named:
        source = ROOT / "tests" / path
        assert source.is_file(), f"{page} names {path}"
        assert re.search(rf"^def {test}\(", source.read_text("utf-8"), re.MULTILINE), f"{page} names {path}::{test}"


def test_every_decision_record_has_a_status_and_a_date() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert records
    for record in records:
        text = record.read_text("utf-8")
        assert re.search(r"^Status: (accepted|superseded by .+)$", text, re.MULTILINE), record.name
        assert re.search(r"^Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE), record.name


def test_the_recorded_session_is_of_the_commands_that_are_played() -> None:
    block = recording.recorded()
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert commands == [command for command, _ in recording.SCENE]
    cast = [json.loads(line) for line in recording.CAST.read_text("utf-8").splitlines()]
    assert cast[0]["version"] == 2
    played = [recording.TerminalOutput(seconds, text) for seconds, _, text in cast[1:]]
    assert recording.text_of(played) == block, "both are of one run: make recording"
    for text in (block, recording.CAST.read_text("utf-8")):
        assert not re.search(r"(?<![\w~.])/(?:tmp|home|root|Users|var|private)/", text), "a machine's own path"


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.model
def test_the_recorded_session_is_what_the_commands_print() -> None:
    """But for figures: `make recording` makes it anew."""
    assert recording.shape_of(recording.text_of(recording.record())) == recording.shape_of(recording.recorded())
