"""Rules that hold for all of the source: names, lengths, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import guardband

SOURCE = Path(guardband.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
BENCH = Path(__file__).parents[1] / "bench"
LONGEST = 400
PACKAGES = ("algorithms", "envs", "problems", "theory")  # public as gb.theory and so on


def test_no_two_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert not twice


def test_files_are_short() -> None:
    root = Path(__file__).parents[1]
    others = [
        path for part in ("tests", "bench", "examples") for path in (root / part).rglob("*.py")
    ]
    long = {str(path): n for path in [*FILES, *others] if (n := lines(path)) > LONGEST}
    assert not long


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCH.glob("[!_]*.py")))
def test_every_measurement_still_finds_what_it_measures(name: str) -> None:
    """Most run too long for tests, and by hand only: what they import may have changed since."""
    import_module(f"bench.{name}")


def packages() -> Iterator[tuple[str, ModuleType]]:
    """Every package of the source that can be imported without an extra."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        name = ".".join(("guardband", *path.parent.relative_to(SOURCE).parts))
        if "vendor" not in name and name != "guardband.envs":
            yield name, import_module(name)


def test_packages_have_what_their_all_names() -> None:
    for name, package in packages():
        for export in getattr(package, "__all__", []):
            value = getattr(package, export)
            # A file of the same name would hide what is imported lazily.
            assert not isinstance(value, ModuleType) or export in PACKAGES, f"{name}.{export}"


SLOW = ("numpy", "numba", "pandas", "matplotlib")
LIGHT = """
import sys
from contextlib import suppress
sys.argv = ["guardband", *{words!r}]
from guardband.cli import main
with suppress(SystemExit):
    main()
print("", *sorted(set({slow!r}) & set(sys.modules)))
"""


COMMANDS = (
    *("", "run", "reproduce", "bounds", "data", "space create", "serve", "agent", "learn"),
    "study",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_nothing_that_is_slow_to_import(command: str) -> None:
    said = python(LIGHT.format(words=[*command.split(), "--help"], slow=SLOW))
    assert "Usage" in said
    assert said.splitlines()[-1].split() == []


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, guardband; print(*{'numpy', 'numba', 'pandas'} & {*sys.modules})"
    assert python(code).split() == []


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


# Packages that offer their modules, each with an `__all__` of its own, and not one list of names.
BY_MODULE = ("guardband.kernels", "guardband.live.protocol", "guardband.live.operators")


def package_of(module: str) -> str:
    """The package that a module belongs to, a file beside the packages alone; live has several."""
    parts = module.split(".")
    return ".".join(parts[:3] if parts[1] == "live" else parts[:2])


def imports() -> Iterator[tuple[str, str, str]]:
    """What modules of guardband import from it: (importer, module, name)."""
    for path in FILES:
        importer = ".".join(("guardband", *path.relative_to(SOURCE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("guardband."):
                yield from ((importer, str(node.module), alias.name) for alias in node.names)


def test_packages_take_from_others_what_these_offer() -> None:
    """A name comes from a package's `__init__`, or from a module where packages offer modules.

    The parts of the live system know each other's modules, and what these offer.
    """
    wrong = []
    for importer, module, name in imports():
        package = package_of(module)
        if package_of(importer) == package:
            continue
        within = importer.startswith("guardband.live") and package.startswith("guardband.live")
        offered = module == package or package in BY_MODULE or within
        found = import_module(module)
        whole = within and isinstance(getattr(found, name), ModuleType)
        if not offered or not (whole or name in found.__all__):
            wrong.append(f"{importer} takes {name} from {module}")
    assert not wrong, "\n".join(wrong)
