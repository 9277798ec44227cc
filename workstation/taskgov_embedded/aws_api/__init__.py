"""How an AWS call of this process is processed: permission, fault, answer, record; and the clients that make calls."""
