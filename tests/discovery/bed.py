"""A vault with confirmed sources on a loopback server, and a clock that a test moves."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from memoryvault.services.discovery.adapting import SOURCES_NOTE, Adaptation, AdaptationOutcome
from memoryvault.services.discovery.fetch_child import Fetch, fetch
from memoryvault.services.discovery.scan import Discovery, ScanReport
from memoryvault.services.discovery.watchlist import Watchlist
from memoryvault.tests.support.files import put
from memoryvault.tests.support.loopback_site import Site
from memoryvault.vault.entry import Entry

from ..review import support


@dataclass
class Clock:
    now: float = 1_800_000_000.0
    pauses: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def a_list(*names: str) -> str:
    """A page that lists these repositories."""
    return "# List\n" + "".join(f"- [{name}](https://github.com/o/{name}) - A skill\n" for name in names)


@dataclass
class Bed(support.Bed):
    site: Site
    clock: Clock = field(default_factory=Clock)

    @property
    def watchlist(self) -> Watchlist:
        return Watchlist(self.settings)

    def sources(self, *lines: str, confirmed: str = "true") -> None:
        """Write the note as the user would."""
        put(self.vault / SOURCES_NOTE, f"---\nconfirmed: {confirmed}\n---\n" + "".join(f"- {line}\n" for line in lines))

    def discovery(self, fetch: Fetch = fetch) -> Discovery:
        return Discovery(self.settings, fetch, clock=lambda: self.clock.now, pause=self.clock.pause)

    def scan(self, *, everything: bool = False, fetch: Fetch = fetch) -> ScanReport:
        return self.discovery(fetch).scan(everything=everything)

    def adapt(self, *, fetch: Fetch | None = None) -> list[AdaptationOutcome]:
        adaptation = Adaptation(self.settings, fetch=fetch)
        return [adaptation.evaluate(pattern) for pattern in adaptation.ranked()]

    def notes(self) -> list[Entry]:
        return self.watchlist.all()

    def delete_state(self) -> None:
        shutil.rmtree(self.root / "state")
        self.settings.state.ensure()


def make_bed(root: Path, site: Site) -> Bed:
    (root / "config.toml").write_text(f'[discovery]\ngithub_api = "{site.url}"\n', "utf-8")
    bed = support.make_bed(root)
    return Bed(bed.root, bed.env, site)
