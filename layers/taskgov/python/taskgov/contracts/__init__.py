"""Events in and out, and what travels between the steps of the state machines."""
