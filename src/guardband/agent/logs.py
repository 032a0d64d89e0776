"""The arguments of `learn`, checked, and what an agent learns from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.agent.group import AgentGroup
from guardband.agent.inputs import as_reward
from guardband.agent.learned import Learned, MenuWidths
from guardband.agent.looked_at import LookedAt, Recognised
from guardband.agent.requests import RequestReader
from guardband.checks import check_ordered
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.state import ALPHA
from guardband.kernels.types import Floats

__all__ = ["Logs", "Menus", "Widths", "learn_logs", "learned", "read_logs", "recognised"]
__all__ += ["widths_now"]


Menus = list[tuple[Floats, int | None]]  # (K, d) features, and the row of the baseline


class WidthsOnMenu(NamedTuple):
    """Half the widths of confidence intervals of a menu's actions, at one time."""

    actions: Floats  # (K,) of their expected rewards
    leads: Floats | None  # (K,) of the leads by which they are certified, see `MenuWidths`


class Widths(NamedTuple):
    """Half the widths of confidence intervals at one time."""

    features: Floats  # (size of the task,)
    menus: list[WidthsOnMenu]


class Logs(NamedTuple):
    """What an earlier rule played and earned, checked."""

    rows: Floats  # (n, d) features of what was played, with zeros outside the task
    whole: Floats | None  # (n, d) the same with all features; None: only the task's were given
    rewards: Floats  # (n,)
    menus: Menus
    propensities: Floats | None  # (n,)
    ids: list[Any] | None

    def only(self, kept: NDArray[np.bool_]) -> Logs:
        """Return the rows that are marked."""
        return self._replace(
            rows=self.rows[kept],
            whole=None if self.whole is None else self.whole[kept],
            rewards=self.rewards[kept],
            propensities=None if self.propensities is None else self.propensities[kept],
            ids=None if self.ids is None else [self.ids[i] for i in np.flatnonzero(kept)],
        )


