"""Find the settings of a quota that SageMaker sends and this release does not know.

botocore drops members that its service model lacks, and an update replaces a quota's whole configuration: what was
dropped would be deleted by the next update. So the answer is read as it was sent.
Source: botocore's event `response-received`, which has the body before and after parsing.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from taskgov.hyperpod.model import ComputeQuota

OPERATIONS: Final = ("ListComputeQuotas", "DescribeComputeQuota")
_SENT: Final = "taskgov:sent"
_WRITTEN: Final = ("ComputeQuotaConfig", "ComputeQuotaTarget")
"""The members that an update replaces."""


def keep_what_was_sent(client: Any) -> None:
    """Let the client keep beside each quota that it reads what was sent of it, for `with_unknown_members`."""
    for operation in OPERATIONS:
        client.meta.events.register(f"response-received.sagemaker.{operation}", _keep)


def with_unknown_members(quota: ComputeQuota, answer: Mapping[str, Any]) -> ComputeQuota:
    """Return the quota with the settings in the answer that are unknown here."""
    sent = answer.get(_SENT, {})
    known = quota.to_api()
    unknown = [
        path for name in _WRITTEN if isinstance(sent, Mapping) for path in _unknown(sent.get(name), known[name], name)
    ]
    return quota.model_copy(update={"unknown_members": tuple(unknown)}) if unknown else quota


def _keep(parsed_response: Any, response_dict: Any, **_context: object) -> None:
    """Put what was sent into the answer, quota by quota. botocore calls it after parsing; errors have no quotas."""
    if not isinstance(parsed_response, dict) or "Error" in parsed_response or not response_dict.get("body"):
        return
    sent = json.loads(response_dict["body"])
    parsed_response[_SENT] = sent
    summaries = parsed_response.get("ComputeQuotaSummaries", ())
    for summary, own in zip(summaries, sent.get("ComputeQuotaSummaries", ()), strict=False):
        summary[_SENT] = own


def _unknown(sent: Any, known: Any, path: str) -> Iterator[str]:
    """Yield the paths of what was sent and is not known; a member that is null says nothing."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            if value is not None and name not in known:
                yield f"{path}.{name}"
            elif value is not None:
                yield from _unknown(value, known[name], f"{path}.{name}")
    elif isinstance(sent, list):
        for place, (item, own) in enumerate(zip(sent, known, strict=True)):
            yield from _unknown(item, own, f"{path}[{place}]")
