"""Measure which rules the agent gets when it acts: `python -m memoryvault.bench.actions [--prompts FOLDER]`.

Of the calls in `action_calls.json`, which were written before the program, half are held out. Counted are the calls
that get the rule about them, and the other calls that get any rule. `action_rules.jsonl` has 120 rules by a writer who
did not know the program, each with calls that it speaks of and others that share its words; half of them, every second
one, are held out, too. With a folder that has `memories.jsonl` and
`dev.jsonl`, also the memories for actions of which a labelled trigger is compiled.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..hooks.action_match import match_call
from ..pipelines.triggers import Triggers, compile_triggers
from ..services.action_index import compile_index

CALLS = Path(__file__).with_name("action_calls.json")
RULES = Path(__file__).with_name("action_rules.jsonl")


def lookup_of(triggers: Sequence[Triggers]) -> Mapping[str, Any]:
    """Return the first line of the compiled file of these rules."""
    lookup: Mapping[str, Any] = json.loads(compile_index([({}, one) for one in triggers]).split(b"\n")[0])
    return lookup


def arguments_of(call: Mapping[str, Any]) -> dict[str, str]:
    """Return the tool's input as the host sends it."""
    if call["tool"] == "Bash":
        return {"command": call["command"]}
    key = "notebook_path" if call["tool"] == "NotebookEdit" else "file_path"
    return {key: call["path"], "new_string": call.get("text", "x = 1\n")}


def measure_calls(half: str) -> tuple[int, int, int, int, list[str]]:
    """Return (calls with a rule, those that got it, other calls, those that got any rule, descriptions of faults)."""
    data = json.loads(CALLS.read_text("utf-8"))
    names = list(data["rules"])
    lookup = lookup_of([compile_triggers(data["rules"][name]) for name in names])
    spoken = told = others = wrong = 0
    faults = []
    for call in data["calls"]:
        if call["half"] != half:
            continue
        got = [names[number] for number in match_call(lookup, call["tool"], arguments_of(call))]
        if call["rule"] is None:
            others += 1
            wrong += bool(got)
        else:
            spoken += 1
            told += call["rule"] in got
        if bool(got) != (call["rule"] is not None) or (call["rule"] or "") not in (got or [""]):
            faults.append(f"{call.get('command') or call.get('path')}: {call['rule']} got {got}")
    return spoken, told, others, wrong, faults


def measure_rules(half: str, show: bool = False) -> tuple[int, int, int, int]:
    """Return (calls that the rules of `action_rules.jsonl` speak of, those that get theirs, others, those that do)."""
    rows = [json.loads(line) for line in RULES.open(encoding="utf-8")][half == "held" :: 2]
    counts = [0, 0, 0, 0]
    for row in rows:
        lookup = lookup_of([compile_triggers(row["rule"])])
        for at, calls in ((0, row["spoken"]), (2, row["others"])):
            for call in calls:
                got = bool(match_call(lookup, call["tool"], arguments_of(call)))
                counts[at] += 1
                counts[at + 1] += got
                if show and got == bool(at):
                    print(row["rule"], "|", call)
    return counts[0], counts[1], counts[2], counts[3]


def measure_others(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return (calls without a rule, times the number of people; those that get a rule of that person)."""
    others = [call for call in json.loads(CALLS.read_text("utf-8"))["calls"] if call["rule"] is None]
    people = sorted({row["person"] for row in rows})
    told = 0
    for person in people:
        of_person = [row for row in rows if row["person"] == person]
        lookup = lookup_of([compile_triggers(row["statement"], channel=row["channel"]) for row in of_person])
        told += sum(bool(match_call(lookup, call["tool"], arguments_of(call))) for call in others)
    return len(people) * len(others), told


def covers(triggers: Triggers, label: str) -> bool:
    """Whether the labelled trigger is compiled: by its name, or so that a call made of it matches."""
    if label.lower() in {one.lower() for one in triggers.all}:
        return True
    # The same file, with a folder that the rule names.
    if any(path.rstrip("/").endswith("/" + label.rstrip("/*")) for path in triggers.paths):
        return True
    lookup = lookup_of([triggers])
    file = label.replace("**", "x.txt").replace("*", "x")
    calls = (
        ("Bash", {"command": label}),
        ("Write", {"file_path": file, "content": ""}),
        ("Edit", {"file_path": "x", "new_string": label}),
    )
    return any(match_call(lookup, tool, arguments) for tool, arguments in calls)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures; return 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=Path)
    parser.add_argument("--people", choices=("dev", "others"), default="dev")
    parser.add_argument("--show", action="store_true", help="show what went wrong, of the dev half alone")
    options = parser.parse_args(argv)
    met = True
    for half in ("dev", "held"):
        spoken, told, others, wrong, faults = measure_calls(half)
        print(f"{half}: {told} of {spoken} calls that a rule speaks of get it; {wrong} of {others} others get anything")
        met = met and told >= 0.8 * spoken and wrong <= 0.1 * others
        spoken, told, others, wrong = measure_rules(half, options.show and half == "dev")
        print(f"{half}, rules by another writer: {told} of {spoken} calls get the rule; {wrong} of {others} others")
        if options.show and half == "dev":
            print("\n".join(faults))
    if options.prompts is not None:
        people = {json.loads(line)["person"] for line in (options.prompts / "dev.jsonl").open(encoding="utf-8")}
        rows = [json.loads(line) for line in (options.prompts / "memories.jsonl").open(encoding="utf-8")]
        mine = [row for row in rows if (row["person"] in people) == (options.people == "dev")]
        actions = [row for row in mine if "action" in (row["channel"], row["also"]) and row["triggers"]]
        hit = 0
        for row in actions:
            triggers = compile_triggers(row["statement"], channel=row["channel"])
            found = any(covers(triggers, label) for label in row["triggers"])
            hit += found
            if options.show and not found:
                print(row["channel"], row["triggers"], "|", row["statement"][:150], "|", triggers.all[:12])
        share = hit / len(actions)
        print(f"{options.people}: of {hit} of {len(actions)} actions ({share:.2f}) a labelled trigger is compiled")
        rest = [row for row in mine if "action" not in (row["channel"], row["also"])]
        some = sum(bool(compile_triggers(row["statement"], channel=row["channel"])) for row in rest)
        print(f"{options.people}: {some} of {len(rest)} other memories ({some / len(rest):.2f}) have a trigger")
        calls, told = measure_others(mine)
        print(
            f"{options.people}: of {calls} calls that no rule speaks of, beside people's own rules, {told} get anything"
        )
        met = met and hit >= 0.7 * len(actions) and told <= 0.1 * calls
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
