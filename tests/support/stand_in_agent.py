"""A stand-in for `claude` and `codex`: a program that notes how it was called and answers as it was told to."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python} -IS
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path({folder!r})
told = json.loads((here / "told.json").read_text())
calls = here / "calls"
prompt = sys.stdin.read()
number = len(list(calls.iterdir()))
sleeper = subprocess.Popen(["/bin/sleep", "60"]).pid if told["mode"] in ("hang", "huge") else 0
(calls / f"{{number:03}}.json").write_text(json.dumps({{
    "argv": sys.argv[1:], "env": dict(os.environ), "stdin": prompt, "cwd": os.getcwd(), "files": os.listdir("."),
    "mode": oct(os.stat(".").st_mode & 0o777), "pid": os.getpid(), "started": sleeper,
}}))
for hook in told.get("hooks", []):
    subprocess.run(hook["argv"], input=hook["stdin"], env={{**os.environ, **hook["env"]}}, text=True)
mode = told["mode"]
if mode == "hang":
    time.sleep(60)
if mode == "garbage":
    print("Welcome to the agent!")
    sys.exit(0)
if mode == "error object":
    print(json.dumps({{"type": "error", "error": {{"type": "rate_limit_error", "message": "Too many requests"}}}}))
    sys.exit(0)
if mode == "huge":
    while True:
        sys.stdout.write(" " * 65536)
if mode == "exit 1":
    sys.stderr.write("you are not logged in\\n")
    sys.exit(1)
if mode == "limit" and "-o" in sys.argv:
    print(json.dumps({{"type": "turn.failed", "error": {{"message": "You've hit your usage limit."}}}}))
    sys.exit(1)
if mode == "limit":
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": True, "result": "You've hit your limit"}}))
    sys.exit(1)
if "-o" in sys.argv:
    if mode == "no answer":
        sys.exit(0)
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(json.dumps(told["answer"]))
    print(json.dumps({{"type": "turn.completed", "usage": {{"input_tokens": 900, "output_tokens": 60}}}}))
elif mode in ("ok", "no answer"):
    result = {{"type": "result", "subtype": "success", "is_error": False, "result": "",
        "usage": {{"input_tokens": 10, "cache_creation_input_tokens": 800, "cache_read_input_tokens": 90,
                   "output_tokens": 60}}}}
    if mode == "ok":
        result["structured_output"] = told["answer"]
    print(json.dumps(result))
else:
    print(json.dumps({{"type": "result", "subtype": mode, "is_error": True, "usage": {{}}}}))
    sys.exit(1)
"""


@dataclass
class StandInAgent:
    """An executable in `folder`, called `name`."""

    folder: Path
    name: str = "claude"

    def __post_init__(self) -> None:
        (self.folder / "calls").mkdir(parents=True)
        self.program.write_text(_PROGRAM.format(python=sys.executable, folder=str(self.folder)), "utf-8")
        os.chmod(self.program, 0o755)
        self.tell()

    @property
    def program(self) -> Path:
        return self.folder / self.name

    def tell(self, mode: str = "ok", answer: Any = None, hooks: list[dict[str, Any]] | None = None) -> None:
        """ok, hang, garbage, error object, huge, exit 1, limit, no answer, or an error subtype of claude's."""
        told = {"mode": mode, "answer": {"candidates": []} if answer is None else answer, "hooks": hooks or []}
        (self.folder / "told.json").write_text(json.dumps(told), "utf-8")

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text("utf-8")) for path in sorted((self.folder / "calls").iterdir())]
