"""Deploy another template over a running stack, or delete the stack: what changes, in which order, and what stays.

As CloudFormation does it: resources are created and changed after what they refer to, removed ones go last, an alias
with a deployment group is moved by CodeDeploy, and when that goes back, everything does. What CloudFormation would
replace, because a property cannot be changed in place, is changed in place anyway: see `docs/embedded-stack.md`.
"""

# ruff: noqa: SLF001 moto's CloudFormation has no other way in

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from moto.cloudformation import parsing
from moto.cloudformation.models import cloudformation_backends

from taskgov_embedded.cloudformation.resources import STACK_NAME, Resolved, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov_embedded.cloudformation.template import Translated
    from taskgov_embedded.place import Place


class DeploymentFailedError(Exception):
    """CodeDeploy took an alias back; the stack is as it was before."""


def references(node: Any) -> Iterator[str]:
    """Yield every name that a piece of a template refers to.

    >>> sorted(references({"a": {"Fn::Sub": "${Table.Arn}/${AWS::Region}"}, "b": [{"Ref": "Bus"}]}))
    ['AWS::Region', 'Bus', 'Table']
    """
    match node:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from (reference.partition(".")[0] for reference in re.findall(r"\$\{([^}!]+)\}", text))
        case {"Fn::Sub": [str(text), values]}:
            yield from references({"Fn::Sub": text})
            yield from references(values)
        case dict():
            for value in node.values():
                yield from references(value)
        case list():
            for value in node:
                yield from references(value)
        case _:
            return


def in_order(resources: Mapping[str, Any]) -> list[str]:
    """Return the logical ids, each after those that it refers to or depends on.

    >>> in_order({"A": {"Properties": {"To": {"Ref": "B"}}}, "B": {"DependsOn": "C"}, "C": {}})
    ['C', 'B', 'A']
    """
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in resources and name not in ordered:
            after = resources[name].get("DependsOn", [])
            for other in (*references(resources[name]), *([after] if isinstance(after, str) else after)):
                if other != name:
                    visit(other)
            ordered[name] = None

    for logical_id in resources:
        visit(logical_id)
    return list(ordered)


class Updates:
    """Changes of the one stack after it was created."""

    def __init__(
        self,
        place: Place,
        resources: Resources,
        take: Callable[[Resolved], None],
        move: Callable[[Resolved, Resolved], str | None],
    ) -> None:
        self._place = place
        self._resources = resources
        self._take = take
        self._move = move

    def update(self, translated: Translated, parameters: Mapping[str, str], *, gradually: bool = True) -> None:
        """Bring the stack to a template; not `gradually` is the way back, on which aliases jump."""
        self._resources.refuse_unknown(translated)
        stack = self._stack()
        known = stack.resource_map
        with self._resources.in_moto():
            before = known._resource_json_map
            stack.template, stack.parameters = json.dumps(translated.cfn), dict(parameters)
            stack._parse_template()
            known._template, known._resource_json_map = stack.template_dict, stack.template_dict["Resources"]
            known.input_parameters = dict(parameters)
            known.load_parameters()
            known.load_conditions()
            wanted = [name for name in in_order(known._resource_json_map) if _is_wanted(known, name)]
            for name in wanted:
                self._bring(known, name, gradually=gradually)
            for name in reversed([gone for gone in in_order(before) if gone not in wanted]):
                self._remove(known, name, before[name])
            stack.output_map = stack._create_output_map()
            self._resources.read_back()

    def delete(self) -> list[str]:
        """Delete the stack; return the logical ids of what is retained."""
        known = self._stack().resource_map
        with self._resources.in_moto():
            templates = known._resource_json_map
            made = [name for name in in_order(templates) if name in self._resources.resolved]
            retained = [name for name in made if templates[name].get("DeletionPolicy") == "Retain"]
            for name in reversed(made):
                self._remove(known, name, templates[name])
        return retained

    def _stack(self) -> Any:
        return cloudformation_backends[self._place.account][self._place.region].get_stack(STACK_NAME)

    def _bring(self, known: Any, name: str, *, gradually: bool) -> None:
        """Create a resource, or change it when its resolved properties are others than before."""
        resolved, json_of = self._resources.resolved, known._resource_json_map[name]
        before = resolved.get(name)
        if before is None:
            made = known[name]
            resolved[name].physical_id = made.physical_resource_id
            self._take(resolved[name])
            return
        _, resource, new_name = parsing.parse_resource_and_generate_name(name, json_of, known)
        resolved[name].physical_id = before.physical_id
        try:
            if resolved[name].properties != before.properties or before.kind == "AWS::Lambda::Function":
                self._change(known, name, resource, new_name, gradually=gradually)
        except DeploymentFailedError:
            resolved[name] = before
            raise

    def _change(self, known: Any, name: str, resource: Any, new_name: str, *, gradually: bool) -> None:
        resolved = self._resources.resolved[name]
        policy = known._resource_json_map[name].get("UpdatePolicy", {}).get("CodeDeployLambdaAliasUpdate")
        if policy is not None and gradually:
            why = self._move(resolved, self._resources.resolved[policy["DeploymentGroupName"]["Ref"]])
            if why is not None:
                raise DeploymentFailedError(f"{name}: {why}")
            return
        maker = parsing.resource_class_from_type(resolved.kind)
        if not hasattr(maker.update_from_cloudformation_json, "__isabstractmethod__"):
            made = maker.update_from_cloudformation_json(
                original_resource=known[name],
                new_resource_name=new_name,
                cloudformation_json=resource,
                account_id=self._place.account,
                region_name=self._place.region,
            )
            made.cf_resource_type, made.logical_resource_id = resolved.kind, name
            known._parsed_resources[name] = made
        self._take(resolved)

    def _remove(self, known: Any, name: str, resource: Mapping[str, Any]) -> None:
        """Delete a resource that is no longer wanted, or let it go where it says Retain."""
        resolved = self._resources.resolved.pop(name, None)
        made = known._parsed_resources.pop(name, None)
        if resolved is None or resource.get("DeletionPolicy") == "Retain":
            return
        described = {"Type": resolved.kind, "Properties": resolved.properties}
        own_delete = getattr(made, "delete", None)
        if own_delete is not None and resolved.kind != "AWS::DynamoDB::Table":
            own_delete(self._place.account, self._place.region)
        else:
            parsing.parse_and_delete_resource(resolved.physical_id, described, self._place.account, self._place.region)


def _is_wanted(known: Any, name: str) -> bool:
    condition = known._resource_json_map[name].get("Condition")
    return condition is None or bool(known.lazy_condition_map[condition])
