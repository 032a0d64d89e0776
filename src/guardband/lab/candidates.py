"""The algorithms that can run on a problem, with settings that follow from what it declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from guardband.algorithms import Algorithm
from guardband.facts import Facts
from guardband.lab.experiments import as_printed, shown_name

__all__ = ["fitting", "with_extra"]


def with_extra(
    own: Mapping[str, Algorithm], names: Iterable[str], told: Mapping[str, Any], facts: Facts
) -> dict[str, Algorithm]:
    """Return a panel's own algorithms by label, and those of the names that the problem allows."""
    made = [fitting(as_printed(name, told), facts) for name in names]
    asked = {shown_name(each.name): each for each in made if each is not None}
    return {**own, **{label: each for label, each in asked.items() if label not in own}}


def fitting(rival: Any, facts: Facts) -> Algorithm | None:
    """Return the rival, in its second form where it has one and the first does not fit."""
    forms: list[Algorithm] = [rival]
    if hasattr(rival, "option"):
        forms.append(replace(rival, option="B"))
    for form in forms:
        try:
            form.plan(facts)
        except ValueError:
            continue
        return form
    return None
