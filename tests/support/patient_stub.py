"""hooks/stub.py for a machine that is busy: `patient_stub.py <how many times the time> <hooks/stub.py> <event> …`.

Every wait and limit of the hook is so many times as long; all else is what users run.
"""

import sys


def run() -> None:
    """Multiply the seconds in the hook's modules, then hand over to the client."""
    package = type(sys)("memoryvault")
    package.__path__ = [sys.argv[2].rsplit("/", 2)[0]]
    sys.modules["memoryvault"] = package
    from memoryvault.hooks import client, enqueue, recall, search

    more = float(sys.argv[1])
    for module in (client, enqueue, recall, search):
        for name, value in vars(module).copy().items():
            if name.endswith("_SECONDS"):
                longer = {key: each * more for key, each in value.items()} if isinstance(value, dict) else value * more
                setattr(module, name, longer)
    client.main(sys.argv[3:])


run()
