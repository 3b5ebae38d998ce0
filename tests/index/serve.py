"""The recall service as tests start it: `python -m memoryvault.tests.index.serve VAULT STATE [options]`."""

import argparse
import os
import sys
import time
from pathlib import Path

from memoryvault.index import service
from memoryvault.index.embedder import DEFAULT_MODEL, Embedder
from memoryvault.index.service import serve
from memoryvault.runtime.errors import ModelUnavailable
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.support.fake_embedder import FakeEmbedder


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("vault", type=Path)
    parser.add_argument("state")
    parser.add_argument("--model", default="fake")
    parser.add_argument("--load-seconds", type=float, default=0.0)
    parser.add_argument("--text-seconds", type=float, default=0.0)
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--idle-seconds", type=float, default=600.0)
    parser.add_argument("--foreign", action="store_true", help="who asks is taken for another user")
    parser.add_argument("--connection-seconds", type=float, default=30.0)
    parser.add_argument("--hangs-seconds", type=float, default=service.HANGS_SECONDS)
    options = parser.parse_args(argv)

    def load() -> Embedder:
        time.sleep(options.load_seconds)
        if options.no_model:
            raise ModelUnavailable("the model is not installed")
        return FakeEmbedder(delay_seconds=options.text_seconds)

    vars(service)["HANGS_SECONDS"] = options.hangs_seconds
    if options.foreign:
        vars(service)["peer_uid"] = lambda connection: os.getuid() + 1
    vars(service)["CONNECTION_SECONDS"] = options.connection_seconds
    env = {"HOME": options.state, "MEMORY_VAULT_PATH": str(options.vault)}
    settings = load_settings({**env, "AGENT_TOOLKIT_EMBEDDING_MODEL": options.model})
    loaded = None if options.model == DEFAULT_MODEL else load
    outcome = serve(settings, StatePaths(options.state), idle_seconds=options.idle_seconds, load=loaded)
    print(outcome.value)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
