"""The embedded database starts while the modules of a server are imported.

    what the server itself does at its start stays: it joins the database or starts it

Two processors then work where one waited for the other. A data folder that holds no database yet is
left alone: nothing is made before the settings were looked at. What fails here is not tried a
second time: the one who waits for it is told.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress

from api.process.embedded_postgres import EmbeddedPostgres
from api.settings import Settings


@contextmanager
def starting(settings: Settings) -> Generator[Future[None], None, None]:
    """Hold the database of the data folder until the end; the future ends when there is no more to
    wait for, and raises what the start raised.
    """
    over: Future[None] = Future()
    with ExitStack() as held:
        if settings.database_url is not None or not _is_there(settings):
            over.set_result(None)
            yield over
            return

        def start() -> None:
            try:
                held.enter_context(EmbeddedPostgres(settings.data_dir))
            except BaseException as error:
                over.set_exception(error)
            else:
                over.set_result(None)

        thread = threading.Thread(target=start, name="early-database")
        thread.start()
        try:
            yield over
        finally:
            thread.join()


def _is_there(settings: Settings) -> bool:
    with suppress(OSError):
        return (settings.data_dir.expanduser() / "pg" / "PG_VERSION").is_file()
    return False
