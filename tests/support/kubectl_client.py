"""A stand-in for kubectl: `python -m tests.support.kubectl_client get pods -n team-a`.

It carries out the commands of `docs/walkthroughs.md` through the Kubernetes Python client, with the user's kubeconfig,
and prints what kubectl prints. Tables come from the server, as kubectl's do. What it does not know it refuses (exit
code 2). Kinds built into Kubernetes are described in kubectl's general form, not in the one that it has for each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import config

from tests.support.kubectl_tables import table

JSON_FORM = "application/json"
TABLE_FORM = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATCHES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
HEAD = ("name", "namespace", "labels", "annotations", "managedFields")
ACRONYMS = ("API", "URL", "UID", "OSB", "GUID")
VERBS = ("get", "describe", "apply", "create", "delete", "scale", "patch", "label", "logs", "wait")
SECONDS = {"s": 1, "m": 60, "h": 3600}


class RefusedError(Exception):
    """The server's answer is an error."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"Error from server ({reason}): {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Kind:
    """A type that the server has."""

    place: str
    plural: str
    kind: str
    namespaced: bool
    names: frozenset[str]

    @property
    def shown(self) -> str:
        """The kind as kubectl names it before an object: `deployment.apps`."""
        group = self.place.split("/")[2] if self.place.startswith("/apis/") else ""
        return f"{self.kind.lower()}.{group}" if group else self.kind.lower()


class Api:
    """The server, and what discovery says of it."""

    def __init__(self) -> None:
        self._client = config.new_client_from_config(os.environ.get("KUBECONFIG"))
        self._kinds: list[Kind] = []

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = JSON_FORM,
        content: str = JSON_FORM,
        **query: str,
    ) -> Any:
        """Return the answer: JSON, or text where it is none."""
        request = self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Content-Type": content, "Accept": accept},
            body=body,
            auth_settings=["BearerToken"],
        )
        response = self._client.call_api(*request, _request_timeout=30)
        text = response.read().decode()
        answer = json.loads(text) if text.startswith("{") else text
        if response.status >= 400:
            told = answer if isinstance(answer, dict) else {"reason": response.reason, "message": text}
            raise RefusedError(response.status, told["reason"], told["message"])
        return answer

    def kind(self, name: str) -> Kind:
        """Return the type that a person calls so."""
        if not self._kinds:
            groups = self.send("GET", "/apis")["groups"]
            places = ["/api/v1", *(f"/apis/{one['preferredVersion']['groupVersion']}" for one in groups)]
            self._kinds = [kind for place in places for kind in self._at(place)]
        if (versioned := re.fullmatch(r"(\w+)\.(v\d\w*)\.(.+)", name)) is not None:
            plural, version, group = versioned.groups()
            return next(kind for kind in self._at(f"/apis/{group}/{version}") if plural in kind.names)
        for kind in self._kinds:
            if name.lower() in kind.names:
                return kind
        raise SystemExit(f'error: the server doesn\'t have a resource type "{name}"')

    def kind_of(self, item: dict[str, Any]) -> Kind:
        """Return the type of an object."""
        version = item["apiVersion"]
        place = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for kind in self._at(place):
            if kind.kind == item["kind"]:
                return kind
        raise SystemExit(f'error: no matches for kind "{item["kind"]}" in version "{version}"')

    def _at(self, place: str) -> list[Kind]:
        group = place.split("/")[2] if place.startswith("/apis/") else ""
        found = []
        for one in self.send("GET", place)["resources"]:
            names = {one["name"], one["singularName"], one["kind"].lower(), *one.get("shortNames", ())}
            qualified = {f"{name}.{group}" for name in names} if group else set()
            if "/" not in one["name"]:
                found.append(Kind(place, one["name"], one["kind"], one["namespaced"], frozenset(names | qualified)))
        return found


def path_of(kind: Kind, namespace: str | None, name: str = "", part: str = "") -> str:
    """Return the path of a list, of an object, or of a part of it."""
    middle = f"/namespaces/{namespace}" if kind.namespaced and namespace is not None else ""
    return f"{kind.place}{middle}/{kind.plural}" + (f"/{name}" if name else "") + (f"/{part}" if part else "")


