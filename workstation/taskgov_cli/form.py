"""The forms in which commands answer."""

from enum import StrEnum


class Form(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    """Tables as wide as the terminal; long cells are folded."""
    WIDE = "wide"
    """Tables whose cells are on one line each, however wide."""
    JSON = "json"
    YAML = "yaml"
    """The same members as JSON."""
    MARKDOWN = "markdown"
    """GitHub's and GitLab's Markdown."""
    CSV = "csv"
    """The main table alone, with its headings."""
