"""An agent in the user's own process: decide, play, and tell it the reward later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from guardband.agent.agent_file import read_agent_file
from guardband.agent.awaiting import awaitable
from guardband.agent.batches import decide_batch
from guardband.agent.budget import Budget
from guardband.agent.decision import Decision
from guardband.agent.group import AgentGroup
from guardband.agent.hooks import Hooks
from guardband.agent.inputs import reward_range
from guardband.agent.making import make_group
from guardband.agent.outlook import Outlook, outlook_of
from guardband.agent.records import Batch, Request
from guardband.agent.requests import RequestReader
from guardband.agent.rewards import RewardTaker
from guardband.agent.storage import load_group, save_group
from guardband.algorithms import Algorithm
from guardband.contexts import Discrete, Gaussian
from guardband.errors import InvalidValueError
from guardband.features import Features
from guardband.uplift import LEVEL, Uplift

__all__ = ["Agent"]


class Agent(RewardTaker):
    """One task, learning alone; `gb.Fleet` has several that learn together in one process.

    `gb.connect` makes agents that learn together with agents in other processes.

    An agent is safe to use from several threads. Rewards may come late, in any order, or never;
    but whether one is lost must not depend on what it was, or the confidence set fails.

    For every parameter but `dim`, `features` and `seed`, None stands for the algorithm's own value.

    Parameters
    ----------
    dim
        The number of features, d.
    features
        Instead of `dim`: the `gb.Features` by which DataFrames and dicts become features.
    alpha
        The share of the baseline's reward that may be lost, in (0, 1].
    algorithm
        The algorithm, or its name on the command line; None: `gb.GuardUCB`. Settings that only one
        algorithm has are given to it: `algorithm=gb.DiscUCB(gate="none")`. DiSC-UCB's conservative
        rounds play real actions (mix="action").
    mode
        What Guard-UCB promises: "strict" (every play clears the floor) or "policy" (the
        randomised choice does).
    on_refuted
        What Guard-UCB does where observations refute its assumptions: "baseline" plays the
        baseline, "ellipsoid" does not look for it; see `gb.GuardUCB`.
    trial_budget
        What Guard-UCB's trials may fall short of the floor by in all, in strict mode; see
        `gb.GuardUCB`.
    max_loss
        What Guard-UCB's exploration may cost against the baseline in all, in policy mode.
    budget
        `gb.Budget`: what plays may cost in all; `decide` is then told what actions cost.
    holdback
        The probability with which a coin plays the baseline, so that `uplift` can be told.
    on_alarm, delta_alarm
        What Guard-UCB's monitors do when rewards contradict its assumptions ("restart", "baseline"
        or "warn"), and how often they may be wrong (0: none watch); see `health` and `gb.GuardUCB`.
    window, drift
        For worlds that move: for how many rounds Guard-UCB's data count, and by how much an
        expected reward may change in a round; see `gb.GuardUCB`.
    noise
        None: every reward lies in [0, 1]; others are refused. A number: rewards are sub-Gaussian
        around their mean with this parameter, and may leave [0, 1].
    reward_ceiling
        No expected reward is larger, such as 0.1 for click rates. Agents learn sooner.
    context_noise
        The same for what the hidden context adds to the reward.
    theta_bound
        A bound on the length of theta.
    feature_bound
        A bound on the length of expected features; longer ones are refused.
    ridge
        lambda, the weight of the ridge penalty.
    delta
        The probability with which the promise may fail.
    horizon
        The number of rounds, if it is known; it sets when the agents of the paper's algorithms
        pool what they learned. Guard-UCB needs none.
    reward_floor
        A positive number that the baseline's reward never falls below, for rounds in which its
        reward is not given; for DiSC-UCB.
    seed
        For the coins of conservative rounds.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2, alpha=0.3)
    >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]], baseline=0, baseline_reward=0.5)
    >>> decision.action, decision.kind
    (0, 'baseline')
    >>> agent.observe(decision.id, reward=0.52)
    """

    def __init__(
        self,
        dim: int | None = None,
        *,
        features: Features | None = None,
        alpha: float | None = None,
        algorithm: Algorithm | str | None = None,
        mode: str | None = None,
        on_refuted: str | None = None,
        trial_budget: float | None = None,
        max_loss: float | None = None,
        budget: Budget | None = None,
        holdback: float | None = None,
        on_alarm: str | None = None,
        delta_alarm: float | None = None,
        window: int | None = None,
        drift: float | None = None,
        noise: float | None = None,
        reward_ceiling: float | None = None,
        context_noise: float | None = None,
        theta_bound: float | None = None,
        feature_bound: float | None = None,
        ridge: float | None = None,
        delta: float | None = None,
        horizon: int | None = None,
        reward_floor: float | None = None,
        seed: int = 0,
    ) -> None:
        group = make_group(
            {"agent": None},
            dim,
            features,
            algorithm,
            seed,
            budget=budget,
            alpha=alpha,
            mode=mode,
            on_refuted=on_refuted,
            trial_budget=trial_budget,
            max_loss=max_loss,
            holdback=holdback,
            on_alarm=on_alarm,
            delta_alarm=delta_alarm,
            window=window,
            drift=drift,
            noise=noise,
            reward_ceiling=reward_ceiling,
            context_noise=context_noise,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
            ridge=ridge,
            delta=delta,
            horizon=horizon,
            reward_floor=reward_floor,
        )
        self._join(group, 0)

    @classmethod
    def _of(cls, group: AgentGroup, number: int) -> Agent:
        agent = cls.__new__(cls)
        agent._join(group, number)
        return agent

    def _join(self, group: AgentGroup, number: int) -> None:
        self._group, self._number, self._hooks = group, number, Hooks()
        self._reader = RequestReader(group, number)
        self._rewards = reward_range(group.algorithm)

    def decide(
        self,
        features: Any,
        baseline: Any,
        baseline_reward: float | None = None,
        *,
        support: Any = None,
        weights: Any = None,
        covariance: Any = None,
        labels: Sequence[Any] | None = None,
        value: Any = None,
        cost: Any = None,
    ) -> Decision:
        """Choose one of this round's actions.

        Parameters
        ----------
        features
            (K, dim), or (K, size of the task): the expected features of the actions on offer; or
            rows of data by name, where the agent was made with `features`.
        baseline
            The row of the baseline's action; its label, where rows have labels.
        baseline_reward
            Its expected reward; None if it is not known.
        support, weights
            (n, K, dim) features in each possible context, and their probabilities, of which
            `features` is the mean; `gb.feature_support` makes them. Guard-UCB learns faster, and
            can promise more, where they are known.
        covariance
            (K, dim, dim), or (1, dim, dim) for all actions alike: the covariance of
            phi(action) - (1 - alpha) phi(baseline) over the hidden context, for realised=("chance",
            eps) where the support is not finite; `gb.difference_covariance` makes it.
        labels
            What the actions are called; None: by a DataFrame's index, else they have no labels.
        value
            (K,): what each action is worth to you, such as its price with a minus sign. The
            certified action with the largest value is played, and the reward only guards; see
            docs/value.md. None: the reward is what counts.
        cost
            (K,): what each action costs, paid from the `budget`; None: it is only known afterwards.

        Returns
        -------
        Decision
            The action to play, what is promised about it, and the id for `observe`.
        """
        request = self._reader.read(
            features, baseline, baseline_reward, support, weights, covariance, labels, value, cost
        )
        return self._decide(request)

    adecide = awaitable(decide)
    """As `decide`, for event loops: `await` it."""

    def decide_from(
        self,
        feature_map: Callable[[Any, Any], Any],
        actions: Sequence[Any],
        distribution: Discrete | Gaussian,
        baseline: int,
        baseline_reward: float | None = None,
        *,
        value: Any = None,
        cost: Any = None,
    ) -> Decision:
        """Choose one of this round's actions, from a distribution of the hidden context.

        It is `decide` with what follows from the distribution: the expected features, and what
        else the agent can use of it. Of a `gb.Discrete`, the support and its weights. Of a
        `gb.Gaussian`, the covariance, where a chance is promised. Of `gb.Samples`, nothing more:
        draws do not tell which other contexts are possible. If they are all there are, give them
        as a `gb.Discrete`.

        Parameters
        ----------
        feature_map
            (action, context) -> its features: all `dim`, or those of the task, or a dict by name;
            affine in the context for a `gb.Gaussian`.
        actions
            The actions on offer, of any kind.
        distribution
            `gb.Discrete`, `gb.Samples` or `gb.Gaussian`: what is known about the hidden context.
        baseline, baseline_reward
            As for `decide`; the baseline, and the action decided on, are positions in `actions`.
        value, cost
            As for `decide`.
        """
        request = self._reader.read_from(
            feature_map, actions, distribution, baseline, baseline_reward, value, cost
        )
        return self._decide(request)

    def decide_many(
        self,
        features: Sequence[Any],
        baselines: Sequence[Any],
        baseline_rewards: Any = None,
        *,
        supports: Any = None,
        weights: Any = None,
        covariances: Any = None,
        labels: Any = None,
        values: Any = None,
        costs: Any = None,
    ) -> list[Decision]:
        """Decide for a batch of requests that all rely on what is known now.

        Every request is checked before the first is decided: an error changes nothing.

        Parameters
        ----------
        features
            One table of features per request, each as for `decide`; they may differ in length.
        baselines
            The row, or the label, of the baseline's action in each.
        baseline_rewards
            Its expected reward in each, or None where it is not known; None: nowhere.
        supports, weights, covariances, labels, values, costs
            What `decide` takes beside them, one for each request; None: for none.
        """
        batches = self._reader.read_batches(
            features,
            baselines,
            baseline_rewards,
            supports,
            weights,
            covariances,
            labels,
            values,
            costs,
        )
        return self._decide_all(batches)

    adecide_many = awaitable(decide_many)
    """As `decide_many`, for event loops: `await` it."""

    def _decide(self, request: Request) -> Decision:
        group, m = self._group, self._number
        with group.lock:
            if group.watches[m].turn or group.budget is not None:
                group.check((request,), m)
            made = group.decide(m, request)
        if self._hooks.on_decision:
            self._hooks.decided([made])
        return made

    def _decide_all(self, batches: Sequence[Batch]) -> list[Decision]:
        group, m = self._group, self._number
        with group.lock:
            group.check([request for batch in batches for request in batch.requests], m)
            made = [each for batch in batches for each in decide_batch(group, m, batch)]
        return self._hooks.decided(made)

    def outlook(self) -> Outlook:
        """Return whether the agent will leave the baseline, what is in its way and what helps.

        It is rough, computed from the menus seen lately in a fraction of a second.
        """
        with self._group.lock:
            past = self._group.past(self._number)
        return outlook_of(past)

    def uplift(self, level: float = LEVEL) -> Uplift:
        """Return what the agent's choices earn over the baseline, per round, by rewards alone.

        It needs a `holdback`, no model and no `baseline_reward`. The interval holds at all times
        together with probability `level`, if neither whether nor when a reward comes depends on
        the reward or on what was played.
        """
        return self._group.uplift([self._number], level)

    def save(self, path: str | Path) -> Path:
        """Write everything the agent knows, pending decisions included, to one file."""
        return save_group(self._group, path)

    @classmethod
    def from_file(cls, path: str | Path) -> Agent:
        """Return the agent that an `agent.toml` describes, as `guardband study` writes it.

        `learn` refuses the rows of logs that the study has looked at.
        """
        file = read_agent_file(path)
        agent = cls(**file.arguments)
        agent._group.looked_at = file.looked_at
        return agent

    @classmethod
    def load(cls, path: str | Path) -> Agent:
        """Return the agent that was saved; its decisions go on as if nothing had happened."""
        group = load_group(path)
        if group.names != ("agent",):
            raise InvalidValueError(
                f"{path} holds the tasks {list(group.names)}: use gb.Fleet.load."
            )
        return cls._of(group, 0)
