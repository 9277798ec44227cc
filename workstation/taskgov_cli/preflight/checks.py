"""What of the account and the Region does not fit the stack? Pure decisions: one row for each thing that is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.facts import Unknown
from taskgov_cli.doctor.network import reachable
from taskgov_cli.preflight import partitions
from taskgov_cli.preflight.limits import KEPT_UNRESERVED, LAMBDA_CONCURRENCY, LIMITS, USUAL_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_cli.doctor.facts import Read
    from taskgov_cli.preflight.built import Built
    from taskgov_cli.preflight.facts import Account, Concurrency, Quota
    from taskgov_cli.preflight.needs import Needs
    from taskgov_cli.preflight.template import Template

MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the stack needs, and how the account stands to it."""

    what: str
    status: Status
    needed: str
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What will be deployed."""

    template: Template
    needs: Needs
    stack: str
    services: tuple[str, ...]
    without_endpoint: tuple[str, ...]
    built: Built | None


def rows(asked: Asked, account: Account) -> list[Row]:
    """Return every row, in the order in which to fix them."""
    place = asked.template.place
    found = [
        _identity(account),
        _partition(asked),
        _endpoints(asked),
        _orders(asked),
        _clusters(asked, account),
        _stack(asked, account),
        _architecture(asked),
        *(_definition(name, problems) for name, problems in account.definitions.items()),
        *_lambda(asked, account.concurrency),
        *(_quota(name, asked, quota) for name, quota in account.quotas.items()),
    ]
    if account.network is None:
        return found
    what, needed = "network", "each service that the functions call, from their subnets"
    if isinstance(account.network, Unknown):
        return [*found, _unread(what, needed, account.network)]
    diagnosis = reachable(account.network, place.region, watches_ec2=asked.template.condition("WatchesPlainEks"))
    remedy = "\n".join((*diagnosis.fix, *([diagnosis.note] if diagnosis.note else ())))
    return [*found, Row(what, diagnosis.status, needed, diagnosis.because, remedy)]


def _unread(what: str, needed: str, unknown: Unknown) -> Row:
    remedy = 'see docs/deploy.md, "Before the first deployment", for what the caller needs to be allowed'
    return Row(what, Status.UNKNOWN, needed, unknown.reason, remedy)


def _identity(account: Account) -> Row:
    needed = "credentials of the account"
    if isinstance(account.identity, Unknown):
        return Row("account", Status.UNKNOWN, needed, account.identity.reason, "aws sts get-caller-identity")
    return Row("account", Status.OK, needed, account.identity)


def _partition(asked: Asked) -> Row:
    partition = asked.template.place.partition
    needed = "a partition that is known"
    if partition == "aws":
        return Row("partition", Status.OK, needed, partition)
    remedy = 'docs/deploy.md, "Other partitions", says it function by function; nothing has been deployed there so far'
    known = partition in partitions.KNOWN
    return Row(
        "partition",
        Status.WARNING,
        needed,
        partition if known else f"{partition}, about which nothing is known",
        remedy,
    )


def _endpoints(asked: Asked) -> Row:
    region = asked.template.place.region
    needed = f"{len(asked.services)} services in {region}"
    if not asked.without_endpoint:
        return Row("services", Status.OK, needed, "all have an endpoint")
    found = f"no endpoint of {', '.join(asked.without_endpoint)}, in the data of this botocore"
    return Row("services", Status.FAILED, needed, found, "choose another Region, or upgrade boto3 if the Region is new")


def _orders(asked: Asked) -> Row:
    place, through = asked.template.place, asked.template.parameters["OrdersThrough"]
    if through != "function-url":
        return Row("orders", Status.OK, through, "API Gateway")
    if partitions.has_function_urls(place.partition, place.region):
        return Row("orders", Status.OK, through, f"Lambda has function URLs in {place.region}")
    found = f"Lambda documents no function URLs for {place.region}"
    return Row("orders", Status.FAILED, through, found, "sam deploy --parameter-overrides OrdersThrough=api-gateway")


def _clusters(asked: Asked, account: Account) -> Row:
    service = "HyperPod" if "sagemaker" in asked.services else "EKS"
    needed = f"{service} answers in {asked.template.place.region}"
    if isinstance(account.clusters, Unknown):
        return _unread("clusters", needed, account.clusters)
    return Row("clusters", Status.OK, needed, f"it answers; clusters: {account.clusters}")


def _stack(asked: Asked, account: Account) -> Row:
    needed = f"no stack {asked.stack}, or one to update"
    if isinstance(account.stack, Unknown):
        return _unread("stack", needed, account.stack)
    if account.stack is None:
        return Row("stack", Status.OK, needed, "there is none")
    remedy = "taskgov doctor examines it; its resources are included in what is in use below"
    return Row("stack", Status.WARNING, needed, f"{asked.stack} is {account.stack}", remedy)


def _architecture(asked: Asked) -> Row:
    wanted = asked.template.parameters["Architecture"]
    build = f"sam build --parameter-overrides Architecture={wanted}"
    if asked.built is None:
        return Row("architecture", Status.WARNING, f"layers built for {wanted}", "nothing is built yet", build)
    wrong = {name: sorted(kinds) for name, kinds in asked.built.layers.items() if kinds - {wanted}}
    if not wrong:
        return Row("architecture", Status.OK, f"layers built for {wanted}", wanted)
    found = "; ".join(f"{name} is built for {', '.join(kinds)}" for name, kinds in wrong.items())
    return Row("architecture", Status.FAILED, f"layers built for {wanted}", found, build)


def _definition(name: str, problems: Read[tuple[str, ...]]) -> Row:
    what, needed = f"definition of {name}", "ValidateStateMachineDefinition finds no error"
    if isinstance(problems, Unknown):
        return _unread(what, needed, problems)
    if not problems:
        return Row(what, Status.OK, needed, "no error")
    remedy = "choose a Region whose Step Functions has these integrations"
    return Row(what, Status.FAILED, needed, "; ".join(problems), remedy)


def _lambda(asked: Asked, found: Read[Concurrency]) -> Iterator[Row]:
    needs = asked.needs
    needed = f"{needs.concurrency} calls at a time (governed clusters: {needs.clusters})"
    if isinstance(found, Unknown):
        yield _unread("lambda-concurrency", needed, found)
        return
    lacking = max(needs.concurrency, needs.reserved + KEPT_UNRESERVED if needs.reserved else 0) - found.unreserved
    raise_it = _raise("lambda", LAMBDA_CONCURRENCY, max(USUAL_CONCURRENCY, found.limit + lacking))
    enough = found.unreserved >= needs.concurrency
    said = f"{found.unreserved} of {found.limit} are unreserved"
    yield Row("lambda-concurrency", _status(good=enough), needed, said, "" if enough else raise_it)
    if needs.reserved:
        left = found.unreserved - needs.reserved
        wanted = f"ApplyConcurrency={needs.reserved} leaves {KEPT_UNRESERVED} unreserved"
        remedy = f"sam deploy --parameter-overrides ApplyConcurrency=0, or {raise_it}"
        good = left >= KEPT_UNRESERVED
        yield Row("lambda-reserved", _status(good=good), wanted, f"it leaves {max(left, 0)}", "" if good else remedy)
    size = 0 if asked.built is None else asked.built.size
    free = found.code_limit - found.code_used
    wanted = "room for the code" if asked.built is None else f"{size // MIB} MiB of code at most"
    good = free > size
    remedy = "" if good else "delete old versions of functions and layers, or request a higher quota"
    yield Row("lambda-storage", _status(good=good), wanted, f"{free // MIB} MiB are free", remedy)


def _quota(name: str, asked: Asked, found: Read[Quota]) -> Row:
    limit = LIMITS[name]
    amount = limit.needed(asked.needs)
    if isinstance(found, Unknown):
        return _unread(name, str(amount), found)
    used = found.in_use or 0
    said = f"{found.value:,} allowed" + ("" if found.in_use is None else f", {used:,} in use")
    good = used + amount <= found.value
    remedy = "" if good else _raise(limit.service, limit.names[0], used + amount)
    return Row(name, _status(good=good), str(amount), said, remedy)


def _raise(service: str, quota: str, value: int) -> str:
    code = quota if quota.startswith("L-") else "CODE"
    asking = f"--service-code {service} --quota-code {code} --desired-value {value}"
    return f"aws service-quotas request-service-quota-increase {asking}"


def _status(*, good: bool) -> Status:
    return Status.OK if good else Status.FAILED
