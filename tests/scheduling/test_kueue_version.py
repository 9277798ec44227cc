"""Which Kueue the model follows, how a release is read, and what is known to differ."""

from __future__ import annotations

import pytest

from taskgov.scheduling.config import GATE_DEFAULTS
from taskgov.scheduling.kueue_version import (
    DIFFERENCES,
    FOLLOWED,
    IN_ADD_ON,
    Release,
    differences,
    is_followed,
    release_of,
    said_differences,
)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", "0.19.2"),
        ("us-central1-docker.pkg.dev:443/k8s-staging/kueue:v0.20.0-devel-377-gff69552", "0.20.0"),
        ("kueue:0.18", "0.18"),
        ("602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/kueue:v0.19.2@sha256:0a1b", "0.19.2"),
        ("v1.6.0-eksbuild.1", "0.19.2"),
        ("v1.3.2-eksbuild.1", "0.12"),
        ("v1.4.0-eksbuild.1", "None"),
        ("localhost:5000/kueue", "None"),
        ("kueue:main", "None"),
        ("", "None"),
    ],
)
def test_a_release_is_read_from_an_image_or_an_add_on(version: str, release: str) -> None:
    assert str(release_of(version)) == release


def test_the_newest_add_on_has_the_release_that_is_followed() -> None:
    assert IN_ADD_ON[max(IN_ADD_ON)] == FOLLOWED
    assert is_followed(Release(0, 19, 9))
    assert not is_followed(Release(0, 20))


def test_differences_are_those_between_both_releases_whichever_is_older() -> None:
    newer, older = differences(Release(0, 20, 3)), differences(Release(0, 18))
    assert "v1beta1 is no longer served" in newer
    assert len(newer) == sum(difference.since == (0, 20) for difference in DIFFERENCES)
    assert len(older) == sum(difference.since == (0, 19) for difference in DIFFERENCES)
    assert set(differences(Release(0, 12))) > set(older)
    assert differences(FOLLOWED) == ()


def test_a_release_says_on_which_side_the_differences_are() -> None:
    assert said_differences(Release(0, 20)).startswith("it has, beyond the model: a preemptor")
    assert said_differences(Release(0, 18)).startswith("it does not have yet: a flavor search")
    assert said_differences(FOLLOWED) == "nothing is known to differ"


def test_differences_stand_in_the_order_of_their_versions() -> None:
    assert list(DIFFERENCES) == sorted(DIFFERENCES, key=lambda difference: difference.since)
    assert GATE_DEFAULTS["RecomputeAssignmentUponPreemptionTargetsOverlap"] is False
