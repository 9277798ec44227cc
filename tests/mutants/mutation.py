"""What a mutant is called, so that it keeps its name when other lines of its file move."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """One change of one statement: which lines of which function become which others.

    Attributes:
        file: Name of the file in the folder of the mutated package.
        function: `Class.method`, `outer.inner`, a class for what stands in its body, or `(module)`.
        before: The changed lines, without indentation, joined by a space.
        after: What they become; `(removed)` when nothing is left.
        nth: The how many-th of the function's lines that read like the first changed one, from 1.
    """

    file: str
    function: str
    before: str
    after: str
    nth: int = 1

    def __str__(self) -> str:
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"`{self.before}`{nth} → `{self.after}`"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutation with the whole source text of the mutated file.

    Attributes:
        mutation: What it is called.
        source: The text.
        is_imported: Whether it changes what runs when the module is imported, not within a function.
    """

    mutation: Mutation
    source: str
    is_imported: bool = False
