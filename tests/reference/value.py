"""Choice by value, in plain NumPy: what ``guard.choose`` does, where actions have values.

Written from docs/value.md and docs/guard-ucb-math.md, never from the compiled kernels: certified
actions are found one by one, sorted and looked through.
"""

import numpy as np
from reference import bounded
from reference.guard import best_mixture, bounded_certificate, most_lost
from reference.guard_set import Belief, Offer, certificate, promised, squared_width

TRIES = 24  # actions whose certificate by the range of rewards is looked for


def hopeful(offer: Offer, belief: Belief) -> np.ndarray:
    """Tell which actions some parameter of the set lets clear the floor, (K,)."""
    F, b, alpha, told, tau = offer
    hope = -certificate(-(F - (1.0 - alpha) * F[b]), *belief) >= 0.0
    if tau is not None:
        hope &= -certificate(-F, *belief) >= (1.0 - alpha) * (told - tau)
    return hope


def in_order(actions, values, mean) -> list[int]:
    """Return the actions by value, estimated reward, row: the first is the one to play."""
    return sorted(actions, key=lambda k: (-values[k], -mean[k], k))


def careful(
    offer, belief, choice, best, certified, values, mode, w0, toss, t, left, limits, ranges
):
    """Return a certified play where the target is not: the best, or the most informative one.

    Of those that lose no more value against the best than the target would gain.
    Or, in strict mode, a trial of the target, where nothing certified informs about it.
    """
    F, b, alpha = offer[:3]
    x, mean, use_range = choice["targets"], F @ belief.th, ranges is not None
    gain = (F @ np.linalg.inv(belief.V) @ F[x]) ** 2 * w0
    worth = certified & (values[best] - values <= values[x] - values[best])
    gain = np.where(worth, gain / (1.0 + w0 * squared_width(F, belief.V)), -np.inf)
    xi = int(np.argmax(gain))
    stuck = gain[xi] < squared_width(F[x], belief.V) / (t + 1)
    heads = toss < 0.5 and not stuck
    choice |= {"actions": xi if heads else best, "informative": heads}
    choice["stuck"] = stuck and mode == "strict"
    if choice["stuck"] and left is not None:
        half = belief.beta * np.sqrt(squared_width(F, belief.V))
        known = 2.0 * half[b] <= min(mean[b], half[x])
        charge = most_lost(offer, x, 1.0 - alpha, belief, limits, use_range=use_range)
        if charge <= left and (known or best != b or offer.tau is not None):
            choice |= {"actions": x, "charges": charge, "stuck": False, "bounded": False}
    return choice, F[choice["actions"]]


def chooser(values):
    """Return what ``guard.simulate`` takes to choose by these values, (K,)."""

    def choose(
        offer, slack, belief, common, mode, gamma, w0, toss, t, limits, use_range, left, promise
    ):
        F, b, alpha = offer[:3]
        actions = np.arange(len(F))
        slack = slack.copy()
        slack[b] = max(slack[b], 0.0)
        out = ~(hopeful(offer, belief) | (slack >= 0.0))

        def best_and_target(mean):
            target = in_order(actions[~out], values, mean)[0]
            return in_order(actions[(slack >= 0.0) & ~out], values, mean)[0], target

        best, x = best_and_target(F @ belief.th)
        if best != x and common is not None:
            lead = F[x] - (1.0 - alpha) * F[b]
            if certificate(lead, *common[0]) > certificate(lead, *belief):
                belief = common[0]
                slack = np.maximum(slack, common[1])
                out |= ~(hopeful(offer, belief) | (slack >= 0.0))
                best, x = best_and_target(F @ belief.th)
        choice = {"actions": best, "targets": x, "conservative": best != x}
        if best == x:
            return choice, F[best]
        mean, ranges = F @ belief.th, limits if use_range else None

        def lower_bound(v):
            return bounded_certificate(v, offer, belief, ranges)

        def bounded_slack(k):
            least = lower_bound(F[k] - (1.0 - alpha) * F[b])
            if promise is None or least < 0.0:
                return least
            points, mu, realised = promise
            low = [lower_bound(D) for D in points[:, k] - (1.0 - alpha) * points[:, b]]
            return min(least, promised(np.array(low), mu, realised))

        if ranges is not None:
            if bounded.minimum(F[x], *belief, F, *ranges) is None:
                return choice | {"actions": b, "refuted": True}, F[b]
            before = in_order(actions[~out], values, mean)
            for k in before[: before.index(best)][:TRIES]:
                if (least := bounded_slack(k)) >= 0.0:
                    slack[k], best = max(slack[k], least), k
                    choice["bounded"] = True
                    break
            if best == x:
                return choice | {"actions": x, "conservative": False}, F[x]
        if mode == "policy":
            worst = limits[0][x] - (1.0 - alpha) * limits[1][b]
            worst = max(slack[x], worst)
            first = alpha if best == b else slack[best] / (slack[best] - worst)

            def mixture(r):
                return (1.0 - r) * F[best] + r * F[x] - (1.0 - alpha) * F[b]

            rho = best_mixture(lambda r: certificate(mixture(r), *belief) >= 0.0, first)
            if ranges is not None and rho < 1.0:
                rho = best_mixture(lambda r: lower_bound(mixture(r)) >= 0.0, rho)
            cost = 0.0
            if left is not None:
                cost = most_lost(offer, x, 1.0, belief, limits, use_range=use_range)
            if rho > 0.0 and (left is None or cost <= left):
                choice |= {"rho": rho, "partner": best, "joint": rho > first}
                choice["actions"] = x if toss < rho else best
                choice["charges"] = cost if choice["actions"] == x and left is not None else 0.0
                return choice, rho * F[x] + (1.0 - rho) * F[best]
        certified = (slack >= 0.0) & ~out
        return careful(
            offer, belief, choice, best, certified, values, mode, w0, toss, t, left, limits, ranges
        )

    return choose
