"""What an agent may spend on trials or exploration: the account of its journal.

Parts of a task's budget are granted to journals. The processes that share one spend from the same
account; a copy of the file gets an account of its own, so that nothing is spent twice.
"""

from __future__ import annotations

import math
import uuid
from pathlib import Path
from typing import NamedTuple

from guardband.live.client.journal import Journal

__all__ = ["JournalAccount", "open_account", "put_granted"]


class JournalAccount(NamedTuple):
    """The account of a journal."""

    name: str
    spent_before: float  # what the journal had spent when the account was opened
    granted: float  # what it was granted since

    def allowance(self, budget: float | None) -> float:
        """Return what the journal may have spent in all; NaN: there is no budget.

        Where the budget was lowered, what was granted beyond it is not used.
        """
        return math.nan if budget is None else self.spent_before + min(self.granted, budget)


def open_account(journal: Journal, spent: float) -> JournalAccount:
    """Return the journal's account; a new one where it has none, or was copied to this file.

    A copy must not spend what was granted to the journal it was made from.
    """
    mark = _mark_beside(journal.path)
    row = journal.one("SELECT name, spent_before, granted, mark FROM account")
    if row is not None and row[3] == mark:
        return JournalAccount(*row[:3])
    account = JournalAccount(str(uuid.uuid4()), spent, 0.0)
    journal.query(
        "INSERT OR REPLACE INTO account VALUES (1, ?, ?, ?, ?)", (account.name, mark, *account[1:])
    )
    return account


def put_granted(journal: Journal, account: JournalAccount, granted: float) -> JournalAccount:
    """Return the account with what it was granted, which is never less than before."""
    after = account._replace(granted=max(account.granted, granted))
    if after != account:
        journal.query("UPDATE account SET granted = ?", (after.granted,))
    return after


def _mark_beside(journal: Path) -> str:
    """Return what tells a state folder from its copies: when a file in it was made, and where.

    The file is never written to again, and no copy has its number and its time of change.
    """
    path = journal.with_name("account")
    if not path.exists():
        path.touch(0o600)
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}:{found.st_ctime_ns}"
