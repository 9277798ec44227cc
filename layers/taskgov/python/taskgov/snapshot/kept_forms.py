# ruff: noqa: N815 - the fields have the names of the documents
"""The forms of the documents that runs keep of a cluster: with their fields, their types, and moments that exist.

A document of another form is damage. `read_kept` says where, before anything reads the document.
"""

from datetime import UTC, date, datetime
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError

from taskgov.snapshot.forms import first_fault

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""An earlier moment is damage: what is subtracted from it leads out of the calendar."""
MOST: Final = 2**63


def _moment(moment: datetime) -> datetime:
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("no clock shows this moment") from None
    if moment < FIRST:
        raise ValueError(f"the moment is before {FIRST.year}")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_moment)]
Amount = Annotated[int, Field(ge=0, lt=MOST)]
Form = TypeVar("Form", bound=BaseModel)


class _Versioned(BaseModel):
    version: Literal[1]


class NodeForm(BaseModel):
    """One node of `NodesForm`."""

    healthy: bool
    found: bool
    turns: tuple[Moment, ...]
    looks: tuple[Moment | None, ...] = ()
    first: Moment | None = None
    type: str = ""
    group: str | None = None
    id: str | None = None
    gone: bool = False
    reservation: str | None = None
    leaves: Moment | None = None


class NodesForm(_Versioned):
    """`memory/<cluster>/nodes.json` (`taskgov.snapshot.memory`)."""

    looked: bool
    nodes: dict[str, NodeForm]
    lookedAt: Moment | None = None
    cluster: str | None = None


class WatchedForm(BaseModel):
    """One place of `UseForm`."""

    since: Moment
    peaks: tuple[tuple[Amount, Amount], ...]


class UseForm(_Versioned):
    """`memory/<cluster>/use.json.gz` (`taskgov.snapshot.use_memory`)."""

    at: Moment | None
    watched: dict[str, dict[str, WatchedForm]]
    spent: dict[str, dict[date, Amount]]


class PlaceForm(BaseModel):
    """Where a document is in the bucket."""

    key: str
    sha256: str


class StampForm(_Versioned):
    """`memory/<cluster>/state.json` (`taskgov.snapshot.identity`)."""

    lineage: str
    serial: Amount
    at: Moment
    snapshot: PlaceForm
    cluster: str | None = None


def read_kept(form: type[Form], stored: bytes, what: str) -> Form:
    """Return the document. Raises `ValueError` for any other: it says what it should be, and where it differs."""
    try:
        return form.model_validate_json(stored, strict=True)
    except ValidationError as error:
        raise ValueError(f"{what} is not a version 1 document: {first_fault(error)}") from error
