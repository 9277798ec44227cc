"""What the template says, what is made of it, and what another template changes."""
