"""Memories and how they are kept: entries, frontmatter, projects, turns and markers of sessions.

`store` is the only writer of `.md` files. Modules that hooks import are light; their docstrings say so.
"""
