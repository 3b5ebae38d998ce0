"""The dashboard note: generated from the files, deterministic, with the user's text around it kept."""

import errno
import os
import re
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoryvault.index.engine import RecallEngine, RecallQuery
from memoryvault.pipelines.dashboard import BEGIN, END, DashboardItem, dashboard, with_dashboard
from memoryvault.services.device import SETTINGS_NOTE
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.topics import Topics
from memoryvault.tasks.jobs.dashboard import DASHBOARD, refresh_dashboard
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.vault.active import is_entry

from ..review.support import CHOICE, GUESS, RULE, Bed
from ..support.files import put_note


def note(bed: Bed, path: str, title: str, **fields: str) -> None:
    put_note(bed.vault, path, f"# {title}\n\nText of {title}.", **fields)


def test_it_counts_by_group_and_links_what_waits(bed: Bed) -> None:
    bed.remember(CHOICE, GUESS)
    note(bed, "personal-private/preferences/tabs.md", "Tabs", kind="preferences")
    note(bed, "personal-projects/shop/fix/locks.md", "Locks", kind="fix", created="2026-01-02")
    note(bed, "personal-private/_idea-incubator/robot/_index.md", "A robot", kind="idea", status="incubating")
    note(bed, "personal-private/_archive/old.md", "Old", status="superseded")
    note(bed, "personal-private/preferences/tabs (conflicted copy).md", "Tabs")
    assert refresh_dashboard(bed.store)
    text = (bed.vault / DASHBOARD).read_text("utf-8")
    assert "| personal-private | 1 |\n| personal-projects | 1 |" in text
    assert "[[personal-private/_idea-incubator/robot/_index|A robot]] (idea)" in text
    assert "[[personal-private/preferences/tabs (conflicted copy)]]" in text
    assert "old" not in text.lower().split("## entries")[1]
    for target in re.findall(r"\[\[([^\]|]+)", text):
        assert (bed.vault / f"{target}.md").is_file(), target
    review = text.split("## Proposals (1)")[1].split("## ")[0]
    assert review.count("- [[personal-private/_review/") == 1
    assert "## In the inbox (1)" in text


def test_what_cannot_be_read_waits_too(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    note(bed, "personal-private/_inbox/tide.md", "Tide", kind="fact", status="inbox")
    note(bed, "personal-private/_inbox/locked.md", "Locked", kind="fact", status="inbox")
    opened = os.open

    def refused(path: str, *more: int) -> int:
        if str(path).endswith("locked.md"):  # Permissions do not stop root.
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *more)

    monkeypatch.setattr(os, "open", refused)
    refresh_dashboard(bed.store)
    text = (bed.vault / DASHBOARD).read_text("utf-8")
    assert "## In the inbox (2)" in text
    assert (
        "[[personal-private/_inbox/locked|personal-private/_inbox/locked.md cannot be read: Permission denied]]" in text
    )


def test_entries_are_those_that_every_other_place_counts(bed: Bed) -> None:
    place = "personal-private/fix"
    for name, status in (("plain", "active"), ("own", "done"), ("slip", "dismised"), ("gone", "archived")):
        note(bed, f"{place}/{name}.md", name.title(), kind="fix", status=status)
    note(bed, f"{place}/filled.md", "{{title}}", kind="fix")
    note(bed, "Templates/fix.md", "A fix", kind="fix")
    note(bed, f"{place}/merge.md", "Merge", kind="fix")
    with (bed.vault / place / "merge.md").open("a") as file:
        file.write("\n<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> topic\n")
    refresh_dashboard(bed.store)
    newest = (bed.vault / DASHBOARD).read_text("utf-8").split("## Newest entries")[1]
    assert sorted(re.findall(r"\|(.+?)\]\] \(fix", newest)) == ["Own", "Plain"]
    in_use = [entry.title for entry in bed.store.readable() if entry.effective_status == "active" and is_entry(entry)]
    assert sorted(in_use) == ["Own", "Plain"]


def test_the_newest_are_those_said_last_however_late_they_were_noted(bed: Bed) -> None:
    noted = {"kind": "fix", "created": "2026-11-23"}
    note(bed, "personal-projects/shop/fix/first.md", "First", surfaced_at="2024-05-17T12:00:00Z", **noted)
    note(bed, "personal-projects/shop/fix/second.md", "Second", surfaced_at="2025-02-01T12:00:00Z", **noted)
    note(bed, "personal-projects/shop/fix/third.md", "Third", kind="fix", created="2024-12-31")
    refresh_dashboard(bed.store)
    newest = (bed.vault / DASHBOARD).read_text("utf-8").split("## Newest entries")[1]
    assert re.findall(r"\|(\w+)\]\] \(fix, ([\d-]+)\)", newest) == [
        ("Second", "2025-02-01"),
        ("Third", "2024-12-31"),
        ("First", "2024-05-17"),
    ]
    for number in range(13):
        note(bed, f"personal-private/fix/n{number}.md", f"Note {number}", **noted)
    refresh_dashboard(bed.store)
    newest = (bed.vault / DASHBOARD).read_text("utf-8").split("## Newest entries (10 of 16)")[1]
    assert newest.count("- [[") == 10


