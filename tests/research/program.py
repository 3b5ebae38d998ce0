"""Run the queued research in a process that a test may kill: `python -m ... ACCESS`."""

import os
import sys

from memoryvault.runtime.settings import load_settings
from memoryvault.services.ideas.research import request_research
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.research.support import SLUG, from_json, worker


def main() -> int:
    settings = load_settings(os.environ)
    with open_ledger(settings) as ledger:
        request_research(ledger, SLUG)
    worker(settings, from_json(sys.argv[1])).run_until_idle(45.0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
