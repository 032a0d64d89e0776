"""What plays may cost in all: a budget, and what an agent has spent of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guardband.agent.records import Request
from guardband.checks import check_not_negative, check_positive, check_whole
from guardband.errors import BudgetSpentError, InvalidValueError
from guardband.kernels.purse import (
    ASIDE,
    HORIZON,
    PURSE,
    ROUNDS,
    SPENT,
    TOTAL,
    limits_of,
    pay,
)
from guardband.kernels.types import Floats

__all__ = ["Budget", "Purse", "Spending"]

ROUNDING = 1e-9  # of the total: sums of costs are rounded, and a total may just suffice


@dataclass(frozen=True)
class Budget:
    """What the plays of a task may cost in all.

    The total is never exceeded, but for rounding (1e-9 of it): every play is paid for, or reserved,
    before it is made. What the baseline costs stays affordable for the rest of the horizon, as long
    as no baseline costs more than those before it; so the total must be at least what the baseline
    costs in all rounds.

    Parameters
    ----------
    total
        In the units of the costs.
    horizon
        For how many rounds it must last.
    max_cost
        No play costs more. For costs that are only known afterwards: so much is reserved until
        `observe(decision, reward, cost=...)` says less.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2, budget=gb.Budget(total=10, horizon=100))
    >>> decision = agent.decide([[0.6, 0.2], [0.1, 0.9]], baseline=0, cost=[0.05, 0.2])
    >>> decision.action, decision.cost, decision.cost_left
    (0, 0.05, 9.95)
    """

    total: float
    horizon: int
    max_cost: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", check_not_negative("total", self.total))
        object.__setattr__(self, "horizon", check_whole("horizon", self.horizon))
        if self.max_cost is not None:
            object.__setattr__(self, "max_cost", check_positive("max_cost", self.max_cost))
            if self.max_cost > self.total:
                raise InvalidValueError(
                    f"max_cost={self.max_cost:g} is more than the total, {self.total:g}: not one "
                    "play could be paid."
                )


class Spending:
    """What was spent of a budget.

    Attributes
    ----------
    numbers
        As the kernels read it, see `kernels.purse`.
    most
        What may be spent in all: the total, or what a live agent was granted of it so far.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget, self.most = budget, budget.total
        self.numbers = np.zeros(PURSE)
        self.numbers[TOTAL], self.numbers[HORIZON] = budget.total, budget.horizon

    @property
    def spent(self) -> float:
        """What was paid or is reserved."""
        return float(self.numbers[SPENT])

    @property
    def left(self) -> float:
        """What is left to spend."""
        return self.most - self.spent

    def fill(self, numbers: Floats) -> None:
        """Go on from numbers that were kept, under the budget of today."""
        self.numbers[SPENT : len(numbers)] = numbers[SPENT:]  # older ones are shorter

    def costs(self, request: Request) -> tuple[Floats, float]:
        """Return what each action costs at most, and the baseline's share of what must stay.

        Nothing is set aside for a baseline whose cost is only known afterwards.
        """
        if request.cost.size:
            return request.cost, float(request.cost[request.baseline])
        return np.full(request.menu.shape[1], self.budget.max_cost), 0.0

    def check(self, requests: Sequence[Request]) -> None:
        """Refuse requests whose baselines cannot be paid; before anything is changed.

        What these cost together is set aside, so that none of them is spent on another round.
        """
        left, rounds = self.left + ROUNDING * self.most, int(self.numbers[ROUNDS])
        aside, total, horizon = 0.0, self.budget.total, self.budget.horizon
        for i, request in enumerate(requests):
            costs, base = self.costs(request)
            self._check_most(costs)
            own = float(costs[request.baseline])
            if rounds == 0 and i == 0 and base * horizon > total * (1.0 + ROUNDING):
                raise InvalidValueError(
                    f"a budget of {total:g} is below what the baseline must cost: {base:g} in each "
                    f"of {horizon:,} rounds. Give total={base * horizon:.10g} or more, or a "
                    "cheaper baseline."
                )
            aside += own
            if aside > left:
                shown = f"{total:g}"
                if self.most != total:
                    shown += f", of which {self.most:g} is granted so far,"
                raise BudgetSpentError(
                    f"the budget is used up: {left - aside + own:g} of {shown} is left, and the "
                    f"baseline costs {own:g}. Nothing was decided; a baseline that is free can "
                    "still be played."
                )
        self.numbers[ASIDE] = aside

    def _check_most(self, costs: Floats) -> None:
        most = self.budget.max_cost
        if most is not None and float(costs.max()) > most:
            k = int(costs.argmax())
            raise InvalidValueError(
                f"cost[{k}] is {costs[k]:.10g}, more than max_cost={most:g} of the budget."
            )

    def limits(self, request: Request) -> tuple[float, float]:
        """Return the price of cost, and what an action may cost now.

        What baselines of the same batch cost stays, beside what those of rounds to come may.
        """
        costs, base = self.costs(request)
        price, room = limits_of.at_once(self.numbers, base)
        others = max(0.0, float(self.numbers[ASIDE]) - float(costs[request.baseline]))
        return price, min(room, self.left - others)

    def take_for_spent(self, amount: float) -> None:
        """Count at least so much as spent."""
        self.numbers[SPENT] = max(self.numbers[SPENT], amount)

    def pay_round(self, request: Request, k: int, ratio: float, dearest: float) -> float:
        """Pay for action k, or reserve what it may cost, and set the price for the next round.

        Returns its cost.
        """
        costs, base = self.costs(request)
        others = float(self.numbers[ASIDE]) - float(costs[request.baseline])
        self.numbers[ASIDE] = max(0.0, others)
        pay.at_once(self.numbers, float(costs[k]), base, ratio, dearest)
        return float(costs[k])

    def pay_instead(self, name: str, charged: float, request: Request, k: int) -> float:
        """Pay for action k, which was played instead of what `charged` was paid for; its cost."""
        cost = float(self.costs(request)[0][k])
        more = cost - charged
        if more > self.left:
            raise BudgetSpentError(
                f"action {k} costs {cost:g}, {more:g} more than decision {name!r} was charged "
                f"with, and {self.left:g} is left of the budget."
            )
        self.numbers[SPENT] += more
        return cost

    def saved(self, name: str, charged: float, cost: float | None) -> float:
        """Return what a decision costs less than was reserved; raises what does not fit."""
        if cost is None:
            return 0.0
        if self.budget.max_cost is None:
            raise InvalidValueError(
                "cost=... of observe is for costs that are only known afterwards: state "
                "Budget(max_cost=...), which is reserved until then."
            )
        paid = check_not_negative("cost", cost)
        if paid > charged:
            raise InvalidValueError(
                f"decision {name!r} cost {paid:.10g}, more than the {charged:.10g} that was "
                "reserved for it."
            )
        return charged - paid

    def give_back(self, less: float) -> None:
        """Give back what a decision cost less than was reserved."""
        self.numbers[SPENT] -= less


class Purse(Spending):
    """What one task of this process has spent of its budget.

    Attributes
    ----------
    charged
        Decision -> what it was charged with, until its reward comes.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self.charged: dict[str, float] = {}

    def pay(self, name: str, request: Request, k: int, worth: tuple[float, float]) -> None:
        """Pay for a decision, or reserve what it may cost."""
        self.charged[name] = self.pay_round(request, k, *worth)

    def exchange(self, name: str, request: Request, k: int) -> None:
        """Charge a decision with the cost of action k, which was played instead."""
        self.charged[name] = self.pay_instead(name, self.charged[name], request, k)

    def settled(self, name: str, cost: float | None) -> float:
        """Return what a decision costs less than was reserved; raises what does not fit."""
        return self.saved(name, self.charged[name], cost)

    def release(self, name: str, less: float) -> None:
        """Give back what a decision cost less than was reserved, and forget it."""
        self.charged.pop(name, None)
        self.give_back(less)
