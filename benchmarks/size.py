"""How much a benchmark measures: all of it, less, or as little as still goes through every line.

Figures are judged at FULL alone. What a size means in numbers each benchmark says itself, in one
table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from enum import Enum


class Size(Enum):
    """FULL is what the figures speak of, SHORT has rougher ratios, TINY measures nothing."""

    FULL = "full"
    SHORT = "short"
    TINY = "tiny"


TOLD = {
    Size.FULL: "what the figures speak of (the default)",
    Size.SHORT: "less; the ratios are rougher",
    Size.TINY: "whether it runs at all: its rates say nothing",
}


def size_options(parser: argparse.ArgumentParser) -> None:
    """`--full`, `--short` or `--tiny`; the parsed arguments have a `size`."""
    parser.set_defaults(size=Size.FULL)
    group = parser.add_mutually_exclusive_group()
    for size, told in TOLD.items():
        name = f"--{size.value}"
        group.add_argument(name, dest="size", action="store_const", const=size, help=told)


def size_asked(about: str | None, arguments: Sequence[str] | None = None) -> Size:
    """The size that a command line asks for, where there is nothing else to ask for."""
    parser = argparse.ArgumentParser(description=about)
    size_options(parser)
    found: Size = parser.parse_args(arguments).size
    return found
