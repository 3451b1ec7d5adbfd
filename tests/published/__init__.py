"""The programs of `docs/howto/use-the-client.md`, word for word: checked by mypy, run by a test."""
