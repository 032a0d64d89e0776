"""What kernels say about a decision, in words."""

from __future__ import annotations

from functools import lru_cache
from math import isnan

from guardband.agent.decision import chosen_words
from guardband.agent.records import NO_VALUE, Awaited, Request, Verdict, new
from guardband.agent.weighed import Weighed
from guardband.kernels.types import Certificate, Floats, Reason
from guardband.uplift import Stake

__all__ = ["WAITS", "verdict_of"]

CERTIFICATES = tuple(kind.name.lower().replace("_", " ") for kind in Certificate)
# What is promised, by certificate; by all others "play".
PROMISES = {"none": "none", "baseline": "baseline", "mixture": "policy", "trial": "trial"}
GRANTED = ("play", "policy", "trial")  # promises that rest on what was learned
HOLDBACK = "holdback"
REASON_CODES = tuple(reason.name.lower().replace("_", "-") for reason in Reason)
WAITS = 19  # in what `serve` writes: whether other actions are weighed when that is asked for


@lru_cache(maxsize=512)  # there are few, and decisions wait for them
def _words(
    code: float,
    reason: float,
    certified: float,
    careful: float,
    itself: bool,
    learned: bool,
    reused: bool,
    more: str,
) -> tuple[str, str, str, str]:
    """Return kind, reason, promise and certificate for what `serve` wrote, and what else counts.

    `itself`: the baseline is played; `learned`: there were data to learn from, or there is no
    floor; `reused`: rows among them had been looked at; `more` is added to the reason.
    """
    certificate = CERTIFICATES[int(code)]
    promise = PROMISES.get(certificate, "play")
    if certified and certificate == "baseline":
        promise = "play"  # as journals have it; see `promise_shown`
    elif promise in GRANTED and reused:
        promise = "reused"
    kind, why = "baseline" if itself else "explored", REASON_CODES[int(reason)]
    if certified and why != HOLDBACK and not (careful and itself):
        kind, why = chosen_words(why, itself=itself, known=learned)
    elif certificate == "trial":
        kind = "trial"
    return kind, why + more, promise, certificate


def verdict_of(
    said: list[float],
    request: Request,
    x: Floats,
    weighed: Weighed,
    *,
    holdback: float,
) -> Verdict:
    """Return a verdict from what `serve` wrote, with the vector that is played."""
    (
        number, careful, reason, mean, width, floor, propensity, margin, code, certified,
        alarm, weight, guess, data, charge, left, radius, declared, lower, _,
        lead, share, predicted, price, cost, reused,
    ) = said  # fmt: skip
    action, baseline, value, more = int(number), request.baseline, None, ""
    if request.value is not NO_VALUE and request.value.size:
        value, more = request.value, "+value"
    if alarm:
        more += "+alarm"
    kind, why, promise, certificate = _words(
        code,
        reason,
        certified,
        careful,
        action == baseline,
        data > 0.0 or isnan(floor),
        reused > 0.0,
        more,
    )
    stake = Stake(lead, share, predicted) if holdback else None
    awaited = new(Awaited, (x, guess, weight, careful > 0.0, stake, declared, lower, 0))
    made = (
        action, kind, why, mean, width, floor, propensity, margin, promise, certificate, weighed,
        awaited, charge, None if isnan(left) else left, value, radius, (price, cost),
    )  # fmt: skip
    return new(Verdict, made)
