"""The first policy document of a cluster (`taskgov init`): what is found there, as a document that changes nothing."""
