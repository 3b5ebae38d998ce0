"""Programs that tests run and that Python does not bring."""

import os

import pytest


def required(found: str | None, missing: str) -> str:
    """Where a program was found. Without it the test is left out on a developer's machine, and fails where CI runs,
    which installs it: there a test that is left out would be one that passes.
    """
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found
