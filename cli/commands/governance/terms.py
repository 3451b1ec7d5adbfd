"""The terms of a policy as a proposal writes them: in force, what a proposal changes, a start.

    read_document(started(terms)) has no fault        for the terms of every published version

Amounts are whole numbers of their smallest unit in a document; `shown` writes them as people do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cli.terminal import amount
from domain.governance.told_terms import TOKENS

FORMAT = "tallystick-policy-v1"


def shown(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change as people read it: TOKEN, CREDIT, percent."""
    place = str(change["term"])
    sides = {name: _people(place, change[name]) for name in ("in_force", "proposed")}
    return {"term": place.removesuffix("_ppm").removesuffix(".ppm"), **sides}


def _people(place: str, value: str | None) -> str | None:
    name = place.rpartition(".")[2]
    if value is None or not value.isdecimal():
        return value
    if name.endswith("ppm"):
        whole, rest = divmod(int(value), 10_000)
        return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") + " %"
    if name in TOKENS:
        return amount({"asset": "TOKEN", "units": value})
    if name == "burned_per_gpu_hour":
        return amount({"asset": "CREDIT", "units": value})
    return value


def started(
    terms: Mapping[str, Any],
    tariff: Mapping[str, Any] | None,
    *,
    number: int,
    created: str,
    epoch: int,
) -> dict[str, Any]:
    """A proposal to begin with: the terms as they are, from an epoch on, and how the tariff divides
    a charge, by which the lint judges the cap of rewards.
    """
    heading = {
        "number": number,
        "title": "What it changes, in a line",
        "category": "Network",
        "authors": ["Your name"],
        "created": created,
        "summary": "Why.",
    }
    return {
        "format": FORMAT,
        "proposal": heading,
        "terms": {**terms, "effective_from_epoch": epoch},
        "splits": [] if tariff is None else [_split(tariff)],
    }


def _split(tariff: Mapping[str, Any]) -> dict[str, Any]:
    """What each gets of a charge after the usage fee."""
    split = tariff.get("split")
    if split is None:
        provider = int(tariff["provider_share_ppm"])
        burn = (1_000_000 - provider) * int(tariff["burn_share_ppm"]) // 1_000_000
        parts = {"provider": provider, "burn": burn, "platform": 1_000_000 - provider - burn}
    else:
        parts = {one["bucket"]: int(one["share_ppm"]) for one in split["shares"]}
        left = 1_000_000 - sum(parts.values())
        parts[split["residual"]] = parts.get(split["residual"], 0) + left
    refunds = [tier["credit_ppm"] for one in tariff.get("sla", ()) for tier in one["tiers"]]
    return {
        "name": f"tariff {tariff['version']}",
        **{f"{name}_ppm": parts.get(name, 0) for name in ("provider", "burn", "platform")},
        "refund_ppm": max(refunds, default=0),
    }


def toml_of(document: Mapping[str, Any], comment: str) -> str:
    """The document as TOML: a table for each table, a line for each item of a list."""
    return f"# {comment}\n" + "".join(_table("", document))


def _table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    below = {name: one for name, one in table.items() if isinstance(one, Mapping)}
    tables = {"splits"} & table.keys()
    if path:
        yield f"\n[{path}]\n"
    for name, value in table.items():
        if name not in below and name not in tables and value is not None:
            yield f"{name} = {_value(value)}\n"
    for name, inner in below.items():
        yield from _table(f"{path}.{name}" if path else name, inner)
    for name in tables:
        for one in table[name]:
            yield f"\n[[{name}]]\n"
            yield from (f"{field} = {_value(value)}\n" for field, value in one.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} = {_value(one)}" for name, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        if any(isinstance(one, Mapping) for one in value):
            return "[\n" + "".join(f"  {_value(one)},\n" for one in value) + "]"
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)
