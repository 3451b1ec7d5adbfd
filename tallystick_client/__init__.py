"""The typed client of tallystick's REST API: `Client` has one method per operation.

`ApiProblem` is raised when the server refuses; `pages` reads a list to its end. The forms that are
sent and answered are TypedDicts in `tallystick_client.forms`.
"""

from __future__ import annotations

from tallystick_client.calls import ApiProblem, pages
from tallystick_client.client import Client

__all__ = ["ApiProblem", "Client", "pages"]
