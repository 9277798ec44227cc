"""When will a job start? Many futures of the queue, their quantiles, and what earlier estimates came to."""
