"""Let botocore and moto keep what they find out again with each call, though it never changes while a stack is open.

Each is a function of its arguments alone, so what a call gets is the same; a walkthrough makes a thousand calls.
`Thrift.install` is called when a stack opens and `uninstall` when it closes.
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

from taskgov_embedded.sessions import shared_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_own_urls: Any = inspect.getattr_static(BaseBackend, "urls")
_own_generate_private_key = moto.kms.models.generate_private_key


class Thrift:
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


_KEPT_URLS: dict[type, Any] = {}


def _urls(kind: type, backend: Any) -> Any:
    if kind not in _KEPT_URLS:
        _KEPT_URLS[kind] = _own_urls.fget(backend)
    return _KEPT_URLS[kind]


def _generate_private_key(key_spec: str) -> Any:
    """Leave a symmetric key without a pair of keys, which it does not have; moto takes a tenth of a second for one."""
    return None if key_spec == KeySpec.SYMMETRIC_DEFAULT else _own_generate_private_key(key_spec)
