"""The list of algorithms, and that nobody asks for the type or name of one."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.facts import Facts

SOURCE = Path(str(gb.__file__)).parent
ASKED = re.compile(
    r"isinstance\([^)]*GuardUCB|\bis (not )?GuardUCB|[!=]= \"guard-ucb|startswith\(\(?\"guard-"
    r"|[!=]= (int\()?Rule\.GUARD"
)


def test_no_file_asks_whether_an_algorithm_is_guard_ucb() -> None:
    asking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.name != "guard_ucb.py" and ASKED.search(path.read_text())
    }
    assert not asking


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_entry_makes_what_it_names(name: str) -> None:
    entry = ALGORITHMS[name]
    made = entry.make()
    assert (type(made), made.name) == (entry.kind, name)
    assert entry.label.lower().replace("-", "")[:3] == name.replace("-", "")[:3]
    assert made.constrained == ("alpha" in entry.kind.settings())


@pytest.mark.parametrize("name", [n for n, e in ALGORITHMS.items() if "live" in e.kind.runs])
def test_confidence_and_ridge_are_those_of_the_plan(name: str) -> None:
    made = ALGORITHMS[name].make(delta=0.01, theta_bound=2.0)
    if getattr(made, "gate", None) == "gap":
        return  # it needs a simulation
    plan = made.plan(Facts(((0, 1),), 2))
    assert plan.terms.ridge == made.penalty
    if not made.anytime:  # else the plan splits delta over agents and epochs
        assert plan.terms.confidence == made.confidence(0.01)
    assert made.beta(1.0, 0.01) > made.beta(0.5, 0.01) > made.beta(0.5, 0.1)
    assert math.isfinite(made.max_weight)


NOISE = {"noise": 0.2, "context_noise": 0.1}
HIDDEN = {"disc-ucb", "disc-ucb-unknown", "dis-lsb", "fed-pe-cd"}  # their papers print 1


@pytest.mark.parametrize("name", [n for n, e in ALGORITHMS.items() if not e.preset])
def test_rivals_are_told_the_context_noise_unless_their_papers_print_one(name: str) -> None:
    entry = ALGORITHMS[name]
    told = entry.informed(NOISE)
    if "context_noise" in entry.kind.settings():
        assert told.context_noise == (1.0 if name in HIDDEN else 0.1)
        assert entry.informed(NOISE, context_noise=0.3).context_noise == 0.3


def test_where_no_context_noise_is_stated_rivals_get_the_true_one() -> None:
    def constants(name: str, **given: object) -> tuple[str, float]:
        made = ALGORITHMS[name].informed({**NOISE, "context_noise": None}, **given)
        return made.constant, made.context_noise

    assert constants("dis-lin-ucb") == ("tight", 1.0)
    assert constants("dis-lin-ucb", context_noise=0.3) == ("paper", 0.3)
    assert constants("dis-lin-ucb", constant="paper") == ("paper", 1.0)
    assert constants("sclts") == ("source", 1.0)
    assert constants("disc-ucb") == ("paper", 1.0)
    assert ALGORITHMS["guard-ucb"].informed({"context_noise": None}).context_noise is None
