"""A summary in words: the four answers that operators look for, and a line on every task.

The dashboard and `guardband status` show the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

from guardband.live.protocol.space import SpaceSettings
from guardband.live.server.replies import (
    AgentReply,
    AlertReply,
    AnswerReply,
    SummaryReply,
    UpliftReply,
)
from guardband.live.server.words import (
    as_sentence,
    chance,
    count,
    known,
    margin,
    percent,
    short,
    signed,
    span,
)

__all__ = ["GONE", "in_words", "named"]

UNTOLD = "baseline reward not reported"
GONE = ("quarantined", "retracted", "ended")
Answer = Callable[..., AnswerReply]


def in_words(summary: SummaryReply) -> SummaryReply:
    """Return a summary with what it says in words."""
    space = summary.config
    agents = [_with_notes(each, space, summary.now) for each in summary.agents]
    judged = [each for each in agents if each.state not in GONE]
    answers = [
        _safe(summary, judged),
        _earns(summary, judged),
        _learns(summary, judged),
        _runs(summary, judged),
    ]
    return summary.model_copy(update={"agents": agents, "answers": answers})


def named(alert: AlertReply) -> str:
    """Return an alert in a sentence; a task keeps its name as it is."""
    if alert.task is None:
        return as_sentence(alert.text)
    return f"{alert.task}: {alert.text}{'' if alert.text[-1:] in '.!?' else '.'}"


def _with_notes(agent: AgentReply, space: SpaceSettings, now: float) -> AgentReply:
    notes = [_not_started(agent, space, now), _worth_text([agent]), _cost_text([agent], space)]
    return agent.model_copy(
        update={
            "unjudged": _unjudged(agent, space),
            "notes": [note for note in notes if note is not None],
            "uplift_text": _uplift_text(agent.uplift) or "",
        }
    )


def _total(agents: Iterable[AgentReply], *counters: str) -> int:
    return sum(agent.counters.get(name, 0) for agent in agents for name in counters)


def _sum(agents: Iterable[AgentReply], name: str) -> float:
    return sum(agent.sums.get(name, 0.0) for agent in agents)


def _counted(agent: AgentReply) -> int:
    return _total([agent], "observed", "defaulted")


def _not_started(agent: AgentReply, space: SpaceSettings, now: float) -> str | None:
    """Say when the first decision of a task counts, where none has; None: it has begun."""
    if _counted(agent) or agent.sums.get("logged") or not _total([agent], "decisions"):
        return None
    at = agent.gauges.get("counts_at")
    if at is None:
        return "not started: 0 counted"
    if space.rewards.order == "prompt":
        return "not started: 0 counted, the first counts when its reward comes"
    clock = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    left = f" (in {span(at - now)})" if at > now else ""
    return f"not started: 0 counted, the first counts at {clock}{left}, when its window ends"


def _unjudged(agent: AgentReply, space: SpaceSettings) -> str | None:
    """Say why an agent's rewards are not compared with its floor; None: they are."""
    if agent.lead_mean is not None:
        return None
    if agent.counters.get("untold"):
        return UNTOLD
    if "lead" not in agent.sums and _counted(agent) and space.sync.min_batch > 1:
        return "with the next upload"
    return "too few rewards"


def _uplift_text(uplift: UpliftReply | None) -> str | None:
    """Say what the holdback measured; None: there is none, or no reward yet."""
    if uplift is None:
        return None
    return (
        f"{signed(uplift.low)} to {signed(uplift.high)} per decision over the baseline, measured "
        f"by {count(uplift.rounds)} rewards and the holdback's coin alone (95 %, at all looks "
        "together)."
    )


def _worth(agents: Sequence[AgentReply]) -> tuple[float, float] | None:
    """Return what decisions were worth to the caller on average, and what the baselines were."""
    n = _sum(agents, "valued")
    return (_sum(agents, "value") / n, _sum(agents, "baseline_value") / n) if n > 0 else None


def _worth_text(agents: Sequence[AgentReply]) -> str | None:
    found = _worth(agents)
    if found is None:
        return None
    return f"value {short(found[0])} per decision, baseline {short(found[1])}"


def _cost_text(agents: Sequence[AgentReply], space: SpaceSettings) -> str | None:
    """Say what was spent of the budget for costs, of which each task has its own."""
    if space.budget is None or not agents:
        return None
    spent, total = _sum(agents, "cost"), space.budget.total * len(agents)
    return f"cost {short(spent)} of {short(total)}"


