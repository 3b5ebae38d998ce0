"""The `memory` command, one module per command: arguments, questions and printed text. `services` does the work."""
