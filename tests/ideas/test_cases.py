"""The recorded cases of the idea ledger, where they are available: which of them hold here, row by row.

Rows that do not hold are listed in `DEPARTURES` with a reason, as in ADR 0016. A row that is neither checked nor listed
fails.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memoryvault.pipelines.incubation import Answer
from memoryvault.runtime.errors import EntryExists, EntryNotFound
from memoryvault.services.ideas.archive import put_away
from memoryvault.services.ideas.incubator import refresh_list
from memoryvault.services.ideas.ledger import find_idea, promote
from memoryvault.tests.support import forked
from memoryvault.tests.support.shared_data import shared_data

from ..review.support import Bed, make_bed
from .support import IDEA, INCUBATOR, ideas_file, old_idea, outside, write_down

pytestmark = pytest.mark.slow

Row = Mapping[str, Any]
Check = Callable[[Bed, Row], None]
DEPARTURES = {
    ("surface", "default_path_v2"): "no case, a remark: the first row writes there",
    ("incubator", "budgets"): "budgets are settings, reserved in state.db: a note cannot raise its own",
    ("promote", "queue"): "no queue rows: the index is reconciled with the folder (test_promote.py)",
    ("ledger_counts", "md"): "nothing is counted in the user's list: an idea said again is one note's `occurrences`",
    ("ledger_counts", "same"): "as above; what nobody came back to is told by the incubator",
}


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Any]:
    """The shared cases; skips where there are none."""
    file = shared_data("").parent / "cases" / "ideas.json"
    assert file.exists(), "MEMORYVAULT_DATA is set, but the cases beside it are missing"
    found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def run(bed: Bed, *arguments: str) -> int:
    return forked.memory(bed.env, *arguments).returncode


def surfaced(bed: Bed, row: Row) -> None:
    assert write_down(bed, row["title"], row["summary"]).appended is row["json"]["appended"]
    for pattern in row["regex"]:
        assert re.search(pattern, ideas_file(bed), re.MULTILINE), pattern
    assert row["contains"] in ideas_file(bed)


def added_below(bed: Bed, row: Row) -> None:
    header = "# Ideas\n\nMy own words.\n\n---\n"
    (bed.root / "Ideas.md").write_text(f"{header}\n## 2020-01-01: Old\n\nAn old one.\n", "utf-8")
    write_down(bed, row["title"], row["summary"])
    assert ideas_file(bed).startswith(header)
    assert ideas_file(bed).count("\n## ") == row["sections"]


def not_surfaced_unasked(bed: Bed, row: Row) -> None:
    """Of its own accord; the user's command is a consent in every mode."""
    bed.env = {**bed.env, "MEMORY_REVIEW_MODE": row["mode"]}
    bed.remember(IDEA)
    assert outside(bed) == {}


def refused_blank(bed: Bed, row: Row) -> None:
    """With 2, as all commands do for arguments that make no sense; the cases have 1."""
    assert run(bed, "idea", row.get("title", "Title"), row.get("summary", "Summary")) == 2
    assert outside(bed) == {}
    assert bed.files() == {}


def written_where_told(bed: Bed, row: Row) -> None:
    bed.env = {**bed.env, **{name: path.replace("$D", str(bed.root)) for name, path in row["env"].items()}}
    write_down(bed, "Retry page")
    assert list(outside(bed)) == [row["written"].replace("$D/", "")]


def incubated(bed: Bed, row: Row) -> None:
    """Without the files and fields of a research that has not run. Mined, it is named by what was said."""
    candidate = replace(IDEA, statement=row["summary"], reason=row["rationale"], excerpt=row["excerpt"])
    bed.remember(replace(candidate, session=row["session_id"]))
    text = (bed.vault / bed.only("incubating").path).read_text("utf-8")
    for wanted in row["index_contains"]:
        assert wanted in text or wanted.startswith(("research_budget", "slug: ")), wanted
    named = write_down(bed, row["title"], "Print every failed webhook on paper and post it to the office.")
    assert named.path == f"{INCUBATOR}/{row['dir']}/_index.md"
    assert f"slug: {row['dir']}" in (bed.vault / named.path).read_text("utf-8")


def named_apart(bed: Bed, row: Row) -> None:
    title = row["slug"].removesuffix("-2").replace("-", " ")
    write_down(bed, title)
    write_down(bed, title, "Print every failed webhook on paper and post it to the office.")
    assert find_idea(bed.store, row["slug"])


def refused_without_vault(bed: Bed, row: Row) -> None:
    bed.vault.rename(bed.root / "elsewhere")
    assert run(bed, "idea", "Title", "A summary of it.") == row["exit"]
    assert not (bed.root / "Ideas.md").exists()


