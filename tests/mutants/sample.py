"""Which mutants are tried: a seeded sample that is spread over the functions.

Ranks are digests of names, not numbers drawn one after another: an edit of one function changes what is drawn from that
function and leaves the rest of the sample as it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Spot:
    """A mutation that the tool can make.

    Attributes:
        file: Name of the file.
        function: The function that it is in.
        place: The how many-th place of the function where the tool can change something.
        change: The tool's operator and how many-th change of that operator at the place.
        occurrence: What the tool calls it: the how many-th change of the operator in the file.
        line: Where it is.
    """

    file: str
    function: str
    place: int
    change: str
    occurrence: int
    line: int


def drawn(spots: Iterable[Spot], seed: int) -> Iterator[Spot]:
    """Return all spots in the order in which a sample takes them: a round takes one of each function.

    Within a function it takes another place each time, and another change of a place only when every place had its
    turn: the tool knows eleven changes of a `+`, but one of a `not`.
    """
    functions: dict[tuple[str, str], list[Spot]] = defaultdict(list)
    for spot in spots:
        functions[spot.file, spot.function].append(spot)
    names = sorted(functions, key=lambda name: _rank(seed, *name))
    queues = [_queue(functions[name], seed) for name in names]
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def _queue(spots: Sequence[Spot], seed: int) -> list[Spot]:
    places: dict[int, list[Spot]] = defaultdict(list)
    for spot in spots:
        places[spot.place].append(spot)
    turns = []
    for place, changes in places.items():
        name = (changes[0].file, changes[0].function, str(place))
        for turn, spot in enumerate(sorted(changes, key=lambda spot: _rank(seed, *name, spot.change))):
            turns.append((turn, _rank(seed, *name), spot.change, spot))
    return [spot for *_, spot in sorted(turns, key=lambda entry: entry[:-1])]


def _rank(seed: int, *names: str) -> str:
    return sha256("\0".join((str(seed), *names)).encode()).hexdigest()
