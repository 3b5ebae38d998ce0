"""Reads of the web: a fetcher that reaches public addresses only and keeps to limits of time and size."""