class Program:
    """One command."""

    def __init__(self, words: argparse.Namespace, api: Api) -> None:
        self.words, self.api = words, api

    @property
    def namespace(self) -> str:
        return str(self.words.namespace or "default")

    def named(self) -> list[tuple[Kind, str]]:
        """Return the objects that the arguments name, as `TYPE NAME ...` or `TYPE/NAME ...`; no name stands for all."""
        first, *names = self.words.things
        if "/" in first:
            return [(self.api.kind(one.partition("/")[0]), one.partition("/")[2]) for one in self.words.things]
        kinds = [self.api.kind(one) for one in first.split(",")]
        return [(kind, name) for kind in kinds for name in names or [""]]

    def manifests(self) -> list[dict[str, Any]]:
        """Return the objects in the files, in order."""
        texts = [sys.stdin.read() if file == "-" else Path(file).read_text() for file in self.words.files]
        return [item for text in texts for item in yaml.safe_load_all(text) if item]

    def placed(self, item: dict[str, Any]) -> tuple[Kind, str | None, dict[str, Any]]:
        """Return an object's type, its namespace, and the object with it."""
        kind = self.api.kind_of(item)
        own = item["metadata"].get("namespace")
        if own and self.words.namespace and own != self.words.namespace:
            told = f'the namespace from the provided object "{own}" does not match'
            raise SystemExit(f'error: {told} the namespace "{self.words.namespace}". You must pass the same.')
        if not kind.namespaced:
            return kind, None, item
        namespace = own or self.namespace
        return kind, namespace, {**item, "metadata": {**item["metadata"], "namespace": namespace}}

    def get(self) -> None:
        """Print tables, or whole objects in another form."""
        named = self.named()
        printed = 0
        for kind, name in named:
            everywhere = self.words.everywhere and not name
            path = path_of(kind, None if everywhere else self.namespace, name)
            selects = {"labelSelector": self.words.selector} if self.words.selector and not name else {}
            if self.words.output not in {"", "wide"}:
                print(self._written(self.api.send("GET", path, **selects)))
                continue
            answer = self.api.send("GET", path, accept=TABLE_FORM, **selects)
            if not answer["rows"]:
                continue
            print("\n" * bool(printed) + self._table(answer, kind if len(named) > 1 else None, everywhere=everywhere))
            printed += 1
        if not printed and self.words.output in {"", "wide"}:
            where = "" if self.words.everywhere else f" in {self.namespace} namespace"
            print(f"No resources found{where}.", file=sys.stderr)

    def _table(self, answer: dict[str, Any], prefix: Kind | None, *, everywhere: bool) -> str:
        wide = self.words.output == "wide"
        columns = [one for one in answer["columnDefinitions"] if wide or one["priority"] == 0]
        kept = [index for index, one in enumerate(answer["columnDefinitions"]) if one in columns]
        rows = []
        for one in answer["rows"]:
            cells = [str(one["cells"][index]) for index in kept]
            if prefix is not None:
                cells[0] = f"{prefix.shown}/{cells[0]}"
            rows.append([one["object"]["metadata"].get("namespace", ""), *cells] if everywhere else cells)
        header = [*(["NAMESPACE"] if everywhere else []), *(one["name"].upper() for one in columns)]
        return table(header, rows)

    def _written(self, answer: dict[str, Any]) -> str:
        form, _, rest = self.words.output.partition("=")
        match form:
            case "json":
                return json.dumps(answer, indent=4)
            case "yaml":
                return str(yaml.safe_dump(answer, default_flow_style=False)).rstrip()
            case "jsonpath":
                return jsonpath(rest, answer)
            case "name":
                return "\n".join(
                    f"{self.api.kind_of(one).shown}/{one['metadata']['name']}" for one in answer.get("items", [answer])
                )
            case _:
                pass
        raise SystemExit(f"the stand-in for kubectl does not write -o {self.words.output}")

    def describe(self) -> None:
        """Print objects with everything in them, and their events."""
        told = []
        for kind, name in self.named():
            listed = self.api.send("GET", path_of(kind, self.namespace))["items"] if not name else None
            names = [one["metadata"]["name"] for one in listed] if listed is not None else [name]
            for each in names:
                item = self.api.send("GET", path_of(kind, self.namespace, each))
                events = f"/api/v1/namespaces/{item['metadata'].get('namespace', 'default')}/events"
                found = self.api.send("GET", events, fieldSelector=f"involvedObject.name={each}")["items"]
                told.append(described(item, found))
        print("\n\n\n".join(told))

    def apply(self) -> None:
        """Make what is not there, and bring what is there to what the files say."""
        for item in self.manifests():
            kind, namespace, wanted = self.placed(item)
            name = item["metadata"]["name"]
            path, strict = path_of(kind, namespace, name), self.words.validate
            try:
                before = self.api.send("GET", path)
            except RefusedError as refused:
                if refused.code != 404:
                    raise
                self.api.send("POST", path_of(kind, namespace), wanted, fieldValidation=strict)
                print(f"{kind.shown}/{name} created")
                continue
            after = self.api.send("PATCH", path, wanted, content=PATCHES["merge"], fieldValidation=strict)
            same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
            print(f"{kind.shown}/{name} {'unchanged' if same else 'configured'}")

    def create(self) -> None:
        """Make the objects of the files, or a namespace by its name."""
        items = self.manifests()
        if self.words.things:
            what, name = self.words.things
            items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]
            if self.api.kind(what).kind != "Namespace":
                raise SystemExit(f"the stand-in for kubectl does not create {what} by name")
        for item in items:
            kind, namespace, wanted = self.placed(item)
            self.api.send("POST", path_of(kind, namespace), wanted, fieldValidation=self.words.validate)
            print(f"{kind.shown}/{item['metadata']['name']} created")

    def delete(self) -> None:
        """Delete what the files or the arguments name, and wait until it is gone."""
        places = [(kind, space, item["metadata"]["name"]) for kind, space, item in map(self.placed, self.manifests())]
        if self.words.things:
            places += [(kind, self.namespace, name) for kind, name in self.named()]
        for kind, namespace, name in places:
            self.api.send("DELETE", path_of(kind, namespace, name))
            print(f'{kind.shown} "{name}" deleted')

    def scale(self) -> None:
        """Set the number of replicas."""
        for kind, name in self.named():
            body = {"spec": {"replicas": self.words.replicas}}
            self.api.send("PATCH", path_of(kind, self.namespace, name, "scale"), body, content=PATCHES["merge"])
            print(f"{kind.shown}/{name} scaled")

    def patch(self) -> None:
        """Change parts of an object."""
        [(kind, name)] = self.named()
        body = json.loads(self.words.patch)
        self.api.send("PATCH", path_of(kind, self.namespace, name), body, content=PATCHES[self.words.type])
        print(f"{kind.shown}/{name} patched")

    def label(self) -> None:
        """Set labels (`key=value`) and remove them (`key-`)."""
        changes = [one for one in self.words.things if "=" in one or one.endswith("-")]
        self.words.things = [one for one in self.words.things if one not in changes]
        labels = {one.partition("=")[0].removesuffix("-"): one.partition("=")[2] or None for one in changes}
        for kind, name in self.named():
            body = {"metadata": {"labels": labels}}
            self.api.send("PATCH", path_of(kind, self.namespace, name), body, content=PATCHES["merge"])
            print(f"{kind.shown}/{name} labeled")

    def logs(self) -> None:
        """Print what a pod's container has printed."""
        [name] = self.words.things
        kind = self.api.kind("pods")
        print(self.api.send("GET", path_of(kind, self.namespace, name, "log")), end="")

    def wait(self) -> None:
        """Wait until a condition holds, or objects are gone."""
        form, _, wanted = self.words.wait_for.partition("=")
        deadline = time.monotonic() + int(self.words.timeout[:-1]) * SECONDS[self.words.timeout[-1]]
        for kind, name in self.named():
            while not self._holds(path_of(kind, self.namespace, name), form, wanted):
                if time.monotonic() > deadline:
                    raise SystemExit(f"error: timed out waiting for the condition on {kind.plural}/{name}")
                time.sleep(0.2)
            print(f"{kind.shown}/{name} condition met")

    def _holds(self, path: str, form: str, wanted: str) -> bool:
        try:
            item = self.api.send("GET", path)
        except RefusedError as refused:
            return form == "delete" and refused.code == 404
        holding = [
            one["type"].lower() for one in item.get("status", {}).get("conditions", ()) if one["status"] == "True"
        ]
        return form == "condition" and wanted.lower() in holding


