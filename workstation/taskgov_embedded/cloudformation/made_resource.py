"""The interface of moto's CloudFormation for a resource and its type, for those that are made here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.cloudformation.exceptions import UnformattedGetAttTemplateException

if TYPE_CHECKING:
    from collections.abc import Callable

Properties = dict[str, Any]


class MadeResource:
    """The interface of moto's CloudFormation for a resource: what `Ref` and `Fn::GetAtt` give."""

    def __init__(self, physical_id: str, **attributes: str) -> None:
        self.physical_resource_id = physical_id
        self.type = self.cf_resource_type = self.logical_resource_id = ""
        self._attributes = attributes

    def is_created(self) -> bool:
        """Say yes: nothing here takes time."""
        return True

    def has_cfn_attr(self, name: str) -> bool:
        """Return whether the type has the attribute; a typo in a template must not pass."""
        return name in self._attributes

    def get_cfn_attribute(self, name: str) -> str:
        """Return what `Fn::GetAtt` gives."""
        if name not in self._attributes:
            raise UnformattedGetAttTemplateException
        return self._attributes[name]


class MadeType:
    """A type that is made here: it stands in for a model class of moto's CloudFormation."""

    def __init__(
        self,
        kind: str,
        name_property: str | None,
        create: Callable[[str, Properties], MadeResource],
        update: Callable[[str, Properties], object] | None = None,
        delete: Callable[[str, Properties], object] | None = None,
    ) -> None:
        """Take the property that names such a resource, and what creates, changes and deletes one.

        `create` is given the name, the others what `Ref` gives, all of them the properties. Without `update` or
        `delete` nothing should be done: the resource is only written down.
        """
        self.kind = kind
        self.name_property = name_property
        self._create = create
        self._update = update
        self._delete = delete

    def create_from_cloudformation_json(
        self, name: str, resource: dict[str, Any], _account: str, _region: str, **_about: Any
    ) -> MadeResource:
        """Create a resource."""
        made = self._create(name, resource["Properties"])
        made.type = made.cf_resource_type = self.kind
        return made

    def update_from_cloudformation_json(self, original_resource: Any, cloudformation_json: Any, **_about: Any) -> Any:
        """Bring a resource to its new properties."""
        if self._update is not None:
            self._update(original_resource.physical_resource_id, cloudformation_json["Properties"])
        return original_resource

    def delete_from_cloudformation_json(self, name: str, resource: dict[str, Any], *_where: str) -> None:
        """Delete a resource."""
        if self._delete is not None:
            self._delete(name, resource["Properties"])

    def has_cfn_attr(self, _name: str) -> bool:
        """Leave it to the resource, once it is made: that refuses an attribute that its type has not."""
        return True
