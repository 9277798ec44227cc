"""The record of work, as people read it: attempts, and the hours of quotas with their prices."""
