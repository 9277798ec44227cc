"""Read YAML with libyaml where PyYAML has it: a template of 5,000 lines takes a second without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml
from samtranslator.yaml_helper import intrinsics_multi_constructor

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TemplateLoader(_SAFE):  # type: ignore[valid-type, misc]
    """Reads the short forms of CloudFormation's functions (`!Ref`, `!Sub`) too."""


_TemplateLoader.add_multi_constructor("!", intrinsics_multi_constructor)


def read(text: str) -> Any:
    """Return the only document of a text."""
    return _single(text, _SAFE)


def read_all(text: str) -> Iterator[Any]:
    """Return the documents of a text, one after another."""
    return yaml.load_all(text, _SAFE)


def read_template(text: str) -> Any:
    """Return a template as the SAM translator takes it."""
    return _single(text, _TemplateLoader)


def _single(text: str, loader: type[Any]) -> Any:
    reading = loader(text)
    try:
        return reading.get_single_data()
    finally:
        reading.dispose()
