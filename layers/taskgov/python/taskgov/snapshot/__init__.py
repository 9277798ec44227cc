"""What is known about one cluster at one moment."""
