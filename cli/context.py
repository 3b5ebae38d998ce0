"""Settings, vault and state folder for a command, each opened at its first use."""

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
    """The working directory; '' when it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


class Context:
    """Settings, vault and state folder for the variables `env`; nothing is read before it is needed."""

    def __init__(self, env: Mapping[str, str], readable: PartialSettings | None = None) -> None:
        self.env = without_loosening(env)
        self._readable = readable

    def despite_faults(self) -> tuple[Context, PartialSettings]:
        """A context with the settings that can be read, for commands that must work with a broken file."""
        readable = load_partial_settings(self.env)
        return Context(self.env, readable), readable

    @cached_property
    def agent(self) -> str:
        """Name of the agent in whose shell the command runs; '' in the user's own, or if the settings trust agents.

        Only the file in its usual place can say so: a variable that names another file may be the agent's.
        """
        agent = agent_in(self.env)
        if not agent or os.path.realpath(config_path(self.env)) != os.path.realpath(
            config_path({"HOME": persons_home()})
        ):
            return agent
        return "" if self.despite_faults()[1].settings.memory.agent_commands == TRUST else agent

    @cached_property
    def settings(self) -> Settings:
        """The settings in force. Raises SettingsError with file, key and allowed values."""
        return load_settings(self.env) if self._readable is None else self._readable.settings

    @cached_property
    def vault(self) -> Path:
        """The vault's folder. Raises SettingsError when none is chosen, VaultUnavailable when it is not there."""
        vault = self.settings.required_vault_path
        require_folder(vault)
        return vault

    @cached_property
    def state(self) -> StatePaths:
        """This device's state folder for the vault, created if missing. Raises as `vault` does."""
        _ = self.vault
        state = self.settings.state
        ensure_state(state)
        return state

    @cached_property
    def kept_state(self) -> StatePaths:
        """Return the state folder even if the vault is missing: for the queue, schedules and logs."""
        state = self.settings.state
        return state if os.path.isdir(state.root) else self.state

    @property
    def vault_away(self) -> str:
        """Return why the vault cannot be used now; '' if it can."""
        try:
            _ = self.vault
        except VaultUnavailable as error:
            return str(error)
        return ""

    @cached_property
    def state_of_vault_or_index(self) -> StatePaths:
        """Return the state folder, also of a vault that is not mounted but was indexed before."""
        state = self.settings.state
        return state if Path(state.index_db).is_file() else self.state

    @cached_property
    def store(self) -> VaultStore:
        """The vault's files."""
        return VaultStore(self.vault, Path(self.state.vault_lock), local_today, why_sealed(self.settings))
