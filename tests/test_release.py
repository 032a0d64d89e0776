"""What a release holds, and that it works where nothing else is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USE = """
import guardband as gb
agent = gb.Agent(2)
decision = agent.decide([[0.3, 0.1], [0.1, 0.3]], baseline=0)
agent.observe(decision, 0.5)
print(decision.action, agent.rounds, gb.problem("movielens").build(0) is not None)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.mark.slow
def test_it_holds_what_it_needs_and_no_more(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert "guardband/py.typed" in names
    assert "guardband/live/static/index.html" in names
    assert all(name.startswith(("guardband/", "guardband-")) for name in names)
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        inside = {name.split("/", 1)[1] for name in file.getnames() if "/" in name}
    assert {"README.md", "LICENSE", "pyproject.toml", "tests/test_release.py"} <= inside


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, cwd=tmp_path, env=clean, check=True)
    use = [python, "-c", USE]
    found = subprocess.run(use, cwd=tmp_path, env=clean, check=True, capture_output=True, text=True)
    assert found.stdout == "0 1 True\n"


@pytest.mark.slow
def test_the_list_of_what_an_install_brings_names_all_of_it(tmp_path: Path) -> None:
    """By the command that `make dist` runs."""
    asked = ["make", "--dry-run", "--always-make", "--directory", str(ROOT), "dist"]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    lines = said.replace("\\\n", " ").splitlines()
    (line,) = [each.split() for each in lines if "cyclonedx-py" in each]
    line[0] = str(Path(sys.executable).with_name("cyclonedx-py"))
    place = line.index("--output-file") + 1
    line[place] = str(tmp_path / "sbom.json")
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    found = json.loads((tmp_path / "sbom.json").read_bytes())
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "guardband",
    )
    locked = (ROOT / "requirements" / "full.txt").read_text()
    named = {(each["name"], each["version"]) for each in found["components"]}
    assert named == set(re.findall(r"(?m)^([\w.-]+)==([\w.+-]+)", locked))
    assert all(each["externalReferences"][0]["hashes"] for each in found["components"])


@pytest.mark.parametrize("target", ["test-lowest", "test-newest"])
def test_other_versions_leave_the_environment_of_the_checkout(tmp_path: Path, target: str) -> None:
    """Whatever Python is asked for: it is for an environment of its own."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "uv").touch()
    asked = ["make", "-n", "-f", str(ROOT / "Makefile"), target, "PYTHON=python3.99"]
    told = subprocess.run(asked, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "--python python3.99 .venv-other" in told
    assert re.findall("rm -rf ([^ ]+)", told) == [".venv-other"]
    assert ".venv-other/bin/python -m pytest" in told
