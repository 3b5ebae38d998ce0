"""Decisions without I/O: no network, database, clock or queue; the only files read are weights and prompts here."""
