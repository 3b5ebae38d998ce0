"""A vault with confirmed sources on a loopback server, and a clock that a test moves."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.discovery.adapting import SOURCES_NOTE, Adaptation, AdaptationOutcome
from memoryvault.services.discovery.fetch_child import Fetch, fetch
from memoryvault.services.discovery.scan import Discovery, ScanReport
from memoryvault.services.discovery.watchlist import Watchlist
from memoryvault.services.stores import vault_store
from memoryvault.vault.entry import Entry
from memoryvault.vault.store import VaultStore

from .server import Site


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
class Bed:
    root: Path
    site: Site
    env: Mapping[str, str]
    clock: Clock = field(default_factory=Clock)

    @property
    def vault(self) -> Path:
        return self.root / "MemoryVault"

    @property
    def settings(self) -> Settings:
        return load_settings(self.env)

    @property
    def store(self) -> VaultStore:
        return vault_store(self.settings)

    @property
    def watchlist(self) -> Watchlist:
        return Watchlist(self.settings)

    def sources(self, *lines: str, confirmed: str = "true") -> None:
        """Write the note as the user would."""
        path = self.vault / SOURCES_NOTE
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\nconfirmed: {confirmed}\n---\n" + "".join(f"- {line}\n" for line in lines), "utf-8")

    def discovery(self, fetch: Fetch = fetch) -> Discovery:
        return Discovery(self.settings, fetch, clock=lambda: self.clock.now, pause=self.clock.pause)

    def scan(self, *, everything: bool = False, fetch: Fetch = fetch) -> ScanReport:
        return self.discovery(fetch).scan(everything=everything)

    def adapt(self, *, fetch: Fetch | None = None) -> list[AdaptationOutcome]:
        adaptation = Adaptation(self.settings, fetch=fetch)
        return [adaptation.evaluate(pattern) for pattern in adaptation.ranked()]

    def notes(self) -> list[Entry]:
        return self.watchlist.all()

    def files(self) -> dict[str, str]:
        return {str(p.relative_to(self.vault)): p.read_text("utf-8") for p in sorted(self.vault.rglob("*.md"))}

    def delete_state(self) -> None:
        shutil.rmtree(self.root / "state")
        self.settings.state.ensure()


def make_bed(root: Path, site: Site) -> Bed:
    (root / "MemoryVault").mkdir()
    (root / "config.toml").write_text(f'[discovery]\ngithub_api = "http://127.0.0.1:{site.port}"\n', "utf-8")
    env = {
        "HOME": str(root / "home"),
        "PATH": "/usr/bin:/bin",
        "MEMORY_CONFIG": str(root / "config.toml"),
        "MEMORY_STATE_DIR": str(root / "state"),
        "MEMORY_VAULT_PATH": str(root / "MemoryVault"),
        "MEMORY_AUTOSTART": "false",
    }
    bed = Bed(root, site, env)
    bed.settings.state.ensure()
    return bed
