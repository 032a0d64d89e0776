"""The list of algorithms: every policy class registers itself under its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from guardband.algorithms.policy import Policy

__all__ = ["ALGORITHMS", "ORACLE", "AlgorithmEntry", "entry_of"]
__all__ += ["plain_name", "register", "setting"]

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
    reading
        How much of its source was read: "read", "partly read" or "inferred"; "own": it is
        guardband's.
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
    reading: str = "read"
    preset: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **settings: Any) -> Any:
        """Return the algorithm."""
        return self.kind(**{**self.preset, **settings})

    def informed(self, assumed: Mapping[str, Any], **given: Any) -> Any:
        """Return the algorithm, told what it has a use for; what is given wins.

        Some settings keep their own value whatever is assumed of the problem, unless given; so
        do those of the preset.
        """
        made = self.make()
        own = {*self.kind.settings()} - made.unused
        told = made.hears({k: v for k, v in assumed.items() if k not in given})
        told = {name: value for name, value in told.items() if name not in self.preset}
        return replace(made, **{k: v for k, v in {**told, **given}.items() if k in own})


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
    reading: str = "read",
    **preset: Any,
) -> Callable[[Kind], Kind]:
    """Return a decorator that lists a policy class under `name`.

    Parameters
    ----------
    name
        The name on the command line, in files and in tables.
    about, constraint, communication, source, label, colour, reading
        See `AlgorithmEntry`; the label is the class's name unless another is given.
    **preset
        Settings of the class that make it this algorithm.
    """

    def listed(kind: Kind) -> Kind:
        words = (about, constraint, communication, source, label or kind.__name__)
        _list(name, AlgorithmEntry(kind, *words, colour, reading, preset))
        return kind

    return listed


def setting(name: str, about: str, **preset: Any) -> Callable[[Kind], Kind]:
    """Return a decorator that lists a policy class once more, with other settings.

    All else is as for the class without a preset, which must have been listed before.
    """

    def listed(kind: Kind) -> Kind:
        plain = plain_name(kind)
        known = ALGORITHMS[plain]
        label = known.label + name.removeprefix(plain)
        _list(name, replace(known, about=about, label=label, preset=preset))
        return kind

    return listed


def plain_name(kind: type[Policy]) -> str:
    """Return the name of a policy class without a preset."""
    return next(name for name, preset in kind.presets.items() if not preset)


def _list(name: str, entry: AlgorithmEntry) -> None:
    ALGORITHMS[name] = entry
    # Not the presets of a base class, which is another algorithm.
    entry.kind.presets = {**vars(entry.kind).get("presets", {}), name: entry.preset}
