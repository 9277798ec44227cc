"""A control plane on loopback: etcd, an API server with RBAC, and Kueue's manager. Nothing schedules or runs pods.

Jobs are suspended and resumed by Kueue itself; without a Job controller they never have pods, so that an eviction
finishes at once. What ends a job, the tests write into its status.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import yaml
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from tests.cluster import installation
from tests.cluster.certificates import authority, signed
from tests.cluster.kube import AT_ONCE, KUEUE, Kube, is_true, wait_for
from tests.cluster.processes import Program, free_ports, start
from tests.cluster.tokens import Authenticator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.binaries import Binaries
    from tests.cluster.kube import Object

START_SECONDS: Final = 120
_DEFINITIONS: Final = "apiextensions.k8s.io/v1"


class ControlPlane:
    """The three programs, with their files in `folder`."""

    def __init__(self, binaries: Binaries, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._etcd_port, self._peer_port, self._api_port, self._webhook_port, authenticator_port = free_ports(5)
        self.authenticator = Authenticator(authenticator_port)
        self._authority = authority(installation.AUTHORITY)
        self._programs: dict[str, Program] = {}
        self._configured: Object | None = None

    def start(self) -> Kube:
        """Start etcd and the API server, install Kueue's definitions; return the administrator's access."""
        self._start_etcd()
        self.start_api_server()
        kube = Kube(self.kubeconfig("administrator", "system:masters"))
        serving = signed(self._authority, "kueue", hosts=(installation.SERVICE_HOST,))
        serving.write(self._folder / "kueue-certificates")
        kube.apply(
            *installation.manifests(self._binaries.modules, self._webhook_port, self._authority, serving),
            manager="installation",
        )
        return kube

    def stop(self) -> None:
        """Stop everything, last started first."""
        for name in reversed(tuple(self._programs)):
            self._programs.pop(name).stop()
        self.authenticator.stop()

    @property
    def endpoint(self) -> tuple[str, bytes]:
        """The API server's address, and the certificate (PEM) of the authority that vouches for it."""
        return f"https://127.0.0.1:{self._api_port}", self._authority.certificate_pem

    def kubeconfig(self, user: str, group: str) -> Path:
        """Write a kubeconfig with a client certificate for a user of a group; return its path."""
        certificate, key = signed(self._authority, user, group).write(self._folder / "users", user)
        path = self._folder / f"{user}.kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{self._api_port}", "certificate-authority": str(self._ca)}
        credentials = {"client-certificate": str(certificate), "client-key": str(key)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def run_kueue(self, kube: Kube, governance: Object) -> None:
        """Let Kueue's manager run with this configuration; restart it when it runs with another one."""
        if governance == self._configured:
            return
        if running := self._programs.pop("kueue", None):
            running.stop()
        content = installation.configuration(governance, self._webhook_port, self._folder / "kueue-certificates")
        path = self._folder / "kueue.yaml"
        path.write_text(yaml.safe_dump(content))
        kubeconfig = self.kubeconfig(installation.MANAGER, "managers")
        self._run("kueue", [f"--config={path}", f"--kubeconfig={kubeconfig}", "--zap-log-level=2"])
        self._wait_for_kueue(kube)
        self._configured = governance

    def serve_old_versions(self, kube: Kube, *, served: bool) -> None:
        """Serve Kueue's kinds in all versions, or only in those in which they are stored; wait until it is so."""
        for kind in kube.list(_DEFINITIONS, "CustomResourceDefinition"):
            spec = kind["spec"]
            if spec["group"] != installation.GROUP or len(spec["versions"]) < 2:
                continue
            versions = [{**one, "served": served or one["storage"]} for one in spec["versions"]]
            change = {"spec": {"versions": versions}}
            manifest = {"apiVersion": _DEFINITIONS, "kind": "CustomResourceDefinition", "metadata": kind["metadata"]}
            kube.merge(manifest, change, "installation")
            for one in versions:
                path = f"/apis/{spec['group']}/{one['name']}/{spec['names']['plural']}?limit=1"
                what = f"{path} is {'' if one['served'] else 'not '}served"
                wait_for(what, partial(_is_so, kube, path, one["served"]), START_SECONDS)

    @property
    def runs_kueue(self) -> bool:
        """Say whether Kueue's manager runs."""
        return "kueue" in self._programs

    @property
    def kueue_log(self) -> Path:
        """The log of Kueue's manager."""
        return self._folder / "kueue.log"

    def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        certificate, key = signed(self._authority, "apiserver", hosts=("127.0.0.1", "localhost")).write(
            self._folder / "apiserver"
        )
        self._run("kube-apiserver", self._api_server_arguments(certificate, key))
        kubeconfig, somebody = (
            self.kubeconfig("administrator", "system:masters"),
            self.kubeconfig("somebody", "anybody"),
        )
        wait_for("the API server is ready", lambda: self._api_answers(kubeconfig), START_SECONDS)
        wait_for("roles count", lambda: self._api_answers_somebody(somebody), START_SECONDS)
        if self.runs_kueue:
            with closing(Kube(kubeconfig, AT_ONCE)) as kube:
                self._wait_for_kueue(kube)

    def stop_api_server(self) -> None:
        """Stop the API server; the others go on without it."""
        self._programs.pop("kube-apiserver").stop()

    def _start_etcd(self) -> None:
        url, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        arguments = [
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ]
        self._run("etcd", arguments)

    def _api_server_arguments(self, certificate: Path, key: Path) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._api_port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self._ca}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--authentication-token-webhook-config-file={self.authenticator.kubeconfig(self._folder)}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=1s",
            f"--audit-policy-file={self._audit_policy}",
            f"--audit-log-path={self.audit_log}",
            "--disable-admission-plugins=ServiceAccount",
        ]

    @property
    def audit_log(self) -> Path:
        """Every request that was answered to a user whose token was reviewed, one JSON object a line."""
        return self._folder / "audit.log"

    @property
    def _audit_policy(self) -> Path:
        path = self._folder / "audit-policy.yaml"
        rules = [
            {
                "level": "Metadata",
                "userGroups": ["taskgov-readers", "taskgov-writers"],
                "omitStages": ["RequestReceived"],
            },
            {"level": "None"},
        ]
        path.write_text(yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return path

    @property
    def _ca(self) -> Path:
        path = self._folder / "ca.crt"
        if not path.exists():
            path.write_bytes(self._authority.certificate_pem)
        return path

    def _run(self, name: str, arguments: list[str]) -> None:
        self._programs[name] = start(self._binaries.folder / name, self._folder, arguments)

    def _api_answers(self, kubeconfig: Path) -> bool:
        """Ask whether it is ready, for something of each kind, and whether each version is listed.

        A store that begins refuses a while longer, and the list of versions lags behind.
        """
        self._programs["kube-apiserver"].ensure_runs()
        try:
            # The client may find its discovery in a cache on disk, and so come as far as the question.
            with closing(Kube(kubeconfig, AT_ONCE)) as kube:
                if not kube.ready():
                    return False
                for one in kube.list(_DEFINITIONS, "CustomResourceDefinition"):
                    group = one["spec"]["group"]
                    kube.list(f"{group}/{one['spec']['versions'][0]['name']}", one["spec"]["names"]["kind"])
                    versions = [each["name"] for each in one["spec"]["versions"] if each["served"]]
                    if not all(kube.answers(f"/apis/{group}/{version}") for version in versions):
                        return False
                return True
        except (ApiException, HTTPError, ResourceNotFoundError):
            return False

    @staticmethod
    def _api_answers_somebody(kubeconfig: Path) -> bool:
        """Ask as a user whose rights come from roles: the server denies them for a moment after it is ready."""
        try:
            with closing(Kube(kubeconfig, AT_ONCE)) as kube:
                return kube.answers("/apis")
        except (ApiException, HTTPError, ResourceNotFoundError):
            return False

    def _wait_for_kueue(self, kube: Kube) -> None:
        """Wait until every webhook and conversion lets something through, and the controllers have seen it.

        Each kind is watched by itself, and comes back from a restart of the API server in its own time: a LocalQueue
        is active when it, its ClusterQueue and the flavor of that have been seen; a Job has a workload that waits for
        quota when it, the workload and the queues have been seen.
        """
        quota = {"name": "cpu", "nominalQuota": "0"}
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "probe", "resources": [quota]}]}
        flavor, queue, door = (
            {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": "probe", **place}, "spec": spec}
            for kind, place, spec in (
                ("ResourceFlavor", {}, {}),
                ("ClusterQueue", {}, {"resourceGroups": [group]}),
                ("LocalQueue", {"namespace": "default"}, {"clusterQueue": "probe"}),
            )
        )
        for probe in (flavor, queue, door):
            wait_for(f"Kueue lets a {probe['kind']} through", partial(self._made, kube, probe), START_SECONDS)
        wait_for(
            "Kueue follows", lambda: is_true(kube.get(KUEUE, "LocalQueue", "probe", "default"), "Active"), START_SECONDS
        )
        wait_for("Kueue lets a Job through", partial(self._made, kube, _JOB), START_SECONDS)
        wait_for("Kueue considers a Job", lambda: any(map(_waits, _workloads_of_the_probe(kube))), START_SECONDS)
        kube.delete([_JOB, *_workloads_of_the_probe(kube)])
        wait_for("the Job is gone", lambda: not _workloads_of_the_probe(kube), START_SECONDS)
        kube.delete([door, queue, flavor])
        wait_for("the probe is gone", lambda: not any(map(partial(_is_there, kube), (queue, flavor))), START_SECONDS)

    def _made(self, kube: Kube, probe: Object) -> bool:
        self._programs["kueue"].ensure_runs()
        try:
            kube.create(probe)
        except ApiException as error:
            return bool(error.status == HTTPStatus.CONFLICT)  # an earlier answer was lost
        return True


_JOB: Final[Object] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "probe", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "probe"}},
    "spec": {
        "suspend": True,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
            }
        },
    },
}
"""A Job that no quota admits."""


def _workloads_of_the_probe(kube: Kube) -> list[Object]:
    found = kube.list(KUEUE, "Workload")
    return [one for one in found if one["metadata"]["namespace"] == "default" and one["spec"]["queueName"] == "probe"]


def _waits(workload: Object) -> bool:
    told = (workload.get("status") or {}).get("conditions") or []
    return any(one["type"] == "QuotaReserved" and one["status"] == "False" for one in told)


def _is_there(kube: Kube, probe: Object) -> bool:
    return any(one["metadata"]["name"] == "probe" for one in kube.list(KUEUE, probe["kind"]))


def _is_so(kube: Kube, path: str, wanted: bool) -> bool:
    return kube.answers(path) is wanted
