"""What a command needs of the world: settings and the stores, opened when first asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ..runtime.days import local_today
from ..runtime.errors import VaultUnavailable
from ..runtime.layout import StatePaths, config_path
from ..runtime.paths import ensure_state, require_folder
from ..runtime.settings import PartialSettings, Settings, load_partial_settings, load_settings
from ..services.pausing import why_sealed
from ..vault.store import VaultStore
from .agent_rights import TRUST, agent_in, persons_home, without_loosening


def current_folder() -> str:
    """Where the command was started; '' when that folder is gone, which belongs to no project then."""
    try:
        return os.getcwd()
    except OSError:
        return ""


class Context:
    """Settings from `env` and the file they name; nothing is read before it is needed."""

    def __init__(self, env: Mapping[str, str], readable: PartialSettings | None = None) -> None:
        self.env = without_loosening(env)
        self._readable = readable

    def despite_faults(self) -> tuple[Context, PartialSettings]:
        """The same with the settings as far as they can be read, for commands that must work with a broken file."""
        readable = load_partial_settings(self.env)
        return Context(self.env, readable), readable

    @cached_property
    def agent(self) -> str:
        """The agent in whose shell the command runs; '' in the user's own, or where the settings trust agents.

        Only the user's own file can: that which is read without variables, which the agent may have set.
        """
        agent = agent_in(self.env)
        if not agent or os.path.realpath(config_path(self.env)) != os.path.realpath(
            config_path({"HOME": persons_home()})
        ):
            return agent
        return "" if self.despite_faults()[1].settings.memory.agent_commands == TRUST else agent

    @cached_property
    def settings(self) -> Settings:
        """The settings in force; raises SettingsError with file, line and what is allowed."""
        return load_settings(self.env) if self._readable is None else self._readable.settings

    @cached_property
    def vault(self) -> Path:
        """The vault's folder; raises SettingsError when none is chosen, VaultUnavailable when it is
        not there."""
        vault = self.settings.required_vault_path
        require_folder(vault)
        return vault

    @cached_property
    def state(self) -> StatePaths:
        """This device's state folder of the vault, made if it is not there."""
        _ = self.vault
        state = self.settings.state
        ensure_state(state)
        return state

    @cached_property
    def kept_state(self) -> StatePaths:
        """The state folder also while the vault is away, for what lies in it: queue, schedules, logs."""
        state = self.settings.state
        return state if os.path.isdir(state.root) else self.state

    @property
    def vault_away(self) -> str:
        """Why the vault cannot be used now, '' when it can; for a command that goes on without it."""
        try:
            _ = self.vault
        except VaultUnavailable as error:
            return str(error)
        return ""

    @cached_property
    def state_of_vault_or_index(self) -> StatePaths:
        """The state folder also of a vault that is not mounted now, as long as it was indexed before."""
        state = self.settings.state
        return state if Path(state.index_db).is_file() else self.state

    @property
    def index_db(self) -> Path:
        """The index; it may not be there yet."""
        return Path(self.state.index_db)

    @cached_property
    def store(self) -> VaultStore:
        """The vault's files."""
        return VaultStore(self.vault, Path(self.state.vault_lock), local_today, why_sealed(self.settings))
