"""`memory service up`: run the worker here, with a recall service beside it, until the user ends both."""

from __future__ import annotations

import argparse
import signal
import sys

from ..index.client import ServiceUnavailable, ensure_service
from ..runtime.errors import WorkerRunning
from ..runtime.process_lock import lock_holder
from . import worker
from .context import Context
from .output import note
from .processes import stop_background

EPILOG = """example:
  memory service up             worker and recall service until Ctrl-C; `memory service logs -f` shows what they do
"""

SERVICE = [sys.executable, "-I", "-m", "memoryvault", "service", "serve", "--stay"]
SERVICE_SECONDS = 10.0
"""How long the recall service may take to listen."""


def configure(parser: argparse.ArgumentParser) -> None:
    """`memory service up` has no arguments."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Start a recall service unless one runs, run the worker until a signal ends it, then stop the service."""
    state = context.state
    if (holder := lock_holder(state.worker_lock)) is not None:
        raise WorkerRunning(holder)  # Before anything else: its recall service must not be stopped.
    came: list[int] = []
    stops_service = True
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # Ignored under `nohup`.
    try:
        for number in heard:  # A signal waits until the service listens: before it has its lock it cannot be stopped.
            signal.signal(number, lambda number, _frame: came.append(number))
        try:
            runs = ensure_service(context.settings, SERVICE_SECONDS, command=SERVICE)
            note(f"memory: worker and recall service {'run' if runs else 'start'}; Ctrl-C ends both")
        except ServiceUnavailable as error:  # Recall is answered by words then.
            note(f"memory: {error}")
        for number in heard:
            signal.signal(number, signal.default_int_handler)
        return 0 if came else worker.run_forever(context.settings)
    except KeyboardInterrupt:  # Where the worker does not listen yet.
        return 0
    except WorkerRunning:  # It came meanwhile, and needs the service.
        stops_service = False
        raise
    finally:
        if stops_service:
            stop_background(state, "recall")
