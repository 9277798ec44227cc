"""Which quotas and limits would have served the work better? Rules tried on past weeks, judged on later ones."""
