"""Why an agent decided as it did: the codes that are stored and sent, and their sentences."""

from __future__ import annotations

from functools import lru_cache

__all__ = [
    "CHOSEN",
    "CONSERVATIVE",
    "HELD_BACK",
    "MEASURED",
    "REASONS",
    "REMEDIES",
    "first_code",
    "promise_shown",
    "sentence",
]

# The agent played what it found best, or had no data to find anything.
CHOSEN = {
    "learned": "the most promising of the actions that are certified to clear the floor",
    "certified": "the most promising action of all is certified to clear the floor",
    "itself": "the most promising action of all is the baseline",
    "no-data": (
        "nothing was observed yet, or nothing since it started anew: this action is safe without "
        "any data"
    ),
    "free": "the most promising action; there is no constraint",
    "always": "always the baseline",
}
# A coin decided, whatever the agent had chosen.
MEASURED = {
    "holdback": (
        "held back by a coin of its own (holdback): the baseline is played to measure what the "
        "agent's choices earn"
    ),
}
# The agent was careful, because of what is not known yet.
CONSERVATIVE = {
    "careful": (
        "the most promising action is not certified yet: a certified one that teaches about it is "
        "played"
    ),
    "stuck": (
        "too little is known yet to certify the most promising action, and no certified action "
        "teaches enough about it in this round: playing it safe, by another certified action or "
        "the baseline; if that lasts, agent.outlook() says what would help"
    ),
    "trial": (
        "a trial: certified actions tell too little about the most promising one, and the budget "
        "for trials covers the most that it can fall short by"
    ),
    "spent": (
        "what exploration may cost (max_loss) is spent: playing certified actions from now on"
    ),
    "refuted": (
        "no parameter explains the observations and gives every action on the menu an expected "
        "reward in its range: an assumption is wrong, so the baseline is played"
    ),
    "alarmed": (
        "after an alarm the baseline is played, until it is clear what happened; agent.health says "
        "what was noticed, and agent.resume() ends it"
    ),
    "gate": (
        "too little is known yet: lambda_min(V) has not reached what the gate asks for; "
        "it opens as rewards come in (gate='none' does without it)"
    ),
    "empty": "no action is certified to clear the floor yet",
    "no-baseline-reward": (
        "the baseline's reward is not above zero, so no fraction of it can be promised"
    ),
    "no-reward-floor": (
        "the unknown baseline's gate needs a positive lower bound on its reward: "
        "pass reward_floor=...; disc-ucb can also use baseline_reward=... in each round"
    ),
}
# A live agent was allowed nothing but the baseline.
HELD_BACK = {
    "no-config": "the coordinator has not sent this space's settings yet: playing the baseline",
    "paused": "learning is paused",
    "lease": "the coordinator was not reached for too long: the exploration lease has expired",
    "shadow": "shadow mode plays the baseline",
    "compiling": (
        "the kernels are still being compiled, and among so many actions and features none is "
        "chosen without them: playing the baseline"
    ),
}
# What can be added to any of them, as in "certified+alarm".
ADDED = {
    "value": "actions are compared by the value that was given",
    "alarm": "the reported baseline rewards contradict the observations and are no longer used",
    "assumptions": "an alarm was raised: rewards contradict one linear, lasting parameter",
    "certificates": "an alarm was raised: learned plays earned less than was certified",
    "fit": "an alarm was raised: this task's rewards contradict those that tasks have pooled",
    "followed": "the task started anew because its pool did",
}
REASONS = CHOSEN | MEASURED | CONSERVATIVE | HELD_BACK | ADDED
# What an operator can do about the reasons for which an agent held back.
REMEDIES = {
    "careful": "Nothing to do: it becomes rarer as rewards come in.",
    "stuck": "Where it lasts, agent.outlook() says what would help: logs, say, or other features.",
    "trial": "Nothing to do: trials end when the target is certified or the budget is spent.",
    "spent": "Nothing to do; a larger max_loss lets it explore further.",
    "refuted": "Check features, noise and theta_bound, and that expected rewards are in [0, 1].",
    "alarmed": "Look at agent.health and at what changed; agent.resume() lets it go on.",
    "gate": "Nothing to do: it opens as rewards come in.",
    "empty": "Nothing to do: it becomes rarer as rewards come in.",
    "no-baseline-reward": "Give decide() a baseline that earns something.",
    "no-reward-floor": (
        "Set the reward_floor of the space; disc-ucb can also use decide()'s baseline_reward=... ."
    ),
    "no-config": "Check that the agent can reach the coordinator.",
    "paused": "Resume learning.",
    "lease": "Check that the agent can reach the coordinator.",
    "shadow": "Start the agent without shadow=True.",
    "compiling": "Wait a minute or two; `guardband warmup` compiles ahead, for images.",
}


def first_code(code: str) -> str:
    """Return what comes first in a code: "careful+value" is careful."""
    return code.partition("+")[0]


@lru_cache(maxsize=256)
def sentence(code: str) -> str:
    """Return the sentence for a code, or for several joined by a plus sign.

    A code that this version does not know, as in the journal of a newer one, is shown as it is.
    """
    return "; ".join(REASONS.get(part, part) for part in code.split("+"))


def promise_shown(promise: str, certificate: str) -> str:
    """Return the promise as users see it: "baseline" where journals say "play" of the baseline.

    The baseline needs no certificate: that it is the baseline is what is promised about it.
    """
    return "baseline" if (promise, certificate) == ("play", "baseline") else promise
