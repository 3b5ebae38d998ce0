"""`python -m memoryvault` is the `memory` command."""

from .cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
