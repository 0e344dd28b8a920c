"""Facts about the project as a whole: its names, its docstrings, its floors, what is shipped, what it must not hold."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bankclient

ROOT = Path(__file__).parent.parent
MODULES = ["bankclient", *(module.name for module in pkgutil.walk_packages(bankclient.__path__, "bankclient."))]
SOURCES = sorted(path for folder in ("bankclient", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
TOP_LEVEL = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in {".toml", ".md", ".example"}]

NOT_FOR_A_COMMIT = {
    "a folder of somebody's machine": r"/(?:ho[m]e|Us[e]rs)/(?!<|\{|\$|(?:ann|me|user)\b)\w|/ro[o]t/",
    "the address of a package registry": r"index-[u]rl|--registr[y]|\bpypi[.]|registr[y]\.npmjs",
}


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_true(name: str) -> None:
    """What a module lists in `__all__` it has, once, and it lists every public class and function of its own."""
    module = importlib.import_module(name)
    source = ast.parse(Path(str(module.__file__)).read_text())
    definitions = (
        node for node in source.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    # A check of the conformance suite is found by its name, as a test is.
    public = {node.name for node in definitions if not node.name.startswith(("_", "check_"))}
    listed: list[str] = getattr(module, "__all__", [])  # its order is held by the linter
    assert len(listed) == len(set(listed))
    assert public <= set(listed)
    assert [name for name in listed if not hasattr(module, name)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_tests_say_what_they_are_for(path: Path) -> None:
    """Every module opens with a docstring, and every test states its behaviour in one."""
    source = ast.parse(path.read_text())
    assert ast.get_docstring(source)
    functions = (node for node in ast.walk(source) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    tests = [node for node in functions if node.name.startswith("test_") and path.name.startswith("test_")]
    assert [test.name for test in tests if not ast.get_docstring(test)] == []


def test_importing_the_package_loads_next_to_nothing() -> None:
    """A bare `import bankclient` loads itself, and of the standard library only what costs nothing."""
    code = "import sys; before = set(sys.modules); import bankclient; print(*set(sys.modules) - before)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(printed.split()) - {"__future__"} == {"bankclient"}


def test_each_floor_imports_only_floors_below_it() -> None:
    """The contract of the floors holds, and every module stands on one."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_wheel_holds_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
    """Nothing is shipped but the package, and nothing of it is missing."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    package = {str(path.relative_to(ROOT)) for path in SOURCES if path.is_relative_to(ROOT / "bankclient")}
    assert {file for file in files if not re.match(r"bankclient-[\d.]+\.dist-info/", file)} == package | {
        "bankclient/py.typed"
    }
    assert any(file.endswith(".dist-info/licenses/LICENSE") for file in files)


@pytest.mark.parametrize("what", NOT_FOR_A_COMMIT)
def test_no_file_holds(what: str) -> None:
    """No source and no document names a folder of one machine, or a registry that packages come from."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in [*SOURCES, *TOP_LEVEL, ROOT / ".ci" / "run"]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(NOT_FOR_A_COMMIT[what], line)
    ]
    assert found == []
