"""The child process that mines several transcripts, since starting it costs more than mining a usual one.

`python -m memoryvault.tasks.jobs.corpus_mining_child` reads a list of requests as JSON on stdin, and prints a JSON
line for each as soon as it is mined. It writes nothing to disk but a model's answers, and what it prints is scrubbed.
"""

from __future__ import annotations

import json
import sys

from ...runtime.killpoint import kill_point
from ...runtime.priority import lower_priority
from ...services.mining import MiningRequest, mine_transcript, mined_to_json
from ..queue import supervisor
from .mining_child import child_settings

NICENESS = 15


def main() -> int:
    """Run the child."""
    supervisor.watch_parent()
    lower_priority(NICENESS)
    requests = [MiningRequest(**fields) for fields in json.load(sys.stdin)]
    for request in requests:
        try:
            answer = mined_to_json(mine_transcript(request, child_settings(request.local_only)))
        except OSError as error:
            answer = {"error": f"cannot be read: {error.strerror}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        kill_point("corpus-mid-child")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