@pytest.mark.parametrize(("device", "day"), [(socket.gethostname(), "2024-05-18"), (None, "2024-05-17")])
def test_the_day_is_the_devices_own_where_one_is_named_else_that_of_all(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, device: str | None, day: str
) -> None:
    note(bed, "personal-projects/shop/fix/first.md", "First", surfaced_at="2024-05-17T12:00:00Z", kind="fix")
    if device:
        note(bed, SETTINGS_NOTE, "Settings", device=device)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        refresh_dashboard(bed.store)
    time.tzset()
    assert f"|First]] (fix, {day})" in (bed.vault / DASHBOARD).read_text("utf-8")


def test_a_topic_is_listed_by_its_description(bed: Bed) -> None:
    description = "Deploys: how this project does them"
    Topics(bed.store, bed.journal, "shop").write("deploy", "Tag, then push.", type_="project", description=description)
    refresh_dashboard(bed.store)
    newest = (bed.vault / DASHBOARD).read_text("utf-8").split("## Newest entries")[1]
    assert f"[[personal-projects/shop/memory/deploy|{description}]] (topic, " in newest
    assert "Tag, then push" not in newest


def test_the_same_vault_gives_the_same_note_and_it_is_not_written_again(bed: Bed) -> None:
    bed.remember(RULE, CHOICE)
    assert refresh_dashboard(bed.store)
    file = bed.vault / DASHBOARD
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
    assert not refresh_dashboard(bed.store)
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino) == before
    file.unlink()
    refresh_dashboard(bed.store)
    assert file.read_bytes() == before[0]


def test_what_the_user_writes_around_it_stays(bed: Bed) -> None:
    bed.remember(RULE)
    refresh_dashboard(bed.store)
    file = bed.vault / DASHBOARD
    text = file.read_text("utf-8")
    above, rest = text.split(BEGIN)
    file.write_text(f"{above}My plans for May.\n\n{BEGIN}{rest}\n\n## Mine\n\n- [ ] water the plants\n", "utf-8")
    bed.remember(CHOICE)
    assert refresh_dashboard(bed.store)
    now = file.read_text("utf-8")
    assert "My plans for May." in now.split(BEGIN)[0]
    assert now.split(END)[1].strip() == "## Mine\n\n- [ ] water the plants"
    assert now.count(BEGIN) == now.count(END) == 1
    assert not refresh_dashboard(bed.store)


def test_what_the_user_wrote_below_stays_without_a_closing_line(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    bed.remember(RULE)
    refresh_dashboard(bed.store)
    file = bed.vault / DASHBOARD
    text = file.read_text("utf-8").replace(END, "") + "\n## Mine\n\n- [ ] water the plants\n"
    file.write_text(text, "utf-8")
    bed.remember(CHOICE)
    assert not refresh_dashboard(bed.store)
    assert file.read_text("utf-8") == text
    assert DASHBOARD in caplog.text
    file.write_text(text.replace("## Mine", f"{END}\n\n## Mine"), "utf-8")
    assert refresh_dashboard(bed.store)
    assert file.read_text("utf-8").split(END)[1].strip() == "## Mine\n\n- [ ] water the plants"


def test_a_title_cannot_break_out_of_its_link(bed: Bed) -> None:
    listed = DashboardItem("a/b.md", f"x]] {END} [[y|z", "fix", "2026-01-01")
    text = dashboard([listed], {})
    assert text.count("]]") == text.count("[[") == 1
    assert text.count(END) == 1
    assert with_dashboard(with_dashboard("mine", text), text) == f"mine\n\n{text}"


def test_nothing_of_it_is_recalled(bed: Bed) -> None:
    note(bed, "personal-private/_review/zebra.md", "Zebra crossings are painted", kind="fix", status="pending")
    refresh_dashboard(bed.store)
    reconcile_now(bed.settings)
    with closing(RecallEngine(Path(bed.settings.state.index_db), bed.vault, None)) as engine:
        assert engine.recall(RecallQuery("how are zebra crossings painted", all_projects=True)).hits == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "of_kind"), [("dashboard", "dashboard."), ("incubator-gc", "incubator."), ("discovery", "discover.")]
)
def test_only_the_named_device_acts_on_the_whole_vault(sandbox: ForkedSandbox, schedule: str, of_kind: str) -> None:
    put_note(sandbox.vault, SETTINGS_NOTE, device="another-device")
    sandbox.memory("jobs", "schedule", "run", schedule)
    sandbox.memory("service", "worker", "--until-idle")
    assert not (sandbox.vault / DASHBOARD).exists()
    jobs = [job for job in sandbox.json("jobs", "list") if job["kind"].startswith(of_kind)]
    assert [job["history"][-1]["result"] for job in jobs if job["history"]] == [{"elsewhere": "another-device"}]
    put_note(sandbox.vault, SETTINGS_NOTE, device=socket.gethostname())
    sandbox.memory("jobs", "schedule", "run", schedule)
    sandbox.memory("service", "worker", "--until-idle")
    assert (sandbox.vault / DASHBOARD).exists() is (schedule == "dashboard")
