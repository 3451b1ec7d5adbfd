"""How the programs of a node speak: results on standard output, everything else on standard error.

What a server or a driver said is printed as one line that cannot move the cursor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


class ConfigUnreadable(Exception):
    """A setting or the file of settings cannot be understood."""


def printable(text: str) -> str:
    """Text from elsewhere in one line, which cannot move the cursor of a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def print_line(line: str) -> None:
    """A line of the result."""
    sys.stdout.write(printable(line) + "\n")


def tell(line: str) -> None:
    """A line for the owner that is no result."""
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()


def between(low: int, high: int) -> Callable[[str], int]:
    """A type of argument: whole numbers in these bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"needed {low}..{high}")
        return value

    return number
