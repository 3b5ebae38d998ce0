"""The `memory` command, one module per command: arguments, questions, printed text. The work is done in `tasks`."""
