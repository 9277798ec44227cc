"""Record the decisions of Kueue's own scheduler as data, from its tests and from generated worlds."""