def jsonpath(template: str, item: Any) -> str:
    """Fill a template: each `{.a.b[0].c}` of it is what is there, other text stays.

    Example:
        >>> jsonpath("{.a.b[1]}", {"a": {"b": [1, {"c": 2}]}})
        '{"c":2}'

    """
    return re.sub(r"\{([^{}]*)\}", lambda found: _found(found[1], item), template)


def _found(path: str, item: Any) -> str:
    places = [item]
    for name, index in re.findall(r"\.([\w-]+)|\[(\d+|\*)\]", path):
        if name:
            places = [one[name] for one in places if isinstance(one, dict) and name in one]
        elif index == "*":
            places = [each for one in places for each in one]
        else:
            places = [one[int(index)] for one in places]
    told = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":"), sort_keys=True) for one in places]
    return " ".join(told)


def described(item: dict[str, Any], events: list[dict[str, Any]]) -> str:
    """Write an object as kubectl describes one of which it knows nothing in particular."""
    metadata = item["metadata"]
    lines = [f"Name:         {metadata['name']}", f"Namespace:    {metadata.get('namespace', '')}"]
    lines += [f"{label}{text}" for label, text in _pairs("Labels:", metadata.get("labels", {}))]
    lines += [f"{label}{text}" for label, text in _pairs("Annotations:", metadata.get("annotations", {}), ": ")]
    lines += [f"API Version:  {item['apiVersion']}", f"Kind:         {item['kind']}", "Metadata:"]
    lines += _content({name: value for name, value in metadata.items() if name not in HEAD}, 1)
    lines += _content(
        {name: value for name, value in item.items() if name not in {"apiVersion", "kind", "metadata"}}, 0
    )
    if not events:
        return "\n".join([*lines, "Events:  <none>"])
    seen = [f"  {one['type']}  {one['reason']}  {one['message']}" for one in events]
    return "\n".join([*lines, "Events:", *seen])


