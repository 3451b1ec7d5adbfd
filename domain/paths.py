"""Paths inside of a folder: which of them stay there, by their names alone.

    a path that is accepted, put below any folder, stays below that folder

None of its names is a way up: no `..`, no empty name, nothing absolute, no sign that another reader
takes for a slash. Where real folders and their links are followed, the reader of the file system
asks again (`node_reporter/executor/volume_store.py`). What else a path must be says the room that
asks: where volumes are mounted (`domain/lease/mounts.py`), what a file server is asked for
(`domain/sites/paths.py`).
"""

from __future__ import annotations

PATH_BYTES_MAX = 1_024
NAME_BYTES_MAX = 255


def confined_rule(path: str) -> str | None:
    """The rule that a path inside of a folder breaks; None: it stays inside."""
    if not path or len(path.encode(errors="replace")) > PATH_BYTES_MAX:
        return f"from 1 to {PATH_BYTES_MAX} bytes"
    if any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in path):
        return "no control characters"
    if "\\" in path or not path.isprintable():
        return "printable characters and no backslash"
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return "relative, and no name is empty, . or .."
        if len(name.encode(errors="replace")) > NAME_BYTES_MAX:
            return f"at most {NAME_BYTES_MAX} bytes in each name"
    return None
