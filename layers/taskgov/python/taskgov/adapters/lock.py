"""The lock of a cluster, in the terms of DynamoDB: attributes of the item `taskgov.keys.state`.

The state machine takes and releases it with the same expressions (`tests/statemachines/test_lock.py` holds it to
these); functions renew it, commands of people take it too (`taskgov_cli.manual_lock`), and an order frees it.
Values: `:me` is the owner, `:token` the fencing token of its take, `:now` and `:expires` epoch seconds.
"""

from typing import Final

TAKE: Final = "SET #schema = :schema, lockOwner = :me, lockExpires = :expires ADD fencingToken :one"
FREE_OR_EXPIRED: Final = (
    "attribute_not_exists(lockOwner) OR lockOwner = :me OR lockExpires < :now OR attribute_not_exists(lockExpires)"
)
"""Or without an end, or its own already: a lost answer is requested again."""
RENEW: Final = "SET lockExpires = :expires"
RELEASE: Final = "REMOVE lockOwner, lockExpires"
HELD: Final = "lockOwner = :me AND fencingToken = :token"
"""The owner still holds it, by this very take."""
UNLESS_ENDED: Final = "lockExpires <> :ended"
"""A lease that was ended stays so: a function may work on after its execution was stopped."""
LEASE_ENDED: Final = 0
"""`lockExpires` of a lock whose owner is over."""
