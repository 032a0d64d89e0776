"""A task's budget among its journals: all of them together never get more, whatever happens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from live.memory_store import MemoryStore

from guardband.live.client.account import Part
from guardband.live.coordinator import budgets, restores
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.restores import note_restore
from guardband.live.protocol.messages import Account, Register
from guardband.live.protocol.space import SpaceSettings

BUDGET = 8.0


class JournalModel:
    """A journal as far as its budget goes."""

    def __init__(self, stream: str, spent: float = 0.0) -> None:
        self.stream, self.spent = stream, spent
        self.account, self.part = str(uuid.uuid4()), Part(spent, 0.0)

    def copy(self) -> JournalModel:
        return JournalModel(self.stream, self.spent)


def budgets_of(total: float) -> dict[str, Any]:
    """Settings with so much for trials, and so much for costs."""
    return {"trial_budget": total, "budget": {"total": total, "horizon": 10}}


class BudgetMachine(RuleBasedStateMachine):
    """Journals of one task that are opened, copied and used, and a coordinator that is restored."""

    journals = Bundle("journals")
    copied: Callable[[JournalModel], JournalModel] = JournalModel.copy
    asks, answers = "account", "granted"  # for trials

    def __init__(self) -> None:
        super().__init__()
        self.space = SpaceSettings(
            name="home", features=["a", "b"], agents=2, alpha=0.1, contexts="per-request"
        ).changed(**budgets_of(BUDGET))
        self.store = MemoryStore()
        self.coordinator = Coordinator(self.store)
        self.coordinator.create_space(self.space, who="test", now=0.0)
        self.charges: list[float] = []
        self.backup: Any = None
        self.now, self.largest, self.restored = 0.0, BUDGET, False

    @rule(target=journals)
    def open(self) -> JournalModel:
        return JournalModel(str(uuid.uuid4()))

    @rule(target=journals, one=journals)
    def copy(self, one: JournalModel) -> JournalModel:
        return type(self).copied(one)

    @rule(one=journals, share=st.sampled_from([0.5, 1.0]))
    def work(self, one: JournalModel, share: float) -> None:
        self.register(one)
        self.spend(one, share)

    def register(self, one: JournalModel) -> None:
        used = one.spent - one.part.spent_before
        account = Account(one.account, one.part.granted, used >= 0.5 * one.part.granted)
        request = Register(
            stream=one.stream,
            task="movies",
            schema_hash=self.space.schema_hash,
            uses=(0, 1),
            library="test",
            **{self.asks: account},
        )
        self.now += 1.0
        answer = self.coordinator.register("home", request, now=self.now)
        one.part = one.part.plus(getattr(answer, self.answers))

    def spend(self, one: JournalModel, share: float) -> None:
        charge = share * (one.part.most(self.space.allowance) - one.spent)
        if charge > 0.0:
            one.spent += charge
            self.charges.append(charge)

    @rule()
    def back_up(self) -> None:
        self.backup = self.store.snapshot()

    @precondition(lambda self: self.backup is not None)
    @rule()
    def restore(self) -> None:
        self.store.restore(self.backup)
        self.coordinator = Coordinator(self.store)
        with self.store.transaction("home") as t:  # as `guardband restore` does
            note_restore(t, "home", {"from": "a backup"}, who="test", now=self.now)
        self.restored = True

    @precondition(lambda self: not self.restored and self.backup is None)
    @rule(budget=st.sampled_from([2.0, BUDGET, 12.0]))
    def configure(self, budget: float) -> None:
        self.space = self.space.changed(**budgets_of(budget))
        self.coordinator.configure("home", self.space, who="test", now=self.now)
        self.largest = max(self.largest, budget)

    @invariant()
    def within_the_budget(self) -> None:
        assert sum(self.charges) <= self.largest * (1.0 + 1e-12)


class CostMachine(BudgetMachine):
    """The same with the budget for what plays cost."""

    asks, answers = "costs", "granted_costs"


QUICK = settings(max_examples=50, stateful_step_count=20, deadline=None)
HUNT = settings(
    max_examples=500,
    stateful_step_count=20,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("machine", [BudgetMachine, CostMachine])
def test_all_journals_together_stay_within_the_budget(machine: Any) -> None:
    run_state_machine_as_test(machine, settings=QUICK)


def a_copy_keeps_its_account(patch: pytest.MonkeyPatch) -> None:
    def kept(one: JournalModel) -> JournalModel:
        copy = one.copy()
        copy.account, copy.part = one.account, one.part
        return copy

    patch.setattr(BudgetMachine, "copied", staticmethod(kept))


def a_restore_forgets_grants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(restores, "close_budgets", lambda *_: None)
    patch.setattr(budgets, "close_budgets", lambda *_: None)


def half_of_the_budget_for_each(patch: pytest.MonkeyPatch) -> None:
    def grant(t: Any, space: SpaceSettings, task: str, account: Account, of: str) -> float:
        return 0.5 * (space.allowance or 0.0)

    patch.setattr("guardband.live.coordinator.coordinator.grant", grant)


def a_grant_that_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    real = budgets.grant

    def grant(t: Any, space: SpaceSettings, task: str, account: Account, of: str) -> float:
        granted = real(t, space, task, account, of)
        t.put_meta(f"{of} of {space.name}/{task}", "0.0")
        return granted

    patch.setattr("guardband.live.coordinator.coordinator.grant", grant)


@pytest.mark.parametrize(
    "bug",
    [
        a_copy_keeps_its_account,
        a_restore_forgets_grants,
        half_of_the_budget_for_each,
        a_grant_that_is_not_noted,
    ],
)
def test_the_model_finds_the_bug(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BudgetMachine, settings=HUNT)


@pytest.mark.parametrize("kind", [BudgetMachine, CostMachine])
def test_the_last_part_of_a_budget_is_granted_in_full(kind: Any) -> None:
    machine = kind()
    one = machine.open()
    for _ in range(20):
        machine.register(one)
        machine.spend(one, 1.0)
    assert sum(machine.charges) == pytest.approx(BUDGET)


def test_a_coordinator_that_knows_less_than_a_journal_grants_nothing_more() -> None:
    machine = BudgetMachine()
    machine.back_up()
    one, two = machine.open(), machine.open()
    machine.register(one)
    machine.store.restore(machine.backup)
    machine.register(one)  # it has 4.0 of which the coordinator knows nothing
    machine.register(two)
    assert (one.part.granted, two.part.granted) == (4.0, 0.0)
