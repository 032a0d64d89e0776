"""The prompts, the models and the recorded answers of this example, all of them made up.

`python traffic.py` writes recorded.jsonl, the sample that the LiteLLM example answers from. The
comparison needs more prompts than one wants in a repository, and makes them from a seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

SAMPLE = Path(__file__).parent / "recorded.jsonl"
LONGEST, MOST_CUES = 100, 3  # words and cues beyond these count no further
GRADE_ERROR = 0.03  # a grade is never farther than this from the expected quality
ANSWER = 150  # words of a typical answer; they are paid for like those of the prompt

TASKS = (
    "Translate the note into French",
    "Summarise the message below",
    "Write a polite reply",
    "List the dates in the text",
    "Name the city in this sentence",
    "Rewrite the paragraph in plain words",
    "Draft a short product description",
)
CUES = ("Prove every step.", "Compare the alternatives.", "Explain why it holds.")
CUE_WORDS = re.compile(r"\b(prove|compare|explain)\b", re.IGNORECASE)
FILLERS = (
    "The delivery came on Tuesday and the box was open.",
    "Our office in Porto closes at six in the evening.",
    "She ordered two lamps and a small green chair.",
    "The train to Lyon was late again this morning.",
    "Please keep the tone friendly and rather short.",
    "The report covers the months from March to June.",
    "A neighbour found the keys near the old bridge.",
    "The menu lists soup, bread and a glass of cider.",
)


@dataclass(frozen=True)
class Model:
    """A language model: what it costs, and how good its answers are, which no router knows."""

    name: str
    price: float  # of 1,000 words, in cents
    quality: tuple[float, float, float]  # of the easiest prompt; lost with length; with reasoning

    def cost(self, words: int) -> float:
        """Return what a prompt of so many words and its answer cost; known beforehand."""
        return self.price * (words + ANSWER) / 1_000

    def expected_quality(self, words: int, cues: int) -> float:
        """Return the mean grade of the answers to such prompts."""
        easy, length, reasoning = self.quality
        return easy - length * words / LONGEST - reasoning * cues / MOST_CUES


# The first is the best, and the baseline. The last joins later.
ATLAS = Model("atlas", 5.00, (0.95, 0.03, 0.05))
BIRCH = Model("birch", 1.25, (0.95, 0.05, 0.17))
CEDAR = Model("cedar", 0.40, (0.94, 0.12, 0.35))
DWARF = Model("dwarf", 0.10, (0.86, 0.20, 0.40))
ELM = Model("elm", 0.60, (0.945, 0.04, 0.10))
MODELS = (ATLAS, BIRCH, CEDAR, DWARF, ELM)


@dataclass(frozen=True)
class Prompt:
    """A prompt, what is seen in it at a glance, and the grade of every model's recorded answer."""

    text: str
    words: int
    cues: int
    grades: dict[str, float]


def cheap_features(text: str) -> tuple[int, int]:
    """Return how many words a prompt has, and how many cues that it needs reasoning."""
    words, cues = len(text.split()), len(CUE_WORDS.findall(text))
    return min(words, LONGEST), min(cues, MOST_CUES)


def prompts(seed: int | Generator, count: int) -> Iterator[Prompt]:
    """Yield prompts with the grades of all models' answers; the same seed, the same prompts."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        text = _text(rng)
        words, cues = cheap_features(text)
        off = rng.uniform(-GRADE_ERROR, GRADE_ERROR, len(MODELS))
        grades = {
            model.name: model.expected_quality(words, cues) + error
            for model, error in zip(MODELS, off.tolist(), strict=True)
        }
        yield Prompt(text, words, cues, grades)


def _text(rng: Generator) -> str:
    parts = [TASKS[rng.integers(len(TASKS))] + "."]
    length = rng.integers(8, LONGEST - 10)
    while sum(len(part.split()) for part in parts) < length:
        parts.append(FILLERS[rng.integers(len(FILLERS))])
    cues = int(rng.choice(MOST_CUES + 1, p=[0.45, 0.25, 0.18, 0.12]))
    return " ".join([*parts, *CUES[:cues]])


def answer(prompt: str, model: str) -> str:
    """Return the recorded answer of a model: in this example a stand-in for one."""
    return f"[{model}] {prompt.split('.', maxsplit=1)[0]}: done."


def main() -> None:
    """Write the sample."""
    with SAMPLE.open("w") as file:
        for prompt in prompts(seed=7, count=60):
            answers = {model.name: answer(prompt.text, model.name) for model in MODELS}
            grades = {name: round(grade, 3) for name, grade in prompt.grades.items()}
            line = {"prompt": prompt.text, "answers": answers, "grades": grades}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