def read_logs(
    reader: RequestReader,
    allowed: tuple[float, float],
    features: Any,
    rewards: Any,
    menus: Any = None,
    propensities: Any = None,
    ids: Any = None,
) -> Logs:
    """Return logs that fit together, or say what is wrong; the parameters are those of `learn`.

    `allowed` is the range of rewards.
    """
    rows, whole = reader.read_rows(features)
    _check_order(features, rewards)
    seen = _column("rewards", rewards, len(rows))
    wrong = ~((seen >= allowed[0]) & (seen <= allowed[1]))  # NaN is in no range
    if wrong.any():
        row = int(np.argmax(wrong))
        try:
            as_reward(float(seen[row]), allowed)
        except InvalidValueError as error:
            raise InvalidValueError(f"row {row}: {error}") from None
    if propensities is not None:
        propensities = _column("propensities", propensities, len(rows))
        wrong = ~((propensities > 0.0) & (propensities <= 1.0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidValueError(
                f"the propensity of row {row} is {propensities[row]:g}: it is the probability with "
                "which the earlier rule played what it played, more than 0 and at most 1."
            )
    if ids is not None:
        if isinstance(ids, str) or not hasattr(ids, "__len__"):
            raise InvalidTypeError(f"ids must be a sequence, one per row, not {ids!r}.")
        check_ordered("ids", ids)
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        _check_length("ids", len(ids), len(rows))
    offered = [] if menus is None else _read_menus(reader, menus)
    return Logs(rows, whole, seen, offered, propensities, ids)


def _read_menus(reader: RequestReader, menus: Any) -> Menus:
    """Return every menu, or say which one is wrong."""
    if not isinstance(menus, list | tuple):
        raise InvalidTypeError(
            f"menus must be a list of tables, or of pairs of a table and its baseline, not "
            f"{type(menus).__name__}; for a single one, menus=[...]."
        )
    read: Menus = []
    for number, menu in enumerate(menus):
        try:
            read.append(reader.read_menu(menu))
        except (InvalidTypeError, InvalidValueError) as error:
            raise type(error)(f"menus[{number}]: {error}") from None
    return read


def _check_order(features: Any, rewards: Any) -> None:
    """Refuse a frame and a series that say by their indices that they are in different orders."""
    rows: Any = getattr(features, "index", None)
    seen: Any = getattr(rewards, "index", None)
    if hasattr(rows, "equals") and hasattr(seen, "equals") and not rows.equals(seen):
        raise InvalidValueError(
            "features and rewards have different indices: rows are taken by their position. Bring "
            "them into one order, or pass rewards.to_numpy()."
        )


def learn_logs(group: AgentGroup, agent: int, logs: Logs, *, reuse: bool) -> Learned:
    """Let an agent learn logs, or raise and change nothing."""
    known = group.row_ids if logs.ids is None else group.row_ids.with_new(logs.ids)
    found = None if group.looked_at is None else recognised(group.looked_at, logs, reuse=reuse)
    reused = 0 if found is None else found.reused
    before = widths_now(group, agent, logs.menus)
    group.learn_rows(agent, logs.rows, logs.rewards, reused)
    group.row_ids = known
    if found is not None:
        group.looked_at = found.after
    always = None if logs.propensities is None else float((logs.propensities == 1.0).mean())
    result = learned(group, agent, logs.menus, before, len(logs.rows), always)
    return replace(result, reused=reused)


def recognised(looked_at: LookedAt, logs: Logs, *, reuse: bool) -> Recognised:
    """Return which rows were looked at; refuse them unless they are to be used again."""
    found = looked_at.recognise(logs.whole, logs.rewards, logs.ids)
    if found.reused and not reuse:
        row = int(np.argmax(found.rows))
        raise looked_at.refusal(row, None if logs.ids is None else logs.ids[row])
    return found


def learned(
    group: AgentGroup, agent: int, menus: Menus, before: Widths, rows: int, always: float | None
) -> Learned:
    """Return what an agent learned since widths were as `before`; for the others see `Learned`."""
    after = widths_now(group, agent, menus)
    offered = tuple(
        MenuWidths(baseline, then.actions, now.actions, then.leads, now.leads)
        for (_, baseline), then, now in zip(menus, before.menus, after.menus, strict=True)
    )
    features = group.tasks[agent]
    names = () if group.features is None else tuple(group.features.names[i] for i in features)
    return Learned(rows, features, before.features, after.features, offered, names, always)


def widths_now(group: AgentGroup, agent: int, menus: Menus) -> Widths:
    """Return half widths beta ||v||_{V^-1} of the task's features, and of actions on menus."""
    nothing, keep = np.zeros((0, group.dim)), 1.0 - float(group.engine.known[agent][ALPHA])
    beta = group.learn_rows(agent, nothing, nothing[:, 0]).radius
    inverse = group.states[agent].estimate.inverse

    def half(vectors: Floats) -> Floats:
        squares = np.einsum("kd,de,ke->k", vectors, inverse, vectors)
        found: Floats = beta * np.sqrt(np.maximum(squares, 0.0))
        return found

    offered = [
        WidthsOnMenu(half(rows), None if b is None else half(rows - keep * rows[b]))
        for rows, b in menus
    ]
    return Widths(half(np.eye(group.dim)[list(group.tasks[agent])]), offered)


def _column(name: str, values: Any, rows: int) -> Floats:
    """Return one finite or infinite number for every row, or NaN."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidValueError(f"{name} are a masked array: leave out what is masked, or fill it.")
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        for row, value in enumerate(array.ravel().tolist()):
            if not isinstance(value, int | float):
                raise InvalidTypeError(
                    f"{name} must be numbers, one per row; that of row {row} is {value!r}."
                )
        raise InvalidTypeError(f"{name} must be numbers, one per row, not {array.dtype}.")
    if array.ndim != 1:
        raise InvalidValueError(f"{name} must be one number per row, not shape {array.shape}.")
    _check_length(name, array.size, rows)
    return np.ascontiguousarray(array, dtype=np.float64)


def _check_length(name: str, count: int, rows: int) -> None:
    if count != rows:
        raise InvalidValueError(f"{rows} rows of features and {count} {name} do not fit together.")
