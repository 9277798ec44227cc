"""Plain answers: why a workload waits, was preempted or runs where it runs; why a quota is what it is; what if."""
