"""Notices to people by SNS."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskgov.adapters.errors import translated
from taskgov.printable import printable

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

SUBJECT_LIMIT = 99
"""SNS refuses subjects of 100 characters and more."""
TEXT_LIMIT = 60_000
"""SNS refuses messages of more than 256 KiB; a character has at most four bytes."""


class Topic:
    """The `Notices` port over one topic."""

    def __init__(self, client: "SNSClient", arn: str) -> None:
        self._client = client
        self._arn = arn

    def send(self, subject: str, text: str) -> None:
        """Send one notice; what others wrote in it is shown by its escape where it is not seen."""
        with translated(f"send notice {subject!r}"):
            self._client.publish(
                TopicArn=self._arn,
                Subject=printable(subject)[:SUBJECT_LIMIT],
                Message=printable(text, keep="\n", limit=TEXT_LIMIT),
            )


class TopicsOfTeams:
    """The `TeamTopics` port over SNS: any topic that a message names, as far as the function's role reaches."""

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

    def send_chat(self, topic_arn: str, message: Mapping[str, Any]) -> None:
        """Send one message as JSON; characters that are not seen are escaped by its author."""
        with translated(f"send chat message to {topic_arn}"):
            self._client.publish(TopicArn=topic_arn, Message=json.dumps(message))
