"""The ledger in a PostgreSQL database that several machines share; see docs/adr/0025."""
