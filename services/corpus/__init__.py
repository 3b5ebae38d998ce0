"""The backfill: old sessions are mined one by one, then settled together into few entries."""
