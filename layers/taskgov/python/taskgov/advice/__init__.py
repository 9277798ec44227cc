"""Advise on quotas and borrow limits: rules are chosen on past weeks and evaluated on later ones."""
