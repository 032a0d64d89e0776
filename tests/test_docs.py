"""What the documentation says is true: its code runs, its links lead somewhere, its names exist."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.cli.config import make_algorithms, make_problem, read_config
from guardband.studies import read_study_config

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TEXTS = dict(zip(NAMES, (page.read_text() for page in PAGES), strict=True))

FENCE = re.compile(r"^```([a-z]*)[^\n]*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
# `agent.rounds` may be a variable's attribute, `report.html` a file: such packages need two dots.
PACKAGE = "(?:algorithms|checks|contexts|kernels|facts|problems|seeds)"
SHORT = r"(?:agent|cli|data|envs|report|sim)\.\w+"
OPERATORS = (
    *("agent", "audit", "backup", "demo", "export", "learn"),
    *("restore", "serve", "space", "status", "study", "token"),
)
DOTTED = re.compile(rf"`((?:{PACKAGE}|{SHORT})(?:\.\w+)+)`")


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(name: str, *languages: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(TEXTS[name]):
        line = TEXTS[name].count("\n", 0, match.start()) + 1
        found.append(Block(match[1], match[2], line))
    return [block for block in found if not languages or block.language in languages]


def prose(name: str) -> str:
    return FENCE.sub("", TEXTS[name])


def commands(name: str) -> Iterator[list[str]]:
    """Yield the words of every command line that a page shows; comments and pipes cut off."""
    for block in blocks(name, "sh", "console", "bash"):
        for line in block.text.replace("\\\n", " ").splitlines():
            if block.language == "console" and not line.startswith("$ "):
                continue  # what the command answered
            words = shlex.split(line.removeprefix("$ "), comments=True)
            ends = [i for i, word in enumerate(words) if word in ("|", ">", "&&")]
            yield words[: ends[0]] if ends else words


def with_python() -> list[str]:
    return [name for name in NAMES if blocks(name, "python")]


def with_commands() -> list[str]:
    return [name for name in NAMES if any("guardband" in words[:1] for words in commands(name))]


def test_there_is_something_to_read() -> None:
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/paper.md"} <= set(NAMES)
    assert "README.md" in with_python()
    assert "README.md" in with_commands()


@pytest.mark.parametrize("name", with_python())
def test_code_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of one page share a namespace; an `output` block is what the one before it prints."""
    monkeypatch.chdir(tmp_path)
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)  # dataclasses look their module up
    printed = ""
    for block in blocks(name, "python", "output"):
        where = f"{name}, line {block.line}"
        if block.language == "output":
            assert printed == block.text, where
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            # Empty lines in front: a traceback then names the line of the page.
            code = compile("\n" * block.line + block.text, ROOT / name, "exec")
            exec(code, vars(page))
        printed = out.getvalue()


def with_examples() -> list[str]:
    files = (path for path in (ROOT / "src").rglob("*.py") if ">>> " in path.read_text())
    modules = (path.relative_to(ROOT / "src").with_suffix("") for path in files)
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in modules)


@pytest.mark.parametrize("module", with_examples())
def test_examples_in_docstrings_are_true(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for target in LINK.findall(prose(name)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), f"{name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text()), f"{name} links to {target}"


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()) for head in heads)
    return {head.replace(" ", "-") for head in plain}