def promoted(bed: Bed, row: Row) -> None:
    slug = row["slug"]
    write_down(bed, slug.replace("-", " "))
    done = promote(bed.settings, bed.journal, slug)
    assert done.path == f"personal-projects/{slug}/_index.md"
    assert done.annotation == row["json"]["ideas_annotation"]
    assert re.search(rf"^→ promoted [0-9-]{{10}} to \S+/personal-projects/{slug}/$", ideas_file(bed), re.MULTILINE)


def promoted_nothing(bed: Bed, row: Row) -> None:
    with pytest.raises(EntryNotFound):
        promote(bed.settings, bed.journal, row["slug"])


def promoted_into_nothing_else(bed: Bed, row: Row) -> None:
    write_down(bed, "Retry page")
    bed.note("personal-projects/retry-page/convention/x.md", "x", kind="convention")
    with pytest.raises(EntryExists):
        promote(bed.settings, bed.journal, "retry-page")


def promoted_without_list(bed: Bed, row: Row) -> None:
    write_down(bed, "Retry page")
    (bed.root / "Ideas.md").unlink()
    assert promote(bed.settings, bed.journal, "retry-page").annotation == row["json"]["ideas_annotation"]


def promoted_beside_a_list_that_is_closed(bed: Bed, row: Row) -> None:
    write_down(bed, "Retry page")
    (bed.root / "Ideas.md").chmod(0o444)
    done = promote(bed.settings, bed.journal, "retry-page")
    assert (done.annotation, bed.store.exists(done.path)) == ("not_writable", row["still_moved"])


def asked_for_by_age(bed: Bed, row: Row) -> None:
    told = row["updated"]
    days = 0 if told == "today" or told is None else int(str(told).split()[0])
    dated: dict[str, object] = {} if told is not None else {"created": None, "updated": None}
    path = old_idea(bed, "one", days, **dated)
    if "mtime" in row:
        year_ago = time.time() - 365 * 86_400
        os.utime(path, (year_ago, year_ago))
    assert bool(refresh_list(bed.settings, bed.journal)) is row["prompted"]


def answered(bed: Bed, row: Row) -> None:
    """Deleted, it lies in the trash for 30 days first; of a name that is taken, it gets a number."""
    path = old_idea(bed, "one", 400)
    if "archive_exists" in row:
        put_away(bed.journal, "one", Answer.ARCHIVE, run="t", actor="idea")
        old_idea(bed, "one", 400)
    if not row["answer"]:
        refresh_list(bed.settings, bed.journal)
        assert path.exists()
        return
    answer = {"k": Answer.KEEP, "a": Answer.ARCHIVE, "d": Answer.DELETE}[row["answer"]]
    done = put_away(bed.journal, "one", answer, run="t", actor="idea")
    assert path.exists() is (answer is Answer.KEEP)
    if answer is Answer.ARCHIVE:
        assert done.path.split("/")[-3:-1] == ["_archive", "one-2" if "archive_exists" in row else "one"]


def kept_without_terminal(bed: Bed, row: Row) -> None:
    path = old_idea(bed, "one", 400)
    assert run(bed, "idea", "gc") == 0
    assert path.exists()


def passed_over(bed: Bed, row: Row) -> None:
    old_idea(bed, "_archive/one", 400)
    assert bool(refresh_list(bed.settings, bed.journal)) is row["scanned"]


CHECKS: Mapping[str, Mapping[str, Check]] = {
    "surface": {"regex": surfaced, "header_first_5_lines_unchanged": added_below, "mode": not_surfaced_unasked,
                "env": written_where_told, "exit": refused_blank},
    "incubator": {"dir": incubated, "same_title_again": named_apart, "vault": refused_without_vault,
                  "exit": refused_blank},
    "promote": {"moved_to": promoted, "target_exists": promoted_into_nothing_else, "ideas_md": promoted_without_list,
                "boundary": promoted_beside_a_list_that_is_closed, "exit": promoted_nothing},
    "gc": {"prompted": asked_for_by_age, "answer": answered, "stdin": kept_without_terminal, "dir": passed_over},
    "ledger_counts": {},
}  # fmt: skip
"""By section: the first key that a row has tells what is checked."""


@pytest.mark.parametrize("section", CHECKS)
def test_every_recorded_case_holds_or_is_a_departure_with_a_reason(
    cases: Mapping[str, Any], tmp_path: Path, section: str
) -> None:
    assert cases[section]
    for number, row in enumerate(cases[section]):
        if any(of == section and key in row for of, key in DEPARTURES):
            continue
        check = next((check for key, check in CHECKS[section].items() if key in row), None)
        assert check is not None, f"{section}[{number}] is neither checked nor a departure: {row}"
        root = tmp_path / f"{section}-{number}"
        root.mkdir()
        check(make_bed(root), row)
