"""Composition: which adapter stands behind which port.

One module a function, so that none imports what it does not use.
"""
