"""What an agent may spend, on trials or exploration and of its budget: the account of its journal.

Parts of a task's budgets are granted to journals. The processes that share one spend from the same
account; a copy of the file gets an account of its own, so that nothing is spent twice.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from guardband.agent import Spending
from guardband.kernels.purse import PURSE
from guardband.kernels.types import Floats
from guardband.live import system
from guardband.live.client.journal import Journal
from guardband.live.protocol.messages import Account

__all__ = ["JournalAccount", "Part", "claim", "kept_numbers", "note_boot", "open_account"]
__all__ += ["put_account", "put_spending"]

CLAIM = 1 / 64  # of the budget: so much is claimed at a time, and lost with a power failure


class Part(NamedTuple):
    """A journal's part of one budget of its task."""

    spent_before: float  # what the journal had spent when the account was opened
    granted: float  # what it was granted since

    def most(self, budget: float | None) -> float:
        """Return what the journal may have spent in all; NaN: there is no budget.

        Where the budget was lowered, what was granted beyond it is not used.
        """
        return math.nan if budget is None else self.spent_before + min(self.granted, budget)

    def plus(self, granted: float) -> Part:
        """Return the part with what it was granted, which is never less than before."""
        return self._replace(granted=max(self.granted, granted))


class JournalAccount(NamedTuple):
    """The account of a journal."""

    name: str
    trials: Part  # of `trial_budget`, or of `max_loss`
    costs: Part  # of `budget`
    since: int  # the newest decision when it was opened: what is saved of older ones is another's
    claimed: float = 0.0  # what was spent is at most this, which is on disk
    boot: str | None = None  # in which it was claimed

    def asks(self, part: Part, budget: float, spent: float) -> Account:
        """Return what to tell the coordinator of one part."""
        used = spent - part.spent_before
        return Account(
            self.name, part.granted, part.granted < budget and used >= 0.5 * part.granted
        )


def open_account(journal: Journal, spent: float, paid: float, last: int) -> JournalAccount:
    """Return the journal's account; a new one where it has none, or was copied to this file.

    A copy must not spend what was granted to the journal it was made from.
    """
    mark = _mark_beside(journal.path)
    row = journal.one(
        "SELECT mark, name, spent_before, granted, cost_before, cost_granted, since, claimed, boot "
        "FROM account"
    )
    if row is not None and row[0] == mark:
        return JournalAccount(row[1], Part(*row[2:4]), Part(*row[4:6]), *row[6:])
    account = JournalAccount(str(system.new_uuid()), Part(spent, 0.0), Part(paid, 0.0), last)
    journal.query(
        "INSERT INTO main.account"
        "(id, name, mark, spent_before, granted, cost_before, cost_granted, since) "
        "VALUES (1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET claimed = 0, "
        "name = excluded.name, mark = excluded.mark, spent_before = excluded.spent_before, "
        "granted = 0, cost_before = excluded.cost_before, cost_granted = 0, since = excluded.since",
        (account.name, mark, *account.trials, *account.costs, last),
    )
    return account


def put_account(journal: Journal, account: JournalAccount) -> None:
    """Write down what was granted."""
    granted = (account.trials.granted, account.costs.granted)
    journal.query("UPDATE main.account SET granted = ?, cost_granted = ?", granted)


def kept_numbers(journal: Journal) -> Floats:
    """Return what was spent of the budget, as `kernels.purse` has it; zeros: nothing yet."""
    row = journal.one("SELECT purse FROM account")
    return np.zeros(PURSE) if row is None or row[0] is None else np.frombuffer(row[0])


def put_spending(journal: Journal, spending: Spending) -> None:
    """Write down what was spent of the budget."""
    journal.query("UPDATE main.account SET purse = ?", (spending.numbers.tobytes(),))


def claim(journal: Journal, account: JournalAccount, spending: Spending) -> JournalAccount:
    """Claim more of the budget than was spent; it must be on disk before a decision is told."""
    claimed = spending.spent + CLAIM * spending.budget.total
    journal.query("UPDATE main.account SET claimed = ?", (claimed,))
    return account._replace(claimed=claimed)


def note_boot(
    journal: Journal, account: JournalAccount, spending: Spending, boot: str, last: int
) -> JournalAccount:
    """Take all that was claimed for spent, in a new boot: a power failure may have forgotten it.

    What was reserved before may have been given back and spent again, so it is not given back.
    """
    spending.take_for_spent(account.claimed)
    put_spending(journal, spending)
    journal.query("UPDATE main.account SET boot = ?, since = ?", (boot, last))
    return account._replace(boot=boot, since=last)


def _mark_beside(journal: Path) -> str:
    """Return what tells a state folder from its copies: when a file in it was made, and where.

    The file is never written to again, and no copy has its number and its time of change.
    """
    path = journal.with_name("account")
    if not path.exists():
        path.touch(0o600)
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}:{found.st_ctime_ns}"
