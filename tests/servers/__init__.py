"""PostgreSQL on several machines, as processes of this one, and what its TLS needs."""
