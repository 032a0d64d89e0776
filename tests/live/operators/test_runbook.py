"""Every alert has a page, every page an alert, and the documentation says what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from live.operators.world import a_space

from guardband.cli.agent import CURL
from guardband.live.operators.export import COLUMNS
from guardband.live.server import alerts
from guardband.live.server.alarms import ALARMS, Noticed
from guardband.live.server.alerts import SpaceFacts, TaskFacts, alerts_of, runbook_of

ROOT = Path(__file__).parents[3]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()


def ids() -> set[str]:
    """The ids of all alerts, from the source: every `Alert("id", ...)`, and those of monitors."""
    tree = ast.parse(Path(alerts.__file__).read_text())
    return set(ALARMS) | {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Alert"
        and isinstance(call.args[0], ast.Constant)
    }


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", RUNBOOK, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_alert_has_a_heading_and_says_what_to_do() -> None:
    assert len(ids()) >= 15
    found = sections()
    assert ids() == set(found) - {"In Prometheus", "Seen by somebody"}
    for ident in ids():
        text = found[ident]
        assert re.search(r"\*\*(page|ticket)\.\*\*", text), ident
        assert "**Look**" in text, ident
        assert "**Do**" in text or "**do**" in text, ident


def test_alerts_link_to_their_heading_and_agree_on_urgency() -> None:
    space = a_space(profile="hospital").changed(contexts="shared")
    task = TaskFacts(
        task="tv",
        counters={"observed": 1000, "defaulted": 500, "damaged": 1},
        sums={"lead": -500.0, "counted": 1500},
        gauges={
            "margin_min": -0.1,
            "residual_ratio": 2.0,
            "own_n": 1500.0,
            "lease_s": 1.0,
            "oldest_pending_s": 1e6,
        },
        last_seen_s=1e5,
        heterogeneity=2.0,
        conflicts=1,
        invalid=1,
        alarms=dict.fromkeys(ALARMS, Noticed(1, 70, 60.0)),
        round=10**12,
        ahead=True,
    )
    agents = [task, TaskFacts(task="movies", round=7)]
    raised = alerts_of(SpaceFacts(space=space, agents=agents, open_for_s=1e4, restores=1))
    assert {alert.id for alert in raised} == ids()
    for alert in raised:
        page, _, anchor = runbook_of(alert).partition("#")
        assert (ROOT / page).is_file()
        assert f"**{alert.severity}.**" in sections()[anchor]


def test_the_curl_example_is_the_one_that_is_tested() -> None:
    assert CURL in (ROOT / "docs" / "operations.md").read_text()


def test_what_exports_are_good_for_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    for words in ("no overlap", "deterministic", "biased", "missing", "propensity"):
        assert words in text
    assert {"propensity", "random", "defaulted"} - {column.name for column in COLUMNS} == {
        "defaulted"
    }


def test_the_metrics_of_the_rules_exist() -> None:
    source = (Path(alerts.__file__).parent / "metrics.py").read_text()
    named = set(re.findall(r"guardband_[a-z_]+", RUNBOOK))
    for name in named:
        assert name.removesuffix("_total") in source, name


def test_the_rules_pass_on_every_severity() -> None:
    text = (ROOT / "deploy" / "alerts.yml").read_text()
    passed_on = set(re.findall(r'guardband_alert\{severity="(\w+)"\} == 1', text))
    source = Path(alerts.__file__).read_text()
    assert passed_on == set(re.findall(r'"(page|ticket)"', source))
