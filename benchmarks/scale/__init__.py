"""How a cluster's size tells on time and memory: `make bench` prints one table."""
