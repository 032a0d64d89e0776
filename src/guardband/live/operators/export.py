"""Decisions and rewards with their propensities, as a table for other tools."""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from guardband.extras import how_to_install
from guardband.files import plain_errors, write_atomically
from guardband.kernels.holdback import gain_of
from guardband.live.client.decision_id import make_id, mark_of
from guardband.live.client.decisions import request_of
from guardband.live.client.journal import Journal
from guardband.live.client.windows import End
from guardband.live.operators.health_then import NotedAlarm, alarms_of, news_at
from guardband.live.protocol.space import SpaceSettings
from guardband.reasons import promise_shown
from guardband.uplift import stake_of

__all__ = ["COLUMNS", "VALID_USE", "Column", "export_csv", "export_parquet", "journals_under"]

PAGE = 2_000  # decisions that are in memory at once
FORMAT = 1

VALID_USE = """\
What these rows can tell about a policy that did not run:
- propensity is the probability of the action played, given everything known just before. Where it
  is below 1 (random = true) a coin chose between two actions: the one played and one other. Inverse
  propensity and doubly robust estimates are unbiased there for policies that choose between those
  two; every other action had probability 0. With a holdback (`hold` is its coin) every row of an
  agent that was free to choose has the baseline among them, with probability h or more.
- `uplift` compares the agent's choice of a row with the baseline, by its reward and propensity: the
  mean over counted rows with one holdback estimates what choices earn over the baseline per round.
- Where propensity is 1 the choice was deterministic: there is no overlap, and no weighting of rows
  can say what another action would have earned. Only a model can, and then its assumptions carry
  the result: the linear one is what the agent itself uses.
- Choices depend on earlier rewards. Means of rewards by action are therefore biased, and tests for
  independent samples do not hold; estimates that weight each row by its own propensity do.
- outcome = defaulted means that no reward came in time: reward is the space's default, not an
  observation. If rewards go missing more often where they are low (or high), neither keeping nor
  dropping these rows is right, and no propensity mends it. Compare the shares of defaulted,
  discarded and late rows by kind and by action first. Discarding is harmless only if its causes
  have nothing to do with rewards.
- Rows of shadow mode, pauses and expired leases play the baseline for certain; `shadow_action` is
  what would have been played, without a reward.
- Where `override` is set, somebody played another action than the one that was decided: x and
  reward are of that action, and propensity is not its probability. Do not weight such rows.
- Where `alarms` is not empty, monitors had noticed that rewards contradict what promises assume:
  the world may be another one before and after it. Do not pool such rows with the others unseen.
- Tasks and epochs share data: rows of one export are not independent across tasks.
- Rows learned from logs are not here: they were no decisions of the agent. They have numbers among
  `counted_as` and `own_n` all the same.
"""


class Column(NamedTuple):
    """One column of the table."""

    name: str
    kind: str
    about: str


