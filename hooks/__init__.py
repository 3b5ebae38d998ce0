"""What agent hosts run at their events: the standard library and light modules of `vault` only.

Except for `install` and `wiring`, which only the command line imports.
"""
