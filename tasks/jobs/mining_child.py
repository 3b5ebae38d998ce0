"""The child process that mines one transcript: `python -m memoryvault.tasks.jobs.mining_child`.

It reads a `MiningRequest` as JSON on stdin and prints a scrubbed `Mined` as JSON. It writes only a model's answers to
disk.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace

from ...runtime.errors import ModelUnavailable, SettingsError
from ...runtime.killpoint import kill_point
from ...runtime.settings import Settings, load_settings
from ...services.mining import MiningRequest, mine_transcript
from ..queue import supervisor

CANNOT_READ = 3
"""Exit status for a transcript that cannot be read."""
NO_MODEL = 4
"""Exit status if the request insists on the local model and that does not answer."""


def child_settings(local_only: bool) -> Settings | None:
    """Return the user's settings, with `local_only` without the user's agent; None while config.toml is invalid."""
    try:
        settings = load_settings(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return None
    return replace(settings, reflection=replace(settings.reflection, miner="local")) if local_only else settings


def main() -> int:
    """Run the child process."""
    supervisor.watch_parent()
    request = MiningRequest(**json.load(sys.stdin))
    try:
        mined = mine_transcript(request, child_settings(request.local_only))
    except OSError as error:
        print(f"{request.transcript} cannot be read: {error.strerror}", file=sys.stderr)
        return CANNOT_READ
    except ModelUnavailable as error:
        print(f"the model does not answer: {error}", file=sys.stderr)
        return NO_MODEL
    kill_point("mid-child")
    json.dump(asdict(mined), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
