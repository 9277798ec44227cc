"""`taskgov local`: serve an emulated account to functions in containers, to the AWS CLI and to kubectl."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import threading
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from taskgov.errors import InvalidRequestError
from taskgov_cli.grid import table
from taskgov_cli.output import console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.server.account import LocalAccount
    from taskgov_embedded.server.http_server import StackServer

LOOPBACK = "127.0.0.1"
Bare = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE=COUNT",
        help="Start with a bare cluster of these instances: no task governance add-on, no quotas, no jobs.",
    ),
]
Mode = Annotated[
    Literal["plan", "apply"],
    typer.Option(help="The stack's ApplyMode; with apply, runs write quotas and request approvals."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON when ready, for programs.")]
Address = Annotated[
    str | None,
    typer.Option(help="An address of this machine that containers can reach; default: the Docker bridge's."),
]


def local(
    address: Address = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the AWS endpoint.")] = 4566,
    kubernetes_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the cluster's Kubernetes API.")
    ] = 4567,
    bare: Bare = None,
    mode: Mode = "plan",
    as_json: AsJson = False,  # noqa: FBT002 - an option of a command
) -> None:
    """Serve an emulated account and cluster for `sam local invoke`, the AWS CLI and kubectl, until Ctrl-C.

    Example: taskgov local --bare ml.g5.8xlarge=4
    """
    # The embedded stack is a second of imports that no other command needs, and an extra of the package.
    from taskgov_embedded.server.account import LocalAccount, workers_of  # noqa: PLC0415
    from taskgov_embedded.server.http_server import StackServer  # noqa: PLC0415

    reached, *others = hosts_of(address)
    wrong = [*_not_free(address, {"--port": port, "--kubernetes-port": kubernetes_port}, [reached, *others])]
    workers = None
    try:
        workers = None if bare is None else workers_of(bare)
    except InvalidRequestError as error:
        wrong.append(str(error))
    if wrong:
        raise typer.BadParameter("\n".join(wrong))
    stopped = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    with (
        LocalAccount(reached, kubernetes_port, bare=workers, mode=mode) as account,
        StackServer(account.stack, [reached, *others], port) as server,
    ):
        _say(account, server, as_json=as_json)
        stopped.wait()


def hosts_of(address: str | None) -> list[str]:
    """Return the addresses to listen on: the one that containers reach first, then loopback."""
    return list(dict.fromkeys((address or bridge_address() or LOOPBACK, LOOPBACK)))


def bridge_address() -> str | None:
    """Return this machine's address on Docker's default bridge, where containers find it; None where there is none."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    asked = [docker, "network", "inspect", "bridge", "--format", "{{json .IPAM.Config}}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode != 0:
        return None
    (config, *_) = json.loads(done.stdout)
    found = config.get("Gateway") or str(next(ip_network(config["Subnet"]).hosts()))
    return found if _is_here(found) else None


def _not_free(address: str | None, ports: dict[str, int], hosts: list[str]) -> Iterator[str]:
    """Give what cannot be listened on: an address that is not this machine's, and ports that something else uses."""
    if address is not None and not _is_here(address):
        yield f"--address {address}: it is not an address of this machine"
        return
    for option, port in ports.items():
        try:
            for host in hosts:
                with socket.socket() as trial:
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    trial.bind((host, port))
        except OSError as error:
            yield f"{option} {port}: {error.strerror}; choose another port, or 0 for any that is free"


def _is_here(address: str) -> bool:
    """Return whether the address is this machine's: with Docker Desktop the bridge is in a virtual machine."""
    with socket.socket() as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


def described(account: LocalAccount, server: StackServer) -> dict[str, Any]:
    """Return where everything is, and for each function its variables and keys of its role."""
    return {
        "awsEndpoint": server.url,
        "kubernetesEndpoint": account.kubernetes_url,
        "clusterArn": account.cluster_arn,
        "bucket": account.stack.physical("GovernanceBucket"),
        "bus": account.stack.physical("GovernanceBus"),
        "reconcile": account.stack.physical("ReconcileStateMachine"),
        "people": {name: account.person(name) for name in account.people},
        "functions": {
            name: {
                "functionName": account.stack.physical(name),
                "environment": account.environment(name) | {"AWS_ENDPOINT_URL": server.url},
                "accessKeyId": account.credentials(name).access_key,
                "secretAccessKey": account.credentials(name).secret_key,
                "sessionToken": account.credentials(name).token,
            }
            for name in account.functions()
        },
    }


def _say(account: LocalAccount, server: StackServer, *, as_json: bool) -> None:
    about = described(account, server)
    if as_json:
        print(json.dumps(about), flush=True)
        return
    out = console()
    rows = [(name, about[name]) for name in ("awsEndpoint", "kubernetesEndpoint", "clusterArn", "bucket", "bus")]
    out.print(table("Served until Ctrl-C", ("what", "where"), rows))
    out.print(Text("\nIn another terminal:", style="bold"))
    for line in _what_next(about):
        out.print(Text(line), soft_wrap=True)


def _what_next(about: dict[str, Any]) -> list[str]:
    (name, keys), *_ = about["people"].items()
    signed = f"AWS_ACCESS_KEY_ID={keys['accessKeyId']} AWS_SECRET_ACCESS_KEY={keys['secretAccessKey']}"
    return [
        "  sam build && sam local invoke PlanQuotasFunction -e events/plan_quotas.json",
        f"  export AWS_ENDPOINT_URL={about['awsEndpoint']} AWS_DEFAULT_REGION=us-east-1 {signed}  # you are {name}",
        f"  aws sagemaker list-compute-quotas --cluster-arn {about['clusterArn']}",
        f"  aws s3 ls --recursive s3://{about['bucket']}",
        "  taskgov reconcile ml-cluster && taskgov history ml-cluster",
        f"  aws stepfunctions list-executions --state-machine-arn {about['reconcile']}",
    ]
