"""`taskgov apply`: put a policy document into force, or write one plan that the stack made and left unwritten."""
