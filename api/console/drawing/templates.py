"""Templates of the pages, made once in a process. Everything is escaped, and nothing is missing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.console.drawing import plots, static, tiles, words

FOLDER = Path(__file__).parents[1] / "templates"
MADE = (
    words.amt,
    words.tok,
    words.price,
    words.hours,
    words.when,
    words.form_marks,
    words.ident,
    words.pill,
    words.percent,
    words.plain,
    words.amount,
    plots.bars,
    plots.spark,
    plots.split,
    tiles.tile_map,
    static.address,
)
"""What every template may call, by its name."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {each.__name__: each for each in MADE}
    return made


def render(template: str, told: dict[str, Any]) -> str:
    """The text of a page."""
    return _environment().get_template(template).render(told)
