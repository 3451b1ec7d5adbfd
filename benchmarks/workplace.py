"""Where a benchmark runs: a folder that goes at the end, and a PostgreSQL server."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from api.process.embedded_postgres import EmbeddedPostgres


class Server(Protocol):
    """A running PostgreSQL on which a benchmark makes databases of its own."""

    @property
    def uri(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def create_database(self, name: str) -> str:
        """Its address."""
        ...


@contextmanager
def workplace(
    server: Server | None, kept: Path | None = None
) -> Generator[tuple[Path, Server], None, None]:
    """A folder, and the server that was handed in. None: a durable one of its own in the folder,
    so that no benchmark measures what another has left behind. `kept`: a folder that stays, with
    what a benchmark made in it.
    """
    with ExitStack() as stack:
        if kept is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tally")))
        else:
            folder = kept.resolve()
            folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        if server is None:
            with EmbeddedPostgres(folder / "postgres") as own:
                yield folder, own
        else:
            yield folder, server
