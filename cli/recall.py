"""`memory recall`: ask the vault."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..index.filters import asked_values, parse_filter
from ..index.protocol import MAX_K
from ..index.recall import DEGRADED_MESSAGES, RecallAnswer, recall_entries
from ..runtime.days import effective_day, local_today
from ..runtime.errors import MemoryVaultError, UsageError
from ..runtime.layout import INBOX, INCUBATOR, REVIEW
from ..runtime.process_lock import lock_holder
from ..vault.active import PLACE_OF_KIND
from ..vault.entry import ACTIVE, RESOLVED
from ..vault.project import project_of, project_slug
from .arguments import at_least_one
from .context import Context, current_folder
from .output import add_json, note, print_json

EPILOG = """example:
  memory recall 'how do we release?'
  memory recall 'login tokens' --filter 'tag=security AND project=shop' -k 3 --json
  memory recall --tag release                  without a question: the newest

What hardly answers comes last, below a line that says so; in JSON its `is_weak` is true.
"""

SERVICE_PATIENCE_SECONDS = 20.0
SLOW_SECONDS = 2.0
WEAK, ONLY_WEAK = "these hardly answer:", "nothing in the vault answers that; the nearest:"
MOST_WEAK = 2
NO_MODEL, BY_WORDS = "no-model", "by keywords only"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory recall`."""
    parser.add_argument(
        "query",
        nargs="?",
        default="",
        help="a question, or the words you remember; may be left out where an option narrows the search",
    )
    parser.add_argument("-k", type=at_least_one, default=5, help="how many at most (default 5)")
    parser.add_argument(
        "--filter", metavar="EXPR", help="kind= status= tag= project= group= created> updated> AND OR NOT"
    )
    parser.add_argument("--tag", help="only entries with this tag, in every project without --project")
    parser.add_argument("--group", help="only entries of this group, in every project without --project")
    parser.add_argument(
        "--project",
        help="entries of this project and of none (default: the current folder's; then, for a person's question, of "
        "every project, but not with --json or a filter)",
    )
    parser.add_argument("--all-projects", action="store_true", help="entries of every project")
    parser.add_argument("--include-inbox", action="store_true", help="what waits in inbox, review and incubator too")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the hits, best first. Raises VaultUnavailable if there are none and the vault is away."""
    if args.k > MAX_K:
        note(f"memory: at most {MAX_K} are given")
        args.k = MAX_K
    expression = _filter_of(args)
    if not (args.query.strip() or expression):
        raise UsageError("what should be recalled? give a question, --filter, --tag, --group or --project")
    project = project_slug(args.project or "") or project_of(current_folder())
    request = _request(args, expression, project, context)
    _update_index(context)
    answer = _ask_also_elsewhere(args, request, context)
    if not answer.hits:
        _ = context.vault  # Raises if the vault is away: then "nothing found" would be wrong.
    if answer.without_service:
        note(f"memory: {answer.without_service}")
    for code in answer.degraded:
        # Without the service no model was looked for.
        without_model = answer.without_service and code == NO_MODEL
        note(f"memory: answered {BY_WORDS if without_model else DEGRADED_MESSAGES.get(code, code)}")
    if args.json:
        print_json({"query": args.query, "hits": list(answer.hits), "degraded": list(answer.degraded)})
        return 0
    if not _answering(answer.hits):
        print(ONLY_WEAK if answer.hits else "nothing in the vault answers that")
        _note_what_was_left_out(args, request, context)
    _print_hits(answer.hits)
    return 0


def _request(args: argparse.Namespace, expression: str, project: str | None, context: Context) -> dict[str, Any]:
    """What the recall service is asked for (index/protocol.py)."""
    tree = parse_filter(expression, local_today())
    kinds = asked_values(tree, "kind")
    places = {PLACE_OF_KIND[kind] for kind in kinds & PLACE_OF_KIND.keys()}
    return {
        **({"statuses": [ACTIVE, RESOLVED]} if kinds else {}),
        "k": args.k,
        "filter": expression,
        "group": args.group,
        "project": project,
        # A group or a tag is meant in every project, unless one is named; so is what a person asks outside of any.
        "all_projects": args.all_projects
        or (not args.project and bool(args.group or args.tag or asked_values(tree, "group")))
        or not (project or context.agent),
        "include": sorted(places | {INBOX, REVIEW, INCUBATOR} if args.include_inbox else places),
    }


def _ask_also_elsewhere(args: argparse.Namespace, request: Mapping[str, Any], context: Context) -> RecallAnswer:
    """Ask; a person who named no project and gets no answer may mean another project, whose answer is better than
    none."""
    answer = _ask(args.query, request, context)
    is_narrowed = args.json or args.project or request["all_projects"] or request["filter"] or context.agent
    if _answering(answer.hits) or is_narrowed:
        return answer
    elsewhere = _ask(args.query, {**request, "all_projects": True}, context)
    of_others = [hit for hit in elsewhere.hits if hit["project"] not in (None, "", request["project"])]
    if not _answering(of_others):
        return answer
    note(f"memory: nothing of {request['project']} or of no project answers that; this is of other projects")
    return replace(elsewhere, hits=tuple(of_others))


def _note_what_was_left_out(args: argparse.Namespace, request: Mapping[str, Any], context: Context) -> None:
    """Say which entries were not searched, which the user may not expect."""
    if (args.project or context.agent) and not (request["all_projects"] or request["filter"]):
        none = "those that belong to no project"
        whose = f"of {request['project']} and {none}" if request["project"] else "that belong to no project"
        note(f"memory: searched the entries {whose}; --all-projects searches all")


def _print_hits(hits: Sequence[Mapping[str, Any]]) -> None:
    strong = _answering(hits)
    for hit in strong:
        print(_line(hit))
    weak = [hit for hit in hits if hit not in strong]
    if weak and strong:
        print(WEAK)
    for hit in weak[:MOST_WEAK]:
        print(_line(hit))


def _answering(hits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [hit for hit in hits if not hit.get("is_weak")]


def _line(hit: Mapping[str, Any]) -> str:
    day = effective_day(hit.get("surfaced_at"), hit["created"], hit["updated"]) or "-"
    place = f"{hit['kind'] or '-'}, {hit['project'] or 'any project'}, {day}"
    since = f"\n      {hit['said_since']}" if "said_since" in hit else ""
    return f"{hit['score']:.2f}  {hit['title']}  ({place})\n      {hit['path']}{since}"


def _ask(query: str, request: Mapping[str, Any], context: Context) -> RecallAnswer:
    with _notice_when_slow():
        return recall_entries(
            context.settings,
            context.state_of_vault_or_index,
            query,
            request,
            caller="command",
            patience_seconds=SERVICE_PATIENCE_SECONDS,
        )


def _filter_of(args: argparse.Namespace) -> str:
    """The filter with the clauses of the options; '' for none. Raises UsageError."""
    clauses = [f"({args.filter})"] if (args.filter or "").strip() else []
    asks = bool(args.query.strip())
    only = {
        "tag": args.tag,
        "project": None if asks and args.old_name != "search" else args.project,
        "group": None if asks else args.group,
    }
    for key, value in only.items():
        if value is not None:
            if not value.strip():
                raise UsageError(f"--{key} needs a value")
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            clauses.append(f'{key}="{quoted}"')
    return " AND ".join(clauses)


def _update_index(context: Context) -> None:
    """Update the index if no worker does, since a new entry is often asked for next."""
    state = context.state_of_vault_or_index
    if lock_holder(state.worker_lock) is not None or not Path(state.index_db).exists():
        return
    from ..services.indexing import reconcile_now  # imported here: slower than the question itself
    from .vault_choice import empty_vault_notice

    with suppress(MemoryVaultError, OSError):  # The answer says what it is based on.
        if not empty_vault_notice(context.vault, Path(state.index_db)):  # An empty vault may be an unmounted disk.
            reconcile_now(context.settings)


@contextmanager
def _notice_when_slow() -> Iterator[None]:
    """At a terminal, print after SLOW_SECONDS that the model is being loaded."""
    words = f"memory: the model is being loaded; after {SERVICE_PATIENCE_SECONDS:.0f} s keywords answer alone"
    timer = threading.Timer(SLOW_SECONDS, note, [words])
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
