"""Run the command at a terminal and answer its question: `python -m memoryvault.tests.support.answer n model use X`."""

import os
import pty
import sys

from memoryvault.cli.main import main as memory


def main(argv: list[str]) -> int:
    answer, arguments = argv[0], argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os._exit(memory(arguments))
    said, answered = b"", False
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        said += piece
        if b"[y/N]" in said and not answered:
            answered = True
            os.write(terminal, answer.encode() + b"\n")
    sys.stdout.write(said.decode("utf-8", "replace"))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
