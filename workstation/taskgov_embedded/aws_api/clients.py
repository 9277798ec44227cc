"""Make boto3 clients for the stack's own use: a person's, or a role's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.config import Config

from taskgov_embedded.aws_api.sessions import new_session

if TYPE_CHECKING:
    from taskgov_embedded.iam.identity import Identities
    from taskgov_embedded.place import Place


class Clients:
    """Clients by service and role, made once each; with one try per call, because retries are the caller's to see."""

    def __init__(self, place: Place, identities: Identities) -> None:
        self._place = place
        self._identities = identities
        self._made: dict[tuple[str, str, bool], Any] = {}
        self._session: Any = None

    def of_person(self, service: str, person: str | None = None) -> Any:
        """Return a client whose calls are not checked against policies; `person` is the user who calls."""
        return self._client(service, None, session=person or "", validate=True)

    def of_role(self, service: str, role_arn: str, session: str, *, validate: bool = True) -> Any:
        """Return a client that signs as a session of the role."""
        return self._client(service, role_arn, session=session, validate=validate)

    def _client(self, service: str, role_arn: str | None, *, session: str, validate: bool) -> Any:
        key = (service, f"{role_arn}/{session}", validate)
        if key not in self._made:
            if self._session is None:
                self._session = new_session()
            access_key = self._identities.key_of(session)
            signed: dict[str, str] = {"aws_access_key_id": access_key, "aws_secret_access_key": "secret"}
            if role_arn is not None:
                credentials = self._identities.assume(role_arn, session)
                signed = {
                    "aws_access_key_id": credentials.access_key,
                    "aws_secret_access_key": credentials.secret_key,
                    "aws_session_token": credentials.token,
                }
            config = Config(parameter_validation=validate, retries={"total_max_attempts": 1})
            self._made[key] = self._session.client(service, region_name=self._place.region, config=config, **signed)
        return self._made[key]