BESIDE = [*ROOT.glob("bench/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("clients/*/*.md")]
BEGUN = sorted({*PAGES, *BESIDE})


@pytest.mark.parametrize("page", BEGUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_first_paragraph_says_for_whom_a_page_is(page: Path) -> None:
    wrong = lacks_a_beginning(page.read_text())
    assert not wrong, f"{page.relative_to(ROOT)} begins with {wrong}"


def lacks_a_beginning(text: str) -> str:
    """Return what is wrong with the first paragraph of a page, or nothing."""
    head, first = [*text.split("\n\n"), "", ""][:2]
    if not re.fullmatch(r"# .+", head) or not re.match(r"[A-Z]|\[", first):
        return "no heading, or something else than a sentence after it"
    plain = re.sub(r"`[^`]*`", "", LINK.sub("", first)).lower()
    if len(re.findall(r"[a-z]{2,}", plain)) < 12:
        return "hardly a word that is not code or a link"
    if re.search(r"written by `|commit [0-9a-f]{7}", first):
        return "how it was made"
    if not re.search(r"\b(for|you|people|who|whoever)\b", plain):
        return "nobody whom it is for"
    return ""


@pytest.mark.parametrize(
    "first",
    [
        "`gb.algorithms.Baseline`, `baseline`. A reference.",
        "## Commands",
        "| file | on the clock |\n|---|---|",
        "Means over 20 trials, for each agent; written by `make better` in 1301 s, commit 675feb4.",
        "Several agents in one process, with threads in the background, and all of it by a seed.",
        "The tests run all of them.",
    ],
)
def test_a_first_paragraph_that_says_too_little_is_noticed(first: str) -> None:
    assert lacks_a_beginning(f"# A page\n\n{first}\n\nFor people who read on.\n")


@pytest.mark.parametrize("name", with_commands())
def test_commands_work(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are cut short; what would download, serve, or needs a file, is only parsed."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for words in commands(name):
        if words[:1] != ["guardband"]:
            continue
        asked = words[1:]
        if asked[:1] == ["run"]:
            asked += ["--rounds", "20", "--trials", "1"]
        elif asked[:1] == ["reproduce"]:
            asked.append("--list")  # the panels themselves are tested in tests/lab
        elif asked[0] in OPERATORS or (asked[:1] == ["data"] and len(asked) > 1):
            asked.append("--help")
        result = runner.invoke(app, asked)
        assert result.exit_code == 0, f"{name}: {shlex.join(words)}: {result.output}"


def test_make_has_the_targets_that_are_named() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for name in NAMES:
        named = {words[1] for words in commands(name) if words[:1] == ["make"] and len(words) > 1}
        named |= set(re.findall(r"`make ([a-z-]+)`", prose(name)))
        assert named <= targets, name


def test_the_extras_that_are_named_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in NAMES:
        for extras in re.findall(r"guardband\[([a-z,]+)\]", TEXTS[name]):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), name


@pytest.mark.parametrize("name", NAMES)
def test_functions_that_are_named_exist(name: str) -> None:
    """`kernels.ridge.radius` and its like are names below `guardband`."""
    for dotted in DOTTED.findall(prose(name)):
        assert resolves(f"guardband.{dotted}"), f"{name} names {dotted}"


def resolves(dotted: str) -> bool:
    words = dotted.split(".")
    for n in range(len(words), 0, -1):
        try:
            thing: object = import_module(".".join(words[:n]))
        except ModuleNotFoundError:
            continue
        for word in words[n:]:
            fields = getattr(thing, "__annotations__", {})
            if not hasattr(thing, word) and word not in fields:
                return False
            thing = getattr(thing, word, None)
        return True
    return False


@pytest.mark.parametrize("name", [name for name in NAMES if blocks(name, "toml")])
def test_settings_files_are_valid(name: str, tmp_path: Path) -> None:
    for i, block in enumerate(blocks(name, "toml")):
        file = tmp_path / f"{i}.toml"
        file.write_text(block.text)
        if "\nreward = " in f"\n{block.text}":  # of a study
            read_study_config(file)
            continue
        config = read_config(file)
        assumptions = make_problem(config).assumptions()
        assert len(make_algorithms(config, assumptions)) == len(config.algorithms)


def test_the_tutorials_study_is_the_same_from_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page: dict[str, object] = {}
    for block in blocks("docs/tutorial.md", "python"):
        exec(block.text, page)
        if "study.save(" in block.text:
            break
    (settings,) = blocks("docs/tutorial.md", "toml")
    Path("study.toml").write_text(settings.text)
    (words,) = [each for each in commands("docs/tutorial.md") if each[:2] == ["guardband", "study"]]
    assert CliRunner().invoke(app, words[1:]).exit_code == 0
    told = tomllib.loads(Path("from-terminal/agent.toml").read_text())
    assert told == tomllib.loads(Path("study/agent.toml").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name: str) -> None:
    for path in re.findall(r"`((?:src|tests|docs|bench)/[\w./-]+)`", prose(name)):
        assert (ROOT / path).exists(), f"{name} names {path}"


def test_the_citation_names_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert citation.startswith("cff-version: 1.2.0\n")
    assert f"\nversion: {project['version']}\n" in citation
    assert f"## {project['version']}" in TEXTS["CHANGELOG.md"]
    title = (
        "Distributed Multi-Task Learning for Stochastic Bandits with Context Distribution and "
        "Stage-wise Constraints"
    )
    for name in ("README.md", "docs/paper.md"):
        assert title in " ".join(TEXTS[name].split()), name
    assert title in citation


@pytest.mark.slow
def test_the_readme_shows_what_run_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the first `text` block, between ellipses, are in the real output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "92")
    printed = words(CliRunner().invoke(app, ["run"]).output)
    for part in re.split(r"^ *\.\.\.$", blocks("README.md", "text")[0].text, flags=re.M):
        assert words(part) in printed


def words(text: str) -> str:
    """Return the words of a text, without the lines that a table draws."""
    return " ".join(word for word in text.split() if set(word) != {"─"})
