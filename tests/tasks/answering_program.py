"""A child for tests: prints the text of its request, "no JSON" by default, and exits with the status in it."""

import json
import sys


def main() -> int:
    request = json.load(sys.stdin)
    print(request.get("complain", ""), file=sys.stderr)
    sys.stdout.write(request.get("print", "no JSON"))
    return int(request.get("status", 0))


if __name__ == "__main__":
    raise SystemExit(main())
