"""`sam build` on a host that has no Python 3.13."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.support.tools import SAM, run_with_sam
from tests.template.conftest import ROOT, load

MODELS = ROOT / "layers" / "core" / "models.txt"

pytestmark = pytest.mark.slow  # it asks the package index for wheels


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory)


@pytest.fixture(scope="module")
def built_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory)


def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build into a directory of its own, with a PATH that holds the tools of the Makefile and no Python at all."""
    home = tmp_path_factory.mktemp("sam")
    tools = home / "bin"
    tools.mkdir()
    for name in ("make", "sh", "tar", "cp", "mkdir", "rm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "http", "SSL"))},
        "HOME": os.environ.get("HOME", str(home)),
        "PATH": str(tools),
        "PYTHON": sys.executable,
        "AWS_DEFAULT_REGION": "us-east-1",
        "SAM_CLI_TELEMETRY": "0",
    }
    command = [str(SAM), "build", "--build-dir", str(home / "build"), "--no-cached"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if "No matching distribution" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return home / "build"


def size(directory: Path) -> float:
    """Return the size in MiB."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 2**20


def test_functions_are_their_code_and_nothing_else(built: Path) -> None:
    functions = [path for path in built.iterdir() if path.name.endswith("Function")]
    assert len(functions) == 9
    assert {tuple(sorted(file.name for file in path.iterdir())) for path in functions} == {("app.py",)}


def test_a_machine_names_the_file_of_its_definition_where_sam_deploy_uploads_it_from(built: Path) -> None:
    template = yaml_parse((built / "template.yaml").read_text())
    machines = {
        name: one["Properties"]
        for name, one in template["Resources"].items()
        if "DefinitionS3Location" in one.get("Properties", ())
    }
    assert set(machines) == set(load().resources_of("AWS::StepFunctions::StateMachine"))
    for one in machines.values():
        assert yaml_parse((built / one["DefinitionS3Location"]).read_text())["States"]


def test_layers_hold_wheels_for_lambda_and_no_bytecode(built: Path) -> None:
    assert list(built.glob("*Layer/python/**/*.cpython-313-*.so")) != []
    assert [path for path in built.glob("*Layer/python/**/*.so") if "cpython-313" not in path.name] == []
    assert list(built.glob("*Layer/**/__pycache__")) == []
    assert (built / "TaskgovLayer" / "python" / "taskgov" / "py.typed").exists()


def test_the_core_layer_holds_the_models_of_the_services_that_are_used_and_no_other(built: Path) -> None:
    data = built / "CoreLayer" / "python" / "botocore" / "data"
    kept = {path.name: [version.name for version in path.iterdir()] for path in data.iterdir() if path.is_dir()}
    assert sorted(kept) == MODELS.read_text().split()
    assert {len(versions) for versions in kept.values()} == {1}


def test_a_function_with_all_its_layers_stays_far_below_lambdas_limit_of_250_mib(built: Path) -> None:
    assert sum(size(path) for path in built.iterdir() if path.name.endswith("Layer")) < 120
    assert size(built / "CoreLayer") < 25


def folders(built: Path) -> dict[str, str]:
    """Return the digest of each function and layer, by the code with which SAM CLI names what it uploads."""
    code = "import sys; from samcli.lib.utils.hash import dir_checksum; print(*map(dir_checksum, sys.argv[1:]))"
    paths = [path for path in sorted(built.iterdir()) if path.is_dir()]
    digests = run_with_sam(code, *map(str, paths)).split()
    return {path.name: digest for path, digest in zip(paths, digests, strict=True)}


def test_the_same_commit_gives_the_same_hashes(built: Path, built_again: Path) -> None:
    assert len(folders(built)) >= 11
    assert folders(built_again) == folders(built)


def zipped_mib(folder: Path) -> float:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.tell() / 2**20


def test_a_function_with_its_layers_is_far_below_60_mib_zipped(built: Path) -> None:
    sizes = {path.name: zipped_mib(path) for path in built.iterdir() if path.name.endswith(("Layer", "Function"))}
    totals = {
        name: sizes[name] + sum(sizes[layer] for layer in sizes for one in function["Layers"] if of(one, layer))
        for name, function in load().resources_of("AWS::Lambda::Function").items()
    }
    assert max(totals.values()) < 25, totals
    assert totals["PlanQuotasFunction"] < 8, totals


def of(reference: dict[str, str], layer: str) -> bool:
    """Say whether a function's reference means a layer: the translator adds a digest to its name."""
    return reference["Ref"].startswith(layer)
