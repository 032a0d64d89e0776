"""Files for containers, monitoring and CI: valid, and true to what the coordinator says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import promql_parser
import pytest
import yaml
from live.server.driver import Served
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from guardband.cli.app import app

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
METRIC = re.compile(r"\b(?:guardband_\w+|up)\b")


def queries() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    panels = json.loads((DEPLOY / "grafana" / "guardband.json").read_text())["panels"]
    return [
        *(rule["expr"] for group in rules for rule in group["rules"]),
        *(target["expr"] for panel in panels for target in panel["targets"]),
    ]


@pytest.mark.parametrize("query", queries())
def test_queries_are_valid_and_ask_for_what_there_is(query: str, shared: Served) -> None:
    asked = query.replace('"$space"', '".*"')  # Grafana puts in what was chosen
    assert promql_parser.parse(asked) is not None
    with shared.admin() as admin:
        families = text_string_to_metric_families(admin.get("/metrics").text)
    known = {"up"}
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        known |= {name, *(f"{name}_{part}" for part in ("bucket", "count", "sum"))}
    named = set(METRIC.findall(asked))
    assert named
    assert named <= known


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("vendor.compose-spec", "compose.yaml"),
        ("vendor.github-workflows", ".github/workflows/test.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/bug.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/wish.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_have_the_form_that_their_readers_expect(schema: str, file: str) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, file]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_is_described_well() -> None:
    check = [str(Path(sys.executable).with_name("hadolint")), "Dockerfile"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_versions_of_images_are_those_that_were_tried() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    image = (ROOT / "Dockerfile").read_text()
    (python,) = set(re.findall(r"^FROM python:([\d.]+)-slim-bookworm\b", image, re.M))
    platforms = " ".join((ROOT / "docs" / "platforms.md").read_text().split())
    assert f"passes: on Linux (x86-64, Debian 12) with Python {python}." in platforms
    postgres = compose["services"]["postgres"]["image"].removeprefix("postgres:")
    (tested,) = re.findall(
        r"PostgreSQL ([\d, and]+) are what", (ROOT / "docs" / "postgres.md").read_text()
    )
    assert postgres in re.findall(r"\d+", tested)


def test_only_the_coordinator_is_asked_whether_it_is_ready(shared: Served) -> None:
    """A sidecar runs from the same image, and answers on another port."""
    image = (ROOT / "Dockerfile").read_text()
    assert "HEALTHCHECK" not in image
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["guardband"]
    kind, program, *asked = service["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    (port,) = re.findall(r"^EXPOSE (\d+)$", image, re.M)
    here = [each.replace(f"http://127.0.0.1:{port}/", f"{shared.url}/") for each in asked]
    assert here != asked
    subprocess.run([sys.executable, *here], check=True)


def test_the_sidecar_of_the_page_can_be_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "containers.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    added = yaml.safe_load(block)
    ((name, sidecar),) = added.items()
    compose["services"] |= {**added, "web": {"image": "web"}}
    compose["volumes"] |= {name: None}
    (tmp_path / "compose.yaml").write_text(yaml.safe_dump(compose))
    test_files_have_the_form_that_their_readers_expect(
        "vendor.compose-spec", str(tmp_path / "compose.yaml")
    )
    assert CliRunner().invoke(app, [*sidecar["command"], "--help"]).exit_code == 0
    coordinator = sidecar["command"][sidecar["command"].index("--coordinator") + 1]
    assert coordinator.split("/")[2].split(":")[0] in compose["services"]


def test_files_that_are_mounted_and_copied_exist() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert set(compose["volumes"]) <= {
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service["volumes"]
    }
    for service in compose["services"].values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (ROOT / source).is_file(), volume
    assert "deploy/install.sh" in (ROOT / "Dockerfile").read_text()
    assert all((ROOT / path).exists() for path in sent())


def sent() -> list[str]:
    """Return what .dockerignore leaves of the checkout: the image is built of nothing else."""
    everything, *but = (ROOT / ".dockerignore").read_text().splitlines()
    assert everything == "*"
    assert all(line.startswith("!") for line in but)
    return [line[1:] for line in but]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_the_hooks_of_pre_commit_exist() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        assert {"id", "name", "entry", "language"} <= set(hook), hook
        assert hook["language"] == "system"
        assert hook["entry"].removeprefix("make ") in targets()


def test_steps_of_the_workflow_exist() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets()
    assert all((ROOT / path).exists() for path in re.findall(r"\b(?:tests/\w+|\.ci/run)", text))


def test_the_workflow_keeps_and_shows_the_coverage() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    steps = jobs["coverage"]["steps"]
    (kept,) = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
    told = [step["run"] for step in steps if "run" in step]
    recipe = (ROOT / "Makefile").read_text().split("\ncoverage:")[1].split("\n\n")[0]
    assert f"--directory {kept}\n" in recipe
    assert recipe.splitlines()[-1].startswith("\t@echo")  # the figure, in the last line
    assert told == [
        "make coverage | tee coverage.log",
        'tail -n 1 coverage.log >> "$GITHUB_STEP_SUMMARY"',
    ]


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


@pytest.mark.slow
def test_the_steps_of_the_image_work_with_what_is_sent(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "guardband"
    for path in sent():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
        copy(ROOT / path, target)
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": sys.executable}
    script = str(source / "deploy" / "install.sh")
    subprocess.run(["sh", script, str(folder), "guard-ucb"], cwd=tmp_path, env=clean, check=True)
    asked = [str(folder / "bin" / "guardband"), "--version"]
    assert subprocess.run(asked, env=clean, check=True, capture_output=True).stdout
    assert any((folder / "kernels").rglob("*.nbi"))
    kernels = megabytes(folder / "kernels")
    packages = megabytes(folder) - kernels
    print(f"{packages:.0f} MB of packages, {kernels:.0f} MB of kernels for guard-ucb")
    page = (ROOT / "docs" / "containers.md").read_text()
    (told,) = re.findall(r"takes (\d+) MB", page)
    assert abs(packages - int(told)) < 0.15 * int(told)
