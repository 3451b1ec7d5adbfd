"""Paths in a store of data: what is asked for lies below its root, whatever the text says.

    joined(root, asked) == root + asked          and each part of it is one plain name

A root `/dir2` hides what is beside it: a job asks for `/subdir2`, never for `/dir2/subdir2`. A part
begins with a letter, a digit or `_`; so there is no `..`, no hidden folder, no second slash, no
backslash, no drive, no percent sign that another reader decodes, and no letter that looks like a
dot or a slash. Names by which Windows and shells point elsewhere are refused as well. A link
that lies in the store itself only its server can bound: it is exported so that links stay inside.
Row C-36.
"""

from __future__ import annotations

import re

from domain.paths import confined_rule
from domain.refusal import Refused
from domain.sites.reasons import SitesReason

PATH_CHARACTERS_MAX = 500
_PART = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.+@=-]{0,99}", re.ASCII)
PLACES = "/data"
"""Folders of stores are mounted below it, beside the folders of the system and of the job."""
_POINTERS = (".lnk", ".url", ".symlink", ".desktop")
"""Ends of names that some systems follow like a link."""


def require_path(field: str, path: str) -> None:
    """`/`, or slashes and plain names. Raises Refused: PATH_REFUSED with the field and the rule."""
    rule = broken_rule(path)
    if rule is not None:
        raise Refused(SitesReason.PATH_REFUSED, field=field, rule=rule)


def broken_rule(path: str) -> str | None:
    """What is wrong with a path, or None. It is confined, and plainer: the server, which may be a
    Windows machine, reads it.
    """
    if not path.startswith("/"):
        return "a path begins with a slash"
    if len(path) > PATH_CHARACTERS_MAX:
        return f"at most {PATH_CHARACTERS_MAX} characters"
    if path == "/":
        return None
    below = path[1:]
    if (rule := confined_rule(below)) is not None:
        return rule
    for part in below.split("/"):
        if _PART.fullmatch(part) is None or ".." in part:
            return "parts of letters, digits and _ . + @ = - signs, none of them hidden"
        if part.lower().endswith(_POINTERS):
            return "no name that points elsewhere"
    return None


def joined(root: str, asked: str) -> str:
    """Where a path that was asked for lies on the server. Raises Refused: PATH_REFUSED."""
    require_path("path", asked)
    below = root.rstrip("/")
    found = below if asked == "/" else below + asked
    assert found == below or found.startswith(f"{below}/"), (root, asked)
    return found or "/"


def place_of(use: str, name: str, asked: str) -> str:
    """Where work finds a folder of a store: `/data/input/renders/subdir2`. Raises Refused:
    PATH_REFUSED.
    """
    return joined(f"{PLACES}/{use}/{name}", asked)