COLUMNS = (
    Column("id", "string", "the decision's id, as for guardband audit"),
    Column("space", "string", "the space"),
    Column("task", "string", "the task"),
    Column("stream", "string", "the stream of counted observations that it was made in"),
    Column("seq", "int64", "the decision's number in its journal"),
    Column("at", "time", "when it was made, by the agent's clock, UTC"),
    Column("round", "int64", "the number of its round"),
    Column("config_version", "int64", "the version of the space's rules"),
    Column("epoch", "int64", "the epoch whose sum was used; 0: none"),
    Column("own_n", "int64", "how many own observations counted before it"),
    Column("alpha", "double", "the share of the baseline's reward that may be lost"),
    Column("actions", "int64", "how many actions were offered"),
    Column("action", "int64", "the row of features that was played"),
    Column("kind", "string", "learned, explored, trial or baseline"),
    Column("reason", "string", "why, by its short key"),
    Column("override", "int64", "what somebody else played instead; x and reward are its own"),
    Column("shadow_action", "int64", "shadow mode: what would have been played"),
    Column("baseline", "int64", "the row that the baseline would play"),
    Column("baseline_reward", "double", "its expected reward, where it was reported"),
    Column("coin", "double", "the uniform number by which a random choice was made"),
    Column("propensity", "double", "the probability of the action, given all that was known"),
    Column("random", "bool", "propensity < 1: a coin chose, and there is overlap"),
    Column("hold", "double", "the holdback's coin; null: there was none"),
    Column("uplift", "double", "what the reward says of the choice's lead over the baseline"),
    Column("mean", "double", "the estimate of the action's expected reward"),
    Column("lower", "double", "its lower confidence bound"),
    Column("upper", "double", "its upper confidence bound"),
    Column("floor", "double", "what the action must be worth; null: no constraint"),
    Column("margin", "double", "by how much it is certain to clear the floor"),
    Column("promise", "string", "what is promised: play, policy, trial, reused, baseline or none"),
    Column("certificate", "string", "by what"),
    Column("alarms", "string", "kinds of alarms that nobody had looked at then; empty: none"),
    Column("charge", "double", "the most that a trial or an explored play could cost"),
    Column("budget_left", "double", "what was then left of the budget; null: there was none"),
    Column("value", "double", "what the action played is worth to the caller; null: not given"),
    Column("baseline_value", "double", "what the baseline's action is worth to the caller"),
    Column("cost", "double", "what was charged to the budget for costs; null: there was none"),
    Column("paid", "double", "what it cost, where that was told afterwards"),
    Column(
        "outcome",
        "string",
        "observed, defaulted, discarded, lost, outdated (decided before a new start), heard (not "
        "yet counted), pending",
    ),
    Column("reward", "double", "the reward; where defaulted, the space's default"),
    Column("counted_as", "int64", "as which observation of its stream it counts"),
    Column("ended_at", "time", "when it ended, by the agent's clock, UTC"),
    Column("late_reward", "double", "a reward that came after the window, and does not count"),
    Column("x", "numbers", "the features of the action played"),
    Column("features", "table", "the features of every action, one row each"),
    Column("values", "numbers", "what every action is worth to the caller; null: not given"),
    Column("costs", "numbers", "what every action costs; null: not given beforehand"),
)

AS_IT_IS = (
    *(
        "seq",
        "round",
        "epoch",
        "action",
        "kind",
        "reason",
        "shadow_action",
        "baseline",
        "coin",
        "mean",
    ),
    *("baseline_reward", "propensity", "hold", "floor", "margin", "certificate", "charge"),
    *("override", "value", "baseline_value", "cost", "paid"),
)
ROWS = """
    SELECT d.*, s.name AS stream_name, o.ended, o.reward, o.k, o.at AS ended_at, o.late
    FROM decision d JOIN stream s ON s.id = d.stream LEFT JOIN outcome o USING(seq)
    WHERE d.seq > ? ORDER BY d.seq LIMIT ?
"""


def journals_under(paths: list[Path]) -> list[Path]:
    """Return the journals in `paths`: a file, an agent's folder, or one with several below."""
    found: list[Path] = []
    for path in paths:
        own = path if path.is_file() else path / "journal.db"
        found += [own] if own.is_file() else sorted(path.rglob("journal.db"))
    return found


