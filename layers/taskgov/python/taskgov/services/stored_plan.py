"""Read a plan that `plan_quotas` stored: the functions that write, verify and publish it are given a pointer."""

from taskgov.allocation.codec import plan_from_json
from taskgov.allocation.plan import Plan
from taskgov.contracts.steps import Pointer
from taskgov.errors import InvalidRequestError
from taskgov.ports import DocumentStore


def stored_plan(documents: DocumentStore, pointer: Pointer) -> Plan:
    """Return the plan that a pointer names.

    Raises InvalidRequestError when it is no plan that this version can read; NotFoundError, ThrottledError
    and UpstreamError (also for another digest) as the bucket does.
    """
    body = documents.get(pointer)
    try:
        return plan_from_json(body)
    except ValueError as error:  # without pydantic's sentence, which quotes the plan
        raise InvalidRequestError(f"{pointer.key} is no plan that this version can read") from error
