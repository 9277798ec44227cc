"""Which backends a document may name, and what decisions have to know of each.

How each is recognised and built is in `taskgov.backends.registry`, which has a row for every name.
"""

from enum import StrEnum
from typing import Final


class Backend(StrEnum):
    """Who keeps a cluster's quotas, as `cluster.backend` says it."""

    SAGEMAKER = "sagemaker"
    KUEUE = "kueue"

    @property
    def is_of_hyperpod(self) -> bool:
        """Whether its clusters are HyperPod's: known by SageMaker's ARN, with instance types that begin with `ml.`.

        Those of the others are EKS clusters: known by EKS's ARN in their document, and every node counts.
        """
        return self is Backend.SAGEMAKER

    @property
    def writes_kueue_objects(self) -> bool:
        """Whether the automation itself writes the Kueue objects, whole; else something else makes them of quotas."""
        return self is Backend.KUEUE


EKS_BACKENDS: Final = tuple(backend for backend in Backend if not backend.is_of_hyperpod)
"""Those whose clusters are EKS clusters without HyperPod."""
