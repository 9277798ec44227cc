"""Whether the cluster's Kueue decides as the scheduling model does: by its manager's image, else by the add-on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.hyperpod.names import KUEUE_NAMESPACE
from taskgov.scheduling.kueue_version import FOLLOWED, is_followed, release_of, said_differences
from taskgov_cli.doctor.diagnosis import Diagnosis, ok, unknown, warning
from taskgov_cli.doctor.facts import Unknown

if TYPE_CHECKING:
    from taskgov.scheduling.kueue_version import Release
    from taskgov_cli.doctor.facts import AddOn, Kueues, Read

LOOK = "kubectl get deployment kueue-controller-manager -n kueue-system -o jsonpath='{..image}'"


def kueue_version(kueues: Read[Kueues], add_on: Read[AddOn | None]) -> Diagnosis:
    """Check that the cluster's Kueue is of the minor version that predictions are made for."""
    check = "kueue-version"
    if add_on is None and not isinstance(kueues, Unknown) and not kueues.deployments:
        return ok(check, "there is no Kueue yet")
    release = _by_image(kueues) or _by_add_on(add_on)
    if release is None:
        unread = (found.reason for found in (kueues, add_on) if isinstance(found, Unknown))
        because = next(unread, "neither the image of its manager nor an add-on states it")
        return unknown(check, f"the version of the cluster's Kueue is not known: {because}", LOOK)
    if is_followed(release):
        return ok(check, f"Kueue {release}; the scheduling model follows {FOLLOWED}")
    differences = said_differences(release)
    note = "Predictions, explanations and what-if answers are those of the followed version: likely, not certain."
    return warning(check, f"Kueue {release}; the scheduling model follows {FOLLOWED}; {differences}", note=note)


def _by_image(kueues: Read[Kueues]) -> Release | None:
    """Return the release of the Kueue in its own namespace, else of another one."""
    if isinstance(kueues, Unknown):
        return None
    own_first = sorted(kueues.deployments, key=lambda deployment: deployment.namespace != KUEUE_NAMESPACE)
    return next(filter(None, (release_of(deployment.image) for deployment in own_first)), None)


def _by_add_on(add_on: Read[AddOn | None]) -> Release | None:
    return None if add_on is None or isinstance(add_on, Unknown) else release_of(add_on.version)
