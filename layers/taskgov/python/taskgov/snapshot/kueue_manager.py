"""Which Kueue does a snapshot's cluster run? By the image of its manager, as far as that could be read."""

from typing import Final

from taskgov.hyperpod.names import KUEUE_NAMESPACE
from taskgov.scheduling.kueue_version import Release, release_of
from taskgov.snapshot.model import KueueObjects

MANAGER: Final = "kueue-controller-manager"
"""The Deployment of Kueue's manager, as its release and (inferred) HyperPod's add-on name it."""
MANAGER_PATH: Final = f"/apis/apps/v1/namespaces/{KUEUE_NAMESPACE}/deployments/{MANAGER}"


def kueue_release(kueue: KueueObjects) -> Release | None:
    """Return the release that the cluster runs, None where it is not known."""
    return release_of(kueue.manager_image) if kueue.manager_image else None


def unknown_because(kueue: KueueObjects) -> str:
    """Return why the release is not known; empty where it is, and where nobody has looked."""
    if kueue.manager_silence:
        return kueue.manager_silence
    if kueue.manager_image and kueue_release(kueue) is None:
        return f"the image {kueue.manager_image} does not say it"
    return ""
