"""The governance policy document: grammar, parsing, violations."""
