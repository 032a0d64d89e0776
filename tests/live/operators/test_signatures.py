"""Signed exports and audits: what was changed since is found; on in the profile for hospitals."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from live.client.world import agent, live_on
from typer.testing import CliRunner, Result

from guardband.cli.app import app
from guardband.live.operators.signatures import sign_file

RUN = CliRunner()


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the keys of this test."""
    monkeypatch.setenv("GUARDBAND_KEYS", str(tmp_path / "keys"))
    return tmp_path / "keys"


def lived(folder: Path, **settings: Any) -> str:
    """Let an agent decide; return the id of its last decision."""
    one = agent(folder, **settings)
    live_on(one, 5)
    ident = str(one.decide([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 0).id)
    one.close()
    return ident


def call(*words: object) -> Result:
    return RUN.invoke(app, [str(word) for word in words])


def exported(folder: Path, *words: str) -> Path:
    out = folder / "decisions.csv"
    result = call("export", "--csv", "--state", folder / "gb", "--out", out, *words)
    assert result.exit_code == 0, result.output
    return out


def test_an_export_is_what_was_signed(tmp_path: Path, keys: Path) -> None:
    lived(tmp_path)
    out = exported(tmp_path, "--sign")
    assert call("audit", "--signed", out).exit_code == 0
    assert stat.S_IMODE((keys / "default.key").stat().st_mode) == 0o600
    out.write_bytes(out.read_bytes().replace(b"movies", b"movieS", 1))
    result = call("audit", "--signed", out)
    assert result.exit_code == 1
    assert "is not the file that was signed" in result.output


@pytest.mark.parametrize("name", ["space", "signed_at", "sha256", "file", "hmac_sha256"])
def test_a_signature_that_was_changed_is_found(tmp_path: Path, keys: Path, name: str) -> None:
    lived(tmp_path)
    out = exported(tmp_path, "--sign")
    (keys / "other.key").write_text((keys / "default.key").read_text())
    signature = out.with_name("decisions.csv.sig")
    (line,) = json.loads(signature.read_text())
    line[name] = "other" if name == "space" else "00"
    signature.write_text(json.dumps([line]))
    result = call("audit", "--signed", out)
    assert result.exit_code == 1
    assert "it was changed" in result.output


def test_another_key_and_no_key_are_told_apart(tmp_path: Path, keys: Path) -> None:
    lived(tmp_path)
    out = exported(tmp_path, "--sign")
    (keys / "default.key").write_text("ab" * 32)
    assert "another key" in call("audit", "--signed", out).output
    (keys / "default.key").unlink()
    result = call("audit", "--signed", out)
    assert isinstance(result.exception, FileNotFoundError)
    assert "GUARDBAND_KEYS" in str(result.exception)


def test_an_audit_is_what_was_signed(tmp_path: Path) -> None:
    ident = lived(tmp_path)
    result = call("audit", ident, "--state", tmp_path / "gb", "--json", "--sign")
    kept = tmp_path / "audit.json"
    kept.write_text(result.stdout)
    assert call("audit", "--signed", kept).exit_code == 0
    found = json.loads(result.stdout)
    found["decision"]["action"] += 1
    kept.write_text(json.dumps(found))
    assert "is not the audit that was signed" in call("audit", "--signed", kept).output


def test_hospitals_sign_unless_they_say_no(tmp_path: Path) -> None:
    ident = lived(tmp_path, profile="hospital")
    out = exported(tmp_path)
    assert call("audit", "--signed", out).exit_code == 0
    words = ("audit", ident, "--state", tmp_path / "gb", "--json")
    assert "signature" in json.loads(call(*words).stdout)
    assert "signature" not in json.loads(call(*words, "--no-sign").stdout)


def test_others_do_not_unless_they_say_so(tmp_path: Path, keys: Path) -> None:
    ident = lived(tmp_path)
    out = exported(tmp_path)
    assert not out.with_name("decisions.csv.sig").exists()
    result = call("audit", ident, "--state", tmp_path / "gb", "--json")
    assert "signature" not in json.loads(result.stdout)
    assert not keys.exists()
    with pytest.raises(FileNotFoundError, match="has no signature"):
        raise call("audit", "--signed", out).exception or AssertionError


def test_every_space_signs_with_its_own_key(tmp_path: Path, keys: Path) -> None:
    for name in ("one", "two"):
        lived(tmp_path, space=name)
    journals = sorted((tmp_path / "gb").rglob("journal.db"))
    out = tmp_path / "some.txt"
    out.write_text("rows")
    lines = json.loads(sign_file(out, journals).read_text())
    assert [line["space"] for line in lines] == ["one", "two"]
    assert len({line["key"] for line in lines}) == 2
    assert {path.name for path in keys.iterdir()} == {"one.key", "two.key"}
