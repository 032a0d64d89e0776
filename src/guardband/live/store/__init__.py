"""A coordinator's store: its rows, and the transactions that read and write them."""

from guardband.live.store.rows import (
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

__all__ = [
    "EntryRow",
    "EpochRow",
    "EventRow",
    "HeartbeatRow",
    "MetaRow",
    "Row",
    "SampleRow",
    "SpaceRow",
    "Store",
    "StoreError",
    "StreamRecord",
    "StreamRow",
    "TaskRow",
    "TokenRow",
    "Transaction",
]
