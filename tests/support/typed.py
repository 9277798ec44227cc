"""Commands that the product tells people to type, done on the embedded account: `aws`, `kubectl`, `helm`, `taskgov`.

`aws` is read as the AWS CLI reads it: the operation and the options are looked up in botocore's service model, so that
a misspelt command fails here as it would in a terminal.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import boto3
from botocore import xform_name
from botocore.model import OperationModel, Shape

from taskgov_embedded.walkthrough.world import World
from tests.support.operating import taskgov

SERVICES = {"s3api": "s3"}
RENAMED = {
    ("eks", "UpdateClusterVersion"): {"--kubernetes-version": "version"},
    ("sns", "Subscribe"): {"--notification-endpoint": "Endpoint"},
}
"""Options that the AWS CLI calls otherwise than the service (awscli, customizations/argrename.py)."""


def typed(command: str, world: World, at: Path) -> None:
    """Do what a command does; files are in the folder `at`. Raises for a command that nobody could type."""
    match shlex.split(command):
        case ["aws", "s3", "cp", source, target]:
            _copy(source, target, at)
        case ["aws", service, operation, *options]:
            _aws(SERVICES.get(service, service), operation, options)
        case ["kubectl", "apply", "-f", "docs/rbac.yaml"]:
            world.apply_rbac()
        case ["kubectl", "delete", "deployment", name, "--namespace", namespace]:
            assert world.cluster.store.find("deployments", name, namespace)
            world.cluster.store.delete("deployments", name, namespace)
        case ["kubectl", "delete", "-f", _]:
            _remove(world, {})
        case ["helm", "uninstall", release, "--namespace", namespace]:
            wanted = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
            assert _remove(world, wanted), f"no release {release} in {namespace}"
        case ["taskgov", "init", *rest]:
            *options, file = rest
            result = taskgov("init", *options, str(at / file))
            assert result.exit_code == 0, result.output
        case _:
            raise AssertionError(f"nobody here knows how to type: {command}")


def _remove(world: World, annotations: dict[str, str]) -> int:
    """Delete the Kueue deployments and definitions that carry these annotations (all of them without any)."""
    store, removed = world.cluster.store, 0
    for plural in ("deployments", "customresourcedefinitions"):
        for item in store.list(plural):
            if annotations.items() <= item["metadata"].get("annotations", {}).items():
                store.delete(plural, item["metadata"]["name"], item["metadata"].get("namespace", ""))
                removed += 1
    return removed


def _copy(source: str, target: str, at: Path) -> None:
    bucket, _, key = target.removeprefix("s3://").partition("/")
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=(at / source).read_bytes())


def _aws(service: str, operation: str, options: list[str]) -> None:
    client = boto3.client(service)  # type: ignore[call-overload]  # any service
    model = client.meta.service_model
    name = next(one for one in model.operation_names if xform_name(one, "-") == operation)
    arguments = _arguments(model.operation_model(name), options, RENAMED.get((service, name), {}))
    getattr(client, xform_name(name))(**arguments)


def _arguments(operation: OperationModel, options: list[str], renamed: dict[str, str]) -> dict[str, Any]:
    shape = operation.input_shape
    assert shape is not None
    members = {f"--{xform_name(name, '-')}": name for name in shape.members}
    members = {option: name for option, name in members.items() if name not in renamed.values()} | renamed
    found: dict[str, list[str]] = {}
    for word in options:
        if word.startswith("--"):
            assert word not in found, f"{word} is there twice"
            found[word] = []
        else:
            found[list(found)[-1]].append(word)
    found.pop("--region", None)
    found.pop("--query", None)
    return {members[option]: _value(shape.members[members[option]], words) for option, words in found.items()}


def _value(shape: Shape, words: list[str]) -> Any:
    """Read a value as the AWS CLI does: JSON, words of a list, the shorthand `a=b`, or the text itself."""
    if shape.type_name in {"list", "structure"} and words[0][:1] in "[{":
        return json.loads(words[0])
    match shape.type_name:
        case "list":
            return words
        case "structure":
            return dict(pair.split("=", 1) for pair in words[0].split(","))
        case "boolean":
            return True
        case "integer":
            return int(words[0])
        case _:
            (text,) = words
            return text
