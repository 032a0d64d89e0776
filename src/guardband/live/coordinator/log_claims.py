"""Which stream has learned a log: the rows of a log count once in a space."""

from __future__ import annotations

from guardband.live.protocol.messages import Refused
from guardband.live.store import Transaction

__all__ = ["claim_log"]


def claim_log(t: Transaction, space: str, stream: str, log: str) -> None:
    """Note that a stream learns a log, given by its digest; refuse one that another stream has.

    An agent's journal knows which rows it has learned, but no other journal does: in the sums of
    two streams, of one task or of two, every row would count twice. A stream that continues a
    sealed one may go on with its logs.
    """
    key = f"log {log} of {space}"
    owner = t.meta(key)
    if owner == stream:
        return
    while owner not in (None, stream):
        held = t.stream(owner)
        if held is None or held.continued_by is None:
            whose = "another task" if held is None else f"task {held.task!r}"
            raise Refused(
                "log_taken",
                409,
                f"{whose} has learned a log with these rewards, in this order, in another state "
                f"folder (stream {owner}): rows count once in a space. To go on with a log that "
                "was begun there, use that folder.",
                owner=owner,
            )
        owner = held.continued_by
    t.put_meta(key, stream)
