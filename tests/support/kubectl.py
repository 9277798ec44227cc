"""Objects as `kubectl describe` prints them, to compare with printed documentation."""

import re
from typing import Any


def described(kind: str, labels: dict[str, str], spec: dict[str, Any]) -> str:
    """Return the beginning of an object's description, up to the end of its spec, without spaces."""
    label_text = " ".join(f"{key}={value}" for key, value in labels.items())
    head = (
        f"Labels: {label_text} Annotations: <none> API Version: kueue.x-k8s.io/v1beta1 Kind: {kind} Metadata: ... Spec:"
    )
    return unspaced(f"{head} {description(spec)}")


def unspaced(text: str) -> str:
    """Drop what the page's extraction lost or added: line breaks and spaces."""
    return re.sub(r"\s+", "", text)


def description(value: Any) -> str:
    """Print as `kubectl describe` does: keys in alphabetical order and split into words, nothing but spaces between."""
    if isinstance(value, dict):
        return " ".join(f"{title(key)}: {description(value[key])}" for key in sorted(value))
    if isinstance(value, list):
        return " ".join(description(one) for one in value)
    return str(value)


def title(key: str) -> str:
    return key if "/" in key or "." in key else re.sub(r"(?<!^)(?=[A-Z])", " ", key[0].upper() + key[1:])
