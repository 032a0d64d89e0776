"""What an algorithm must be given in a round, beside features, for what it promises."""

from __future__ import annotations

from guardband.agent.engine import Engine
from guardband.agent.records import Request
from guardband.errors import InvalidValueError
from guardband.kernels.types import Realised

__all__ = ["check_needs"]

NOT_REALISED = float(Realised.NONE)  # comparing with a member of an enumeration is slow


def check_needs(engine: Engine, request: Request) -> None:
    """Refuse a request that lacks what the promise needs; before anything is changed."""
    if request.value.size and not engine.guards:
        raise InvalidValueError(
            "value=... is for Guard-UCB, which certifies actions and plays the most valuable: "
            "use algorithm='guard-ucb'."
        )
    if request.value.size and engine.terms.tolerate:
        raise InvalidValueError("value=... is for tolerate=0: leave one of them out.")
    realised = engine.terms.realised
    if realised == NOT_REALISED or request.weights.size:
        return
    if realised == Realised.WORST or not request.covariance.size:
        raise InvalidValueError(
            "realised=... certifies against the possible contexts: pass support=(n, K, dim) "
            "features and their weights to decide, see gb.feature_support; or, for a chance, "
            "covariance=..., see gb.difference_covariance."
        )
