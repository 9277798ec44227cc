"""Make calls to the account go wrong on purpose, a set number of times: fail, come late, happen twice.

A fault names a service and an operation of botocore; `when` narrows it by the call's parameters. The event bus asks
too, as service `events`, operation `Deliver`, with the target's ARN as `Target`: a delivery can be doubled or lost.
To choose by the caller, or by how many calls came before, put a `chooser` in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Effect = Literal["fail", "fail_after", "delay", "duplicate", "raise", "raise_after"]


class FunctionCrash(BaseException):
    """Ends a handler where it is: its process is gone. No error that the handler could catch."""


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` matching calls."""

    service: str
    operation: str
    effect: Effect
    times: int
    code: str = "InternalServerException"
    message: str = "injected fault"
    status: int = 400
    seconds: float = 0.0
    when: Callable[[Mapping[str, Any]], bool] | None = None
    error: Callable[[], BaseException] | None = None
    """What `raise` and `raise_after` raise in the caller, e.g. a client's time-out."""

    def matches(self, service: str, operation: str, params: Mapping[str, Any]) -> bool:
        """Return whether it is about this call."""
        if (self.service, self.operation) != (service, operation) or self.times < 1:
            return False
        return self.when is None or self.when(params)


class Faults:
    """The faults in wait, first in, first out."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self.chooser: Callable[[str, str, Mapping[str, Any], str], Fault | None] | None = None
        """Gets service, operation, parameters and the caller's name (a role's, a user's, empty for a delivery)."""

    def fail(  # noqa: PLR0913 each names one part of the fault
        self,
        service: str,
        operation: str,
        *,
        code: str,
        message: str = "injected fault",
        status: int = 400,
        times: int = 1,
        after: bool = False,
        when: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Fault:
        """Answer with the error `code` and HTTP `status` (5xx and throttling are retried by clients).

        `after`: the call has its effect, and only the answer is an error.
        """
        effect: Effect = "fail_after" if after else "fail"
        return self._add(Fault(service, operation, effect, times, code, message, status, when=when))

    def delay(
        self,
        service: str,
        operation: str,
        *,
        seconds: float,
        times: int = 1,
        when: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Fault:
        """Let `seconds` of the clock pass before the call is taken."""
        return self._add(Fault(service, operation, "delay", times, seconds=seconds, when=when))

    def duplicate(
        self,
        service: str,
        operation: str,
        *,
        times: int = 1,
        when: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Fault:
        """Take the call twice and give the second answer, as a client does that retried after a lost answer."""
        return self._add(Fault(service, operation, "duplicate", times, when=when))

    def clear(self) -> None:
        """Forget what has not happened yet."""
        self._faults.clear()

    def pending(self) -> tuple[Fault, ...]:
        """Return the faults that are still in wait."""
        return tuple(fault for fault in self._faults if fault.times > 0)

    def take(self, service: str, operation: str, params: Mapping[str, Any], caller: str = "") -> Fault | None:
        """Return the fault for this call and use it up once."""
        chosen = self.chooser(service, operation, params, caller) if self.chooser else None
        if chosen is not None:
            return chosen
        for fault in self._faults:
            if fault.matches(service, operation, params):
                fault.times -= 1
                return fault
        return None

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault
