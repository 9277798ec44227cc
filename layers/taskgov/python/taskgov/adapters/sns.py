"""Notices to people by SNS."""

from typing import TYPE_CHECKING

from taskgov.adapters.errors import translated

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

SUBJECT_LIMIT = 99
"""SNS refuses subjects of 100 characters and more."""


class Topic:
    """The `Notices` port over one topic."""

    def __init__(self, client: "SNSClient", arn: str) -> None:
        self._client = client
        self._arn = arn

    def send(self, subject: str, text: str) -> None:
        """Send one notice."""
        with translated(f"send notice {subject!r}"):
            self._client.publish(TopicArn=self._arn, Subject=subject[:SUBJECT_LIMIT], Message=text)
