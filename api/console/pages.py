"""The web console: pages for people, over the same REST API that everybody else uses.

No page decides, sums or reads a table: it asks the API with the key that its visitor typed, and
shows the answer. The key stays in the memory of that one page and is nowhere else.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from nicegui import ui

from api.console import bill, earnings, epoch
from api.console.reading import Asgi, read_from

PATH = "/console"


def add(app: FastAPI, asgi: Asgi) -> None:
    """Serve the pages under `/console`; they read from `asgi`, the whole application."""
    read_from(asgi)
    # The API answers 404 to an address with one slash too few; people leave it out.
    app.add_route(PATH, lambda _: RedirectResponse(f"{PATH}/"), include_in_schema=False)
    ui.page("/")(bill.page)
    ui.page("/bill")(bill.page)
    ui.page("/earnings")(earnings.page)
    ui.page("/epoch")(epoch.page)
    ui.run_with(app, mount_path=PATH, title="tallystick", show_welcome_message=False)
