"""From a DataFrame or a file to the logs of a study: everything is checked, and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from guardband.checks import check_text
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.studies.columns import FeatureColumns, Looked, stated_columns
from guardband.studies.config import StudyConfig
from guardband.studies.logs import Encoder, Ints, MenuLists, StudyLogs
from guardband.studies.offered import Labels, ReadMenus, choose_baselines, read_menus
from guardband.studies.plain import PlainColumns, stacked
from guardband.studies.source import Source
from guardband.studies.whole import WholeLog

__all__ = ["read_study_logs"]

LEAST = 20  # rows
REWARD = "a reward between 0 and 1: (x - worst) / (best - worst), with a yes as 1 and a no as 0"
BASELINE = " baseline names a column; if one label is always it, add a column that holds it."
LEAST_PROPENSITY = 1e-9  # less is a mistake: nobody has the rows among which it would be seen
PROPENSITY = (
    "a propensity: the probability with which it was played, above 0 and at most 1, and at least "
    f"{LEAST_PROPENSITY:g}"
)


def read_study_logs(data: Any, config: StudyConfig, menus: Any = None) -> StudyLogs:
    """Return the rows of logs that a study looks at: the first ones.

    Parameters
    ----------
    data
        A DataFrame, a list of dicts, a dict of columns, or the path of a CSV or Parquet file.
    config
        Which columns are what.
    menus
        (n, K, d) or a list of n tables (K_i, d): the features of what was on offer, where they are
        numbers already. Labels are those of the column of menus, or else the tables' rows, from 0.
    """
    source = _open(data, config, menus is not None)
    if len(source) < LEAST:
        raise InvalidValueError(f"a study needs {LEAST} rows at least, and finds {len(source)}.")
    keep = min(max(round(config.look * len(source)), LEAST // 2), len(source) - 1)
    notes: list[str] = []
    rewards = source.numbers(config.reward, least=0.0, most=1.0, what=REWARD)
    labels, flat, starts = Labels(), None, None  # labels of rows that are looked at come first
    if menus is not None:
        flat, starts = stacked(menus, len(source))
        if config.menu is None:  # labels are places
            labels.codes(pd.Series(np.arange(np.diff(starts).max())))
    plays = source.complete(config.action, "the label of what was played")
    labels.codes(plays[:keep])
    read = _menus(source, config, labels, starts, notes)
    played = labels.codes(plays)
    _check_offered(source, config.action, labels, read.lists, played)
    trusted = _baselines(source, config, labels, played, read.lists, keep, notes)
    offered = read.lists.first(keep).codes
    known = 1 + int(max(played[:keep].max(), offered.max(), trusted[:keep].max()))
    if flat is not None:
        dim = flat.shape[1]
        encoder: Any = PlainColumns(stated_columns(config) or [f"x{i}" for i in range(dim)])
        if encoder.dim != dim:
            raise InvalidValueError(f"{encoder.dim} names and menus of {dim} features do not fit.")
        parts: dict[str, Any] = {"tables": flat[: starts[keep]]}  # type: ignore[index]
        seen = read.first(keep)
        whole = WholeLog(encoder, rewards=rewards, table=flat[read.lists.places(played)])
    else:
        rows = Looked(keep, known)
        columns = FeatureColumns(source, config, labels, played, read, rows, notes)
        seen, encoder = columns.known_menus(trusted[:keep]), columns.encoder
        parts = {"by_label": columns.by_label, "by_pair": seen.pairs}
        parts["context"] = {name: values[:keep] for name, values in columns.context.items()}
        whole = WholeLog(encoder, rewards=rewards, columns=columns.of_played(), source=source)
    extras = _extras(source, config, keep, notes)
    whole.ids = extras.get("ids")
    features = whole.table(slice(0, keep))
    whole.check(keep)
    _check_texts(config, encoder, labels.values)
    return StudyLogs(
        encoder=encoder,
        rewards=rewards[:keep],
        played=features,
        actions=played[:keep],
        labels=labels.values[:known],
        baselines=trusted[:keep],
        menus=seen.lists,
        numbers=np.arange(keep),
        total=len(source),
        menu_given=config.menu is not None or menus is not None,
        baseline_given=config.baseline is not None,
        notes=notes,
        whole=whole,
        **parts,
        dated=bool(extras.pop("dated", False)),
        **{name: values[:keep] for name, values in extras.items()},
    )


def _open(data: Any, config: StudyConfig, tables: bool) -> Source:
    """Return the rows with the columns that are needed."""
    needed, texts = list(config.roles.values()), [config.id] if config.id else []
    stated = [] if tables else stated_columns(config)
    if not all(isinstance(name, str) for name in stated):
        raise InvalidTypeError(
            f"features must be a gb.Features or a list of columns, not {config.features!r}."
        )
    hints = {str(config.baseline): BASELINE}
    if config.actions is not None or config.menu is not None:  # they may hold columns, too
        return Source(data, needed, others=not tables, texts=texts, hints=hints)
    needed += [name for name in stated if name not in needed]
    return Source(data, needed, others=not tables and not stated, texts=texts, hints=hints)


def _menus(
    source: Source,
    config: StudyConfig,
    labels: Labels,
    starts: Ints | None,
    notes: list[str],
) -> ReadMenus:
    """Return what was on offer; `starts` are those of menus that are tables."""
    if config.menu is not None:
        read = read_menus(source, config.menu, config.action, labels, stated_columns(config))
        if starts is not None and not np.array_equal(read.lists.starts, starts):  # type: ignore[arg-type]
            raise InvalidValueError("menus and the labels on offer differ in their sizes.")
    elif starts is not None:
        owner = np.repeat(np.arange(len(source)), np.diff(starts))
        read = ReadMenus(MenuLists(np.arange(len(owner)) - starts[owner], starts), {})
    else:
        count = len(labels)
        notes.append(
            f"The logs have no menus: all labels seen are taken to be on offer ({count:,})."
        )
        read = ReadMenus(MenuLists(np.arange(count)), {})
    return read


def _baselines(
    source: Source,
    config: StudyConfig,
    labels: Labels,
    played: Ints,
    lists: MenuLists,
    keep: int,
    notes: list[str],
) -> Ints:
    """Return baselines; those that are not named follow from the first `keep` rows."""
    if config.baseline is None:
        trusted, best, differ = choose_baselines(played[:keep], lists.first(keep), len(labels))
        rest = "; where it is not on offer, the most played label that is" if differ else ""
        notes.append(
            "The logs name no baseline: it is taken to be the label that was played most, "
            f"{labels.values[best]!r}{rest}."
        )
        return trusted
    trusted = labels.codes(source.complete(config.baseline, "the label of its baseline"))
    if lists.starts is None and (trusted[:keep] >= len(lists.codes)).any():
        row = int(np.argmax(trusted[:keep] >= len(lists.codes)))
        what = f"{labels.values[trusted[row]]!r} was not played in rows that are looked at, and the"
        raise source.error(
            config.baseline, row, f"{what} logs have no menus: look at more rows, or give menus."
        )
    _check_offered(source, config.baseline, labels, lists, trusted)
    return trusted


def _check_offered(
    source: Source, column: str, labels: Labels, lists: MenuLists, codes: Ints
) -> None:
    if lists.starts is None:
        return
    owner = np.repeat(np.arange(len(codes)), np.diff(lists.starts))
    there = np.zeros(len(codes), np.bool_)
    there[owner[lists.codes == codes[owner]]] = True
    if not there.all():
        row = int(np.argmin(there))
        raise source.error(column, row, f"{labels.values[codes[row]]!r} is not on offer in it.")


def _check_texts(config: StudyConfig, encoder: Encoder, labels: Sequence[Any]) -> None:
    """Refuse texts that a page or an agent.toml could not hold."""
    for label in labels:
        check_text(f"column {config.action!r}: the label", str(label))
    for name in (*config.roles.values(), *encoder.columns):
        check_text("the name of a column", name)
    for name in encoder.names:
        check_text("a feature", name)


def _extras(source: Source, config: StudyConfig, keep: int, notes: list[str]) -> dict[str, Any]:
    """Return propensities, times, tasks and ids, those that the logs have."""
    found: dict[str, Any] = {}
    if config.propensity is not None:
        found["propensities"] = source.numbers(
            config.propensity, least=LEAST_PROPENSITY, most=1.0, what=PROPENSITY
        )
    if config.time is not None:
        found["times"], found["dated"], note = source.times(config.time)
        notes += [note] if note else []
    if config.task is not None:
        codes, _ = pd.factorize(source.complete(config.task, "its task"))
        found["tasks"] = codes.astype(np.int64)
        if count := int(codes[:keep].max()):
            notes.append(f"There are {count + 1:,} tasks; they are studied together.")
    if config.id is not None:
        ids = source.ids(config.id)
        twice = ids.duplicated().to_numpy()
        if twice.any():
            row = int(np.argmax(twice))
            first = int(np.argmax((ids == ids.iloc[row]).to_numpy()))
            what = f"the id {ids.iloc[row]!r} is that of row {source.row_name(first)!r}, too: "
            raise source.error(config.id, row, what + "every row counts once.")
        found["ids"] = ids.to_numpy()
    return found
