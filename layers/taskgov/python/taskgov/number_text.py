"""How are numbers, times and durations written for people? Used by the report's tables and page."""

from datetime import UTC, datetime

NOTHING = "\N{EN DASH}"
"""Stands where a number does not exist (which is not the same as 0)."""
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def number(amount: float | None, unit: str = "") -> str:
    """Return an amount with at most three decimals and its unit.

    >>> number(4.0), number(1536.0, "GiB"), number(2.5, "cores"), number(None) == NOTHING
    ('4', '1,536 GiB', '2.5 cores', True)
    """
    if amount is None:
        return NOTHING
    is_whole = isinstance(amount, int) or amount.is_integer()
    text = f"{amount:,.0f}" if is_whole else f"{round(amount, 3):,.3f}".rstrip("0").rstrip(".")
    return f"{text} {unit}".rstrip()


def signed(amount: float | None, unit: str = "") -> str:
    r"""Return a difference with its sign, a proper minus.

    >>> signed(2.0), signed(-1.5).encode("ascii", "namereplace"), signed(0.0)
    ('+2', b'\\N{MINUS SIGN}1.5', '0')
    """
    if not amount:
        return number(amount, unit)
    return ("+" if amount > 0 else "\N{MINUS SIGN}") + number(abs(amount), unit)


def percent(share: float | None) -> str:
    """Return a percentage without needless decimals.

    >>> percent(50.0), percent(33.333)
    ('50 %', '33.3 %')
    """
    if share is None:
        return NOTHING
    return f"{round(share, 1):g} %"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> duration(45), duration(754), duration(3600), duration(200_000)
    ('45 s', '12 min 34 s', '1 h', '2 d 7 h')
    """
    rest = int(seconds)
    parts: list[str] = []
    for name, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def moment(at: datetime) -> str:
    """Return a moment in UTC, to the minute; the page says once that times are in UTC.

    >>> moment(datetime(2026, 11, 20, 9, 5, 31, tzinfo=UTC))
    '2026-11-20 09:05'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def exact_moment(at: datetime) -> str:
    """Return a moment in UTC, to the second.

    >>> exact_moment(datetime(2026, 11, 20, 9, 5, 31, 870, tzinfo=UTC))
    '2026-11-20 09:05:31 UTC'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def stored_moment(text: str | None) -> str:
    """Return a moment that an item keeps as text as `exact_moment` does; any other text as it is.

    >>> stored_moment("2026-11-20T09:05:31.870000+00:00"), stored_moment("noon"), stored_moment(None)
    ('2026-11-20 09:05:31 UTC', 'noon', 'an unknown time')
    """
    if text is None:
        return "an unknown time"
    try:
        return exact_moment(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return text


def counted(count: int, noun: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "change"), counted(3, "change"), counted(0, "capacity", "capacities")
    ('1 change', '3 changes', '0 capacities')
    """
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
