"""Fig. 3c: three models of the reward noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from guardband.lab import judge
from guardband.lab.kinds import PaperPanel
from guardband.lab.panel import Claim, Findings, Order, Run
from guardband.lab.settings import Row, Setting, shown_name
from guardband.problems import GaussianNoise, RewardNoise, StudentNoise, TwoPointNoise

__all__ = ["LITTLE", "PANEL"]

LITTLE = 0.01  # of the regret under Gaussian noise
QUIET = 1e-3  # the reward noise of the notebooks


@dataclass(frozen=True, kw_only=True)
class Panel3c(PaperPanel):
    """DiSC-UCB under Student's t, a rare large gain, and the normal distribution."""

    def runs(self, order: Order) -> Sequence[Run]:
        """Return DiSC-UCB and Guard-UCB under each; the Gaussian last."""
        runs = []
        for name in ("disc-ucb", "guard-ucb", *order.extra):
            for told, setting in self._settings(order):
                gate = {"gate": setting.gate} if name == "disc-ucb" else {}
                algorithm = setting.make(name, **gate)
                runs.append(setting.run(algorithm, f"{shown_name(algorithm.name)} ({told})"))
        return list({run.label: run for run in runs}.values())

    def claims(self, order: Order, found: Findings) -> Sequence[Claim]:
        """Judge that it matters little which noise there is."""
        text = (
            "The noise models differ little in DiSC-UCB's regret (here: by 1 % of it; the paper's "
            "picture has 0.6)"
        )
        return [judge.alike(self._id("alike"), text, list(found.values())[:3], LITTLE)]

    def _settings(self, order: Order) -> Iterator[tuple[str, Setting]]:
        std = 1.0 if order.printed else QUIET
        models: dict[str, RewardNoise] = {
            "Student t": StudentNoise(std, df=3.0),
            "two-point": TwoPointNoise(std, gamma=0.5),
            "Gaussian": GaussianNoise(std),
        }
        for told, model in models.items():
            yield told, replace(self.row, rewards=model).read(order)


PANEL = Panel3c(
    name="3c",
    title="Does the kind of noise matter?",
    question="Does DiSC-UCB's regret depend on the distribution of the reward noise?",
    source="compare_noise",
    row=Row(
        problem="synthetic-b",
        agents=3,
        alpha=0.5,
        baseline=5,
        ridge=0.1,
        noise=1.0,
        psi_variance=1e-2,
        rounds=20_000,
        trials=100,
        notebook={"noise": 0.1},
        chosen=(
            "The text tells M, α, the baseline's rank, the trials and the three models, "
            "standardised to variance 1. Chosen here: synthetic B with its λ, 20,000 rounds, "
            "Student's t with 3 degrees of freedom, γ = 0.5, and R = 1, the noise's deviation. "
            "The notebook is not public; its column has R = 0.1 and noise of deviation 0.001, as "
            "all notebooks that are.",
        ),
    ),
)
