"""Where a coordinator keeps what it must not forget."""

from guardband.live.store.base import Store, StoreError, Transaction
from guardband.live.store.memory import MemoryStore

__all__ = ["MemoryStore", "Store", "StoreError", "Transaction"]
