"""What each journal of a task may spend of the task's budget: no part of it is granted twice.

The budget is `trial_budget` or `max_loss` of the space, for each task. What is granted never comes
back, so that all that the task's agents spend together is at most the budget, whatever becomes of
their journals.
"""

from __future__ import annotations

import json

from guardband.live.protocol.messages import Account
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Transaction

__all__ = ["close_budgets", "grant"]

LAST = 1 / 64  # of the budget: where no more is left, all of it is granted


def grant(t: Transaction, space: SpaceSettings, task: str, account: Account) -> float:
    """Return what an account may spend in all; one that is new or wants more gets half of the rest.

    An account that was granted more than is noted here proves that this coordinator was restored
    from a backup: it keeps what it has, and nothing more is granted.
    """
    budget, key = space.allowance or 0.0, f"budget of {space.name}/{task}"
    granted = float(t.meta(f"{key}/{account.name}") or 0.0)
    if account.granted > granted:
        close_budgets(t, space.name)
        return float(account.granted)
    left = max(0.0, budget - max(float(t.meta(key) or 0.0), _closed(t, space.name)))
    if left > 0.0 and (granted == 0.0 or account.wants_more):
        more = left if left <= LAST * budget else 0.5 * left
        granted += more
        t.put_meta(key, repr(budget - left + more))
        t.put_meta(f"{key}/{account.name}", repr(granted))
    return granted


def close_budgets(t: Transaction, name: str) -> None:
    """Count all of today's budgets as granted: which parts were, the backup does not know.

    A budget that is raised later has its new part to grant.
    """
    row = t.space(name)
    if row is not None:
        budget = SpaceSettings.from_json(json.loads(row.config)).allowance or 0.0
        t.put_meta(_closed_key(name), repr(max(budget, _closed(t, name))))


def _closed(t: Transaction, name: str) -> float:
    return float(t.meta(_closed_key(name)) or 0.0)


def _closed_key(name: str) -> str:
    return f"closed budget of {name}"
