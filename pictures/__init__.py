"""What makes the pictures of README and docs: `make pictures`. Nothing here is shipped."""
