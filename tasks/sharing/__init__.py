"""Mining old sessions with the help of other machines; see docs/adr/0025.

What leaves is the words of a session, scrubbed, without a name, a path, a time or a tool's output. What comes back is
places: which of those words are worth a look. The machine at home looks there itself, in its own transcript and by
its own rules, so that nobody else's text ever comes near its vault.
"""
