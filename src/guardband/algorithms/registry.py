"""The list of algorithms: every policy class registers itself under its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from guardband.algorithms.policy import Policy

__all__ = ["ALGORITHMS", "ORACLE", "AlgorithmEntry", "entry_of", "register"]

ORACLE = "-gap-oracle"  # how variants whose gate is told the true optimum are named

Kind = TypeVar("Kind", bound=type[Policy])


@dataclass(frozen=True)
class AlgorithmEntry:
    """One line of the list of algorithms.

    Attributes
    ----------
    kind
        The class.
    about, constraint, communication, source
        What `guardband algorithms` says about it.
    label
        How it is written in pictures and claims.
    colour
        Its colour in all plots; None: the next that is free.
    preset
        Settings of the class that make it this algorithm.
    """

    kind: type[Policy]
    about: str
    constraint: str
    communication: str
    source: str
    label: str
    colour: str | None = None
    preset: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **settings: Any) -> Any:
        """Return the algorithm."""
        return self.kind(**{**self.preset, **settings})

    def informed(self, assumed: Mapping[str, Any], **given: Any) -> Any:
        """Return the algorithm, told what it has a setting for; what is given wins.

        Some settings keep their own value whatever is assumed of the problem, unless given.
        """
        told = {name: value for name, value in assumed.items() if name not in self.kind.keeps}
        own = self.kind.settings()
        return replace(self.make(), **{k: v for k, v in {**told, **given}.items() if k in own})


ALGORITHMS: dict[str, AlgorithmEntry] = {}


def entry_of(name: str) -> AlgorithmEntry | None:
    """Return the entry of an algorithm; variants with an oracle have that of the plain one."""
    return ALGORITHMS.get(name.removesuffix(ORACLE))


def register(
    name: str,
    *,
    about: str,
    constraint: str,
    communication: str,
    source: str,
    label: str = "",
    colour: str | None = None,
    **preset: Any,
) -> Callable[[Kind], Kind]:
    """Return a decorator that lists a policy class under `name`.

    Parameters
    ----------
    name
        The name on the command line, in files and in tables.
    about, constraint, communication, source, label, colour
        See `AlgorithmEntry`; the label is the class's name unless another is given.
    **preset
        Settings of the class that make it this algorithm.
    """

    def listed(kind: Kind) -> Kind:
        ALGORITHMS[name] = AlgorithmEntry(
            kind, about, constraint, communication, source, label or kind.__name__, colour, preset
        )
        return kind

    return listed
