"""The shell: REST, background jobs, command line and wiring. No marketplace rule lives here."""
