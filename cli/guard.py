"""`memory guard`: mark rules that stop the agent, and wire the hooks of tool calls."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress

from ..hooks.install import may_offer_actions, remember_asked
from ..hooks.wiring import CLAUDE, actions_wired, hosts_with_actions, wire_actions
from ..runtime.errors import IndexUnavailable, UsageError
from ..runtime.settings import Settings
from ..services.action_index import compile_rule, count_rules
from ..services.entry_decisions import mark_guard
from ..services.entry_names import find_entry
from ..services.indexing import reconcile_now
from ..services.reviewing import Reviewer
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import GUARDS
from .context import Context
from .output import add_json, home_path, note, print_json, print_result
from .terminal import is_agreed

EPILOG = """example:
  memory guard                               what is wired, and by how many rules
  memory guard never-push-to-main remind     refuse it once a session, with the rule
  memory guard never-push-to-main ask        have the host ask you each time
  memory guard never-push-to-main deny       refuse it always
  memory guard --on                          wire the tool calls of Claude Code, OpenCode and Gemini

A rule without a mark is told once a session, with the result of the call that it speaks of.
"""
COST = "each command and edit of the agent then takes 60 to 80 ms longer"
QUESTION = (
    "A rule that you kept speaks of what the agent does. MemoryVault can watch that, and tell it the rule at that "
    f"moment: {COST}. Watch? [y/N] "
)
OFF = "off"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory guard`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="an entry, by its file name, path or title")
    parser.add_argument("mark", nargs="?", choices=(*GUARDS, OFF), help="how it guards")
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--on", action="store_true", help="wire the hooks of tool calls into all agents that have them")
    act.add_argument("--off", action="store_true", help="take them out again; marks stay")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Mark a rule, wire or unwire the hooks, or show the state."""
    _ = context.state
    if args.name is None and not args.on and not args.off:
        return _print_state(args, context)
    if args.on or args.off:
        if args.name is not None:
            raise UsageError("--on and --off apply to all rules: leave NAME out, or write `memory guard NAME off`")
        return _wire_actions(args, context.settings)
    if args.mark is None:
        find_entry(context.store, args.name)
        raise UsageError(f"memory guard {shlex.quote(args.name)}: say how it guards: {', '.join(GUARDS)} or {OFF}")
    return _mark_rule(args, context)


def _wire_actions(args: argparse.Namespace, settings: Settings) -> int:
    done = [wire_actions(host, settings, on=args.on) for host in hosts_with_actions(settings) or [CLAUDE]]
    remember_asked(settings)
    changed = [each for each in done if each.changed]
    if args.json:
        print_json({"on": args.on, "changed": bool(changed), "file": str((changed or done)[0].settings_file)})
        return 0
    state = "on" if args.on else "off"
    for each in changed or done:
        already = "" if each.changed else " already"
        print(f"watching what the agent does: {state}{already}, in {home_path(each.settings_file)}")
    if args.on and changed:
        note(f"memory: {COST}; restart sessions that already run. `memory guard --off` ends it")
    return 0


def _mark_rule(args: argparse.Namespace, context: Context) -> int:
    reviewer = Reviewer(context.settings, context.store)
    entry = find_entry(context.store, args.name)
    guard = "" if args.mark == OFF else args.mark
    done = mark_guard(reviewer, entry.path, guard, entry.content_hash)
    triggers = compile_rule(context.store.read(done.path))[1]
    with suppress(IndexUnavailable, OSError):  # The worker does it a little later.
        reconcile_now(context.settings)
    request_indexing(context.settings)
    if args.json:
        print_json({"path": done.path, "guard": guard, "changed": not done.was_so, "triggers": [*triggers.all]})
        return 0
    print(done.said)
    if guard and not triggers:
        note(
            "memory: the rule names no command or file by which a call that breaks it is known: name one in the note's "
            "properties, such as `triggers: [git push]`"
        )
    elif guard:
        note(f"memory: it applies to calls with {', '.join(triggers.all[:8])}{' …' * (len(triggers.all) > 8)}")
        offer_actions(context, asked_for=True)
    return 0


def _print_state(args: argparse.Namespace, context: Context) -> int:
    for _ in context.store.contents():
        pass  # To name the notes that cannot be read, and so may be rules.
    on, rules = actions_wired(context.settings), count_rules(context.settings)
    value = {"on": on, "rules": sum(rules.values()), "guards": {name: rules[name] for name in GUARDS}}
    marked = ", ".join(f"{rules[name]} {name}" for name in GUARDS if rules[name])
    return print_result(
        args,
        value,
        f"watching what the agent does: {'on' if on else 'off (memory guard --on)'}",
        f"rules that name a command or a file: {sum(rules.values())}{f' ({marked})' if marked else ''}",
    )


def offer_actions(context: Context, *, asked_for: bool = False) -> None:
    """If Claude Code has our other hooks, offer once, at a terminal, to install the hooks of tool calls.

    `asked_for`: if no question can be asked, print how to install them.
    """
    settings = context.settings
    if not may_offer_actions(settings) or not sys.stdin.isatty():
        if asked_for and not actions_wired(settings):
            note(f"memory: to watch what the agent does: `memory guard --on` ({COST})")
        return
    agreed = is_agreed(QUESTION)
    remember_asked(settings)
    if agreed:
        done = wire_actions(CLAUDE, settings, on=True)
        print(f"watching what the agent does: on, in {home_path(done.settings_file)}")
    else:
        note("memory: not now; `memory guard --on` does it later")
