"""What is checked over a session: the self-check, and numbers against a reference."""
