"""Make boto3 sessions that share what they read of botocore's service models, which takes most of a start."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.loaders import create_loader


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