def export_parquet(journals: list[Path], out: Path) -> Counter[str]:
    """Write all decisions of some journals to a Parquet file; return how many of which kind."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Parquet needs pyarrow: {how_to_install('parquet')}, or write a table of text "
            "with --csv.",
            name="pyarrow",
        ) from error
    kinds = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "numbers": pa.list_(pa.float64()),
        "table": pa.list_(pa.list_(pa.float64())),
    }
    fields = [
        pa.field(column.name, kinds[column.kind], metadata={"description": column.about})
        for column in COLUMNS
    ]
    about = {"guardband_format": str(FORMAT), "valid_use": VALID_USE}
    about["columns"] = json.dumps({column.name: column.about for column in COLUMNS})
    schema = pa.schema(fields, metadata=about)
    counts: Counter[str] = Counter()
    with _new_file(out) as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _pages(journals, counts):
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return counts


def export_csv(journals: list[Path], out: Path) -> Counter[str]:
    """Write the same as text; lists are JSON, times ISO 8601, what is unknown is empty."""
    counts: Counter[str] = Counter()
    names = [column.name for column in COLUMNS]
    with _new_file(out) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file))
        writer.writerow(names)
        for rows in _pages(journals, counts):
            for row in rows:
                writer.writerow([_as_text(row[name]) for name in names])
    return counts


@contextmanager
def _new_file(out: Path) -> Iterator[BinaryIO]:
    """Write a new file that only its owner can read; `out` must not exist."""
    if out.exists():
        raise FileExistsError(f"{out} exists already: name a new file.")
    told = "no export can be written there; choose another file"
    with plain_errors(out, told), write_atomically(out, private=True) as file:
        yield file


def _pages(journals: list[Path], counts: Counter[str]) -> Iterator[list[dict[str, Any]]]:
    for path in journals:
        journal = Journal(path)
        try:
            for rows in _pages_of(journal):
                counts["decisions"] += len(rows)
                counts["random"] += sum(row["random"] for row in rows)
                counts.update(row["outcome"] for row in rows)
                yield rows
            counts["alarms"] += len(alarms_of(journal))
            counts["logged"] += journal.query("SELECT count(*) FROM logged")[0][0]
        finally:
            journal.close()


def _pages_of(journal: Journal) -> Iterator[list[dict[str, Any]]]:
    about = journal.about()
    names = [*journal.columns(), "stream_name", "ended", "reward", "k", "ended_at", "late"]
    alphas: dict[int, float] = {}
    for version, text in journal.query("SELECT version, space FROM config"):
        space = SpaceSettings.from_json(json.loads(text))
        alphas[version] = space.alpha_of(about["task"])
    alarms = alarms_of(journal)
    last = 0
    while True:
        # Every page is a statement of its own: an agent that runs is not held up.
        found = journal.query(ROWS, (last, PAGE))
        if not found:
            return
        last = found[-1][0]
        rows = [dict(zip(names, values, strict=True)) for values in found]
        yield [_flat(row, about, alphas) | {"alarms": _news(alarms, row)} for row in rows]


def _flat(row: dict[str, Any], about: dict[str, Any], alphas: dict[int, float]) -> dict[str, Any]:
    """Return a row of the table."""
    request = request_of(row, len(about["features"]))
    menu = request.menu.T
    mean, width = row["mean"], row["width"]
    known = mean is not None and width is not None
    mark = mark_of(row["mark"], row["at"])
    return {name: row[name] for name in AS_IT_IS} | {
        "id": make_id(about["task"], row["stream_name"], mark, row["seq"]),
        "space": about["space"],
        "task": about["task"],
        "stream": row["stream_name"],
        "at": _time(row["at"]),
        "config_version": row["config"],
        "own_n": row["n"],
        "alpha": alphas.get(row["config"]),
        "actions": len(menu),
        "random": row["propensity"] < 1.0,
        "lower": mean - width if known else None,
        "upper": mean + width if known else None,
        "outcome": "pending" if row["ended"] is None else End(row["ended"]).name.lower(),
        "reward": row["reward"],
        "uplift": _uplift(row),
        "counted_as": row["k"],
        "ended_at": None if row["ended_at"] is None else _time(row["ended_at"]),
        "late_reward": row["late"],
        "budget_left": None
        if row["allowance"] is None
        else row["allowance"] - row["spent"] - row["charge"],
        "promise": promise_shown(row["promise"], row["certificate"]),
        "x": np.frombuffer(row["x"]).tolist(),
        "features": menu.tolist(),
        "values": request.value.tolist() if request.value.size else None,
        "costs": request.cost.tolist() if request.cost.size else None,
    }


def _news(alarms: list[NotedAlarm], row: dict[str, Any]) -> str:
    """Return the kinds of alarms that nobody had looked at when a decision was made."""
    return "+".join(dict.fromkeys(each.kind for each in news_at(alarms, row["seq"], row["at"])))


def _uplift(row: dict[str, Any]) -> float | None:
    """Return what a row's reward says of the lead of the agent's choice; None: nothing.

    One of a decision before an alarm counts for this alone.
    """
    stake = stake_of(row["lead"], row["share"], row["predicted"])
    counts = row["k"] is not None or row["ended"] == End.OUTDATED
    if stake is None or row["reward"] is None or not counts:
        return None
    return float(gain_of(stake, row["reward"])[0])


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else repr(value) if isinstance(value, float) else value
