"""Events and schedules: what is delivered, to whom, in which form, when."""
