"""`python -m tests.local_invoke`: run every function in a real Lambda container, against `taskgov local`.

Each function gets its samples from `events/` with the keys of its own role, so that a call that its policy does not
allow fails here too. Without Docker or the image it says so and ends well.
"""

import sys

from tests.local_invoke.run import main

sys.exit(main())
