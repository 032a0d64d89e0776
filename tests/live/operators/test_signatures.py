"""Signed exports and audits: what was changed since is found; on in the profile for hospitals."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from live.client.world import agent, live_on
from typer.testing import CliRunner, Result

import guardband as gb
from guardband.cli.app import app
from guardband.files import write_atomically
from guardband.live.operators import signatures
from guardband.live.operators.signatures import sign_audit, sign_file

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
    result = call("audit", "--signed", out)
    assert result.exit_code == 0
    assert "as it was signed, with the key of space 'default'" in result.output
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


@pytest.mark.parametrize(
    "space",
    ["{evil}", "../evil", "/proc/self/cwd/evil", "..", "", "a/b", "x" * 65, "a\n", "\u00e9"],
)
def test_a_key_beside_the_file_signs_nothing(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, space: str
) -> None:
    """Who made the file chooses its words, but not which keys are believed."""
    lived(tmp_path)
    out = exported(tmp_path, "--sign")
    keys.joinpath("../evil.key").write_text("ab" * 32)
    monkeypatch.chdir(tmp_path)
    forged = space.format(evil=tmp_path / "evil")
    monkeypatch.setattr(signatures, "_spaces", lambda _: {forged: None})
    monkeypatch.setattr(signatures, "_key", lambda *_, **__: bytes.fromhex("ab" * 32))
    sign_file(out, [])
    (tmp_path / "audit.json").write_text(json.dumps(sign_audit({"result": "same"}, forged)))
    monkeypatch.undo()
    monkeypatch.setenv("GUARDBAND_KEYS", str(keys))
    monkeypatch.chdir(tmp_path)
    for path in (out, tmp_path / "audit.json"):
        result = call("audit", "--signed", path)
        assert result.exit_code == 1
        assert "is not signed: no space can have the name" in result.output
        assert "as it was signed" not in result.output


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ("[1]", "holds no signatures"),
        ("[{}, 1]", "holds no signatures"),
        ("[]", "holds no signatures"),
        ("{}", "holds no signatures"),
        ("[" * 50_000, "nested too deeply"),
        ('{"a":' * 50_000, "nested too deeply"),
        ("[" + "1" * 5_000 + "]", "is not JSON"),
        ('[{"space": "default", "space": "other"}]', "is not JSON"),
        ("\ufeff", "is not JSON"),
    ],
    ids=range(9),
)
def test_what_is_no_signature_is_told_in_a_sentence(
    tmp_path: Path, held: str, message: str
) -> None:
    out = tmp_path / "decisions.csv"
    out.write_text("rows")
    out.with_name("decisions.csv.sig").write_text(held)
    error = call("audit", "--signed", out).exception
    assert isinstance(error, gb.InvalidValueError), error
    assert message in str(error)


@pytest.mark.parametrize("mac", ["\ud800", "", "é" * 64, "zz" * 32])
def test_odd_signatures_are_wrong_ones(tmp_path: Path, mac: str) -> None:
    lived(tmp_path)
    out = exported(tmp_path, "--sign")
    beside = out.with_name("decisions.csv.sig")
    (line,) = json.loads(beside.read_text())
    beside.write_text(json.dumps([line | {"hmac_sha256": mac}]))
    assert "it was changed" in call("audit", "--signed", out).output


def test_who_signs_first_makes_the_key(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that begin at the same time sign with the one key that stays."""
    waiting = Barrier(4)

    def together(*args: Any, **kwargs: Any) -> Any:
        waiting.wait(timeout=60.0)  # each has seen that there is no key
        return write_atomically(*args, **kwargs)

    monkeypatch.setattr(signatures, "write_atomically", together)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: sign_audit({"result": "same"}, "home"), range(4)))
    assert len({each["signature"]["key"] for each in made}) == 1
    assert [path.name for path in keys.iterdir()] == ["home.key"]
    kept = tmp_path / "audit.json"
    kept.write_text(json.dumps(made[0]))
    assert call("audit", "--signed", kept).exit_code == 0
