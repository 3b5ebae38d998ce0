"""The local miner: `mine(turns) -> candidates`."""

from .local_miner import Miner, folder_name, mine

__all__ = ["Miner", "folder_name", "mine"]
