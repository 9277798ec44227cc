"""What every test stands on: no credentials, a Region, and no network beyond this machine (see pytest's options)."""

import gc
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("taskgov", deadline=None, derandomize=True)  # a busy machine is no failure; seeded
settings.load_profile("taskgov")


def pytest_collection_finish() -> None:
    """Let the collector pass over what was imported, a million objects: it looked at them again for each world."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _folders_that_go_with_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let reports of the demo, which stay for people to read, lie where pytest clears up."""
    kept, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("left"))
    yield
    tempfile.tempdir = kept


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a call that escapes the emulation fail instead of reaching an account."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for variable in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody's terminal, and no test runner, say how wide tables are."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no settings of the person who runs the tests reach a command (`taskgov_cli.settings`)."""
    monkeypatch.setenv("TASKGOV_CONFIG", os.devnull)
    for variable in ("TASKGOV_CLUSTER", "TASKGOV_STACK", "TASKGOV_CONTEXT", "TASKGOV_FORMAT", "TASKGOV_POLICY"):
        monkeypatch.delenv(variable, raising=False)
