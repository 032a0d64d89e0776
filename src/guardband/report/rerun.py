"""How to run a comparison again: the call of `gb.simulate` that led to it."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from guardband.algorithms import ALGORITHMS
from guardband.problems import PROBLEMS
from guardband.sim import Results, Series

__all__ = ["rerun_code"]


def rerun_code(results: Results) -> str:
    """Return Python code for the same run; what cannot be written down stands as `...`."""
    settings = results.settings
    call = {key: settings[key] for key in ("rounds", "trials", "seed")}
    alpha = settings["alpha"]
    if alpha is not None:
        call["alpha"] = alpha[0] if len(set(alpha)) == 1 else alpha
    if settings.get("history") is not None:
        call["history"] = settings["history"]
    lines = [
        "import guardband as gb",
        *_imports(results),
        "",
        f"problem = {_problem(results)}",
        "algorithms = [",
        *(f"    {_algorithm(series)}" for series in results.series),
        "]",
        f"results = gb.simulate(problem, algorithms, {_arguments(call)}"
        + (", replay=...)  # the draws that were given" if settings["replayed"] else ")"),
    ]
    return "\n".join(lines)


def _problem(results: Results) -> str:
    make = PROBLEMS.get(results.problem)
    if make is None:
        return f"...  # {results.problem!r}, as it was given"
    changed = _changed(results.settings["problem"], make)
    return f"gb.problem({', '.join(filter(None, [repr(results.problem), _arguments(changed)]))})"


def _imports(results: Results) -> list[str]:
    if results.problem not in PROBLEMS:
        return []
    changed = _changed(results.settings["problem"], PROBLEMS[results.problem])
    kinds = {type(value) for value in changed.values()}
    parts = sorted(k.__name__ for k in kinds if k.__module__.startswith("guardband.problems"))
    return ["from guardband.problems import " + ", ".join(parts)] if parts else []


def _algorithm(series: Series) -> str:
    entry = ALGORITHMS.get(series.algorithm)
    if entry is None:
        return f"...,  # {series.label!r}"
    kind = entry.kind
    return f"gb.algorithms.{kind.__name__}({_arguments(_changed(series.settings, kind))}),"


def _changed(settings: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Return the settings that are not the defaults of a dataclass; of anything else, all."""
    if not is_dataclass(kind):
        return settings
    usual = {field.name: field.default for field in fields(kind)}
    return {k: v for k, v in settings.items() if usual.get(k, MISSING) != v}


def _arguments(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={_written(value)}" for key, value in settings.items())


def _written(value: Any) -> str:
    """Return a value as code; 3.1999999999999997 is 3.2 with an error of rounding."""
    if isinstance(value, str) and value.startswith("array("):  # only its shape was kept
        return "..."
    if type(value) is float:
        return repr(float(f"{value:.12g}"))
    if type(value) in (tuple, list):
        inside = ", ".join(_written(each) for each in value)
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)
