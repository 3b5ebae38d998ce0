"""`memory evolve`: replace an entry by a new text; the old one is archived, with links both ways."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import UsageError
from ..services.agent_proposals import AgentProposals
from ..services.entry_names import resolve_entry
from ..services.evolving import evolve
from ..services.journal import Journal
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import INCIDENT
from .context import Context
from .output import add_json, note, print_result, result_path
from .save import read_body, report_proposed
from .show import NAME

EPILOG = """example:
  memory evolve tabs 'Indent with four spaces.' 'the team agreed'
  echo 'We deploy on Mondays.' | memory evolve deploy-day --reason 'new release train'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory evolve`."""
    parser.add_argument("old", metavar="OLD", help=NAME)
    parser.add_argument("words", metavar="TEXT REASON", nargs="*", help="the same as --body and --reason")
    parser.add_argument("--reason", help="why it holds no longer")
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="the new text")
    body.add_argument("--body-file", type=Path, help="a file with the new text")
    parser.add_argument("--vault-path", type=Path, help="another vault than the configured one")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Evolve the entry; print the paths of the new and the archived one, separated by a tab."""
    if args.vault_path is not None:
        context = Context({**context.env, "MEMORY_VAULT_PATH": str(args.vault_path)})
    reason = " ".join(_take_words(args).split())
    store = context.store
    journal = Journal(context.state, store)
    journal.recover()
    old = resolve_entry(store, args.old)
    how = f"memory evolve {shlex.quote(args.old)} 'new text' 'why it changed'"
    if not reason:
        raise UsageError(f"why did it change? give the new text and the reason: {how}")
    body = read_body(args)
    if not body.strip():
        raise UsageError(f"give both the new text and the reason: {how}")
    if context.agent:
        proposed = AgentProposals(context.settings, store, journal).propose_evolved(old, body, reason)
        return report_proposed(proposed, context, args)
    policy = Policy.FULL if store.read(old).kind == INCIDENT else Policy.SECRETS
    text = scrub(body, policy)
    if policy is Policy.SECRETS and text.rstrip("\n") != body.rstrip("\n"):
        note("memory: secrets in the text were replaced before saving")
    archived = evolve(store, journal, old, text, scrub(reason, policy))
    request_indexing(context.settings)
    new, archive = str(context.vault / old), str(context.vault / archived)
    value = {"path": new, "archive": archive, "reason": reason}
    print_result(args, value, f"{result_path(new)}\t{result_path(archive)}")
    if not args.json:
        undo = f"`memory review --undo {shlex.quote(old)}` takes it back"
        note(f"memory: the first holds now; the second is the old text, archived; {undo}")
    return 0


def _take_words(args: argparse.Namespace) -> str:
    """Return the reason and set `args.body` from the words that no option replaces. Raises UsageError.

    A single word is the reason if both options are missing: the text then comes from standard input.
    """
    words = list(args.words)
    reason = words.pop() if words and args.reason is None else args.reason
    if words and args.body is None and args.body_file is None:
        args.body = words.pop()
    if words:
        raise UsageError("give the new text once and the reason once: memory evolve OLD 'new text' 'reason'")
    return str(reason or "")
