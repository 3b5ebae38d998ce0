"""The vault: entries, frontmatter, paths, markers, settings, errors; the only writer of `.md` files."""
