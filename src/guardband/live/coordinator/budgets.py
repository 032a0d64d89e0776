"""What each journal of a task may spend of the task's budgets: no part of one is granted twice.

For trials, or exploration, it is `trial_budget` or `max_loss` of the space, for what plays cost
`budget`, for each task. What is granted never comes back, so that all that the task's agents spend
together is at most the budget, whatever becomes of their journals.
"""

from __future__ import annotations

import json

from guardband.live.protocol.messages import Account
from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import Transaction

__all__ = ["PURPOSES", "close_budgets", "grant"]

PURPOSES = ("budget", "costs")  # as the store calls them: trials or exploration, and costs
LAST = 1 / 64  # of the budget: where no more is left, all of it is granted


def grant(t: Transaction, space: SpaceSettings, task: str, account: Account, purpose: str) -> float:
    """Return what an account may spend in all; one that is new or wants more gets half of the rest.

    An account that was granted more than is noted here proves that this coordinator was restored
    from a backup: it keeps what it has, and nothing more is granted.
    """
    budget, key = _total(space, purpose), f"{purpose} of {space.name}/{task}"
    granted = float(t.meta(f"{key}/{account.name}") or 0.0)
    if account.granted > granted:
        close_budgets(t, space.name)
        return float(account.granted)
    left = max(0.0, budget - max(float(t.meta(key) or 0.0), _closed(t, space.name, purpose)))
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
        space = SpaceSettings.from_json(json.loads(row.config))
        for purpose in PURPOSES:
            closed = max(_total(space, purpose), _closed(t, name, purpose))
            t.put_meta(_closed_key(name, purpose), repr(closed))


def _total(space: SpaceSettings, purpose: str) -> float:
    """Return a task's whole budget for a purpose."""
    costs = 0.0 if space.budget is None else space.budget.total
    return costs if purpose == "costs" else space.allowance or 0.0


def _closed(t: Transaction, name: str, purpose: str) -> float:
    return float(t.meta(_closed_key(name, purpose)) or 0.0)


def _closed_key(name: str, purpose: str) -> str:
    return f"closed {purpose} of {name}"
