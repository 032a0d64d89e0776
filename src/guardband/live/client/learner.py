"""The learner of a live agent: its algorithm under the space's settings, in a group of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from guardband.agent import (
    Absorbed,
    AgentGroup,
    Awaited,
    Budget,
    KnownThen,
    Recall,
    Request,
    RequestReader,
    Spending,
    Verdict,
    Watch,
    Weighed,
    ask_for_kernels,
    reward_range,
    sets_of,
)
from guardband.kernels.ridge import count_reward
from guardband.kernels.state import new_statistic
from guardband.kernels.types import Estimate, Floats, Statistic
from guardband.live.client.levels import level_of, trigger_of
from guardband.live.client.monitors import Monitors
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import (
    MAGIC,
    DamagedSumsError,
    Recent,
    Sums,
    bytes_of,
    empty_sums,
    forget,
    statistic_of,
    sums_of,
)
from guardband.reasons import sentence

__all__ = ["UNREGISTERED", "Learner", "Selection", "new_watch", "unpack"]

LOOK_AFTER = 100  # decisions; the dashboard says early what is to be expected


class Selection(NamedTuple):
    """What is played, and what the algorithm would have played, where that was not allowed."""

    played: Verdict
    shadow_action: int | None
    why: str | None  # in a sentence, where the reason's own does not say all


# Of a stream that has no share of delta yet: no share that it may get is smaller, up to the
# 30,000th stream of a space. It plays the baseline, and weighs its rewards by this.
UNREGISTERED = 1e-9


class Learner:
    """What a live agent computes with; no clock, no file, no network.

    Parameters
    ----------
    space
        The rules.
    task
        The task's name.
    uses
        The features it uses.
    reward_floor
        Where the space has none: of agents from before spaces had one.
    seed
        For its coins.
    """

    def __init__(
        self,
        space: SpaceSettings,
        task: str,
        uses: tuple[int, ...],
        *,
        reward_floor: float | None,
        seed: int,
    ) -> None:
        self.space = space
        self.policy = space.learner(task)
        self.group = AgentGroup(
            {task: uses},
            dim=space.dim,
            algorithm=self.policy,
            feature_bound=space.feature_bound,
            horizon=None,
            reward_floor=reward_floor if space.reward_floor is None else space.reward_floor,
            seed=seed,
            size=space.agents,
            features=space.named,
            budget=None if space.budget is None else Budget(**dict(space.budget)),
        )
        self.spending: Spending | None = self.group.purses[0]
        self.reader = RequestReader(self.group)
        self.reward_range = reward_range(self.policy)
        self.state = self.group.states[0]
        self.level = math.nan  # 2 log(1 / delta) as the kernels use it; not set yet
        self.allowance = math.nan  # what trials, or explored plays, may be charged with in all
        self._base = float(self.group.engine.terms.confidence)
        self.holdback = self.group.engine.holdback
        self.monitors = Monitors(self.group, space, self.policy)
        self.group.engine.set_trigger(*trigger_of(space), space.agents)
        self.half = space.half_at(0)  # the half window in which it decides; 0: there is no window
        self._recent = new_statistic(space.dim)  # what it learned in it since the last checkpoint
        self._forgotten = 0  # and how many it counted since then that are too old

    def enter(self, round: int) -> bool:
        """Decide in a round; tell whether a half window begins, so that sums must be loaded."""
        if not self.half:
            return False
        before, self.half = self.half, max(self.half, self.space.half_at(round))
        if self.space.drift:
            self.group.engine.set_time(max(round, 1))
        return self.half > before

    def load(
        self, pooled: Sums | None, handed_in: Sums, own: bytes, without: Sequence[Sums] = ()
    ) -> None:
        """Compute with these sums from now on; `without` are those without each other task."""
        dim = self.space.dim
        everybody = empty_sums(dim) if pooled is None else pooled
        sums = [everybody, handed_in, unpack(own, dim)]
        if self.half:
            sums = [forget(each, self.half) for each in sums]
            since = sums[-1]
            self._recent = statistic_of(empty_sums(dim) if since.recent is None else since.newest)
            self._forgotten = since.n - since.kept
        first, second, third = map(statistic_of, sums)
        self.group.adopt(first, second, third, [statistic_of(part) for part in without])

    def set_level(self, share: float, epoch: int, excluded: int) -> None:
        """Use the confidence that is due in this epoch."""
        given = (self.space, self.policy, self._base, share, epoch, excluded)
        self.level = level_of(*given, self.half)
        self.group.engine.set_confidence(self.level)

    def set_allowance(self, allowance: float, spent: float) -> None:
        """Decide with so much spent of so much; NaN: there is no allowance."""
        self.allowance = allowance
        self.group.engine.set_allowance(allowance)
        self.state.spent[0] = spent

    @property
    def coin(self) -> float:
        """The coin of the next decision."""
        return self.group.next_coin[0]

    @property
    def hold(self) -> float:
        """The holdback's coin of the next decision."""
        return self.group.next_hold[0]

    def draw_coins(self) -> None:
        """Go on to the next coins."""
        self.group.draw_coins(0)

    def hand_in(self) -> None:
        """Count what was learned since the last checkpoint among what was handed in."""
        self.group.hand_in()
        if self.half:
            self._recent, self._forgotten = new_statistic(self.space.dim), 0

    def own(self) -> bytes:
        """Return what was learned since the last checkpoint, for the journal."""
        if self.half:
            return self.with_recent(sums_of(self.state.own)).as_bytes()
        return bytes_of(self.state.own)

    def with_recent(self, sums: Sums) -> Sums:
        """Return the sums since the last checkpoint with what a window knows of them."""
        n, gram, surprise, weight, *_ = sums_of(self._recent)
        recent = Recent(self.half, sums.n, n, gram, surprise, weight)
        return sums._replace(n=sums.n + self._forgotten, recent=recent)

    def start_at_once(self) -> None:
        """Never wait for the compiler in a decision or a reward, whatever the size."""
        self.group.engine.plain_up_to = math.inf
        ask_for_kernels(self.group, valued=self.spending is not None)

    @property
    def full_speed(self) -> bool:
        """Whether the kernels of decisions and rewards are compiled, of those that cost, too."""
        return self.group.engine.is_prompt(math.inf, valued=self.spending is not None)

    def is_prompt(self, request: Request) -> bool:
        """Tell whether the algorithm can choose by now without holding up its caller."""
        valued = request.value.size > 0 or self.spending is not None
        prompt = self.group.engine.is_prompt(request.menu.shape[1], valued=valued)
        if valued and not prompt:
            ask_for_kernels(self.group, valued=True)
        return prompt

    def decide(self, request: Request, turn: int, coin: float, hold: float = 1.0) -> Verdict:
        """Return what the algorithm plays, or the baseline where the holdback's coin says so."""
        engine, spending = self.group.engine, self.spending
        if spending is None:
            return self._as_declared(engine.decide(0, request, 1, turn, coin, hold=hold))
        given = (spending.costs(request)[0], spending.limits(request), hold)
        return self._as_declared(engine.decide(0, request, 1, turn, coin, *given))

    def _decide_freely(self, request: Request, turn: int, coin: float) -> Verdict:
        """Return what the algorithm would play whatever it costs."""
        return self._as_declared(self.group.engine.decide(0, request, 1, turn, coin))

    def _as_declared(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the declared weight, where there is a window.

        Another may rest on data that were right when they counted, and are not any more.
        """
        if not self.half:
            return verdict
        awaited = verdict.awaited
        return verdict._replace(awaited=awaited._replace(weight=awaited.declared))

    def pay(self, request: Request, verdict: Verdict) -> float | None:
        """Pay for a decision, or reserve what it may cost; None: there is no budget."""
        if self.spending is None:
            return None
        return self.spending.pay_round(request, verdict.action, *verdict.worth)

    def instead(self, recall: Recall, k: int, careful: bool) -> Awaited:
        """Return what is awaited where action k was played instead, by what was known then."""
        nothing = Awaited(recall.theta, 0.0, 0.0, careful)
        found = self.group.engine.instead(0, recall, k, nothing)
        return found._replace(weight=found.declared) if self.half else found

    def recall(self, request: Request, radius: float) -> Recall:
        """Return what an override of a decision needs, by what is known now."""
        return Recall(request, KnownThen(self.state.estimate, self.group).keep(), radius)

    def play_baseline(
        self, request: Request, turn: int, coin: float, key: str, more: str | None = None
    ) -> Selection:
        """Return the baseline's action, where an agent may not play what the algorithm chooses.

        `key` is the code of the reason, and `more` is added to its sentence.
        What is learned from it is what the baseline's own features teach.
        """
        shadow = self.decide(request, turn, coin) if key == "shadow" else None
        plain = self._decide_freely(request.only(request.baseline), turn, coin)
        weighed = _alone(plain, request) if shadow is None else shadow.weighed
        why = sentence(key) if more is None else f"{sentence(key)}: {more}"
        if shadow is not None:
            why += f"; it would have played action {shadow.action}: {sentence(shadow.reason)}"
        played = plain._replace(
            action=request.baseline,
            kind="baseline",
            reason=key,
            propensity=1.0,
            promise="baseline",
            certificate="baseline",
            weighed=weighed,
            awaited=plain.awaited._replace(stake=None),
        )
        return Selection(played, None if shadow is None else shadow.action, why)

    def learn(self, awaited: Awaited, reward: float, n: int, since: int, round: int = 0) -> bool:
        """Learn the n-th reward, `since` of them since the last epoch; tell if one is due.

        With a window it counts as long as the `round` of its decision does; and an epoch is due at
        the end of every half, so that all start into the next with what all learned in it.
        """
        group, ends = self.group, False
        if self.half:
            half = self.space.half_at(round)
            self.monitors.watch(awaited, reward, half)
            awaited = awaited._replace(declared=0.0)  # they have watched it
            if half < self.half - 1:
                self._forgotten += 1
                return False
            if half == self.half:
                seen = (awaited.x, reward, awaited.weight, awaited.guess)
                group.engine.run(count_reward, self._recent, *seen)
            ends = self.space.agents > 1 and self.space.half_at(round + 1) > half
        return group.engine.learn(0, awaited, reward, group.logdet_pooled, since, n) or ends

    def learn_rows(
        self, rows: Floats, rewards: Floats, n: int, since: int, reused: int
    ) -> Absorbed:
        """Learn (k, d) rows of logs after n rewards, `since` of them since the last epoch.

        `reused` of the rows had been looked at.
        """
        group = self.group
        return group.engine.learn_rows(0, rows, rewards, 1, group.logdet_pooled, since, n, reused)

    @property
    def reused(self) -> int:
        """How many rows that had been looked at are in the data that decisions rely on."""
        return self.group.engine.reused(0)

    def sets(self) -> list[tuple[Estimate, float]]:
        """Return estimate and radius of every set in which an action must be certified."""
        engine = self.group.engine
        return sets_of(engine) if engine.terms.tolerate else [(self.state.estimate, self.radius())]

    def radius(self) -> float:
        """Return beta, for display: from the width that a decision on one feature would have."""
        task, engine = self.group.coords[0], self.group.engine
        if engine.terms.tolerate:  # the width of a decision is that of several sets
            nothing = np.zeros((0, self.space.dim))
            return engine.learn_rows(0, nothing, nothing[:, 0], 1, 0.0, 0, 0).radius
        menu = np.zeros((self.space.dim, 1))
        menu[task[0], 0] = 1.0
        empty: Any = np.zeros((0, 0, 0))
        request = Request(menu, 0, None, empty, np.zeros(0), empty)
        verdict = self._decide_freely(request, 1, 0.0)
        variance = float(self.state.estimate.inverse[task[0], task[0]])
        return verdict.width / math.sqrt(variance) if variance > 0.0 else math.nan

    def observations(self) -> int:
        """Return how many observations the estimate rests on, own and others'."""
        return int(self.state.own.scalars[0] + self.group.pooled.scalars[0])

    def estimate(self) -> tuple[Floats, Floats]:
        """Return the estimate of the parameter and the half widths of its confidence intervals."""
        estimate = self.state.estimate
        variance = np.maximum(np.diag(estimate.inverse), 0.0)
        return estimate.theta.copy(), self.radius() * np.sqrt(variance)

    def figures(self) -> dict[str, float]:
        """Return how much is known: beta, log det V, lambda_min(V), and the noise that is seen.

        residual_ratio is the mean squared residual over the variance that the algorithm assumes.
        """
        own, estimate, pooled = self.state.own, self.state.estimate, self.group.pooled
        gram, moment = own.gram + pooled.gram, own.moment + pooled.moment
        n, squares = (own.scalars + pooled.scalars)[:2].tolist()
        uses = np.ix_(self.group.tasks[0], self.group.tasks[0])
        found = {
            "beta": self.radius(),
            "logdet": float(estimate.scalars[0]),
            "lambda_min": float(np.linalg.eigvalsh(gram[uses])[0]) + self.group.engine.ridge,
        }
        freedom = n - len(moment)
        if freedom >= 10:
            theta = estimate.theta
            rest = squares - 2.0 * float(moment @ theta) + float(theta @ gram @ theta)
            found["residual_ratio"] = max(0.0, rest) / freedom / self._variance()
        return found

    def _variance(self) -> float:
        """Return the variance of a weighted reward that the algorithm assumes."""
        if self.policy.weighted:
            return 1.0
        return float(self.group.engine.terms.sigma) ** 2


def new_watch(learner: Learner) -> Watch:
    """Return what looks ahead for a learner: after LOOK_AFTER decisions, and ever less often."""
    return Watch(learner.group.engine.terms, LOOK_AFTER + 1)


def unpack(own: bytes, dim: int) -> Sums:
    """Return the sums that `Learner.own` wrote; format 1 had W, U and four numbers."""
    if own.startswith(MAGIC):
        return Sums.from_bytes(own)
    if len(own) != 8 * (dim * dim + dim + 4):
        raise DamagedSumsError(f"{len(own)} bytes are not an agent's own sums.")
    numbers = np.frombuffer(own, np.float64)
    gram, moment, scalars = np.split(numbers, [dim * dim, dim * dim + dim])
    gram = gram.reshape(dim, dim)
    if not np.allclose(gram, gram.T):  # with d = 2 both formats have the same length
        raise DamagedSumsError("an agent's own sums are damaged: W is not symmetric.")
    return sums_of(Statistic(gram.copy(), moment.copy(), np.append(scalars, [0.0, 0.0])))


def _alone(plain: Verdict, request: Request) -> Weighed:
    """Return what is known of all actions where the baseline's alone, `plain`, was weighed."""
    b, actions = request.baseline, request.menu.shape[1]
    table, certified = np.full((3, actions), math.nan), np.zeros(actions, np.bool_)
    certified[b] = True
    if plain.weighed.table is not None:
        table[:, b] = plain.weighed.table[:, 0]
    return Weighed((certified, table))
