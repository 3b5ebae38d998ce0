"""`memory idea`: save an idea; list, show, surface, archive, delete, restore or promote ideas."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from shlex import quote

from ..pipelines.incubation import TRASH_DAYS, Answer
from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import UsageError
from ..services.agent_proposals import AgentProposals
from ..services.decision_property import DecisionOutcome
from ..services.ideas.archive import promote, put_away, put_away_ideas, restore
from ..services.ideas.incubator import refresh_list
from ..services.ideas.ledger import (
    find_idea,
    idea_as_json,
    ideas,
    is_surfaced,
    link_of,
    pitch_of,
    said_on,
    slug_of,
    surface,
)
from ..services.ideas.research import request_research_if_possible
from ..services.journal import Journal
from ..services.remembering import capture_idea
from ..tasks.queue.enqueue import request_indexing
from ..vault.entry import first_sentence
from ..vault.pending import IDEAS_LIST
from .context import Context
from .output import (
    COLUMN_CHARACTERS,
    add_json,
    counted,
    cut,
    note,
    print_json,
    print_result,
    print_rows,
    result_path,
    with_home,
)
from .save import is_sentence, report_proposed

EPILOG = """example:
  memory idea "Show on a page how many charges were retried, by day."
  memory idea "Retry dashboard" "A page that shows how many charges were retried, by day."
  memory idea list
  memory idea show retry-dashboard
  memory idea surface retry-dashboard       put it into Ideas.md
  memory idea gc                            list what nobody came back to
  memory idea archive retry-dashboard       also: keep, delete, restore
  memory idea promote retry-dashboard       make a project of it
  memory idea add "List" "Titles that are also words of this command."
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory idea`."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="IDEA | TITLE SUMMARY | list | show SLUG | …",
        help="an idea, or its title and a summary; or as below",
    )
    parser.add_argument("--as", dest="name", metavar="NAME", help="promote: name of the project")
    parser.add_argument("--session", metavar="ID", help="the session in which it came up")
    parser.add_argument("--all", action="store_true", help="list: archived and deleted ideas as well")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the action of the first word; any other text is an idea, two texts are its title and summary."""
    word, rest = args.words[0], args.words[1:]
    is_word = (word in _ALONE and not rest) or (word in _WITH_SLUG and len(rest) == 1)
    if args.session is not None and is_word:
        raise UsageError(f"--session is that of a new idea: leave it out of `memory idea {word}`")
    if args.name is not None and not (word == "promote" and len(rest) == 1):
        raise UsageError("--as belongs to `memory idea promote`")
    if args.all and args.words != ["list"]:
        raise UsageError("--all belongs to `memory idea list`")
    if word in _ALONE and not rest:
        return _ALONE[word](args, context)
    if word in _WITH_SLUG and len(rest) == 1:
        return _WITH_SLUG[word](rest[0], args, context)
    texts = rest if word == "add" else args.words
    if len(texts) == 1 and is_sentence(texts[0]):
        return _capture(first_sentence(texts[0]), texts[0], args, context)
    if len(texts) == 2 and (word == "add" or (word not in _ALONE and is_sentence(texts[1]))):
        return _capture(texts[0], texts[1], args, context)
    raise UsageError(
        "say the idea in a sentence, or give a title and a summary, each in quotes: memory idea 'Retry dashboard' "
        f"'A page that …'; `memory idea add TITLE SUMMARY` takes any; {' and '.join(_ALONE)} stand alone, "
        f"and {', '.join(_WITH_SLUG)} need the name of an idea, which `memory idea list` shows"
    )


def _capture(title: str, summary: str, args: argparse.Namespace, context: Context) -> int:
    if not title.strip() or not summary.strip():
        raise UsageError("an idea needs a title and a summary, and one of them is empty")
    if context.agent:
        proposed = AgentProposals(context.settings, context.store).propose("idea", title, summary)
        return report_proposed(proposed, context, args)
    clean = (scrub(" ".join(title.split()), Policy.SECRETS), scrub(summary.strip(), Policy.SECRETS))
    if clean != (" ".join(title.split()), summary.strip()):
        note("memory: secrets in the text were replaced before saving")
    settings, journal = context.settings, Journal(context.state, context.store)
    captured = capture_idea(settings, journal, *clean, session=args.session)
    request_indexing(settings)
    slug = slug_of(captured.path)
    if captured.is_new:
        request_research_if_possible(settings, slug)
    if args.json:
        print_json(
            {
                "slug": slug,
                "path": str(context.vault / captured.path),
                "new": captured.is_new,
                "appended": captured.appended,
                "ideas_file": str(settings.ideas_path),
            }
        )
        return 0
    print(result_path(context.vault / captured.path))
    if not captured.is_new:
        note(f"memory: you had that idea before; it is seen {captured.occurrences} times now")
    if captured.appended:
        print(f"listed in {result_path(settings.ideas_path)}")
    return 0


def _list(args: argparse.Namespace, context: Context) -> int:
    found = [(entry, is_surfaced(context.settings, context.store, entry.path)) for entry in ideas(context.store)]
    away = put_away_ideas(context.store) if args.all else []
    value = [idea_as_json(entry, surfaced) for entry, surfaced in found]
    value += [{**idea_as_json(entry, None), "status": verdict} for verdict, entry in away]
    listed = [(entry, entry.effective_status, "yes" if surfaced else "no") for entry, surfaced in found]
    rows = [
        (slug_of(e.path), status, said_on(e) or "-", e.occurrences, is_in, cut(pitch_of(e), COLUMN_CHARACTERS))
        for e, status, is_in in (*listed, *((entry, verdict, "-") for verdict, entry in away))
    ]
    none = 'there are no ideas: memory idea "TITLE" "SUMMARY" writes one down'
    return print_rows(args, value, ("slug", "status", "since", "seen", "in Ideas.md", "says"), rows, none)


def _show(slug: str, args: argparse.Namespace, context: Context) -> int:
    entry = find_idea(context.store, slug)
    folder = (context.vault / entry.path).parent
    files = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    surfaced = is_surfaced(context.settings, context.store, entry.path)
    value = {**idea_as_json(entry, surfaced), "body": entry.body, "files": files}
    path = result_path(context.vault / entry.path)
    return print_result(args, value, path, "", entry.body, "", f"files: {', '.join(files)}")


def _surface(slug: str, args: argparse.Namespace, context: Context) -> int:
    journal = Journal(context.state, context.store)
    path = surface(context.settings, journal, slug, run=journal.new_run("idea"))
    file = str(context.settings.ideas_path)
    value = {"slug": slug, "path": path, "ideas_file": file}
    return print_result(args, value, f"{with_home(file)}: [[{link_of(context.store, path)}]]")


def _gc(args: argparse.Namespace, context: Context) -> int:
    stale = refresh_list(context.settings, Journal(context.state, context.store))
    value = [{"slug": i.slug, "title": i.title, "last": i.last.isoformat()} for i in stale]
    rows = [(i.slug, i.last.isoformat(), cut(i.statement, COLUMN_CHARACTERS)) for i in stale]
    months = counted(context.settings.memory.incubator_gc_months, "month")
    none = f"none is due yet: you are asked about an idea that nobody came back to {months} after it was noted"
    print_rows(args, value, ("slug", "last touched", "says"), rows, none)
    if stale and not args.json:
        note(f"memory: nothing was changed; answer with `memory review`, or tick boxes in {context.vault / IDEAS_LIST}")
    return 0


def _answer(answer: Answer) -> Callable[[str, argparse.Namespace, Context], int]:
    def carry_out(slug: str, args: argparse.Namespace, context: Context) -> int:
        journal = Journal(context.state, context.store)
        ideas_file = context.settings.ideas_path
        done = put_away(journal, slug, answer, run=journal.new_run("idea"), actor="idea", ideas_file=ideas_file)
        if answer is not Answer.KEEP and not args.json:
            within = f" within {TRASH_DAYS} days" if answer is Answer.DELETE else ""
            note(f"memory: `memory idea restore {quote(slug)}` brings it back{within}")
        return _done(done, args, context)

    return carry_out


def _restore(slug: str, args: argparse.Namespace, context: Context) -> int:
    done = restore(Journal(context.state, context.store), slug, ideas_file=context.settings.ideas_path)
    return _done(done, args, context)


def _promote(slug: str, args: argparse.Namespace, context: Context) -> int:
    """Move the idea's folder, with all its files, to personal-projects/<name>/."""
    journal = Journal(context.state, context.store)
    done = promote(journal, slug, name=args.name, ideas_file=context.settings.ideas_path)
    request_indexing(context.settings)
    file = context.settings.ideas_path
    if done.listed_in is not None:
        annotation, says = "written", f"{file.name} says so"
    elif not file.exists():
        annotation, says = "no_ideas_file", f"there is no {file.name}"
    elif os.access(file, os.W_OK):
        annotation, says = "no_section", f"{file.name} has no section of it"
    else:
        annotation, says = "not_writable", f"{file.name} could not be written and does not say so"
    value = {"promoted": True, "slug": slug, "path": done.path, "ideas_annotation": annotation}
    return print_result(args, value, result_path(context.vault / done.path), says)


def _done(done: DecisionOutcome, args: argparse.Namespace, context: Context) -> int:
    request_indexing(context.settings)
    return print_result(args, {"verdict": done.verdict, "path": done.path}, done.told)


_ALONE: Mapping[str, Callable[[argparse.Namespace, Context], int]] = {"list": _list, "gc": _gc}
_WITH_SLUG: Mapping[str, Callable[[str, argparse.Namespace, Context], int]] = {
    "show": _show,
    "surface": _surface,
    "restore": _restore,
    "promote": _promote,
    **{answer.value: _answer(answer) for answer in Answer},
}
