"""Running jobs: ledger, worker, scheduler, child processes. What a job does is not known here."""
