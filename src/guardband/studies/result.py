"""`gb.Study`: what a study found, as attributes, as JSON, as a page, and as an agent.toml."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from guardband.agent import AgentFile, LookedAt, write_agent_file
from guardband.checks import as_path
from guardband.features import Features
from guardband.files import plain_errors, write_atomically
from guardband.html_tables import html_table
from guardband.studies.advice import Advice
from guardband.studies.config import StudyConfig
from guardband.studies.contents import Contents
from guardband.studies.expect import Expectation
from guardband.studies.linearity import Linearity
from guardband.studies.logs import StudyLogs
from guardband.studies.page import (
    EXPECT_HEAD,
    VALUE_HEAD,
    expect_rows,
    study_page,
    value_rows,
)
from guardband.studies.suggestions import Suggestion
from guardband.studies.values import Values

__all__ = ["Study"]


@dataclass(frozen=True)
class Study:
    """What a study of logs found; `gb.study` makes it.

    Attributes
    ----------
    config
        What it was told.
    logs
        The rows that it looked at.
    contents
        What is there: counts, rates, suspects.
    linearity
        Whether a linear model is good enough.
    settings
        Settings that the data suggest, each with how sure.
    expectation
        What to expect of agents with these settings, by simulation.
    values
        What rules would have earned.
    advice
        A recommendation, and the settings of the agent in agent.toml.

    Examples
    --------
    >>> import guardband as gb
    >>> logs = {"offer": ["A", "B"] * 200, "rule": ["A"] * 400, "reward": [0, 1, 1, 1] * 100}
    >>> logs["match"] = [0.5, 1.0] * 200
    >>> found = gb.study(logs, action="offer", baseline="rule", features=["match"], rounds=100)
    >>> found.contents.rows["looked_at"], found.contents.rows["left_to_learn"]
    (200, 200)
    >>> print(found.recommendation.split(", ")[0])
    Switch on an agent in strict mode
    """

    config: StudyConfig
    logs: StudyLogs
    contents: Contents
    linearity: Linearity
    settings: list[Suggestion]
    expectation: Expectation
    values: Values
    advice: Advice

    def __repr__(self) -> str:
        return f"<Study of {len(self.logs):,} of {self.logs.total:,} rows>\n{self.advice.text}"

    @property
    def recommendation(self) -> str:
        """What to do, in one paragraph."""
        return self.advice.text

    def to_dict(self) -> dict[str, Any]:
        """Return what `guardband study --json` prints, as plain data."""
        found = {
            "rows": self.contents.rows,
            "rewards": self.contents.rewards,
            "linearity": self.linearity.to_json(),
            "settings": {each.name: each.to_json() for each in self.settings},
            "expect": self.expectation.to_json(),
            "value": [each.to_json() for each in self.values.estimates],
            "recommendation": self.recommendation,
        }
        plain: dict[str, Any] = _plain(found)
        return plain

    def to_json(self) -> str:
        """Return what `guardband study --json` prints."""
        return json.dumps(self.to_dict())

    def to_html(self) -> str:
        """Return the page: one HTML text that needs nothing else."""
        return study_page(self)

    def _repr_html_(self) -> str:
        """Return the recommendation and two tables, for notebooks."""
        rows = f"{len(self.logs):,} of {self.logs.total:,} rows"
        expected = expect_rows(self.expectation)
        earned = value_rows(self.values)
        return (
            f"<p><strong>Study of {rows}.</strong> {escape(self.recommendation)}</p>"
            + html_table("What to expect", expected, head=EXPECT_HEAD)
            + html_table("What it would have earned", earned, head=VALUE_HEAD)
        )

    def agent_file(self) -> AgentFile:
        """Return the agent that is recommended, and which rows were looked at."""
        features = self.logs.encoder if isinstance(self.logs.encoder, Features) else None
        settings = {"dim": self.logs.dim} if features is None else {}
        whole = self.logs.whole
        assert whole is not None, "these logs were not read from data"
        looked = LookedAt.of(
            whole.table(kind=np.float32),
            whole.rewards,
            np.arange(self.logs.total) < len(self.logs),
            None if whole.ids is None else whole.ids.tolist(),
            f"the first {len(self.logs):,} of {self.logs.total:,}",
        )
        return AgentFile(
            settings | self.advice.settings, features, self.config.roles, looked_at=looked
        )

    def save(self, folder: str | Path) -> Path:
        """Write study.html, study.json and agent.toml.

        Parameters
        ----------
        folder
            Where to; made if need be. Files of an earlier study are replaced.

        Returns
        -------
        Path
            The page.
        """
        target = as_path("folder", folder)
        with plain_errors(target, "it cannot be a folder for the study"):
            target.mkdir(parents=True, exist_ok=True)
        for name, text in (("study.html", self.to_html()), ("study.json", self.to_json())):
            with write_atomically(target / name) as file:
                file.write(text.encode("utf-8"))
        write_agent_file(target / "agent.toml", self.agent_file(), self._comment())
        return target / "study.html"

    def _comment(self) -> str:
        """Return what agent.toml says first: how sure each setting is."""
        lines = ["An agent, as a study of logs suggests it. Nothing here is certain:"]
        lines += [
            f"{each.name} = {each.value}: {each.sure}; {each.because}."
            for each in self.settings
            if each.value is not None
        ]
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it; what is not finite is null."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
