"""Damage to samples: what a stranger, an older version, an editor or a broken disk may make of them."""

import copy
import json
from collections.abc import Callable
from itertools import islice
from random import Random
from typing import Any

MOST_PLACES = 2_000
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1e300,
    -1e300,
    10**19,
    2**63,
    0.1,
    "",
    " ",
    "x" * 5_000,
    "\x1b[31mred\x1b]0;t\x07",
    "\u202egnp.exe\u2066",
    "a\nb\r\0c",
    "\ud800",
    "é東\U0001f600",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30T00:00:00Z",
    "2026-11-20T09:00:00",
    "NaN",
    "1e999",
    "-5Gi",
    "9" * 400,
    "arn:aws:sagemaker:us-east-1:111122223333:cluster/unknownunkno",
    "arn:aws:eks:us-east-1:111122223333:cluster/unknown",
    "../../etc/passwd",
    "*" * 200,
    [],
    {},
    [[]],
    {"": None},
    [None] * 50,
    {"a": {"b": {"c": {}}}},
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def mutated(sample: Any, draw: Random) -> Any:
    """Return a copy of a sample (as JSON has it), damaged in one to four places."""
    value = copy.deepcopy(sample)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        value = _damaged(value, draw)
    return value


def _damaged(value: Any, draw: Random) -> Any:
    places = list(islice(_places(value, ()), MOST_PLACES))
    if not places:
        return draw.choice(ODD)
    *way, last = draw.choice(places)
    holder = value
    for step in way:
        holder = holder[step]
    match draw.randrange(6):
        case 0:
            del holder[last]
        case 1:
            holder[last] = [copy.deepcopy(holder[last])] * draw.choice((1, 2, 20))
        case 2:
            *other, end = draw.choice(places)
            found = value
            for step in (*other, end):
                found = found[step]
            holder[last] = copy.deepcopy(found)
        case 3:
            holder[last] = nested(draw.choice((10, 40, 200)))
        case 4 if isinstance(holder, dict):
            holder[draw.choice(("extra", "\u202e", "é" * 300, ""))] = holder.pop(last)
        case _:
            holder[last] = copy.deepcopy(draw.choice(ODD))
    return value


def _places(value: Any, way: tuple[Any, ...]) -> Any:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*way, step)
        yield from _places(inner, (*way, step))


ENCODINGS: tuple[Callable[[str], bytes], ...] = (
    lambda text: text.encode("latin-1", "replace"),
    lambda text: text.encode("utf-16", "surrogatepass"),
    lambda text: text.encode("utf-16-be", "surrogatepass"),
    lambda text: text.encode("utf-8-sig", "surrogatepass"),
)


def written(value: Any, draw: Random) -> bytes:
    """Return a value as JSON, now and then in a wrong encoding, cut, or with a byte that flipped."""
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
    match draw.randrange(12):
        case 0:
            return draw.choice(ENCODINGS)(text)
        case 1:
            return text.encode(errors="surrogatepass")[: draw.randrange(len(text) + 1)]
        case 2:
            body = bytearray(text.encode(errors="surrogatepass"))
            body[draw.randrange(len(body))] = draw.randrange(256)
            return bytes(body)
        case _:
            return text.encode(errors="surrogatepass")
