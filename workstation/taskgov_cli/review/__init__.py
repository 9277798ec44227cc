"""`taskgov review`: the plan of a changed policy document as a comment on its pull or merge request."""
