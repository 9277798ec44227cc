"""Read the lists of a cluster's nodes and quotas as they were sent: botocore's parser takes four times as long.

Half of its time goes into times, which stay numbers here.
Source: botocore's event `before-parse`, whose `customized_response_dict` completes what the parser returns.
"""

from functools import partial
from typing import Any, Final

from pydantic_core import from_json

_LISTS: Final = {"ListClusterNodes": "ClusterNodeSummaries", "ListComputeQuotas": "ComputeQuotaSummaries"}


def read_lists_as_sent(client: Any) -> None:
    """Let the client read the pages of these lists without its parser."""
    for operation, member in _LISTS.items():
        client.meta.events.register(f"before-parse.sagemaker.{operation}", partial(_read, member))


def _read(member: str, response_dict: Any, customized_response_dict: Any, **_context: object) -> None:
    """Read a page without members that are null. An error, or an answer of another form, is left to botocore."""
    body = response_dict["body"]
    if response_dict["status_code"] != 200:
        return
    try:
        answer = from_json(body)
    except ValueError:
        return
    answer = _without_null(answer) if b"null" in body else answer
    if isinstance(answer, dict) and isinstance(answer.get(member), list) and all(map(_is_summary, answer[member])):
        customized_response_dict.update(answer)
        response_dict["body"] = b"{}"


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(member) for name, member in value.items() if member is not None}
    return [_without_null(element) for element in value] if isinstance(value, list) else value


def _is_summary(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("InstanceStatus", {}), dict)
