"""Which settings belong to which algorithm, and settings as earlier versions wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guardband.algorithms import ALGORITHMS
from guardband.live.protocol.space_rules import TRIGGERS

__all__ = ["FOREIGN", "FORMAT_1", "POLICIES", "SETTINGS", "upgraded"]

# What live agents can run, by the name on the command line; variants are settings here.
POLICIES = {
    name: entry.kind
    for name, entry in ALGORITHMS.items()
    if "live" in entry.kind.runs and not entry.preset
}
# What each has settings for; the features' length is checked by agents, whatever they run.
SETTINGS = {
    name: {*kind.settings(), *kind.told, "feature_bound"} for name, kind in POLICIES.items()
}
# What only others have settings for.
FOREIGN = {name: set().union(*SETTINGS.values()) - own for name, own in SETTINGS.items()}
# Names of format 1, by those of today; digests use the old ones. Newer algorithms have one name.
FORMAT_1 = {
    "guard-ucb": "GuardUcb",
    "disc-ucb": "DiscUcb",
    "disc-ucb-unknown": "DiscUcbUnknown",
    "dis-lin-ucb": "DisLinUcb",
}


def upgraded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in the words of today, from this version or an earlier one.

    Earlier ones wrote settings that the algorithm, or the trigger, did not have, and did not use
    them.
    """
    given = dict(data)
    if "spread" in given:
        given["context_noise"] = given.pop("spread")
    for new, old in FORMAT_1.items():
        if given.get("algorithm") == old:
            given["algorithm"] = new
            given.setdefault("on_refuted", "ellipsoid")  # the range of rewards was not used
            given.setdefault("optimism", 1.0)
    unused = FOREIGN.get(given.get("algorithm", "guard-ucb"), set())
    unused = {*unused, "alphas"} if "alpha" in unused else unused
    sync = given.get("sync")
    if isinstance(sync, Mapping) and "trigger" in sync:
        other = {name for each in TRIGGERS if each != sync["trigger"] for name in TRIGGERS[each]}
        given["sync"] = {name: value for name, value in sync.items() if name not in other}
    return {name: value for name, value in given.items() if name not in unused}
