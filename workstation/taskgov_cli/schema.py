"""`taskgov schema`: the JSON Schema of the policy document, for editors and other programs.

`init` writes it beside the document, whose first line names it: editors with the YAML language server then complete and
check while one types. `docs/policy.schema.json` is its copy.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import Annotated, Any, Final

import typer

from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.policy.document import PolicyDocument
from taskgov_cli.files import put
from taskgov_cli.output import console

ID: Final = "urn:taskgov:schema:policy:v1"
"""A name, and no place: the schema comes with the package."""
FILE: Final = "policy.schema.json"
EDITOR_LINE: Final = f"# yaml-language-server: $schema={FILE}"
"""Read by the YAML language server (VS Code, Neovim, JetBrains' LSP, ...); the path is relative to the document."""
_QUOTA, _WEIGHT = "ComputeQuotaConfig", "FairShareWeight"


def policy_schema() -> dict[str, Any]:
    """Return the schema: what each field may hold. Rules between fields are beyond it (`taskgov.policy.rules`)."""
    schema = PolicyDocument.model_json_schema(by_alias=True, mode="validation")
    definitions = schema["$defs"]
    for definition in definitions.values():
        if definition.get("type") == "object":
            definition.setdefault("additionalProperties", False)
    # A weight may stand in the quota, beside what it belongs to.
    weight = ComputeQuotaTarget.model_json_schema(by_alias=True)["properties"][_WEIGHT]
    definitions[_QUOTA]["properties"][_WEIGHT] = weight
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID, "title": "taskgov governance policy"}
    return {**head, **{key: value for key, value in schema.items() if key != "title"}}


def schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def put_beside(document: Path) -> Path | None:
    """Write the schema beside a document, in place of an older one of taskgov's; return where, None for another's file.

    Raises OSError.
    """
    file = document.parent / FILE
    try:
        if json.loads(file.read_bytes()).get("$id") != ID:
            return None
    except FileNotFoundError:
        pass
    except (ValueError, AttributeError):
        return None
    put(file, schema_text().encode())
    return file


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="File to write; default: standard output.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The schema is JSON anyway.")] = False,  # noqa: ARG001
) -> None:
    """Print the JSON Schema of policy documents, for editors to complete and check them.

    `init` writes it beside the document, whose first line names it.

    Example: taskgov schema -o policy.schema.json
    """
    if output is None:
        typer.echo(schema_text(), nl=False)
    else:
        put(output, schema_text().encode())
        console(stderr=True).print(f"written: {output}", soft_wrap=True)
