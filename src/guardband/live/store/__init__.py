"""A coordinator's store: its rows, and the transactions that read and write them."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports
from guardband.live.store.rows import (
    AlarmRow,
    EntryRow,
    EpochRow,
    EventRow,
    HeartbeatRow,
    MetaRow,
    Row,
    SampleRow,
    SpaceRow,
    StoreError,
    StreamRecord,
    StreamRow,
    TaskRow,
    TokenRow,
)
from guardband.live.store.sql import Store, Transaction

if TYPE_CHECKING:
    from guardband.live.store.postgres import PostgresStore
    from guardband.live.store.sqlite import SqliteStore
else:
    __getattr__ = lazy_imports(__name__)  # each needs a package of its own

__all__ = [
    "AlarmRow",
    "EntryRow",
    "EpochRow",
    "EventRow",
    "HeartbeatRow",
    "MetaRow",
    "PostgresStore",
    "Row",
    "SampleRow",
    "SpaceRow",
    "SqliteStore",
    "Store",
    "StoreError",
    "StreamRecord",
    "StreamRow",
    "TaskRow",
    "TokenRow",
    "Transaction",
]
