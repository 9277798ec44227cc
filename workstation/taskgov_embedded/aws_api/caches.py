"""Cache what botocore and moto compute again for each call and what never changes while a stack is open.

Each is a function of its arguments alone, so what a call gets is the same; a walkthrough makes a thousand calls.
`install` is called when a stack opens.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
import moto.core.utils
import moto.kms.models
from botocore.hooks import EVENT_ALIASES, EventAliaser
from botocore.useragent import UserAgentComponent
from moto.cloudwatch.models import CloudWatchBackend
from moto.core import responses, serialize
from moto.kms.utils import KeySpec

from taskgov_embedded.aws_api.clients import shared_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.aws_api.patches import Patches

_loader_of_moto = cache(moto.core.utils.create_loader)
_own_generate_private_key = moto.kms.models.generate_private_key


def install(patches: Patches) -> None:
    """Begin to keep it."""
    patches.replace(
        UserAgentComponent,
        "to_string",
        lru_cache(maxsize=512)(UserAgentComponent.to_string),
        "speed: botocore writes the same words again with each call",
    )
    patches.replace(
        responses,
        "method_names_from_class",
        lru_cache(responses.method_names_from_class),
        "speed: moto looks through all methods of a service with each call",
    )
    patches.replace(
        moto.kms.models,
        "generate_private_key",
        _generate_private_key,
        "speed: moto makes a pair of keys for a symmetric key, a tenth of a second each",
    )
    patches.replace(
        botocore.session,
        "create_loader",
        shared_loader,
        "speed: a command makes sessions of its own, and each reads the service models",
    )
    patches.replace(
        moto.core.utils,
        "create_loader",
        _loader_of_moto,
        "speed: moto lists all services of botocore for each service model that it reads",
    )
    patches.replace(
        CloudWatchBackend,
        "get_filtered_metrics",
        _distinct_metrics,
        "moto lists a metric with two dimensions once for each value, and compares each value with all others",
    )
    patches.replace(
        EventAliaser,
        "__init__",
        _init_sharing_names(EventAliaser.__init__),
        "speed: each client looks the same names of events up again",
    )
    patches.replace(
        serialize.BaseJSONSerializer,
        "_serialize_type_structure",
        _serialize_structure,
        "speed: moto looks for each of the ten members in each value of DynamoDB",
    )


def _init_sharing_names(own: Callable[..., None]) -> Callable[..., None]:
    """Look an event's name up among the aliases once for all clients: each has the same aliases."""
    names: dict[str, str] = {}

    def init(aliaser: Any, emitter: Any, event_aliases: Mapping[str, str] | None = None) -> None:
        own(aliaser, emitter, event_aliases)
        if aliaser._event_aliases == EVENT_ALIASES:  # noqa: SLF001 botocore keeps both to itself
            aliaser._alias_name_cache = names  # noqa: SLF001

    return init


def _distinct_metrics(
    cloudwatch: Any, metric_name: str | None, namespace: str | None, dimensions: list[dict[str, str]]
) -> list[Any]:
    """Return one value of each metric (namespace, name, dimensions) that is requested, in the order of their first."""
    first: dict[Any, Any] = {}
    for value in cloudwatch.get_all_metrics():
        if value.filter(namespace=namespace, name=metric_name, dimensions=dimensions):
            names = frozenset((dimension.name, dimension.value) for dimension in value.dimensions)
            first.setdefault((value.namespace, value.name, names), value)
    return list(first.values())


_own_serialize_structure = serialize.BaseJSONSerializer._serialize_type_structure  # noqa: SLF001 a private name


def _serialize_structure(serializer: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
    """Give a value of DynamoDB as it is: moto keeps it as it is sent, and looks for each of its ten members."""
    if shape.name == "AttributeValue" and key and _is_as_sent(value):
        serializer._default_serialize(serialized, value, shape, key)  # noqa: SLF001 as above
    else:
        _own_serialize_structure(serializer, serialized, value, shape, key)


def _is_as_sent(value: Any) -> bool:
    """Return whether a value of DynamoDB is plain data; of binary data (B, BS) moto encodes it.

    >>> _is_as_sent({"M": {"name": {"S": "alpha"}, "tags": {"L": [{"N": "1"}]}}}), _is_as_sent({"L": [{"B": b"1"}]})
    (True, False)
    """
    if type(value) is not dict or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    if kind == "M":
        return type(content) is dict and all(map(_is_as_sent, content.values()))
    if kind == "L":
        return type(content) is list and all(map(_is_as_sent, content))
    return kind in {"S", "N", "BOOL", "NULL"} and type(content) in {str, bool}


def _generate_private_key(key_spec: str) -> Any:
    """Leave a symmetric key without a pair of keys, which it does not have; moto takes a tenth of a second for one."""
    return None if key_spec == KeySpec.SYMMETRIC_DEFAULT else _own_generate_private_key(key_spec)
