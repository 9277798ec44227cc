"""The Kueue side: quotas rendered as Kueue objects, Kueue status read as usage."""
