"""Make boto3 sessions and clients; sessions share what they read of botocore's service models."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import create_loader

from taskgov_embedded.aws_api.patches import Patches

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


@cache
def _shared_loader() -> Any:
    return create_loader()


def shared_loader(search_path: str | None = None) -> Any:
    """Return the process's loader of service models, where botocore makes one; one of its own for another path."""
    if search_path is not None:
        return create_loader(search_path)
    loader = _shared_loader()
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # boto3 adds its own path each time
    return loader


def new_session() -> boto3.Session:
    """Return a session of its own (credentials, Region, clients) with the process's service models."""
    session = botocore.session.Session()
    session.register_component("data_loader", shared_loader())
    return boto3.Session(botocore_session=session)


def _import_ec2() -> None:
    """Import moto's EC2, as all of moto does."""
    patches = Patches()
    with patches.within():
        why = "speed: moto makes three sessions to list Regions, and each reads the endpoints of all"
        patches.replace(botocore.session, "create_loader", shared_loader, why)
        import_module("moto.ec2.models")


_import_ec2()