def _safe(summary: SummaryReply, agents: Sequence[AgentReply]) -> AnswerReply:
    ask: Answer = partial(_answer, "Is it safe?")
    least = _least_margin(agents)
    pages = [alert for alert in summary.alerts if alert.severity == "page"]
    if least is not None and least < 0.0:
        return ask("bad", "No", margin(least), "An action was played that no certificate covers.")
    if pages:
        return ask("bad", "Look now", f"{len(pages)} urgent", named(pages[0]))
    if summary.paused is not None:
        text = "Learning is paused: only the baseline is played."
        return ask("good", "Yes", "paused", text)
    if not _total(agents, "decisions"):
        return ask("wait", "Not yet", "", "Nothing has been decided yet.")
    if not _total(agents, "learned", "explored", "trial"):
        text = "Nothing but the baseline has been played yet."
        return ask("good", "Yes", "baseline only", text)
    return _certified(summary, agents, ask)


def _least_margin(agents: Sequence[AgentReply]) -> float | None:
    margins = [each.gauges["margin_min"] for each in agents if "margin_min" in each.gauges]
    return min(margins, default=None)


def _certified(summary: SummaryReply, agents: Sequence[AgentReply], ask: Answer) -> AnswerReply:
    """Say what is certain of actions that were not the baseline's."""
    learned, explored, trials = (_total(agents, kind) for kind in ("learned", "explored", "trial"))
    least = _least_margin(agents)
    reused = max((each.gauges.get("reused", 0.0) for each in agents), default=0.0)
    if reused:
        text = (
            f"{count(reused)} rows of logs were learned that had been looked at when the agents "
            "were set up. Certificates rest on them, so the chance that one is wrong may be more "
            f"than {chance(summary.delta)}."
        )
        return ask("look", "Not promised", "rows used twice", text)
    said = [f"{count(learned)} learned decisions, each sure beforehand to clear its floor."]
    if least is not None:
        said.append(f"The closest of the latest cleared it by {margin(least)}.")
    if explored:
        text = "more were drawn by a coin; on average it clears the floor."
        said.append(f"{count(explored)} {text}")
    if trials:
        said.append(f"{count(trials)} more were trials, charged to their budget.")
    said.append(
        "If what the space states is true, the chance that any certificate is wrong is at most "
        f"{chance(summary.delta)}."
    )
    return ask("good", "Yes", "every learned action was certified", " ".join(said))


def _earns(summary: SummaryReply, agents: Sequence[AgentReply]) -> AnswerReply:
    rest, found = _rewards(summary, agents), _worth(agents)
    cost = _cost_text(agents, summary.config)
    spent = "" if cost is None else f" {as_sentence(cost)}"
    if found is None:
        return rest.model_copy(update={"text": rest.text + spent})
    # Where actions have values, rewards only have to clear the floor.
    over, worth = found[0] - found[1], as_sentence(_worth_text(agents) or "")
    text = f"{worth}{spent} Rewards: {rest.figure or rest.word}. {rest.text}"
    if rest.level == "bad":
        return rest.model_copy(update={"text": text})
    figure = f"{signed(over)} of value over the baseline"
    level, word = ("good", "Yes") if over > 0 else ("wait", "Not yet")
    return _answer(rest.question, level, word, figure, text)


def _rewards(summary: SummaryReply, agents: Sequence[AgentReply]) -> AnswerReply:
    ask: Answer = partial(_answer, "Does it earn?")
    measured, uplift = _uplift_text(summary.uplift), summary.uplift
    if measured is not None and uplift is not None:
        holdback = summary.config.holdback
        share = f"One decision in {count(1.0 / holdback)} plays" if holdback else "The coin plays"
        text = f"Choices earn {measured} {share} the baseline to compare with."
        figure = f"{signed(uplift.mean)} over the baseline"
        return ask(*_sure(uplift.low, uplift.high), figure, text)
    if summary.lead_mean is None or summary.lead_halfwidth is None:
        whys = dict.fromkeys(filter(None, (_unjudged(each, summary.config) for each in agents)))
        text = as_sentence("; ".join(whys) or "too few rewards")
        if UNTOLD in whys:
            command = f"guardband space set {summary.space} holdback=0.05"
            text += f" A holdback measures what choices earn without it: {command}."
        return ask("wait", "Not known", "", text)
    mean, half = summary.lead_mean, summary.lead_halfwidth
    n = sum(each.sums.get("counted", _counted(each)) for each in agents if "reward" in each.sums)
    reward = _sum(agents, "reward")
    base = sum(
        each.sums.get("floor", 0.0) / (1.0 - each.alpha) for each in agents if each.alpha < 1
    )
    whole = all(each.alpha < 1 for each in agents) and base > 0
    beside = f": {signed(100 * (reward / base - 1), 0)} % beside the baseline" if whole else ""
    text = (
        f"Mean reward {reward / max(n, 1):.3f} of {count(n)} rewards{beside}. "
        f"99 % interval of the lead: {signed(mean - half)} to {signed(mean + half)}."
    )
    return ask(*_sure(mean - half, mean + half), f"{signed(mean)} over the floor", text)


