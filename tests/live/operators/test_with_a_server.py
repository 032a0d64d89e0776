"""What docs/live.md and the tutorial say of a server, to the letter: it learns while one looks."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

DOCS = Path(__file__).parents[3] / "docs"
TUTORIAL = (DOCS / "tutorial.md").read_text()
PORT = "8710"  # on the pages; another one here, where several tests run at once


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def shown(page: str, language: str) -> list[str]:
    """Return the blocks of a page's section "With a server" in a language."""
    section = re.split(r"^##+ With a server$", (DOCS / page).read_text(), flags=re.M)[1]
    return blocks(section.split("\n## ")[0], language)


@pytest.fixture
def port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path, port: str) -> Iterator[list[str]]:
    """Start the server by a page's first command; return the other ones."""
    first, *others = shown(request.param, "bash")[0].splitlines()
    command, quiet = [*words(first), "--port", port], subprocess.DEVNULL
    with subprocess.Popen(command, cwd=tmp_path, stdout=quiet, stderr=quiet) as server:
        while not answers(port):
            assert server.poll() is None
            time.sleep(0.05)
        yield others
        server.send_signal(signal.SIGTERM)


def answers(port: str) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def wait_for(port: str, space: str, token: str) -> None:
    """Wait until a token is known: a person is slower than the server, which looks every 2 s."""
    until, there = time.monotonic() + 60, {"Authorization": f"Bearer {token}"}
    while httpx.get(f"http://127.0.0.1:{port}/v1/spaces/{space}", headers=there).is_error:
        assert time.monotonic() < until
        time.sleep(0.1)


def words(line: str) -> list[str]:
    program, *rest = line.partition("  ")[0].split()
    assert program == "guardband"
    return [sys.executable, "-m", "guardband", *rest]


def run(program: str, tmp_path: Path, port: str, token: str) -> list[str]:
    """Return the lines that a program for a service prints."""
    return subprocess.check_output(
        [sys.executable, "-c", program.replace(PORT, port)],
        cwd=tmp_path,
        text=True,
        env=os.environ | {"GUARDBAND_AGENT_TOKEN": token},
    ).splitlines()


def alike(lines: list[str]) -> list[str]:
    """Return lines without their numbers."""
    return [re.sub(r"[\d,]+\d|\d", "n", line) for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("served", ["live.md"], indirect=True)
def test_it_plays_more_than_the_baseline_within_two_minutes(
    served: list[str], tmp_path: Path, port: str
) -> None:
    began = time.monotonic()
    for line in served:
        said = subprocess.check_output(words(line), cwd=tmp_path, text=True)
    token = re.findall(r"gb_\S+", said)[0]  # of the last command
    wait_for(port, "home", token)
    (program,) = shown("live.md", "py")
    printed = run(program, tmp_path, port, token)
    numbers = [[int(n) for n in re.findall(r"\d+", line)] for line in printed]
    assert [visits for visits, _ in numbers] == [500, 1000, 1500, 2000]
    assert numbers[-1][1] > 100  # another film than the rule's
    assert time.monotonic() - began < 120
    assert alike(shown("live.md", "text")[0].splitlines()) == alike(printed)

    there = {"Authorization": f"Bearer {(tmp_path / 'gb' / 'viewer.token').read_text().strip()}"}
    summary = f"http://127.0.0.1:{port}/v1/spaces/home/summary"
    page = httpx.get(summary, headers=there).json()
    terminal = subprocess.check_output(words("guardband status home"), cwd=tmp_path, text=True)
    assert page["agents"][0]["counters"]["learned"] > 100
    for answer in page["answers"][:3]:  # the last one tells how long ago
        assert answer["text"] in terminal
        assert f"{answer['question']} {answer['word']}" in terminal


@pytest.mark.slow
@pytest.mark.parametrize("served", ["tutorial.md"], indirect=True)
def test_the_tutorial_goes_on_with_a_server(served: list[str], tmp_path: Path, port: str) -> None:
    """Its section needs what its first ones make: logs, features, a study and its agent.toml."""
    logs, features, study, *_ = blocks(TUTORIAL, "python")
    run(logs + features + study, tmp_path, port, "")
    *prepare, learn = served
    for line in prepare:
        said = subprocess.check_output(words(line), cwd=tmp_path, text=True)
    token = re.findall(r"gb_\S+", said)[0]  # of the last command
    wait_for(port, "shop", token)
    there = ["--coordinator", f"http://127.0.0.1:{port}", "--token", token]
    learned = subprocess.check_output([*words(learn), *there], cwd=tmp_path, text=True)
    assert learned.startswith("10,000 rows learned, 0 known before.")
    (service,) = shown("tutorial.md", "py")
    *_, knew, did = run(logs + features + service, tmp_path, port, token)
    assert alike(shown("tutorial.md", "text")[0].splitlines()) == alike([knew, did])
    assert knew.startswith("10,000 ")
    assert int(re.findall(r"\d+", did)[-1]) > 100  # times another offer than the editors'
