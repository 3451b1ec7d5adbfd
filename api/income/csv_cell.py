"""A text in a CSV file that a person opens in a spreadsheet: it is shown, and never calculated.

A cell that begins with one of these letters is a formula there, and formulas fetch addresses and
start programs. An apostrophe before it makes it a text (OWASP, CSV injection).
"""

from __future__ import annotations

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def cell(text: str) -> str:
    """The text as it stands in a CSV file."""
    return f"'{text}" if text.startswith(FORMULAS) else text
