"""Mining several transcripts in one child process: starting it costs more than mining a usual one.

`python -m memoryvault.tasks.corpus.mining` is the child: a list of requests as JSON on stdin; on stdout a JSON line
for each, as soon as it is mined. It writes nothing but a model's answers, and what it prints is scrubbed.
"""

from __future__ import annotations

import json
import sys

from ...vault.killpoint import kill_point
from ...vault.priority import lower_priority
from ..mining import MiningRequest, mine_transcript, mined_to_json, settings_of_child
from ..queue import supervisor

NICENESS = 15


def main() -> int:
    """The child."""
    supervisor.watch_parent()
    lower_priority(NICENESS)
    requests = [MiningRequest(**fields) for fields in json.load(sys.stdin)]
    settings = None if all(request.local_only for request in requests) else settings_of_child()
    for request in requests:
        try:
            answer = mined_to_json(mine_transcript(request, None if request.local_only else settings))
        except OSError as error:
            answer = {"error": f"cannot be read: {error.strerror}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        kill_point("corpus-mid-child")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
