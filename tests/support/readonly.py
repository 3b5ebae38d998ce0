"""A folder that cannot be written, for root as well."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def memory_with_readonly(folder: Path, env: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """`memory`, run where `folder` is read-only: permissions for a user, a read-only mount of its own for root."""
    argv = [sys.executable, "-m", "memoryvault", *arguments]
    if os.geteuid() == 0:
        place = shlex.quote(str(folder))
        script = f"mount --bind {place} {place} && mount -o remount,bind,ro {place} && exec {shlex.join(argv)}"
        argv = ["unshare", "--mount", "sh", "-c", script]
    else:
        folder.chmod(0o555)
    try:
        return subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=60)
    finally:
        folder.chmod(0o755)
