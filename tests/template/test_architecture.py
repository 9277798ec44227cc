"""One switch for the processor: the parameter of the template chooses the wheels of the layers."""

import os
import subprocess
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests.template.conftest import ROOT

WHEELS = {"x86_64": "manylinux2014_x86_64", "arm64": "manylinux2014_aarch64"}
LAYERS = ("CoreLayer", "KubernetesLayer", "ReportLayer")


def commands(architecture: str, layer: str, artifacts: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask make what it would do, as `sam build` runs it; nothing is built."""
    makefile = str(ROOT / "layers" / architecture / "Makefile")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TASKGOV_")}
    return subprocess.run(  # noqa: S603 - our own command
        ["make", "--dry-run", "--makefile", makefile, f"build-{layer}"],  # noqa: S607 - make of the PATH, as SAM runs it
        env={**inherited, "ARTIFACTS_DIR": str(artifacts), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("architecture", WHEELS)
def test_a_layer_takes_the_wheels_of_the_architecture_that_the_template_is_given(
    architecture: str, layer: str, tmp_path: Path
) -> None:
    made = commands(architecture, layer, tmp_path)
    assert made.returncode == 0, made.stderr
    (other,) = set(WHEELS) - {architecture}
    assert WHEELS[architecture] in made.stdout
    assert WHEELS[other] not in made.stdout


def test_a_variable_that_names_another_processor_ends_the_build(tmp_path: Path) -> None:
    made = commands("x86_64", "CoreLayer", tmp_path, TASKGOV_ARCHITECTURE="arm64")
    assert made.returncode != 0
    assert "sam build --parameter-overrides Architecture=arm64" in made.stderr


def test_every_layer_is_built_where_the_parameter_says() -> None:
    template = yaml_parse((ROOT / "template.yaml").read_text())
    layers = [one for one in template["Resources"].values() if one["Type"] == "AWS::Serverless::LayerVersion"]
    assert len(layers) == 4
    allowed = template["Parameters"]["Architecture"]["AllowedValues"]
    assert {path.parent.name for path in (ROOT / "layers").glob("*/Makefile")} == set(allowed)
    for layer in layers:
        metadata = layer["Metadata"]
        assert metadata["ContextPath"] == {"Fn::Sub": "layers/${Architecture}"}
        assert metadata["BuildArchitecture"] == {"Ref": "Architecture"}
