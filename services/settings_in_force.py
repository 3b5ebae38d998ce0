"""What a process that stays does about settings that change under it: consent that was withdrawn holds for it, too."""

from __future__ import annotations

import logging
from dataclasses import replace

from ..runtime.errors import SettingsError
from ..runtime.settings import Settings, load_settings, seems_switched_off
from ..runtime.snapshot import config_stamp

log = logging.getLogger(__name__)


class SettingsInForce:
    """The settings that a process goes by, and those of the file since."""

    def __init__(self, settings: Settings) -> None:
        self._in_force = self._newest = settings
        self._stamp = ""
        """Of the file that was read last. None yet: it may have changed since these settings were read."""

    def have_changed(self) -> bool:
        """Whether the file says something else by now. One that cannot be read says nothing; that is logged once."""
        env = self._in_force.environment
        if (stamp := config_stamp(env)) != self._stamp:
            self._stamp = stamp
            try:
                newest = load_settings(env)
                _ = newest.state  # An empty file, as while it is being saved, names no vault: nothing to go by.
                self._newest = newest
            except SettingsError as error:
                log.warning("%s; until that is mended the worker goes by the settings from before", error)
                if seems_switched_off(self._in_force.config_file):
                    self._newest = replace(self._newest, memory=replace(self._newest.memory, enabled=False))
        return self._newest != self._in_force

    def take(self) -> Settings:
        """The newest that could be read, which are in force from now on."""
        if self._stamp:  # Not at the start, for which they were just read; what ran since may have taken long to end.
            self.have_changed()
        self._in_force = self._newest
        return self._in_force
