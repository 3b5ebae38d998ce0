"""A child for tests: prints what its request says, "no JSON" if it says nothing, and exits with the status it names."""

from __future__ import annotations

import json
import sys


def main() -> int:
    request = json.load(sys.stdin)
    print(request.get("complain", ""), file=sys.stderr)
    sys.stdout.write(request.get("print", "no JSON"))
    return int(request.get("status", 0))


if __name__ == "__main__":
    raise SystemExit(main())