def _sure(low: float, high: float) -> tuple[str, str]:
    if low > 0:
        return "good", "Yes"
    return ("bad", "No") if high < 0 else ("wait", "Not sure yet")


def _learns(summary: SummaryReply, agents: Sequence[AgentReply]) -> AnswerReply:
    ask: Answer = partial(_answer, "Does it learn?")
    if summary.paused is not None:
        return ask("wait", "Paused", "", f"Paused: {summary.paused}")
    decided = _total(agents, "decisions")
    if not decided:
        return ask("wait", "Not yet", "", "No decision has been made yet.")
    began = [each for each in agents if _not_started(each, summary.config, summary.now) is None]
    if not _total(began, "decisions"):
        first = min(agents, key=lambda each: each.gauges.get("counts_at", math.inf))
        text = as_sentence(_not_started(first, summary.config, summary.now) or "")
        return ask("wait", "Not started", f"0 of {count(decided)} decisions counted", text)
    return _progress(summary, agents, ask)


def _progress(summary: SummaryReply, agents: Sequence[AgentReply], ask: Answer) -> AnswerReply:
    """Say how far agents are that have begun to learn."""
    share, held = _learned_share(agents), _mean_gauge(agents, "conservative_recent")
    best = None if held is None else 1.0 - held
    figure = f"{percent(share)} other than the baseline"
    seen = count(sum(each.n for each in agents))
    text = (
        f"Lately {percent(1.0 - share)} of the decisions are the baseline's. {_choices(best)}"
        f"{seen} observations, pooled {count(summary.epoch)} times."
    )
    # Where the most promising action is the baseline itself, little else is played and all is well.
    if share >= 0.5 or (best is not None and best > 0.95):
        return ask("good", "Yes", figure, text)
    stuck = [each for each in agents if each.gauges.get("stuck") == 1.0]
    if stuck:
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        return ask("look", "Stuck", figure, f"{text} {stuck[0].task}{more}: {stuck[0].outlook}")
    if share < 0.05 and not any("stuck" in each.gauges for each in agents):
        return ask("wait", "Too early to say", figure, text)
    return ask("wait", "Getting there", figure, text)


def _mean_gauge(agents: Sequence[AgentReply], name: str) -> float | None:
    told = [each.gauges[name] for each in agents if known(each.gauges.get(name))]
    return sum(told) / len(told) if told else None


def _learned_share(agents: Sequence[AgentReply]) -> float:
    """Return the share of decisions that were not the baseline's: lately, where agents tell."""
    lately = _mean_gauge(agents, "learned_recent")
    if lately is not None:
        return lately
    return 1.0 - _total(agents, "baseline") / _total(agents, "decisions")


def _choices(best: float | None) -> str:
    """Say how many decisions are the most promising action."""
    if best is None:
        return ""
    if best > 0.95:
        return "Nearly all are the most promising action. "
    return (
        f"{percent(best)} are the most promising action; where that is not certified yet, "
        "a certified action that teaches about it is played. "
    )


def _runs(summary: SummaryReply, agents: Sequence[AgentReply]) -> AnswerReply:
    ask: Answer = partial(_answer, "Is the system running?")
    if not agents:
        return ask("wait", "Not yet", "", "No agent has joined yet.")
    stale = [each for each in agents if each.state == "stale"]
    heard = f"{len(agents) - len(stale)} of {len(agents)} agents"
    if len(stale) == len(agents):
        text = "No agent has been heard of lately. They go on alone, safely."
        return ask("bad", "No", heard, text)
    since = f"Pooled {span(summary.epoch_age_s)} ago." if summary.epoch else "Not pooled yet."
    # Where silence means that nothing happened, a default is a reward like others.
    silent = () if summary.config.rewards.silence == "default" else ("defaulted",)
    gone = _total(agents, "discarded", "lost", *silent)
    missing = f"{percent(gone / max(_total(agents, 'decisions'), 1))} of the rewards went missing."
    if strange := _total(agents, "orphan"):  # they came: no decision's reward is missing for it
        missing += f" {strange:,} came with an id of no decision."
    if stale:
        names = ", ".join(each.task for each in stale)
        return ask("look", "In part", heard, f"Not heard of lately: {names}. {since} {missing}")
    tickets = [alert for alert in summary.alerts if alert.severity == "ticket"]
    if tickets:
        return ask("look", "Look", heard, f"{named(tickets[0])} {since}")
    return ask("good", "Yes", heard, f"All heard of lately. {since} {missing}")


def _answer(question: str, level: str, word: str, figure: str, text: str) -> AnswerReply:
    return AnswerReply(question=question, level=level, word=word, figure=figure, text=text)
