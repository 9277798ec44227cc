"""A policy document, or everything that is wrong with it at once.

The snapshot, the command line and the storing of a document call `parse_policy`. A document with any violation is not
used at all: the plan then changes nothing and says why.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final

from pydantic import ValidationError

from taskgov.findings import Finding
from taskgov.findings.of_document import NO_TEAMS, TEAM_WITHOUT_PROMISE
from taskgov.hyperpod.cluster_arn import EKS_ARN
from taskgov.hyperpod.limits import CLUSTER_ARN, ENTITY_NAME, CheckLimits, matcher
from taskgov.policy.backends import EKS_BACKENDS
from taskgov.policy.cluster import eks_arn_in, names_eks_backend
from taskgov.policy.document import PolicyDocument
from taskgov.policy.draft import Broken, Draft
from taskgov.policy.keys import WEIGHT, unknown_keys
from taskgov.policy.rules import broken_rules
from taskgov.policy.rules_notices import broken_notice_rules
from taskgov.policy.salvage import Remains
from taskgov.policy.text import read_text
from taskgov.policy.warnings import Place, policy_warnings
from taskgov.violations import UNKNOWN_KEY, Location, Violation, path_of, value_of, violations_from

MAX_VIOLATIONS: Final = 100
"""A document with more mistakes gets the first of them."""
MAX_SALVAGED: Final = 1_000
"""With more refused pieces than this, the rest is not checked: removing them would cost more than it shows."""
REMEMBERED: Final = 16
"""Documents that were read lately and are not read again: publishing reads each of them every minute."""
MAX_PASSES: Final = 40
"""Each pass takes the refused pieces off, and at least one is: no document is that deep."""


@dataclass(frozen=True, slots=True)
class ParsedPolicy:
    """The document when nothing is wrong with it; otherwise what is. `warnings` do not keep it from being used."""

    document: PolicyDocument | None
    violations: tuple[Violation, ...] = ()
    warnings: tuple[Finding, ...] = ()


def of_cluster(parsed: ParsedPolicy, name: str, arn: str) -> ParsedPolicy:
    """Return the document of the cluster with this name and ARN: a document that names another cluster breaks a rule.

    Documents are stored by the cluster's name, and whoever may write to the bucket may store any of them. A name is
    also used again, by a new cluster with another ARN.
    """
    if parsed.document is None:
        return parsed
    named, wanted = parsed.document.cluster, {"name": name, "arn": arn}
    rule = "must be that of the cluster for which the document is stored: "
    wrong = tuple(
        Violation(f"cluster.{key}", value_of(getattr(named, key)), f"{rule}{value}")
        for key, value in wanted.items()
        if getattr(named, key) != value
    )
    return replace(parsed, document=None, violations=wrong) if wrong else parsed


@lru_cache(maxsize=REMEMBERED)
def parse_stored(body: bytes) -> ParsedPolicy:
    """Read a policy document as `parse_policy`; the one that was read lately is not read again."""
    return parse_policy(body)


def parse_policy(text: str | bytes) -> ParsedPolicy:
    """Read a policy document from YAML or JSON; bytes are UTF-8.

    Example:
        >>> parsed = parse_policy("{apiVersion: taskgov/v2, teams: [{name: team-a, tier: high, shares: []}]}")
        >>> for violation in parsed.violations:
        ...     print(violation)
        teams[0].shares: [] - is an unknown key; did you mean share?
        apiVersion: "taskgov/v2" - must be 'taskgov/v1'
        cluster: (missing) - is required
        teams[0].tier: "high" - must be a whole number

    """
    read = read_text(text)
    if read.data is None:
        return ParsedPolicy(None, _first(read.violations))
    return _parse(read.data, read.violations)


def _parse(given: dict[str, Any], violations: list[Violation]) -> ParsedPolicy:
    data, weights = _with_weights_lifted(given)
    remains = Remains(data)
    violations += islice(unknown_keys(given), MAX_VIOLATIONS + 1)
    document, error = _salvaged(remains)
    if error is not None:
        violations += _field_violations(error, weights)
    if document is None:
        return ParsedPolicy(None, _first(violations))

    def place(location: Location) -> str:
        return path_of(remains.original(location))

    draft = Draft(document, _team_names(data))
    asked = chain(_cluster_rule(document, given), broken_rules(draft), broken_notice_rules(draft))
    refused = [violation.path for violation in violations]

    def has_refused(path: str) -> bool:
        """Return whether something in there was refused, so that it is missing in the draft and not in the document."""
        return any(inner.startswith((f"{path}.", f"{path}[")) for inner in refused)

    of_their_own = (broken for broken in asked if not (broken.missing and has_refused(place(broken.location))))
    rules = islice(of_their_own, MAX_VIOLATIONS + 1)
    violations += [_violation(broken, place) for broken in rules]
    violations += _two_weights(given)
    missing = {NO_TEAMS.code, TEAM_WITHOUT_PROMISE.code}
    warned = policy_warnings(draft, place)
    warnings = tuple(found for found in warned if found.code not in missing or not has_refused(found.subject))
    return ParsedPolicy(None if violations else document, _first(violations), warnings)


def _first(violations: list[Violation]) -> tuple[Violation, ...]:
    if len(violations) <= MAX_VIOLATIONS:
        return tuple(violations)
    more = Violation("(document)", f"more than {MAX_VIOLATIONS} mistakes", "are not all listed: correct these first")
    return (*violations[:MAX_VIOLATIONS], more)


def _salvaged(remains: Remains) -> tuple[PolicyDocument | None, ValidationError | None]:
    """Return what is left when all that is refused is taken off, and what was refused at first."""
    first: ValidationError | None = None
    for _ in range(MAX_PASSES):
        try:
            return _validated(remains.data), first
        except ValidationError as error:
            first = first or error
            if error.error_count() > MAX_SALVAGED:
                break
            remains.drop(error)
    return None, first


def _validated(data: dict[str, Any]) -> PolicyDocument:
    """Validate as JSON and strictly: a text is not a number, and a time is a text."""
    cluster = data.get("cluster")
    # An EKS cluster's ARN without the backend is one mistake, and not one for each of its instance types.
    plain = eks_arn_in(cluster) is not None or names_eks_backend(cluster)
    return PolicyDocument.model_validate_json(
        json.dumps(data),
        strict=True,
        extra="forbid",
        context=CheckLimits(plain_instance_types=plain),
        by_alias=True,
        by_name=False,
    )


def _with_weights_lifted(given: dict[str, Any]) -> tuple[dict[str, Any], set[int]]:
    """Move each `quota.FairShareWeight` to its team, where the model has it; return the data and whose it was."""
    teams = given.get("teams")
    if not isinstance(teams, list):
        return given, set()
    lifted = {index for index, team in enumerate(teams) if _has_weight_in_quota(team)}
    return {**given, "teams": [_lifted(team) if n in lifted else team for n, team in enumerate(teams)]}, lifted


def _has_weight_in_quota(team: Any) -> bool:
    return isinstance(team, dict) and isinstance(team.get("quota"), dict) and WEIGHT in team["quota"]


def _lifted(team: dict[str, Any]) -> dict[str, Any]:
    quota = {key: value for key, value in team["quota"].items() if key != WEIGHT}
    return {**team, "quota": quota, "fairShareWeight": team["quota"][WEIGHT]}


def _two_weights(given: dict[str, Any]) -> list[Violation]:
    """Refuse two weights that differ: one may stand in the quota or beside it."""
    teams = given.get("teams")
    return [
        Violation(path_of(("teams", index, "fairShareWeight")), value_of(team["fairShareWeight"]), rule)
        for index, team in enumerate(teams if isinstance(teams, list) else ())
        if _has_weight_in_quota(team) and team.get("fairShareWeight", team["quota"][WEIGHT]) != team["quota"][WEIGHT]
        for rule in (f"differs from quota.FairShareWeight {value_of(team['quota'][WEIGHT])}",)
    ]


def _field_violations(error: ValidationError, weights: set[int]) -> list[Violation]:
    """Return what pydantic refused; unknown keys are named elsewhere, with what may have been meant."""
    return [
        Violation(path_of(_as_written(location, weights)), violation.value, violation.rule)
        for location, violation in violations_from(error)
        if violation.rule != UNKNOWN_KEY
    ]


def _as_written(location: Location, weights: set[int]) -> Location:
    """Return the place where the document has it: a lifted weight is in the quota."""
    if location[:1] == ("teams",) and location[2:] == ("fairShareWeight",) and location[1] in weights:
        return (*location[:2], "quota", WEIGHT)
    return location[:-1] if location[-1:] == ("[key]",) else location


def _cluster_rule(document: PolicyDocument, given: dict[str, Any]) -> list[Broken]:
    """Ask for name and ARN of what the backend writes to: the HyperPod cluster, or the EKS cluster of that name."""
    cluster = document.cluster
    said = given.get("cluster")
    if not isinstance(said, dict) or said.get("backend", cluster.backend) != cluster.backend:
        return []  # The backend was refused: which ARN it needs is not known.
    eks = EKS_ARN.fullmatch(cluster.arn)
    if not cluster.backend.is_of_hyperpod:
        if eks is None:
            rule = f"must be the ARN of the EKS cluster, for backend {cluster.backend} ({EKS_ARN.pattern})"
            return [Broken(("cluster", "arn"), cluster.arn, rule)]
        rule = f"must be the EKS cluster's: {eks['name']}"
        return [] if eks["name"] == cluster.name else [Broken(("cluster", "name"), cluster.name, rule)]
    broken = []
    if eks is None and not matcher(ENTITY_NAME.pattern)(cluster.name):
        rule = f"must be {ENTITY_NAME.meaning} ({ENTITY_NAME.pattern})"
        broken.append(Broken(("cluster", "name"), cluster.name, rule))
    if matcher(CLUSTER_ARN.pattern)(cluster.arn):
        return broken
    rule = f"must be {CLUSTER_ARN.meaning} ({CLUSTER_ARN.pattern})"
    if eks is not None:
        named = " or ".join(f"`backend: {backend}`" for backend in EKS_BACKENDS)
        rule = f"is an EKS cluster's: without HyperPod say {named}, with it give the HyperPod cluster's ARN"
    return [*broken, Broken(("cluster", "arn"), cluster.arn, rule)]


def _team_names(data: dict[str, Any]) -> frozenset[str]:
    """Return every team's name, also of teams with other mistakes: one mistake should not look like two."""
    teams = data.get("teams")
    names = (team.get("name") for team in teams if isinstance(team, dict)) if isinstance(teams, list) else ()
    return frozenset(name for name in names if isinstance(name, str))


def _violation(broken: Broken, place: Place) -> Violation:
    rule = f"{broken.rule}: first in {place(broken.first)}" if broken.first else broken.rule
    return Violation(place(broken.location), value_of(broken.value), rule)
