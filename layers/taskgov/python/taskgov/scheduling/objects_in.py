"""Which objects are there? What is applied, checked and deleted, and what of it the model does not follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from taskgov.scheduling import kueue_fields, kueue_forms, reading, reports
from taskgov.scheduling.check_reading import is_active_check
from taskgov.scheduling.fair_admission import read_consumed
from taskgov.scheduling.fields_in_use import not_modelled
from taskgov.scheduling.limit_ranges import read_limit_range, read_overhead
from taskgov.scheduling.objects import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from taskgov.scheduling.reports import KueueModelReports
from taskgov.scheduling.shapes import shape_of_pods
from taskgov.scheduling.store import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskgov.scheduling.objects import Workload

Value = ResourceFlavor | Cohort | ClusterQueue | LocalQueue
"""An object that is not a workload, as a value."""
_NO_STATUS: Final[Mapping[str, Any]] = {}


class KueueModelObjects(KueueModelReports):
    """The half of a model that takes objects in."""

    def load(self, objects: Iterable[Mapping[str, Any]], *, are_checked: bool = False) -> None:
        """Apply many objects, or whole lists as `kubectl get -o json` prints them, in an order that suits them.

        Raises `ValueError` as `apply` does, before any of them is applied.
        """
        flat = [item if are_checked else self._checked(item) for obj in objects for item in _items(obj)]
        for obj in sorted(flat, key=lambda o: KINDS.index(o["kind"]) if o["kind"] in KINDS else len(KINDS)):
            self._take(obj)

    def apply(self, obj: Mapping[str, Any], *, is_checked: bool = False, pods: bytes | None = None) -> None:
        """Add or change one object of `kueue.x-k8s.io` v1beta1 or v1beta2, a Namespace, LimitRange or RuntimeClass.

        The status of a workload or LocalQueue is read when it is new; from then on its status is this world's, except
        what others write (`reports.observe`).
        Raises `ValueError` for an object of another kind or one that cannot be read, and names the field, its value and
        the rule; the model stays as it was then. An object that `is_checked` has the form of its kind already. `pods`
        is the shape of a workload's pod sets, if it is known.
        """
        self._take(obj if is_checked else self._checked(obj), pods)

    @staticmethod
    def _checked(obj: object) -> Mapping[str, Any]:
        found = kueue_forms.checked(obj)
        kind = found["kind"]
        if kind not in kueue_fields.KINDS and kind not in KINDS:
            raise ValueError(f"kind is {kind!r:.80}: Kueue does not schedule by objects of kind {kind}")
        return found

    def _take(self, obj: Mapping[str, Any], pods: bytes | None = None) -> None:
        store, name = self._store, reading.name_of(obj)
        if pods is None and obj["kind"] == "Workload":
            pods = shape_of_pods(obj)
        self._remember_unmodelled(obj, pods)
        match obj["kind"]:
            case "Workload":
                self.submit(store.read(obj, pods), obj.get("status") or {})
            case "Namespace":
                store.put_namespace(name, obj["metadata"].get("labels") or {})
            case "ResourceFlavor":
                store.put_flavor(reading.read_flavor(obj))
            case "WorkloadPriorityClass":
                store.put_priority_class(name, int(obj["value"]))
            case "Cohort":
                store.put_cohort(reading.read_cohort(obj))
            case "ClusterQueue":
                store.put_queue(reading.read_cluster_queue(obj))
            case "LocalQueue":
                store.put_local_queue(reading.read_local_queue(obj), read_consumed(obj))
            case "LimitRange":
                store.put_limit_range(reading.namespace_of(obj), name, read_limit_range(obj))
            case "RuntimeClass":
                store.put_runtime_class(name, read_overhead(obj))
            case "AdmissionCheck":
                store.put_check(name, active=is_active_check(obj))
            case _:  # a kind of Kueue's that decides nothing
                pass

    def submit(self, workload: Workload, status: Mapping[str, Any] = _NO_STATUS) -> None:
        """Add or change a workload given as a value."""
        record = self._store.records.get(workload.key)
        if record is None:
            self._store.add_workload(workload, status)
        else:
            self._store.change_workload(record, workload)
            if status:
                reports.observe(self._store, record, status)

    def put_queue_spec(self, spec: ClusterQueue) -> None:
        """Add or change a ClusterQueue given as a value."""
        self._store.put_queue(spec)

    def suppose(self, spec: ClusterQueue) -> None:
        """Let a queue have another spec for questions only; put its own back (`queue_spec`) before anything else."""
        self._store.suppose(spec)

    def put(self, value: Value) -> None:
        """Add or change an object given as a value."""
        match value:
            case ResourceFlavor():
                self._store.put_flavor(value)
            case Cohort():
                self._store.put_cohort(value)
            case ClusterQueue():
                self._store.put_queue(value)
            case LocalQueue():
                self._store.put_local_queue(value)

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Set a namespace's labels."""
        self._store.put_namespace(name, labels)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete one object. Raises `KeyError` when there is none."""
        self._unmodelled.pop((kind, namespace, name), None)
        self._store.drop(kind, name, namespace)

    def _remember_unmodelled(self, obj: Mapping[str, Any], pods: bytes | None) -> None:
        features = not_modelled(obj, pods)
        if not features and not self._unmodelled:
            return
        key = (obj["kind"], reading.namespace_of(obj), reading.name_of(obj))
        self._unmodelled.pop(key, None)
        if features:
            self._unmodelled[key] = features


def _items(obj: Any) -> Sequence[Any]:
    """Return the objects of a list, or the object itself. Raises `ValueError` for a list whose items are none."""
    items = obj.get("items", [obj]) if isinstance(obj, Mapping) else [obj]
    if not isinstance(items, list | tuple):
        raise ValueError(f"items is {items!r:.60}: a list is needed")  # noqa: TRY004
    return items
