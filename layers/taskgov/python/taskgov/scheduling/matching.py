"""Do labels and taints let this pass? Label selectors, node affinity and tolerations, as Kubernetes matches them.

Called by `eligibility` (may these pods use this flavor?) and by the cycle (may this namespace use this queue?).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.scheduling.objects import PodSet, Requirement, ResourceFlavor, Selector, Taint, Toleration

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a namespace with `labels` is selected; no selector selects nothing, an empty one everything."""
    return selector is not None and all(meets(requirement, labels) for requirement in selector.requirements)


def meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return whether `labels` satisfy one expression. Raises `ValueError` for an operator Kubernetes does not have."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and is_integer(value) and int(value) > int(requirement.values[0])
        case "Lt":
            return value is not None and is_integer(value) and int(value) < int(requirement.values[0])
        case operator:
            raise ValueError(f"unknown selector operator {operator!r}")


def is_integer(text: str) -> bool:
    """Return whether a label's value is an integer that `Gt` and `Lt` compare (Go: `strconv.ParseInt` in base 10)."""
    return _INTEGER.fullmatch(text) is not None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether `toleration` covers `taint` (Kubernetes `Toleration.ToleratesTaint`)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def untolerated_taint(flavor: ResourceFlavor, tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps pods off this flavor's nodes; the flavor's own tolerations help."""
    helping = (*tolerations, *flavor.tolerations)
    for taint in flavor.taints:
        blocks = taint.effect in {"NoSchedule", "NoExecute"}
        if blocks and not any(tolerates(toleration, taint) for toleration in helping):
            return taint
    return None


def fits_affinity(flavor: ResourceFlavor, pod_set: PodSet) -> bool:
    """Return whether node selector and required affinity accept the flavor, looking only at labels the flavor sets.

    A term that says nothing about those labels accepts every flavor, and so does the whole affinity then (terms are
    alternatives).
    """
    labels = flavor.labels
    if any(labels.get(key, value) != value for key, value in pod_set.node_selector):
        return False
    terms = [[r for r in term if r.key in labels] for term in pod_set.affinity]
    return not terms or not all(terms) or any(all(meets(r, labels) for r in term) for term in terms)
