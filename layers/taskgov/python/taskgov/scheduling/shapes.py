"""The pods of most workloads have one of a few shapes: what is read of pods is read once for each shape.

A shape is the content of a value as bytes, so it is the same for equal values, and another one after a change.
"""

import marshal
from typing import Any, Final

KNOWN: Final = 4096
"""So many shapes are kept. A cluster has tens or hundreds of them."""
_WITHOUT_REFERENCES: Final = 2
"""The last format of `marshal` in which the bytes depend only on the value, not on which of its parts are shared."""


def shape_of(value: Any) -> bytes | None:
    """Return the shape of a value that is made of JSON's types; None for any other value.

    Example:
        >>> shape_of([{"count": 1}]) == shape_of([{"count": 1}]), shape_of([1]) == shape_of([True])
        (True, False)

    """
    try:
        return marshal.dumps(value, _WITHOUT_REFERENCES)
    except ValueError:
        return None


def shape_of_pods(workload: object) -> bytes | None:
    """Return the shape of the pod sets of a Workload; None for other objects."""
    spec = workload.get("spec") if isinstance(workload, dict) else None
    return shape_of(spec.get("podSets") or ()) if isinstance(spec, dict) else None


def value_of(shape: bytes) -> Any:
    """Return a value of this shape."""
    return marshal.loads(shape)  # noqa: S302 - bytes of `shape_of`  # nosec B302
