"""The vault and what all layers share: the lowest layer, which imports none of the others.

The vault proper is entries, frontmatter, paths, settings, errors and the only writer of `.md` files. Shared by hooks
and all layers: turns of a session, session markers, the snapshot of the settings, the hooks' log, wording of messages,
process priority, kill points for tests. Modules that hooks import are light; their docstrings say so.
"""
