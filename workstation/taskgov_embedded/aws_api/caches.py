"""Let botocore and moto keep what they find out again with each call, though it never changes while a stack is open.

Each is a function of its arguments alone, so what a call gets is the same; a walkthrough makes a thousand calls.
`Caches.install` is called when a stack opens and `uninstall` when it closes.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
import moto.kms.models
from botocore.hooks import EVENT_ALIASES, EventAliaser
from botocore.useragent import UserAgentComponent
from moto.core import responses, serialize
from moto.core.base_backend import BaseBackend
from moto.kms.utils import KeySpec

from taskgov_embedded.aws_api.sessions import shared_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_own_urls: Any = inspect.getattr_static(BaseBackend, "urls")
_own_generate_private_key = moto.kms.models.generate_private_key


class Caches:
    """What is kept for one stack."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Begin to keep it."""
        self._replace(UserAgentComponent, "to_string", lru_cache(maxsize=512)(UserAgentComponent.to_string))
        self._replace(responses, "method_names_from_class", lru_cache(responses.method_names_from_class))
        self._replace(serialize, "xform_name", lru_cache(maxsize=4096)(serialize.xform_name))
        # moto's S3 reads its module of patterns again for each request, in case a variable has changed.
        self._replace(BaseBackend, "urls", property(lambda backend: _urls(type(backend), backend)))
        self._replace(moto.kms.models, "generate_private_key", _generate_private_key)
        # A command makes sessions of its own; tests run many commands in one process.
        self._replace(botocore.session, "create_loader", shared_loader)
        self._share_the_names_of_events()
        self._replace(serialize.BaseJSONSerializer, "_serialize_type_structure", _serialize_structure)

    def uninstall(self) -> None:
        """Leave botocore and moto as they were, last first."""
        while self._undo:
            self._undo.pop()()

    def _share_the_names_of_events(self) -> None:
        """Look an event's name up among the aliases once for all clients: each has the same aliases."""
        own_init, names = EventAliaser.__init__, dict[str, str]()

        def init(aliaser: Any, emitter: Any, event_aliases: Mapping[str, str] | None = None) -> None:
            own_init(aliaser, emitter, event_aliases)
            if aliaser._event_aliases == EVENT_ALIASES:  # noqa: SLF001 botocore keeps both to itself
                aliaser._alias_name_cache = names  # noqa: SLF001

        self._replace(EventAliaser, "__init__", init)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = inspect.getattr_static(owner, name)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before))


_own_serialize_structure = serialize.BaseJSONSerializer._serialize_type_structure  # noqa: SLF001 a private name


def _serialize_structure(serializer: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
    """Give a value of DynamoDB as it is: moto keeps it as it is sent, and looks for each of its ten members."""
    if shape.name == "AttributeValue" and key and _is_as_sent(value):
        serializer._default_serialize(serialized, value, shape, key)  # noqa: SLF001 as above
    else:
        _own_serialize_structure(serializer, serialized, value, shape, key)


def _is_as_sent(value: Any) -> bool:
    """Say whether a value of DynamoDB is plain data; of binary data (B, BS) moto knows how it is sent.

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


_KEPT_URLS: dict[type, Any] = {}


def _urls(kind: type, backend: Any) -> Any:
    if kind not in _KEPT_URLS:
        _KEPT_URLS[kind] = _own_urls.fget(backend)
    return _KEPT_URLS[kind]


def _generate_private_key(key_spec: str) -> Any:
    """Leave a symmetric key without a pair of keys, which it does not have; moto takes a tenth of a second for one."""
    return None if key_spec == KeySpec.SYMMETRIC_DEFAULT else _own_generate_private_key(key_spec)
