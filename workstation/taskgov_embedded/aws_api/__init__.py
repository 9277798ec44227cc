"""What becomes of an AWS call of this process: permission, fault, answer, record; and the clients that make calls."""
