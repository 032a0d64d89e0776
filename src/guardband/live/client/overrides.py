"""Overrides of a live agent's decisions: somebody played another action, which is learned instead.

What a decision's reward will be learned with is exchanged in the journal: the features of the
action that was played, and the weight and the prediction that it had when the decision was made.
"""

from __future__ import annotations

from guardband.agent import Awaited, Recall
from guardband.checks import check_whole
from guardband.errors import InvalidValueError, UnknownDecisionError
from guardband.live.client.agent_state import AgentState
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.decisions import worth_of
from guardband.live.client.journal import StoredDecision
from guardband.live.client.outcomes import find_stored
from guardband.live.client.replay import rebuild

__all__ = ["override"]

EXCHANGE = """
    UPDATE main.decision SET override = ?, x = ?, guess = ?, weight = ?, declared = ?, lower = ?,
           value = ?, cost = ?, lead = NULL, share = NULL, predicted = NULL WHERE seq = ?
"""


def override(store: AgentStore, decision_id: str, action: int) -> None:
    """Let a decision stand for another action of its menu, as it stood when it was made.

    Parameters
    ----------
    store
        The agent's state and journal.
    decision_id
        A decision that waits for its reward.
    action
        The row of what was played.
    """
    k = check_whole("action", action, 0)
    with store as state:
        made = _waiting(store, state, decision_id)
        recall = _recall(store, state, decision_id, made)
        request = recall.request
        actions = request.menu.shape[1]
        if k >= actions:
            raise InvalidValueError(f"action {k} is not one of the {actions} actions.")
        awaited = state.learner.instead(recall, k, bool(made.careful))
        cost = _exchanged(state, decision_id, made, recall, k)
        store.put_spending()
        store.journal.query(EXCHANGE, _row(awaited, worth_of(request, k), cost, k, made.seq))
        state.fresh.pop(decision_id, None)  # it is out of date
        if made.override is None:
            store.journal.count(state.stream_id, "overridden")


def _waiting(store: AgentStore, state: AgentState, decision_id: str) -> StoredDecision:
    """Return a decision that has neither a reward nor ended, or say why there is none."""
    ours, made = find_stored(store, state, decision_id)
    if not ours:
        raise UnknownDecisionError(
            f"{decision_id!r} is no decision of task {store.setup.task!r} in "
            f"{store.path.parent}: give the id of one of its own."
        )
    over = made is None or store.clock.now() >= made.at + state.space.rewards.window_s
    if made is None or over or made.ended is not None:
        raise UnknownDecisionError(
            f"decision {decision_id!r} has its reward, or has ended: override comes before observe."
        )
    return made


def _recall(store: AgentStore, state: AgentState, decision_id: str, made: StoredDecision) -> Recall:
    """Return what was known at a decision: as it is remembered, or from the journal."""
    found = state.recalls.find(decision_id)
    if found is not None:
        return found
    try:
        return rebuild(store.journal, made.seq).recall()
    except LookupError as error:
        raise InvalidValueError(
            f"decision {decision_id!r} cannot be overridden any more: {error} Use discard(...), "
            "which learns nothing from it."
        ) from None


def _exchanged(
    state: AgentState, decision_id: str, made: StoredDecision, recall: Recall, k: int
) -> float | None:
    """Pay for action k in place of what was decided; return what the decision is charged with."""
    spending, charged = state.spending, made.cost
    if spending is None or charged is None:
        return charged
    if made.seq <= state.account.since and spending.costs(recall.request)[0][k] <= charged:
        return charged  # what a copied journal paid before the copy is not its own to save
    return spending.pay_instead(decision_id, charged, recall.request, k)


def _row(
    awaited: Awaited, value: float | None, cost: float | None, k: int, seq: int
) -> tuple[int | float | bytes | None, ...]:
    x, guess, weight = awaited.x.tobytes(), awaited.guess, awaited.weight
    return (k, x, guess, weight, awaited.declared, awaited.lower, value, cost, seq)
