"""Install the real agent clients, at the pinned versions, into the git-ignored folder `.e2e/`.

`python -m memoryvault.tests.e2e.install_client` is the first step of `make e2e`; a second run installs
nothing. The version and its checksums are pinned by `client/package-lock.json`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CLIENT_FOLDER = REPOSITORY / ".e2e"
PINS = Path(__file__).resolve().parent / "client"
STAMP = CLIENT_FOLDER / ".installed"
PROGRAMS = {
    "Codex CLI": "@openai/codex/bin/codex.js",
    "Gemini CLI": "@google/gemini-cli/bundle/gemini.js",
    "OpenCode": "opencode-linux-x64-baseline/bin/opencode",
}
"""OpenCode is pinned for Linux on x64 alone."""
NODE_MINIMUM = 20
INSTALL_SECONDS = 300


class ClientMissing(Exception):
    """What the end-to-end tests need is not on this machine; the message says what, in one line."""


def client_binary() -> Path:
    """The installed client's native binary; raises ClientMissing."""
    found = sorted(CLIENT_FOLDER.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    if not found or not STAMP.exists() or STAMP.read_text() != _pinned():
        raise ClientMissing("the agent client is not installed; run `make e2e`, which installs it into .e2e/")
    return found[0]


def program(client: str) -> Path:
    """Another installed client: a native binary, or a script for Node.js. Raises ClientMissing."""
    client_binary()
    found = CLIENT_FOLDER / "node_modules" / PROGRAMS[client]
    if not found.exists():
        raise ClientMissing(f"{client} is not installed; run `make e2e`, which installs it into .e2e/")
    return found


def check_machine() -> None:
    """Raises ClientMissing naming every tool that is not there."""
    missing = [tool for tool in ("node", "npm", "tmux") if shutil.which(tool) is None]
    if missing:
        names = ", ".join(missing)
        raise ClientMissing(f"`make e2e` needs Node.js {NODE_MINIMUM}+ with npm, and tmux; not found here: {names}")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)", version)
    if match is None or int(match[1]) < NODE_MINIMUM:
        raise ClientMissing(
            f"`make e2e` needs Node.js {NODE_MINIMUM} or newer; here is {version.strip() or 'none that runs'}"
        )


def install() -> bool:
    """Make the client available; True when something was installed. Raises ClientMissing."""
    check_machine()
    try:
        client_binary()
    except ClientMissing:
        pass
    else:
        return False
    CLIENT_FOLDER.mkdir(exist_ok=True)
    STAMP.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PINS / name, CLIENT_FOLDER / name)
    # The binary comes inside the platform's package: install scripts are neither needed nor run.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=CLIENT_FOLDER, timeout=INSTALL_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise ClientMissing(f"npm did not install the client within {INSTALL_SECONDS} s; try again") from error
    if done.returncode != 0:
        raise ClientMissing(
            f"npm could not install the client (exit code {done.returncode}); is its registry reachable?"
        )
    STAMP.write_text(_pinned())
    client_binary()
    return True


def _pinned() -> str:
    return (PINS / "package-lock.json").read_text()


def main() -> int:
    """Exit code 0 when the client is there, else 1 and one line on stderr."""
    try:
        installed = install()
    except ClientMissing as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1
    print(f"e2e: client {'installed' if installed else 'already installed'} in {CLIENT_FOLDER}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
