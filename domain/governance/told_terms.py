"""What a proposal changes of a version of the policy, term by term, from what the API tells.

    changes(terms, terms) == []

Pure: the forms of the API go in, texts come out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NO_TERMS = (
    "version",
    "in_force",
    "cancelled",
    "mode",
    "proposal",
    "published_at",
    "published_position",
    "by",
    "position",
    "approvals",
    "notice_epochs",
)
TOKENS = (
    "hard_cap",
    "total",
    "availability_cap_per_gpu_hour",
    "availability_cap_per_node",
    "owner_cap",
    "release_cap",
)
"""Terms that are amounts of TOKEN."""


def terms_of(version: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of a published version, as the API tells it, in the form of a document."""
    terms = {name: _plain(value) for name, value in version.items() if name not in _NO_TERMS}
    parts = {name: version[name] for name in ("approvals", "notice_epochs")}
    return {**terms, "governance": parts}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.keys() == {"asset", "units"}:
            return value["units"]
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each term that differs, by the place it stands at: what is in force, and what is proposed;
    None on the side that has no such term.
    """
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return [
        {"term": place, "in_force": old.get(place), "proposed": new.get(place)}
        for place in {**old, **new}
        if old.get(place) != new.get(place)
    ]


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every term with its place; of a list of named parts the name is the place."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value, 1):
            named = inner.get("name") if isinstance(inner, Mapping) else None
            rest = {key: one for key, one in inner.items() if key != "name"} if named else inner
            yield from _leaves(rest, f"{place}.{named or index}")
    elif value is not None:
        yield place, str(value)
