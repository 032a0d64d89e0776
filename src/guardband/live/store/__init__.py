"""Where a coordinator keeps what it must not forget."""

from guardband.live.store.base import Store, StoreError, Transaction

__all__ = ["Store", "StoreError", "Transaction"]
