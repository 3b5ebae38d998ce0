"""`memory skills discover`: scan the confirmed sources for new skills."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..pipelines.discovery import SOURCES_BODY, Source, SourcesNote, parse_sources
from ..services.discovery.adapting import SOURCES_NOTE
from ..services.discovery.fetch_child import fetch_in_child
from ..services.discovery.scan import Discovery, ScanReport, SourceReport, seed_sources, sources_called
from .context import Context
from .output import add_json, counted, in_line, note, print_json, print_table

EPILOG = f"""example:
  memory skills discover --dry-run
  memory skills discover --source anthropics-skills

The sources stand in {SOURCES_NOTE}. Nothing is fetched before that note says `confirmed: true`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory skills discover`."""
    parser.add_argument("--dry-run", action="store_true", help="show the sources; ask nobody, write nothing")
    parser.add_argument("--source", metavar="NAME", help="only this one, by the name that --dry-run shows")
    parser.add_argument("--all", action="store_true", help="propose also what was there at a source's first scan")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Scan; return 1 if a source could not be read."""
    discovery = Discovery(context.settings, fetch_in_child(context.settings), context.store)
    is_new = not context.store.exists(SOURCES_NOTE)
    sources = parse_sources(SOURCES_BODY, False) if is_new else discovery.note()
    for problem in sources.problems:
        note(f"memory: {SOURCES_NOTE}: {problem}")
    chosen = sources_called(args.source, sources)
    if args.dry_run:
        return _dry_run(args, sources, chosen, is_new)
    seeded = seed_sources(context.store)
    if seeded:
        note(f"memory: wrote {SOURCES_NOTE} as a proposal; look at it, then set `confirmed: true` there")
        return _print_result(args, ScanReport(), sources, seeded)

    def progress(source: Source, number: int, of: int) -> None:
        if sys.stderr.isatty() and not args.json:
            note(f"[{number + 1}/{of}] {source.slug}")

    report = discovery.scan(args.source, everything=args.all, on_source=progress)
    for problem in report.problems:
        if problem not in sources.problems:
            note(f"memory: {SOURCES_NOTE}: {problem}")
    return _print_result(args, report, sources, seeded)


def _dry_run(args: argparse.Namespace, sources: SourcesNote, chosen: Sequence[Source], is_new: bool) -> int:
    if args.json:
        print_json(
            {
                "confirmed": sources.confirmed,
                "whitelist_seeded": False,
                "total_sources": len(sources.sources),
                "skipped_dry_run": len(chosen),
                "fetched": 0,
                "sources": [_source_as_json(source) for source in chosen],
                "problems": list(sources.problems),
            }
        )
        return 0
    print_table(("name", "kind", "what"), [(s.slug, s.kind, s.target) for s in chosen])
    state = "confirmed" if sources.confirmed else "not confirmed: nothing is fetched"
    print(f"\n{counted(len(chosen), 'source')}, {state}")
    if is_new:
        note(
            f"memory: these are proposed; without --dry-run they are written to {SOURCES_NOTE}, where you confirm them"
        )
    return 0


def _print_result(args: argparse.Namespace, report: ScanReport, sources: SourcesNote, seeded: bool) -> int:
    failed = report.count("error")
    if args.json:
        print_json(
            {
                "confirmed": sources.confirmed,
                "whitelist_seeded": seeded,
                "total_sources": len(sources.sources),
                "fetched": report.count("fetched"),
                "waiting": report.count("waiting"),
                "errors": failed,
                "new_count": len(report.new),
                "new": [asdict(pattern) for pattern in report.new],
                "sources": [_report(source) for source in report.sources],
                "problems": list(report.problems),
            }
        )
    else:
        for source in report.sources:
            address = source.source.address
            print(source.source.slug + (f"  <{address}>" if address else "") + f": {_describe_report(source)}")
            for pattern in source.new:
                print(in_line(f"  {pattern.title}  <{pattern.url}>"))
        if report.new:
            print(f"\n{len(report.new)} new: `memory skills adapt` judges them")
    for source in report.sources:
        if source.state == "error":
            note(f"memory: {source.source.slug}: {source.detail}")
    return 1 if failed else 0


def _describe_report(report: SourceReport) -> str:
    if report.state == "fetched" and report.baseline:
        known = counted(report.baseline, "entry is", "entries are")
        return f"first scan: {known} taken down as known (--all proposes them)"
    if report.state == "fetched":
        return f"{len(report.new)} new among {report.listed}"
    return "could not be read" if report.state == "error" else report.detail


def _source_as_json(source: Source) -> dict[str, Any]:
    return {"name": source.slug, "kind": source.kind, "target": source.target}


def _report(report: SourceReport) -> dict[str, Any]:
    return {
        **_source_as_json(report.source),
        "state": report.state,
        "listed": report.listed,
        "new": len(report.new),
        "baseline": report.baseline,
        **({"detail": report.detail} if report.detail else {}),
    }
