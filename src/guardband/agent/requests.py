"""The arguments of `decide`, checked and turned into the arrays that the kernels take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent.group import AgentGroup
from guardband.agent.inputs import SLACK, as_list, as_number, as_row, no_numbers
from guardband.agent.named_rows import as_labels, as_table, find_row, named_map
from guardband.agent.needs import check_needs
from guardband.agent.records import (
    NO_CONTEXTS,
    NO_COVARIANCE,
    NO_VALUE,
    NO_WEIGHTS,
    Batch,
    Request,
    plain_request,
)
from guardband.checks import as_array
from guardband.contexts import (
    Discrete,
    Gaussian,
    Samples,
    difference_covariance,
    expected_features,
    feature_support,
)
from guardband.errors import InvalidValueError
from guardband.features import labels_of
from guardband.kernels.menus import FINE, NOT_FINITE, load_menu, load_menus
from guardband.kernels.purse import LARGEST
from guardband.kernels.state import ALPHA
from guardband.kernels.types import Floats, Realised

__all__ = ["RequestReader"]

FLOAT = np.dtype(np.float64)  # comparing with the class would look it up every time
ARRAY, empty = np.ndarray, np.empty
NO_ENDS = np.zeros(0, np.int64)
# Of a batch, in one call: what is remembered of one request keeps the menus of all in memory.
MOST_AT_ONCE, NUMBERS_AT_ONCE = 64, 100_000
MOST_ACTIONS = 1_000_000  # every decision copies its table, and some are remembered


class RequestReader:
    """Checks what `decide` is given for one task; an error names what is wrong.

    Parameters
    ----------
    group
        The agents, for the dimension, the stated bounds and what the algorithm needs to be given.
    number
        Which of them decides.
    """

    def __init__(self, group: AgentGroup, number: int = 0) -> None:
        self._dim, self._index = group.dim, group.coords[number]
        self._features = group.features
        self._feature_bound, self._longest = group.feature_bound, group.feature_bound * SLACK
        theta_bound = getattr(group.algorithm, "theta_bound", math.inf)
        self._reward_limit = theta_bound * group.feature_bound * SLACK
        self._engine, self._run = group.engine, group.engine.run
        # Whether features alone are all that is needed.
        self._plain = group.budget is None and group.engine.terms.realised == Realised.NONE
        self._needs_covariance = group.engine.terms.realised == Realised.CHANCE
        self._budget = group.budget
        self._alpha = float(group.engine.known[number][ALPHA])

    def read(
        self,
        features: Any,
        baseline: Any,
        baseline_reward: float | None,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        labels: Any = None,
        value: Any = None,
        cost: Any = None,
    ) -> Request:
        """Return one round's request; the parameters are those of `Agent.decide`."""
        names = None
        if labels is not None:
            names = as_labels(labels)
        elif type(features) is not ARRAY:  # arrays have none, and must not wait
            names = labels_of(features)
        table = self._table(features, names)
        actions = len(table)
        row = as_row(baseline, actions) if names is None else find_row(baseline, names, actions)
        if baseline_reward is not None:
            baseline_reward = self._as_baseline_reward(baseline_reward)
        menu = self._menu(table)
        alone = support is None and weights is None and covariance is None
        if self._plain and alone and value is None and cost is None:
            return plain_request(menu, row, baseline_reward, names)
        given = (support, weights, covariance, value, cost)
        return self._request(menu, row, baseline_reward, names, *given)

    def _request(
        self,
        menu: Floats,
        row: int,
        reward: float | None,
        names: list[Any] | None,
        support: Any,
        weights: Any,
        covariance: Any,
        value: Any,
        cost: Any,
    ) -> Request:
        """Return a request with more than the features, or of an algorithm that needs more."""
        actions = menu.shape[1]
        contexts, chances, covariances = NO_CONTEXTS, NO_WEIGHTS, NO_COVARIANCE
        if support is not None or weights is not None:
            contexts, chances = self._support(support, weights, menu)
        if covariance is not None:
            covariances = self._covariance(covariance, actions)
        worth = NO_VALUE if value is None else _moderate("value", value, actions)
        given = (contexts, chances, covariances, names, worth, self._cost(cost, actions))
        request = Request(menu, row, reward, *given)
        check_needs(self._engine, request)
        return request

    def read_from(
        self,
        feature_map: Callable[[Any, Any], Any],
        actions: Any,
        distribution: Discrete | Gaussian,
        baseline: int,
        baseline_reward: float | None,
        value: Any = None,
        cost: Any = None,
    ) -> Request:
        """Return one round's request; the parameters are those of `Agent.decide_from`."""
        worth = {"value": value, "cost": cost}
        if self._features is not None:
            feature_map = named_map(feature_map, self._features)
        psi = expected_features(feature_map, actions, distribution)
        if isinstance(distribution, Gaussian):
            covariance = None
            if self._needs_covariance:
                row = as_row(baseline, len(psi))
                given = (feature_map, actions, distribution, row, self._alpha)
                covariance = self._in_full(difference_covariance(*given))
            return self.read(psi, baseline, baseline_reward, covariance=covariance, **worth)
        if isinstance(distribution, Samples):
            # Draws may miss the extremes: nothing is concluded from them about what is possible.
            return self.read(psi, baseline, baseline_reward, **worth)
        phi, weights = feature_support(feature_map, actions, distribution)
        return self.read(psi, baseline, baseline_reward, phi, weights, **worth)

    def read_many(
        self, features: Sequence[Any], baselines: Sequence[int], *columns_given: Any
    ) -> list[Request]:
        """Return the requests of a batch; the parameters are those of `Agent.decide_many`."""
        columns = self._columns(features, baselines, *columns_given)
        return [self.read(*row) for row in zip(*columns, strict=True)]

    @staticmethod
    def _columns(
        features: Sequence[Any], baselines: Sequence[int], *columns_given: Any
    ) -> list[list[Any]]:
        """Return tables of features, baselines and what goes with them, one for each."""
        tables, rules = as_list("features", features), as_list("baselines", baselines)
        count = len(tables)
        if len(rules) != count:
            raise InvalidValueError(
                f"{count} tables of features and {len(rules)} baselines do not fit together: give "
                "one baseline for each table."
            )
        columns = [
            [None] * count if column is None else as_list("what goes with the tables", column)
            for column in columns_given
        ]
        for column in columns:
            if len(column) != count:
                raise InvalidValueError(
                    f"{count} tables of features and {len(column)} of what goes with them do not "
                    "fit together: give one for each table, or leave it out."
                )
        return [tables, rules, *columns]

    def read_batches(
        self, features: Sequence[Any], baselines: Sequence[int], rewards: Any, *more: Any
    ) -> list[Batch]:
        """Return what `read_many` does, in parts that kernels take in one call."""
        given, rules, told = self._columns(features, baselines, rewards)
        alone = self._plain and all(column is None for column in more)
        if not (alone and all(type(table) is np.ndarray for table in given)):
            requests = self.read_many(given, rules, told, *more)
            return [Batch(NO_WEIGHTS, NO_ENDS, requests)]
        batches, first = [], 0
        while first < len(given):
            tables, numbers = [], 0
            for table in given[first : first + MOST_AT_ONCE]:
                tables.append(self._table(table))
                numbers += table.size
                if numbers > NUMBERS_AT_ONCE:
                    break
            last = first + len(tables)
            batches.append(self._batch(tables, rules[first:last], told[first:last]))
            first = last
        return batches

    def _batch(
        self, tables: list[Floats], baselines: Sequence[Any], rewards: list[float | None]
    ) -> Batch:
        """Return the requests of tables of features, whose menus lie in one array."""
        sizes = [len(table) for table in tables]
        alike = len({table.shape[1] for table in tables}) == 1
        ends, dim = np.cumsum(sizes), self._dim
        menus = np.empty(dim * int(ends[-1]))
        if alike:
            flat = np.concatenate(tables, axis=None)
            given = (flat, ends, self._index, self._longest, menus)
            code, at = self._run(load_menus, *given, actions=max(sizes))
            if code != FINE:
                self._menu(tables[at])  # says what is wrong
        requests, start = [], 0
        for table, baseline, reward, n in zip(tables, baselines, rewards, sizes, strict=True):
            menu = menus[start : start + dim * n].reshape(dim, n)
            start += dim * n
            if not alike:
                menu[...] = self._menu(table)
            told = None if reward is None else self._as_baseline_reward(reward)
            requests.append(plain_request(menu, as_row(baseline, n), told))
        return Batch(menus, ends, requests)

    def read_rows(self, features: Any) -> tuple[Floats, Floats | None]:
        """Return (n, dim) features of what was played, with zeros outside the task.

        And the same with all features, if all were given.
        """
        table = self._table(features, each="reward")
        rows = np.ascontiguousarray(self._menu(table, "row").T)
        return rows, table if table.shape[1] == self._dim else None

    def read_menu(self, menu: Any) -> tuple[Floats, int | None]:
        """Return a menu as (K, dim) features, and the baseline's row where it is said.

        A menu is a table of features, or a pair of one and the row, or the label, of its baseline.
        """
        table, baseline = menu, None
        if isinstance(menu, tuple) and len(menu) == 2 and np.ndim(menu[1]) == 0:
            table, baseline = menu
        rows = np.ascontiguousarray(self._menu(self._table(table)).T)
        return rows, None if baseline is None else find_row(baseline, labels_of(table), len(rows))

    def _table(
        self, features: Any, labels: list[Any] | None = None, each: str = "action"
    ) -> Floats:
        table: NDArray[Any] = features
        if type(features) is not ARRAY:
            if each == "action":
                _check_count(features)
            table = as_table(features, self._features, labels)
        dim, size = self._dim, self._index.size
        if (
            table.dtype is FLOAT
            and table.flags.carray
            and table.ndim == 2
            and table.shape[1] == dim
            and 0 < table.shape[0] <= MOST_ACTIONS
        ):
            return table  # as most are
        if each == "action":
            _check_count(table)  # before anything is copied
        if table.dtype != FLOAT or not table.flags.c_contiguous:
            if table.dtype.kind not in "fiu":
                raise no_numbers(table, each)
            table = np.asarray(table, dtype=np.float64, order="C")
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] not in (dim, size):
            n = "K" if each == "action" else "n"
            wanted = f"({n}, {dim})" + (f" or ({n}, {size})" if size < dim else "")
            one = f"; for one {each}: features[None, :]" if table.shape in ((dim,), (size,)) else ""
            raise InvalidValueError(
                f"features must have shape {wanted} with {n} > 0, not {table.shape}: one row per "
                f"{each}{one}."
            )
        return table if table.flags.writeable else table.copy()

    def _menu(self, table: Floats, each: str = "action") -> Floats:
        menu = empty((self._dim, len(table)))
        given = (table, self._index, self._longest, menu)
        try:
            code, k = load_menu.code(*given)
        except TypeError:  # there is none yet
            code, k = self._run(load_menu, *given, actions=len(table))
        if code == FINE:
            return menu
        if code == NOT_FINITE:
            raise InvalidValueError(f"features of {each} {k} are not finite: {table[k].tolist()}.")
        index = list(self._index) if table.shape[1] == self._dim else slice(None)
        raise InvalidValueError(
            f"features of {each} {k} have length {np.linalg.norm(table[k, index]):.6g}, more "
            f"than feature_bound={self._feature_bound:g}: scale the features, or state a "
            "larger bound."
        )

    def _support(self, support: Any, weights: Any, menu: Floats) -> tuple[Floats, Floats]:
        if support is None or weights is None:
            raise InvalidValueError("support and weights go together: give both, or neither.")
        chances = as_array("weights", weights, (None,))
        if (chances < 0).any() or abs(chances.sum() - 1.0) > 1e-9:
            raise InvalidValueError(
                f"weights must be probabilities that sum to 1, not to {chances.sum():.12g}."
            )
        contexts = np.array([self._menu(self._table(each)) for each in support])
        if contexts.shape != (chances.size, *menu.shape):
            raise InvalidValueError(
                f"support has shape {np.shape(support)}, but there are {chances.size} weights and "
                f"{menu.shape[1]} actions."
            )
        worst = float(np.abs(np.einsum("n,ndk->dk", chances, contexts) - menu).max())
        if worst > 1e-6:
            raise InvalidValueError(
                f"features are not the mean of support under weights (off by {worst:.3g}): "
                "compute both from one distribution."
            )
        return contexts, chances

    def _covariance(self, covariance: Any, actions: int) -> Floats:
        array = as_array("covariance", covariance, (None, self._dim, self._dim))
        if len(array) not in (1, actions):
            raise InvalidValueError(f"covariance has {len(array)} matrices for {actions} actions.")
        scale = max(float(np.abs(array).max()), 1e-300)
        if np.abs(array - array.transpose(0, 2, 1)).max() > 1e-9 * scale:
            raise InvalidValueError("covariance is not symmetric.")
        least = float(np.linalg.eigvalsh(array).min())
        if least < -1e-9 * scale:
            raise InvalidValueError(f"covariance has a negative eigenvalue, {least:.3g}.")
        return array

    def _in_full(self, covariance: Floats) -> Floats:
        """Return covariances of all features from those of the task's."""
        size, full = covariance.shape[1], np.zeros((len(covariance), self._dim, self._dim))
        index = self._index if size < self._dim else np.arange(self._dim)
        full[:, index[:, None], index] = covariance
        return full

    def _cost(self, cost: Any, actions: int) -> Floats:
        """Return what each action costs; nothing where that is only known afterwards."""
        budget = self._budget
        if cost is None:
            if budget is not None and budget.max_cost is None:
                raise InvalidValueError(
                    "this agent has a budget: give decide cost=..., what each action costs, or "
                    "state Budget(max_cost=...) where that is only known afterwards."
                )
            return NO_VALUE
        if budget is None:
            raise InvalidValueError(
                "cost=... is paid from a budget: make the agent, or the space of a live one, with "
                "budget=gb.Budget(total, horizon). What is only to be compared belongs in "
                "value=..., with a minus sign."
            )
        costs = _moderate("cost", cost, actions)
        if (costs < 0.0).any():
            k = int(np.flatnonzero(costs < 0.0)[0])
            raise InvalidValueError(f"cost[{k}] is {costs[k]:g}: no cost may be negative.")
        return costs

    def _as_baseline_reward(self, value: float) -> float:
        reward, limit = as_number("baseline_reward", value), self._reward_limit
        if not math.isfinite(reward) or abs(reward) > limit:
            raise InvalidValueError(
                f"baseline_reward must be finite and at most theta_bound * feature_bound = "
                f"{limit:.6g} in size, not {reward:g}: it is an expected reward."
            )
        return reward


def _check_count(features: Any) -> None:
    """Refuse more actions than agents take: tables, and lists of rows."""
    shape = getattr(features, "shape", None)
    if shape is None:
        actions = len(features) if isinstance(features, list | tuple) else 0
    else:
        actions = shape[0] if len(shape) == 2 else 0
    if actions > MOST_ACTIONS:
        raise InvalidValueError(
            f"{actions:,} actions are more than the {MOST_ACTIONS:,} that agents take: offer "
            "fewer, such as the best by a rule of your own."
        )


def _moderate(name: str, given: Any, actions: int) -> Floats:
    """Return numbers (K,) whose products with a price do not overflow."""
    found = as_array(name, given, (actions,))
    if found.dot(found) > LARGEST * LARGEST:  # decisions wait for this, and it is quick
        k = int(np.abs(found).argmax())
        if abs(found[k]) > LARGEST:
            raise InvalidValueError(f"{name}[{k}] is {found[k]:g}: at most {LARGEST:g}, please.")
    return found
