"""`memory vault topics`: read and write the agent's own notes about a project."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ..runtime.errors import UsageError
from ..services.journal import Actor, Journal
from ..services.topics import Topics
from ..tasks.queue.enqueue import request_indexing
from ..vault.automemory import TYPES
from ..vault.project import project_of, project_slug
from .arguments import refuse_options_of_others
from .context import Context, current_folder
from .output import COLUMN_CHARACTERS, add_json, cut, note, print_result, print_rows, result_path
from .save import read_body

EPILOG = """example:
  memory vault topics read deploy
  memory vault topics write deploy --type project --description 'How this project is deployed' --body 'Tag, then push.'
  memory vault topics write deploy --append --body 'Rollback: push the tag before.'
  memory vault topics rebuild-index            each topic gets its line in MEMORY.md, dead lines go

A topic that exists is changed only with --append, or with --replace and the hash that `read` printed.
"""
BELONGS = dict.fromkeys(
    ("--type", "--description", "--name", "--replace", "--append", "--body", "--body-file"), ("write",)
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault topics`."""
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS)
    parser.add_argument("slug", nargs="?", help="read, write, rm: the topic's name")
    parser.add_argument("--project", help="another project than that of the working directory")
    parser.add_argument("--type", choices=TYPES, help="write: what kind of note it is")
    parser.add_argument("--description", help="write: one line that says when to read it")
    parser.add_argument("--name", help="write: its title in the index")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--replace", metavar="HASH", help="write: in the place of what you read")
    how.add_argument("--append", action="store_true", help="write: add to what is there")
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="write: the text")
    body.add_argument("--body-file", help="write: a file with the text")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List, read, write, remove or repair."""
    refuse_options_of_others(args, BELONGS)
    project = project_slug(args.project or "") or project_of(current_folder())
    if not project:
        raise UsageError("this folder belongs to no project: name one with --project")
    actor: Actor = "agent" if context.agent else "topics"
    topics = Topics(context.store, Journal(context.state, context.store), project, actor=actor)
    if (args.slug is None) != (args.action in ("list", "rebuild-index")):
        raise UsageError(f"memory vault topics {args.action} " + ("takes no slug" if args.slug else "needs a slug"))
    return _ON_TOPICS[args.action](args, topics, context)


def _list(args: argparse.Namespace, topics: Topics, context: Context) -> int:
    found = topics.all()
    value = [{key: value for key, value in asdict(topic).items() if key != "body"} for topic in found]
    rows = [(t.slug, t.type or "-", t.updated or "-", cut(t.description, COLUMN_CHARACTERS)) for t in found]
    return print_rows(args, value, ("slug", "type", "updated", "says"), rows, f"{topics.project} has no topics")


def _read(args: argparse.Namespace, topics: Topics, context: Context) -> int:
    topic = topics.read(args.slug)
    facts = f"({topic.type or 'no type'}, updated {topic.updated or 'unknown'}, hash {topic.hash})"
    return print_result(args, asdict(topic), f"# {topic.name}", "", facts, "", topic.body)


def _write(args: argparse.Namespace, topics: Topics, context: Context) -> int:
    topic = topics.write(
        args.slug,
        read_body(args),
        type_=args.type,
        description=args.description,
        name=args.name,
        replace=args.replace,
        append=args.append,
    )
    request_indexing(context.settings)
    print_result(args, asdict(topic), result_path(context.vault / topic.path))
    if too_long := topics.over_the_limit():
        note(f"memory: {too_long}")
    if context.settings.memory.disable_auto_memory:
        note("memory: memory.disable_auto_memory is set: no session will see it")
    return 0


def _remove(args: argparse.Namespace, topics: Topics, context: Context) -> int:
    archived = topics.remove(args.slug)
    request_indexing(context.settings)
    value = {"removed": args.slug, "archived": archived}
    return print_result(args, value, f"removed: {args.slug}; it is kept in {archived}")


def _rebuild(args: argparse.Namespace, topics: Topics, context: Context) -> int:
    changed = topics.rebuild_index()
    value = {"changed": changed, "path": topics.index_path}
    print_result(args, value, f"{topics.index_path} {'was repaired' if changed else 'is in order'}")
    if too_long := topics.over_the_limit():
        note(f"memory: {too_long}")
    return 0


_ON_TOPICS = {
    "list": _list, "read": _read, "write": _write, "rm": _remove, "rebuild-index": _rebuild,
}  # fmt: skip
ACTIONS = tuple(_ON_TOPICS)
