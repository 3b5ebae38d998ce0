"""`make screenshots`: every page of a made-up vault, on a desktop and a phone, light and dark, into a folder.

    python -m memoryvault.tests.console.screenshots [FOLDER] [--all]

Without `--all` only those that docs/how-to/console.md shows. Reads nothing of the user's.
"""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

from memoryvault.index.client import RecallClient, ensure_service
from memoryvault.index.drain import drain
from memoryvault.index.embedder import DEFAULT_MODEL
from memoryvault.index.store import IndexStore
from memoryvault.tests.review.support import Bed

from .browser import chromium, windows_on
from .demo import demo_vault

ROOT = Path(__file__).parents[2]
SHOWN = frozenset({"review-desktop-light", "supersede-desktop-dark", "search-desktop-light", "health-desktop-dark",
                   "receipts-phone-light", "jobs-phone-dark", "review-phone-dark", "health-phone-light"})  # fmt: skip
MODEL_SECONDS = 60.0


def pages(bed: Bed) -> Mapping[str, str]:
    """Name of the picture and address of the page."""
    markers = Path(bed.settings.state.markers)
    session = sorted(markers.glob("*.reflected"), key=lambda path: path.stat().st_mtime)[-1].stem.removeprefix(
        "session-id-"
    )
    return {
        "review": "review",
        "edit": "review?item=personal-private/_review/no-friday-releases.md&panel=edit",
        "supersede": "review?item=personal-private/_review/use-npm-ci-in-pipelines.md&panel=supersede",
        "inbox": "inbox",
        "ideas": "ideas",
        "search": "search?q=how+long+do+login+tokens+last%3F",
        "search-filters": "search?kind=decisions&project=shop",
        "search-nothing": "search?q=unheard-of+zebra",
        "entry": "entry?path=login-tokens-last-for-fifteen-minutes",
        "recall": "recall",
        "receipts": f"recall?q={session}",
        "jobs": "jobs",
        "health": "health",
    }


def wait_for_parts(page: Page) -> None:
    """Until what the page asks for once it is shown is there."""
    page.wait_for_selector(".later", state="detached")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--all", action="store_true", help="also those that the docs do not show, and whole pages")
    args = parser.parse_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memoryvault-") as root:
        bed = demo_vault(Path(root), MEMORY_AUTOSTART="true")
        served = ensure_service(bed.settings, MODEL_SECONDS, wait_for_model=True)
        try:
            if served:
                with (
                    IndexStore(Path(bed.settings.state.index_db)) as store,
                    RecallClient(bed.settings.state.recall_socket) as client,
                ):
                    drain(store, client.embed, model=DEFAULT_MODEL)
                    store.put_in_force(DEFAULT_MODEL)
            shoot(bed, args.folder, everything=args.all)
        finally:
            if served:
                with RecallClient(bed.settings.state.recall_socket) as client:
                    client.stop()
    return 0


def shoot(bed: Bed, folder: Path, *, everything: bool) -> None:
    sizes: tuple[Literal["desktop", "phone"], ...] = ("desktop", "phone")
    with chromium() as browser:
        for size in sizes:
            for dark in (False, True):
                with windows_on(browser, bed.env) as windows:
                    page = windows.sign_in(size, dark=dark)
                    for name, address in pages(bed).items():
                        file = f"{name}-{size}-{'dark' if dark else 'light'}"
                        if not everything and file not in SHOWN:
                            continue
                        page.goto(windows.console.base + address)
                        page.wait_for_load_state("load")
                        wait_for_parts(page)
                        page.screenshot(path=folder / f"{file}.png", full_page=everything, animations="disabled")
                        width = page.evaluate("document.documentElement.scrollWidth")
                        if width > page.evaluate("window.innerWidth"):
                            print(f"{file}: {width} wide, more than the window")


if __name__ == "__main__":
    raise SystemExit(main())
