"""What callers of the API do to one another."""
