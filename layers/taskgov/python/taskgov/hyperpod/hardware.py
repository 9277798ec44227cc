"""Which instance types does a selector of hardware stand for? A family, an accelerator, or a pattern of type names.

Policy documents promise by them (`families` of a team); the plan expands them to the types that the cluster has.
"""

import re
from collections.abc import Mapping
from typing import Final

from taskgov.hyperpod.instance_types import PREFIX

ACCELERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "t4": ("g4dn",),
    "a10g": ("g5",),
    "l4": ("g6", "gr6"),
    "l40s": ("g6e",),
    "rtx-pro-6000": ("g7e",),
    "a100": ("p4d", "p4de"),
    "h100": ("p5",),
    "h200": ("p5e", "p5en"),
    "b200": ("p6-b200",),
    "b300": ("p6-b300",),
    "gb200": ("p6e-gb200",),
    "trainium": ("trn1", "trn1n", "trn2"),
    "trainium1": ("trn1", "trn1n"),
    "trainium2": ("trn2",),
}
"""Accelerator -> families of instances that have it (EC2 accelerated computing)."""
SELECTOR: Final = re.compile(r"[a-z0-9*]([a-z0-9.*-]*[a-z0-9*])?")


def is_selector(text: str) -> bool:
    """Return whether a text has the form of a selector: `p5`, `h100`, `ml.p5.*`.

    Example:
        >>> [is_selector(text) for text in ("p5", "h100", "ml.g5.*", "ml.p5.48xlarge", "*", "P5", "ml.p5", "")]
        [True, True, True, False, False, False, False, False]

    """
    if len(text) > 64 or SELECTOR.fullmatch(text) is None or not text.strip("*."):
        return False
    return "*" in text if "." in text else "*" not in text


def stands_for(selector: str, instance_type: str) -> bool:
    """Return whether an instance type, with or without `ml.`, is one of those that the selector means.

    Example:
        >>> [stands_for(each, "ml.p5.48xlarge") for each in ("p5", "h100", "ml.p5.*", "p5e", "ml.*.8xlarge")]
        [True, True, True, False, False]

    """
    name = instance_type.removeprefix(PREFIX)
    if "." in selector:
        pattern = ".*".join(map(re.escape, selector.removeprefix(PREFIX).split("*")))
        return re.fullmatch(pattern, name) is not None
    return name.partition(".")[0] in ACCELERATORS.get(selector, (selector,))
