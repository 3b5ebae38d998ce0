"""What an agent host runs: `python -I -S <absolute path of this file> <event>`.

A script is compiled anew at every start, so this one only makes the package known under its own name and
calls compiled code. `-I -S` keep PYTHONPATH, the working directory and site-packages out; nothing here
may need them.
"""

import sys


def run() -> None:
    """Make `memoryvault` importable without running its `__init__`, then hand over to the client."""
    package = type(sys)("memoryvault")
    package.__path__ = [__file__.rsplit("/", 2)[0]]
    sys.modules["memoryvault"] = package
    from memoryvault.hooks.client import main

    main(sys.argv[1:])


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  The plugin may have found an older one.
        sys.stderr.write("memoryvault: hooks need Python 3.11 or newer; nothing was done\n")
        sys.exit(0)
    try:
        run()
    except BaseException as error:  # noqa: BLE001  A hook that fails must never fail the agent's turn.
        try:
            sys.stderr.write(f"memoryvault: hook failed: {type(error).__name__}: {error}\n")
        finally:
            import os

            os._exit(0)
