"""The guarded router as a custom routing strategy of LiteLLM.

`python litellm_router.py` serves the sample in recorded.jsonl through a `litellm.Router`. Its
provider answers from the recording: nothing is called over the network, and no key is needed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it goes online

import litellm
import numpy as np
from litellm.router import CustomRoutingStrategyBase
from litellm.types.router import Deployment
from litellm.types.utils import ModelResponse
from router import GuardedRouter
from traffic import ATLAS, ELM, MODELS, SAMPLE, Model, Prompt, cheap_features, prompts

import guardband as gb

GROUP = "answers"  # the model that clients ask LiteLLM for
FALLBACK = "fallback"  # and whom LiteLLM turns to where a model does not answer
PILOT = 12_000


class GuardedStrategy(CustomRoutingStrategyBase):
    """Chooses the deployment of every request; requests name themselves, to be graded later.

    Parameters
    ----------
    router
        LiteLLM's router.
    guarded
        Which of the models is asked.
    """

    def __init__(self, router: litellm.Router, guarded: GuardedRouter) -> None:
        self.router, self.guarded = router, guarded
        self.decisions: dict[str, gb.Decision] = {}

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return the deployment of the cheapest model that is good enough for these messages."""
        if model != GROUP:  # LiteLLM turned to its fallback: nothing is left to decide
            return next(each for each in self.router.model_list if each["model_name"] == model)
        text = " ".join(str(message["content"]) for message in messages or [])
        prompt = Prompt(text, *cheap_features(text), grades={})
        chosen, decision = self.guarded.route(prompt)
        request = ((request_kwargs or {}).get("metadata") or {}).get("request")
        if request is None:  # nobody will be able to grade it
            self.guarded.not_graded(decision)
        else:
            self.forget(request)  # a retry: the earlier answer never came
            self.decisions[request] = decision
        return self.router.get_deployment(model_id=chosen.name).to_json(exclude_none=True)

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Do the same; a decision takes microseconds, so it may well block."""
        return self.get_available_deployment(
            model, messages, input, specific_deployment, request_kwargs
        )

    def answered(self, request: str, response: ModelResponse) -> None:
        """Note who answered: where LiteLLM fell back on another model, the grade will be its own.

        That a model did not answer must say nothing about the quality of answers to this prompt.
        """
        decision, name = self.decisions[request], str(response.model).rpartition("/")[2]
        if self.guarded.models[decision.action].name != name:
            self.guarded.overridden(decision, name)

    def join(self, model: Model) -> None:
        """Offer a model from now on, to LiteLLM and to the guarded router."""
        self.router.add_deployment(Deployment(**deployment(model)))
        self.guarded.join(model)

    def graded(self, request: str, grade: float) -> None:
        """Learn the grade of a request's answer."""
        self.guarded.graded(self.decisions.pop(request), grade)

    def forget(self, request: str) -> None:
        """Give up waiting for a grade."""
        decision = self.decisions.pop(request, None)
        if decision is not None:
            self.guarded.not_graded(decision)


class RecordedAnswers(litellm.CustomLLM):
    """A provider that has all answers in a recording."""

    def __init__(self, lines: Iterable[dict[str, Any]]) -> None:
        super().__init__()
        self.answers = {line["prompt"]: line["answers"] for line in lines}
        self.broken: set[str] = set()  # models that do not answer

    def completion(self, model: str, messages: list[Any], *_: Any, **given: Any) -> ModelResponse:
        """Return the recorded answer."""
        response: ModelResponse = given["model_response"]
        if model in self.broken:
            raise litellm.CustomLLMError(503, f"{model} does not answer")
        response.model = model
        text = self.answers[messages[-1]["content"]][model]
        response.choices[0].message.content = text  # type: ignore[union-attr]
        return response

    async def acompletion(self, *args: Any, **given: Any) -> ModelResponse:
        """Return the recorded answer."""
        return self.completion(*args, **given)


def deployment(model: Model, group: str = GROUP) -> dict[str, Any]:
    """Return a model as LiteLLM lists it."""
    return {
        "model_name": group,
        "litellm_params": {"model": f"recorded/{model.name}"},
        "model_info": {"id": model.name if group == GROUP else f"{group} {model.name}"},
    }


def serving(lines: Iterable[dict[str, Any]], models: Iterable[Model]) -> GuardedStrategy:
    """Return a strategy that is in charge of a LiteLLM router, with what a pilot taught."""
    offered = list(models)
    provider = {"provider": "recorded", "custom_handler": RecordedAnswers(lines)}
    litellm.custom_provider_map = [provider]  # type: ignore[list-item]
    litellm.utils.custom_llm_setup()
    router = litellm.Router(
        model_list=[*map(deployment, offered), deployment(offered[0], FALLBACK)],
        fallbacks=[{GROUP: [FALLBACK]}],  # where a model does not answer, the best one does
        num_retries=0,
        disable_cooldowns=True,
    )
    guarded, rng = GuardedRouter(offered), np.random.default_rng(1)
    asked = prompts(seed=11, count=PILOT)
    guarded.learn((prompt, offered[rng.integers(len(offered))]) for prompt in asked)
    strategy = GuardedStrategy(router, guarded)
    router.set_custom_routing_strategy(strategy)
    return strategy


async def serve(strategy: GuardedStrategy, lines: list[dict[str, Any]]) -> list[Model]:
    """Answer every prompt, and return who was asked; every fifth answer is graded afterwards."""
    asked = []
    for number, line in enumerate(lines):
        response = await strategy.router.acompletion(
            model=GROUP,
            messages=[{"role": "user", "content": line["prompt"]}],
            metadata={"request": str(number)},
        )
        strategy.answered(str(number), response)
        text = response.choices[0].message.content
        asked.append(next(m for m in MODELS if line["answers"][m.name] == text))
    for number, (line, model) in enumerate(zip(lines, asked, strict=True)):
        if number % 5 == 0:
            strategy.graded(str(number), line["grades"][model.name])
        else:
            strategy.forget(str(number))
    return asked


def main() -> None:
    """Serve the sample twice, before and after a model has joined."""
    lines = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
    strategy = serving(lines, MODELS[: MODELS.index(ELM)])
    words = [cheap_features(line["prompt"])[0] for line in lines]

    def report(title: str, asked: list[Model]) -> None:
        cost = sum(model.cost(count) for model, count in zip(asked, words, strict=True))
        counts = Counter(model.name for model in asked)
        print(
            f"{title}: {cost:.1f} cents,", ", ".join(f"{n} {k}" for k, n in sorted(counts.items()))
        )

    report("always the best", [ATLAS] * len(lines))
    report("the cheapest of four that is good enough", asyncio.run(serve(strategy, lines)))
    strategy.join(ELM)
    strategy.guarded.learn((prompt, ELM) for prompt in prompts(seed=12, count=2_000))  # in shadow
    report("after elm has joined", asyncio.run(serve(strategy, lines)))


if __name__ == "__main__":
    main()
