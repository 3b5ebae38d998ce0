"""A folder that cannot be written, for root as well."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path


def with_readonly(folder: Path, argv: Sequence[str]) -> list[str]:
    """`argv`, run where `folder` is read-only: permissions for a user, a read-only mount of its own for root.

    The caller restores the permissions; the mount ends with the process.
    """
    if os.geteuid() != 0:
        folder.chmod(0o555)
        return list(argv)
    place = shlex.quote(str(folder))
    script = f"mount --bind {place} {place} && mount -o remount,bind,ro {place} && exec {shlex.join(argv)}"
    return ["unshare", "--mount", "sh", "-c", script]
