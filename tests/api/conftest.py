"""A market behind a server, for every test of this room."""

from __future__ import annotations

from tests.scenes.serving import founded_in_development as founded_in_development
from tests.scenes.serving import founded_market as founded_market
from tests.scenes.serving import in_development as in_development
from tests.scenes.serving import scene as scene
from tests.scenes.serving import shared as shared
from tests.scenes.serving import template as template