def _pairs(label: str, pairs: dict[str, str], sign: str = "=") -> list[tuple[str, str]]:
    texts = [f"{name}{sign}{value}" for name, value in sorted(pairs.items())] or ["<none>"]
    return [((label if index == 0 else "").ljust(14), text) for index, text in enumerate(texts)]


def _content(content: dict[str, Any], level: int) -> list[str]:
    lines, indent = [], "  " * level
    for name, value in sorted(content.items()):
        label = f"{indent}{_label(name)}:"
        if isinstance(value, dict):
            lines += [label, *_content(value, level + 1)]
        elif isinstance(value, list):
            lines.append(label)
            for one in value:
                lines += _content(one, level + 1) if isinstance(one, dict) else [f"{indent}  {one}"]
        else:
            shown = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
            lines.append(f"{label}  {shown}")
    return lines


def _label(name: str) -> str:
    """Write a field as words: `nominalQuota` is `Nominal Quota`; what is no field name stays."""
    if not re.fullmatch(r"[A-Za-z0-9]+", name):
        return name
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return " ".join(word.upper() if word.upper() in ACRONYMS else word[0].upper() + word[1:] for word in words)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Read a command line. Exits with code 2 for a flag that kubectl or the stand-in does not have."""
    parser = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("things", nargs="*")
    parser.add_argument("-n", "--namespace")
    parser.add_argument("-A", "--all-namespaces", dest="everywhere", action="store_true")
    parser.add_argument("-f", "--filename", dest="files", action="append", default=[])
    parser.add_argument("-o", "--output", default="")
    parser.add_argument("-l", "--selector", default="")
    parser.add_argument("-p", "--patch", default="{}")
    parser.add_argument("--type", choices=PATCHES, default="strategic")
    parser.add_argument("--replicas", type=int)
    parser.add_argument("--for", dest="wait_for", default="")
    parser.add_argument("--timeout", default="30s")
    parser.add_argument("--validate", type=str.title, choices=["Strict", "Warn", "Ignore"], default="Strict")
    return parser.parse_intermixed_args(arguments)


def main(arguments: list[str]) -> int:
    """Carry out a command; return kubectl's exit code."""
    words = parsed(arguments)
    try:
        getattr(Program(words, Api()), words.verb)()
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
