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


class TopicsOfTeams:
    """The `TeamTopics` port over SNS: whichever topic a message names, as far as the function's role reaches."""

    def __init__(self, client: "SNSClient", begin_with: str) -> None:
        self._client = client
        self._begin_with = begin_with

    @property
    def begin_with(self) -> str:
        """How the ARN of a topic must begin."""
        return self._begin_with

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        """Send one message."""
        Topic(self._client, topic_arn).send(subject, text)
