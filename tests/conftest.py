"""For every test: it says itself in whose shell it runs, whoever started the tests."""

from __future__ import annotations

import os

from memoryvault.cli.agent_shell import VARIABLES

for _name in VARIABLES:
    os.environ.pop(_name, None)
