"""corpus.settle and corpus.digest: what a backfill found is written, and its digest kept up to date."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...runtime.errors import EditConflict, VaultUnavailable
from ...runtime.settings import Settings
from ...services.corpus.backfill import unfinished
from ...services.corpus.settling import DIGEST, REFRESH, is_settling, refresh_digest, settle
from ...services.corpus.store import CorpusStore
from ...services.ideas.research import request_research, unresearched
from ...services.stores import vault_store
from ...vault.wording import counted
from ..queue.enqueue import open_ledger
from ..queue.job import Handler, Postpone, Retry, RunningJob
from ..queue.kinds import Json

log = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
REFRESH_SECONDS = 5.0
"""Pause until a settling looks again whether the digest is written, which usually takes less."""
VAULT_PAUSE_SECONDS = 10.0


def settle_handler(settings: Settings) -> Handler:
    """Make the handler of corpus.settle."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        with open_ledger(settings) as ledger:
            left = len(unfinished(ledger, CorpusStore(settings.state)))
            refreshes = bool(ledger.list(["running"], kind=REFRESH, most=1))
        if left:
            # The last of them enqueues a settling; this is for one that dies before it does.
            raise Postpone(f"{counted(left, 'transcript is', 'transcripts are')} still to be mined", WAIT_SECONDS)
        if refreshes:  # A refresh looks for settlings only once it is claimed: one of the two sees the other.
            raise Postpone("the digest is just being written anew", REFRESH_SECONDS)
        with _retry_later():
            settled = settle(settings, vault_store(settings), job.check_owned, run=str(job.args.get("run", "")))
        if settled.saved or settled.proposed or settled.strengthened:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        for slug, pass_ in unresearched(settings, vault_store(settings)):
            request_research(job, slug, pass_)
        counts: dict[str, Json] = {
            "saved": settled.saved,
            "proposed": settled.proposed,
            "held": settled.held,
            "strengthened": settled.strengthened,
        }
        # The lines of the sessions have candidates alone: what becomes of those is decided here, of all together.
        log.info("old sessions settled: %s", ", ".join(f"{name} {count}" for name, count in counts.items()))
        return counts

    return handle


def digest_handler(settings: Settings) -> Handler:
    """Make the handler of corpus.digest."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        with open_ledger(settings) as ledger:
            settles = is_settling(ledger)
        if settles:
            raise Postpone("what was mined is settled first, which may write the digest as it was before", WAIT_SECONDS)
        job.check_owned()
        with _retry_later():
            store = vault_store(settings)
            if store.exists(DIGEST):  # Else its reader has deleted it meanwhile.
                refresh_digest(settings, store)
        return {}

    return handle


@contextmanager
def _retry_later() -> Iterator[None]:
    """Raise Postpone while the vault is unavailable, and Retry while a person edits the digest."""
    try:
        yield
    except VaultUnavailable as error:
        raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
    except EditConflict as error:
        raise Retry(str(error), 2.0) from error
