"""What `pip install .` installs: the command, and all that it needs outside a checkout."""

import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
PACKAGES = [
    "layers/taskgov/python/taskgov",
    *sorted(f"workstation/{found.name}" for found in (ROOT / "workstation").glob("taskgov_*")),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return ZipFile(built)


def test_the_command_is_installed_with_everything_that_it_imports(wheel: ZipFile) -> None:
    (entries,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "taskgov = taskgov_cli.__main__:main" in wheel.read(entries).decode()
    (metadata,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    required = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist")]
    always = {line.split()[1].split("<")[0].split(">")[0] for line in required if "extra ==" not in line}
    assert {"typer", "rich", "boto3", "kubernetes", "jinja2", "pydantic", "pyyaml"} <= always


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_in_it(wheel: ZipFile, package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {_name(package, path) for path in files} - names(wheel) == set()


def names(wheel: ZipFile) -> set[str]:
    return set(wheel.namelist())


def _name(package: str, path: Path) -> str:
    return f"{Path(package).name}/{path.relative_to(ROOT / package).as_posix()}"


@pytest.mark.parametrize(
    "folder",
    ["functions", "statemachines", "events", "layers/taskgov/python/taskgov", "template.yaml", "docs/rbac.yaml"],
)
def test_what_the_embedded_stack_deploys_is_in_it(wheel: ZipFile, folder: str) -> None:
    path = ROOT / folder
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    wanted = {f"taskgov_deployable/{each.relative_to(ROOT).as_posix()}" for each in files if each.suffix != ".pyc"}
    assert wanted - names(wheel) == set()


def test_no_page_names_an_extra_that_there_is_not() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"pipx? install '\.\[(\w+)\]'", page.read_text())}
    assert "embedded" in named
    assert named <= extras
