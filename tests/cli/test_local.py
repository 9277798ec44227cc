"""`taskgov local`: what cannot be listened on, and a cluster that cannot be made, are named before anything starts."""

import socket

import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app


def refused(*words: str) -> str:
    result = CliRunner().invoke(app, ["local", *words], env={"COLUMNS": "300"})
    assert result.exit_code == 2, result.output
    return result.stderr


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--address", "127.0.0.1", "--port", str(port), "--kubernetes-port", str(port), "--bare", "foo")
    for words in (
        f"--port {port}: Address already in use; choose another port, or 0 for any that is free",
        f"--kubernetes-port {port}: Address already in use",
        "--bare 'foo': 'foo' is",
    ):
        assert words in said


def test_an_address_of_another_machine_is_named() -> None:
    assert "--address 192.0.2.1: it is not an address of this machine" in refused("--address", "192.0.2.1")


@pytest.mark.parametrize("command", ["approve", "reject", "rollback"])
def test_a_plan_s_id_is_refused_where_it_cannot_be_one(command: str) -> None:
    result = CliRunner().invoke(app, [command, "nosuch"], env={"COLUMNS": "300"})
    assert (result.exit_code, "'nosuch' is not the id of a plan, such as plan-0123456789abcdef" in result.stderr) == (
        2,
        True,
    )
