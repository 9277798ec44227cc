"""What of a report may be shown to strangers? Forms, codes, times and sentences; no names, numbers or addresses.

`Redaction.of` takes the words that are known to be private; what has the form of an account id, a key, an address, an
instance or an ARN goes whatever it says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ACCOUNT: Final = "111122223333"
"""The account of AWS's documentation."""
GONE: Final = "REDACTED"
PRIVATE: Final = frozenset(
    {
        "accessKeyId",
        "accountId",
        "creationDate",
        "credentialId",
        "eventID",
        "id",
        "principalId",
        "recipientAccountId",
        "requestID",
        "sharedEventID",
        "sourceIPAddress",
        "sourceIdentity",
        "userId",
        "userName",
        "vpcEndpointId",
    }
)
"""Members of a CloudTrail event that say who or where: they stay, and what they say goes.

`sourceIPAddress` stays where it names a service of AWS, which shows who called."""
_PARTITIONS: Final = r"aws[a-z-]*"
_ARN: Final = re.compile(
    rf"arn:({_PARTITIONS}):([a-z0-9-]+):([a-z0-9-]*):([0-9]{{12}})?:([A-Za-z-]*)([/:]?)[^\s\"',;)\]]*"
)
_FORMS: Final = (
    (re.compile(r"\b[0-9]{12}\b"), ACCOUNT),
    (re.compile(r"\b(?:AKIA|ASIA|AIDA|AROA|ANPA|AGPA)[A-Z0-9]{8,}(?::[^\s\"',;]+)?"), GONE),
    (re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b"), "192.0.2.1"),
    (re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}\b"), "2001:db8::1"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "somebody@example.com"),
    (re.compile(r"\b(?:i|vpc|vpce|subnet|sg|eni)-[0-9a-f]{8,17}\b"), f"i-{GONE}"),
)


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes private words out of data. The longest goes first, so that no part of one stays."""

    words: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, private: Mapping[str, str]) -> Redaction:
        """Return the redaction of these words; each is written as what it stands for."""
        found = {word: stands for word, stands in private.items() if word}
        return cls(tuple(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0]))))

    def data(self, value: Any, member: str = "") -> Any:
        """Return data of JSON's types with the same members; what is private in its texts is written over."""
        if isinstance(value, dict):
            return {self.text(str(name)): self.data(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item, member) for item in value]
        if not isinstance(value, str):
            return value
        if member in PRIVATE and not value.endswith(".amazonaws.com"):
            return ACCOUNT if member.lower().endswith("accountid") else GONE
        return self.text(value)

    def text(self, text: str) -> str:
        """Return a text without what is private.

        Example:
            >>> Redaction.of({"ana": "USER"}).text("ana made arn:aws:sagemaker:eu-west-1:444455556666:cluster/abc123")
            'USER made arn:aws:sagemaker:eu-west-1:111122223333:cluster/REDACTED'
        """
        text = _ARN.sub(_arn, text)
        for word, stands in self.words:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", stands, text)
        for form, stands in _FORMS:
            text = form.sub(stands, text)
        return text


def _arn(found: re.Match[str]) -> str:
    partition, service, region, account, kind, mark = found.groups(default="")
    kept = kind + mark if mark and service != "s3" else ""  # a bucket has no kind before its name
    return f"arn:{partition}:{service}:{region}:{ACCOUNT if account else ''}:{kept}{GONE}"


def identity_words(arn: str) -> Iterable[str]:
    """Return the words of a caller's ARN that name somebody: user, role, session.

    Example:
        >>> list(identity_words("arn:aws:sts::111122223333:assumed-role/Admin/maria"))
        ['Admin', 'maria']
    """
    return arn.rpartition(":")[2].split("/")[1:]
