"""Read a SAM template as CloudFormation would see it: through the SAM translator.

Code stays where it is: a function's directory travels in its S3 key (`local` is a bucket that nobody opens), with the
digest of its content as the version; a state machine's definition is read in. What `Translated.cfn` holds is therefore
the whole truth about the stack.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from samtranslator.translator.transform import transform

from taskgov_embedded import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LOCAL_BUCKET = "local"


@dataclass(frozen=True, slots=True)
class Translated:
    """A template after the SAM translator, with the directory that its paths start from."""

    root: Path
    cfn: dict[str, Any]

    def resources_of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.cfn["Resources"].items()
            if resource["Type"] == kind
        }

    def types(self) -> frozenset[str]:
        """Return every resource type in it."""
        return frozenset(resource["Type"] for resource in self.cfn["Resources"].values())


class _NoManagedPolicies:
    """The translator requests ARNs of managed policies that are named without one; it has the common ones itself."""

    def load(self) -> dict[str, str]:
        return {}


def translate(path: Path, parameters: Mapping[str, str]) -> Translated:
    """Translate the template at `path`; parameters that are not given take their defaults."""
    # It says at each translation that it has metrics which nobody reads, and switches which nobody has set.
    for noisy in ("samtranslator.metrics", "samtranslator.feature_toggle"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    template = copy.deepcopy(_read_template(path, path.stat().st_mtime_ns))
    for section in _sections(template):
        _point_to_local_code(section, path.parent)
    cfn = _transformed(json.dumps(template, default=str), tuple(sorted(parameters.items())))
    return Translated(path.parent, copy.deepcopy(cfn))


def _sections(template: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from template.get("Globals", {}).values()
    for resource in template["Resources"].values():
        yield resource.get("Properties", {})


def _point_to_local_code(section: dict[str, Any], root: Path) -> None:
    for key in ("CodeUri", "ContentUri"):
        if isinstance(section.get(key), str):
            folder = section[key].rstrip("/").removeprefix("./")
            section[key] = {"Bucket": LOCAL_BUCKET, "Key": folder, "Version": digest(root / folder)}
    if isinstance(section.get("DefinitionUri"), str):
        definition = root / section.pop("DefinitionUri")
        section["Definition"] = copy.deepcopy(_read_definition(definition, definition.stat().st_mtime_ns))
    if isinstance(section.get("DefinitionS3Location"), str):  # CloudFormation's own type: as text, which keeps a null
        definition = root / section.pop("DefinitionS3Location")
        section["DefinitionString"] = json.dumps(_read_definition(definition, definition.stat().st_mtime_ns))


def digest(folder: Path) -> str:
    """Return a digest of a folder's content: `sam deploy` names what it uploads by it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return _digest(folder, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=64)
def _digest(folder: Path, files: tuple[tuple[Path, int], ...]) -> str:
    found = hashlib.sha256()
    for path, _ in files:
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


# Reading and translating take most of the time that a stack needs to open; tests open many stacks of one template.
@lru_cache(maxsize=8)
def _transformed(template: str, parameters: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    transformed: dict[str, Any] = transform(json.loads(template), dict(parameters), _NoManagedPolicies())
    return transformed


@lru_cache(maxsize=8)
def _read_template(path: Path, _modified: int) -> dict[str, Any]:
    template: dict[str, Any] = yaml_text.read_template(path.read_text())
    return template


@lru_cache(maxsize=32)
def _read_definition(path: Path, _modified: int) -> dict[str, Any]:
    definition: dict[str, Any] = yaml_text.read(path.read_text())
    return definition
