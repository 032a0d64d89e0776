"""What Prometheus and Grafana are given fits: each other, compose.yaml, and a real /metrics."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live.server.driver import served
from prometheus_client.parser import text_string_to_metric_families

from guardband.live.server import Settings

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
BOARD = json.loads((DEPLOY / "grafana" / "guardband.json").read_text())
(SOURCE,) = yaml.safe_load((DEPLOY / "grafana" / "datasources.yml").read_text())["datasources"]
(PROVIDER,) = yaml.safe_load((DEPLOY / "grafana" / "dashboards.yml").read_text())["providers"]
# What Prometheus knows of a rule that alerts, and of a group of them.
RULE = {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"}
GROUP = {"name", "interval", "query_offset", "limit", "labels", "rules"}
UPLIFT = re.compile(r"guardband_uplift\w*")  # of spaces with a holdback, in which it was measured


def mounted(service: str) -> dict[str, str]:
    """Return the files of a service: where they are there, and what they are here."""
    volumes = [volume.split(":") for volume in SERVICES[service]["volumes"]]
    return {parts[1]: parts[0] for parts in volumes if parts[0].startswith("./")}


def found_in(tree: Any, key: str) -> Iterator[Any]:
    """Yield all that a tree has under a key, however deep."""
    if isinstance(tree, dict):
        yield from (tree[key] for _ in range(key in tree))
    for part in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(part, dict | list):
            yield from found_in(part, key)


def test_prometheus_asks_the_service_and_finds_its_rules() -> None:
    (scraped,) = PROMETHEUS["scrape_configs"]
    (target,) = scraped["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert host in SERVICES
    assert f"EXPOSE {port}\n" in (ROOT / "Dockerfile").read_text()
    files = mounted("prometheus")
    assert files["/etc/prometheus/prometheus.yml"] == "./deploy/prometheus.yml"
    assert {f"/etc/prometheus/{name}" for name in PROMETHEUS["rule_files"]} <= set(files)
    jobs = re.findall(r'up\{job="(\w+)"\}', str(RULES))
    assert jobs == [scraped["job_name"]]


def test_grafana_finds_its_dashboard_and_that_its_data() -> None:
    files = mounted("grafana")
    provided = [path for path in files if Path(path).parent == Path(PROVIDER["options"]["path"])]
    assert [files[path] for path in provided] == ["./deploy/grafana/guardband.json"]
    for kind in ("datasources", "dashboards"):
        there = f"/etc/grafana/provisioning/{kind}/guardband.yml"
        assert files[there] == f"./deploy/grafana/{kind}.yml"
    asked = list(found_in(BOARD, "datasource"))
    assert len(asked) > len(BOARD["panels"])
    assert all(each == {"type": SOURCE["type"], "uid": SOURCE["uid"]} for each in asked)
    assert SOURCE["url"].removeprefix("http://").split(":")[0] in SERVICES


def test_rules_have_what_prometheus_knows() -> None:
    assert set(RULES) == {"groups"}
    for group in RULES["groups"]:
        assert {"name", "rules"} <= set(group) <= GROUP
        for rule in group["rules"]:
            assert {"alert", "expr", "labels", "annotations"} <= set(rule) <= RULE
            assert re.fullmatch(r"\d+(ms|[smhdwy])", rule.get("for", "0s"))
            for told in (rule["labels"], rule["annotations"]):
                assert all(isinstance(text, str) for text in told.values())


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the labels of all metrics of a server at which agents pooled, one in trouble."""
    report = {
        "counters": {"decisions": 10, "learned": 6, "baseline": 4, "observed": 7},
        "sums": {"reward": 4.5, "floor": 3.25},
        "gauges": {"margin_min": -0.5, "margin_p05": 0.25},
        "reasons": {"careful": 2},
    }
    found = defaultdict(set)
    settings = Settings(alerts_s=0.1)
    with served(tmp_path_factory.mktemp("gb"), settings, lease_s=1000.0) as server:
        movies, tv = server.agent("movies"), server.agent("tv")
        movies.register(), tv.register()
        tv.upload(40)
        movies.upload(40, trigger=True, for_epoch=1, report=report)
        tv.put(for_epoch=1)
        text, end = "", time.monotonic() + 20.0
        with server.client(server.viewer_token) as viewer:
            while "guardband_alert{" not in text:
                assert time.monotonic() < end, text
                text = viewer.get("/metrics").text
                time.sleep(0.1)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    return found


def test_labels_that_are_asked_for_exist(labels: dict[str, set[str]]) -> None:
    (variable,) = BOARD["templating"]["list"]
    metric, label = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])[0]
    assert label in labels[metric]
    asked = [*found_in(RULES, "expr"), *found_in(BOARD["panels"], "expr")]
    seen = 0
    for query in asked:
        grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query))))
        for name, chosen in re.findall(r"(guardband_\w+)(?:\{([^}]*)\})?", query):
            if not UPLIFT.fullmatch(name):
                seen += 1
                assert grouped | set(re.findall(r"(\w+)=", chosen)) <= labels[name], query
    assert seen > 10
    for rule in (rule for group in RULES["groups"] for rule in group["rules"]):
        told = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert told <= labels[rule["expr"].partition("{")[0]], rule["alert"]
