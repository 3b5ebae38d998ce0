"""Parsers of what discovery watches: lists of links, feeds, GitHub. Fetching is in `sources.web`."""
