"""`make bench`: make all tables of docs/benchmarks.md and docs/benchmarks/ on one machine.

`python -m memoryvault.bench NAME …` makes only the named tables. Options after a single name are passed on to it.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
import sys
from importlib import metadata
from pathlib import Path

TABLES = {
    "discovery": "New items in a list",
    "hooks": "Hooks",
    "queue": "The queue",
    "index": "Indexing and recall",
    "scale": "1,000 to 100,000 entries, and under load",
    "console": "The console on a large vault",
    "models": "Number formats of the embedding model",
    "recall": "Quality of recall",
    "needs": "What real people's prompts needed and got",
    "small": "Small vaults with many skills",
    "languages": "Recall in other languages",
    "reflection": "Quality of reflection",
    "ways": "Whose words",
    "scrub": "Scrubbing",
    "throughput": "Throughput of mining",
    "research": "Research of ideas",
}
NEEDS_DATA = {"discovery", "needs", "recall", "reflection", "scrub", "throughput"}
PACKAGES = ("huey", "apsw", "sqlite-vec", "sentence-transformers", "torch")


def machine() -> str:
    """Describe the machine on one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text("utf-8").splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return (
        f"{os.cpu_count()} cores ({model}), {platform.system()} {'.'.join(platform.release().split('.')[:2])}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {', '.join(versions)}"
    )


def main(argv: list[str]) -> int:
    """Make the tables one after the other; return 1 if one failed."""
    options = argv[1:] if argv[1:] and argv[1].startswith("-") else []
    argv = argv[: len(argv) - len(options)]
    unknown = [name for name in argv if name not in TABLES]
    if unknown:
        print(f"there is no table {unknown[0]}; choose from {', '.join(TABLES)}", file=sys.stderr)
        return 2
    print(f"Measured on {machine()}.\n", flush=True)
    failed = False
    for name in argv or TABLES:
        print(f"## {TABLES[name]}\n\n`python -m memoryvault.bench {name}`\n", flush=True)
        if name in NEEDS_DATA and not os.environ.get("MEMORYVAULT_DATA"):
            print("Not made: MEMORYVAULT_DATA does not name the folder with the data sets.\n", flush=True)
            continue
        done = subprocess.run([sys.executable, "-m", f"memoryvault.bench.{name}", *options], check=False)
        failed |= done.returncode != 0
        print(flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
