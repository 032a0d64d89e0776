"""The columns of logs that are features, and where their values for each action come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from guardband.errors import InvalidValueError
from guardband.features import Features
from guardband.studies.config import StudyConfig
from guardband.studies.found import changes_within_labels, find_features
from guardband.studies.logs import Encoder, Ints, LabelValues, MenuLists
from guardband.studies.offered import Labels, ReadMenus
from guardband.studies.plain import PlainColumns
from guardband.studies.source import Source, key_of

__all__ = ["FeatureColumns", "Looked", "stated_columns"]

# How often columns change within labels, as `changes_within_labels` counts: the action's do at most
# so often; those that do more often, up to a limit, are asked about. Rules that play by a column
# and explore in 2 % of rows already make it change more often than the first.
NEARLY, UNCLEAR = 0.01, 0.25


class Looked(NamedTuple):
    """What is looked at of the logs: all that is found out comes from there."""

    rows: int  # the first ones
    labels: int  # those with the first codes


def stated_columns(config: StudyConfig) -> list[str]:
    """Return the columns that were stated to be features; none: they are to be found."""
    features = config.features
    if features is None:
        return list(config.columns or [])
    return list(features.columns if isinstance(features, Features) else features)


class FeatureColumns:
    """The columns that are features, sorted by whose they are.

    Parameters
    ----------
    source, config
        The logs, and what was said about their columns.
    labels, played
        The labels, and the codes of what was played.
    read
        The menus.
    looked
        How many rows and labels are looked at.
    notes
        Gets what was decided, in sentences.

    Attributes
    ----------
    encoder
        What makes features of them.
    context
        The columns of the round, for all rows.
    by_label
        The columns of the action, as far as rows are looked at.
    """

    def __init__(
        self,
        source: Source,
        config: StudyConfig,
        labels: Labels,
        played: Ints,
        read: ReadMenus,
        looked: Looked,
        notes: list[str],
    ) -> None:
        self._source, self._config, self._notes = source, config, notes
        self._labels, self._played, self._read = labels, played, read
        self._looked, self._seen = looked, read.first(looked.rows)
        self._actions = None if config.actions is None else _read_actions(config)
        frame, roles = source.frame, set(config.roles.values())
        given = list(self._actions.columns) if self._actions is not None else []
        names = stated_columns(config) or [name for name in frame.columns if name not in roles]
        if config.features is None:
            names = list(dict.fromkeys([*names, *read.pairs, *given]))
        free = [name for name in names if name not in (*read.pairs, *given, config.action)]
        self._logged = self._of_actions(free)
        self.encoder = self._make_encoder(names)
        self.by_label: dict[str, LabelValues] = {}
        self.context: dict[str, NDArray[Any]] = {}
        for name in self.encoder.columns:
            if name == config.action:
                self.by_label[name] = LabelValues(_objects(labels.values))
            elif name in given:
                self.by_label[name] = LabelValues(self._given(name))
            elif name in self._logged:
                seen = played[: looked.rows]
                logged = _known(self._plain(name)[: looked.rows], seen)
                self.by_label[name] = LabelValues(logged, seen)
            elif name not in read.pairs:
                self.context[name] = self._plain(name).to_numpy()
        if len(self.context) == len(self.encoder.columns):
            raise InvalidValueError(
                f"no feature tells actions apart: {', '.join(self.context) or 'there are none'}. "
                "Say which columns are the action's with action_columns, give a table of actions, "
                f"or make {config.action!r} itself a category."
            )

    def _plain(self, name: str) -> pd.Series:
        return self._source.plain(name, self._looked.rows)

    def _of_actions(self, free: Sequence[str]) -> list[str]:
        """Return the columns of the action among those that rows have."""
        stated = self._config.action_columns
        if stated is not None:
            for name in stated:
                if name not in free and name != self._config.action:
                    raise InvalidValueError(
                        f"action_columns names {name!r}, which rows do not have as a feature."
                    )
            return [name for name in stated if name in free]
        there = [name for name in free if name in self._source.frame.columns]
        rows = self._looked.rows
        columns = {name: self._plain(name)[:rows] for name in there}
        changes = changes_within_labels(columns, self._played[:rows])
        fixed = [name for name, share in changes.items() if share == 0.0]
        nearly = [name for name, share in changes.items() if 0.0 < share <= NEARLY]
        unclear = [name for name, share in changes.items() if NEARLY < share <= UNCLEAR]
        found = [name for name in there if name in (*fixed, *nearly)]
        rest = [name for name in there if name not in found]
        for names, why in (
            (fixed, "every label has one value"),
            (nearly, "nearly all rows have the value that was logged last for their label"),
        ):
            if names:
                self._notes.append(
                    f"Taken as columns of the action, since {why}: {', '.join(names)}. If they are "
                    "not, say which are with action_columns."
                )
        if rest:
            self._notes.append(
                f"Taken as columns of the round, the same for every action: {', '.join(rest)}."
            )
        for name in unclear:
            self._notes.append(
                f"Is {name!r} a column of the action? It often goes with the label, as it does if "
                "it is the action's and changes, or if the rule played by it. If it is the "
                f"action's, say action_columns = {json.dumps([*found, name])}."
            )
        return found

    def _make_encoder(self, names: list[str]) -> Encoder:
        config, read = self._config, self._read
        if isinstance(config.features, Features):
            return config.features
        if config.features is not None:
            return PlainColumns(names)
        tells = bool(self._logged) or self._actions is not None or bool(read.pairs)
        own = config.action in names or not tells
        if own and config.action not in names:
            self._notes.append(
                f"No column tells actions apart but {config.action!r} itself: it is a feature, "
                "with a weight for each label."
            )
        columns = {n: self._plain(n) for n in names if n in self._source.frame.columns}
        first = dict.fromkeys(columns, self._looked.rows)
        columns |= {name: pd.Series(values) for name, values in read.pairs.items()}
        first |= dict.fromkeys(read.pairs, len(self._seen.lists.codes))
        if self._actions is not None:
            given = [name for name in self._actions.columns if name in names]
            columns |= {name: pd.Series(self._given(name)) for name in given}
            first |= dict.fromkeys(given, self._looked.labels)
        columns.pop(config.action, None)
        labels = self._labels.values[: self._looked.labels]
        found, notes = find_features(columns, first, config.action, labels, own)
        self._notes += notes
        return found

    def _given(self, name: str) -> NDArray[Any]:
        """Return a column of the table of actions, by code."""
        table = self._actions
        assert table is not None
        for label in self._labels.values:
            if key_of(label) not in table.index:
                raise InvalidValueError(f"the table of actions has no row for {label!r}.")
        found: NDArray[Any] = table.loc[[*map(key_of, self._labels.values)], name].to_numpy()
        return found

    def known_menus(self, trusted: Ints) -> ReadMenus:
        """Return the menus that are looked at, without labels whose columns are not known.

        These were not played in rows that are looked at.
        """
        read, labels = self._seen, self._labels
        seen = np.zeros(self._looked.labels, np.bool_)
        seen[self._played[: self._looked.rows]] = True
        logged = [name for name in self.by_label if name in self._logged]
        if not logged or seen.all() or read.lists.starts is None:
            return read
        if not seen[trusted].all():
            row = int(np.argmin(seen[trusted]))
            raise self._source.error(
                str(self._config.baseline),
                row,
                f"{labels.values[trusted[row]]!r} was not played in rows that are looked at, so "
                f"its {logged[0]!r} is not known: give a table of actions.",
            )
        keep = seen[read.lists.codes]
        count = self._looked.rows
        owner = np.repeat(np.arange(count), np.diff(read.lists.starts))
        sizes = np.bincount(owner[keep], minlength=count)
        starts = np.concatenate(([0], np.cumsum(sizes)))
        self._notes.append(
            f"{int((~seen).sum()):,} labels are on menus but were not played in rows that are "
            f"looked at, so their {', '.join(logged)} are not known: they were left off the "
            "menus. A table of actions would tell."
        )
        pairs = {name: values[keep] for name, values in read.pairs.items()}
        return ReadMenus(MenuLists(read.lists.codes[keep], starts), pairs)

    def of_played(self) -> dict[str, NDArray[Any]]:
        """Return the columns of what was played, for all rows."""
        found: dict[str, NDArray[Any]] = dict(self.context)
        for name in self.by_label:
            if name == self._config.action:
                found[name] = _objects(self._labels.values)[self._played]
            elif name in self._logged:
                found[name] = self._plain(name).to_numpy()
            else:
                found[name] = self._given(name)[self._played]
        if self._read.pairs:
            places = self._read.lists.places(self._played)
            found |= {name: values[places] for name, values in self._read.pairs.items()}
        return {name: found[name] for name in self.encoder.columns}


def _read_actions(config: StudyConfig) -> pd.DataFrame:
    """Return the table of actions, by the text of the label."""
    given = config.actions
    if isinstance(given, Mapping):
        given = pd.DataFrame.from_dict(dict(given), orient="index")
    elif not isinstance(given, pd.DataFrame):
        given = Source(given, [config.action], others=True).frame
    if config.action in given.columns:
        given = given.set_index(config.action)
    table: pd.DataFrame = given.set_axis([key_of(label) for label in given.index], axis=0)
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()][0]
        raise InvalidValueError(f"the table of actions has two rows for {twice!r}.")
    return table


def _known(column: pd.Series, actions: Ints) -> NDArray[Any]:
    """Return a column of the action; missing values are those of the label before, or else next."""
    if column.hasnans:
        column = column.groupby(actions).ffill().groupby(actions).bfill()
    return column.to_numpy()


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    found = np.empty(len(values), object)
    found[:] = values
    return found
