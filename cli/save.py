"""`memory save`: save an entry, or propose one in an agent's shell."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path, PurePosixPath

from ..pipelines.likeness import statement_of
from ..pipelines.review import group_of
from ..pipelines.scrub import Policy, scrub
from ..pipelines.seeding import LEAST_SCORE, grade
from ..runtime.errors import EntryExists, EntryInvalid, UsageError
from ..runtime.layout import PROJECTS
from ..runtime.slug import title_slug
from ..services.agent_proposals import AgentProposals, ProposalFields, ProposalOutcome
from ..services.entry_names import refuse_secrets
from ..services.evolving import says_already
from ..services.known_memories import VaultMemories
from ..services.remembering import free_path
from ..services.semantic_similarity import SemanticSimilarity
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import ACTIVE, INCIDENT
from ..vault.project import project_of, project_slug
from .context import Context, current_folder
from .output import add_json, note, print_result, result_path

EPILOG = """example:
  memory save 'Release notes are bullet points.'
  memory save preferences release-notes --tags release,style --body 'Release notes are bullet points.'
  echo 'We deploy on Tuesdays.' | memory save convention deploy-day --project shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory save`."""
    parser.add_argument(
        "kind",
        metavar="kind | TEXT",
        help="what it is: preferences, workflow, fix, …; or the text alone",
    )
    parser.add_argument("slug", nargs="?", help="its name: lower case letters, digits and dashes; or the text")
    parser.add_argument("--group", help="folder in the vault (default personal-private, or personal-projects/PROJECT)")
    parser.add_argument(
        "--always",
        "--always-load",
        dest="always_load",
        action="store_true",
        help="give it to every session at its start",
    )
    parser.add_argument("--tags", default="", help="comma separated")
    parser.add_argument("--title", help="first heading (without it lists show the first sentence)")
    parser.add_argument("--project", help="only for this project, and in its folder")
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="the text")
    body.add_argument("--body-file", type=Path, help="a file with the text")
    parser.add_argument("--vault-path", type=Path, help="another vault than the configured one")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the entry and print its path; in an agent's shell propose it. The worker then indexes it."""
    if args.vault_path is not None:
        context = Context({**context.env, "MEMORY_VAULT_PATH": str(args.vault_path)})
    # What stands after the kind is the text if it has spaces, as no name has.
    is_text = args.slug is not None and len(args.slug.split()) > 1 and args.body is None and args.body_file is None
    is_named = args.slug is not None and not is_text
    if not is_named:
        _parse_text_alone(args)
    body = read_body(args)
    if not body.strip():
        raise UsageError("the entry has no text; give --body TEXT, --body-file FILE, or text on standard input")
    refuse_secrets(args.kind, args.slug, args.project, args.group)
    project = _project(args)
    if context.agent:
        return _propose(args, body, project, context)
    return _save(args, body, project, is_named, context)


def _project(args: argparse.Namespace) -> str | None:
    """Return the entry's project, None for all, and set the group of one in the projects' folder. Raises UsageError."""
    project = project_slug((args.project or "").strip()) or None
    if args.project is not None and project is None:
        raise UsageError("--project needs a name; without it the entry holds in every project")
    if args.group == PROJECTS:  # This folder holds all projects, and no entry itself.
        project = project or project_of(current_folder())
        if not project:
            raise UsageError("which project? this folder belongs to none: give --project NAME")
        args.group = f"{PROJECTS}/{project}"
    return project


def _save(args: argparse.Namespace, body: str, project: str | None, is_named: bool, context: Context) -> int:
    policy = _policy(args.kind)
    text = scrub(body, policy)
    if policy is Policy.SECRETS and text.rstrip("\n") != body.rstrip("\n"):
        note("memory: secrets in the text were replaced before saving")
    store = context.store
    group = group_of(args.group, project)
    path = store.entry_path(group, args.kind, args.slug, always_load=args.always_load)
    with store.lock():
        if not is_named:
            path = free_path(path, store)
            args.slug = PurePosixPath(path).stem
        if store.exists(path):
            replace = f"`memory evolve {args.slug} 'TEXT' 'REASON'` replaces it"
            raise EntryExists(f"there is already an entry {path}: {replace}, or give another name")
        with SemanticSimilarity(context.settings) as meaning:
            same = VaultMemories(store, meaning).saying(statement_of(str(text)), args.kind)
        like = [one for one in same if project is None or one.project in (None, project)]
        for one in like:
            reach = (one.project, one.always_load)
            if one.effective_status == ACTIVE and reach == (project, args.always_load) and says_already(one, str(text)):
                raise EntryExists(f"{one.path} says that already: nothing was written")
        entry = store.create(
            path,
            {
                "kind": args.kind,
                "status": "active",
                "tags": [tag.strip() for tag in args.tags.split(",") if tag.strip()],
                "group": group,
                "slug": args.slug,
                "always_load": args.always_load,
                "project": project,
            },
            title=scrub(args.title, policy) if args.title else None,
            body=text,
        )
    request_indexing(context.settings)
    where = str(context.vault / entry.path)
    value = {"path": where, "slug": entry.slug, "kind": entry.kind, "like": [one.path for one in like]}
    print_result(args, value, result_path(where))
    for one in like:
        status = "" if one.effective_status == ACTIVE else f" ({one.effective_status})"
        note(f"memory: saved beside one that says nearly the same: {one.path}{status}")
    return 0


def is_sentence(text: str) -> bool:
    """Whether the text is more than a word; a text that is not ASCII may have no spaces between words."""
    return len(text.split()) > 1 or not text.isascii()


def _parse_text_alone(args: argparse.Namespace) -> None:
    """Set kind, slug and body from the text that stands alone or after the kind. Raises UsageError."""
    if args.slug is not None:
        args.body, args.slug = args.slug, _name_of(args.slug, args.kind)
        return
    text = args.kind.strip()
    if not is_sentence(text) or args.body is not None or args.body_file is not None:
        raise UsageError("an entry needs a kind and a name, or a text alone: memory save 'We deploy on Tuesdays.'")
    args.kind, args.body = ("preferences" if grade(text)[0] >= LEAST_SCORE else "fact"), text
    args.slug = _name_of(text, args.kind)


def _policy(kind: str) -> Policy:
    """A user's own text may name people and places, but never contains a secret on purpose. A failure report is copied
    from logs, so it gets the full scrub."""
    return Policy.FULL if kind == INCIDENT else Policy.SECRETS


def _name_of(text: str, kind: str) -> str:
    """Name an entry by its text, without what is scrubbed from that."""
    return title_slug(scrub(text, _policy(kind)))


def _propose(args: argparse.Namespace, body: str, project: str | None, context: Context) -> int:
    if args.always_load:
        raise UsageError("what is loaded into every session is the user's to choose: leave --always out")
    title = args.title or args.slug.replace("-", " ").capitalize()
    fields = ProposalFields(args.slug, [tag.strip() for tag in args.tags.split(",")], args.group, project)
    proposed = AgentProposals(context.settings, context.store).propose(args.kind, title, body, fields)
    return report_proposed(proposed, context, args)


def report_proposed(
    proposed: ProposalOutcome, context: Context, args: argparse.Namespace, *, known: str = "nothing was written"
) -> int:
    """Print the outcome and why it is only a proposal; return the exit code. Raises EntryInvalid if it was rejected."""
    if proposed.verdict == "rejected before":
        raise EntryInvalid(f"the user has turned that down before: {proposed.path}")
    where = str(context.vault / proposed.path)
    if proposed.verdict == "waits for review":
        request_indexing(context.settings)
    print_result(args, {"verdict": proposed.verdict, "path": where}, result_path(where))
    if proposed.verdict == "waits for review":
        note(f"memory: run by {context.agent}, so it is a proposal: it waits for the user (`memory review`)")
    else:
        note(f"memory: that is known already; {known}")
    return 0


def read_body(args: argparse.Namespace) -> str:
    """The text from --body, --body-file or standard input. Raises UsageError."""
    if args.body is not None:
        return str(args.body)
    if args.body_file is not None:
        try:
            return Path(args.body_file).read_text("utf-8")
        except OSError as error:
            raise UsageError(f"can't read {args.body_file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"can't read {args.body_file}: it is no UTF-8 text") from error
    if sys.stdin.isatty():
        note("memory: type the text, end with Ctrl-D")
    return sys.stdin.read()
