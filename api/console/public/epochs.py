"""Epochs, and why a node got what it got in one: from GPU-seconds to tokens. Needs no session."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.visits.reading import Told, refused
from api.console.visits.visit import Visit

ROWS_MAX, PLOTTED_MAX = 100, 24
ZERO = {"units": "0"}
PLOTS = (
    (
        "Emission by epoch and pool",
        ("compute_pool", "availability_pool", "treasury_pool"),
        ("Compute", "Availability", "Treasury"),
    ),
    ("Rewards by epoch", ("rewards",), ("Rewards",)),
    ("Burned TOKEN that could come back, at the end of the epoch", ("recyclable",), ("Burned",)),
)
"""A title, the fields of an epoch that are drawn, and what they are called."""
SHARES = (
    ("compute", "Compute: what it served"),
    ("availability_tier_2", "Availability: the part for trust tier 2 and above"),
    ("availability", "Availability: the part for proven devices"),
)


async def show_all(visit: Visit) -> Response:
    """`/epochs`; `?cursor=` goes on."""
    found = await visit.read(
        "/v1/epochs", order="desc", limit=ROWS_MAX, cursor=visit.asked("cursor") or None
    )
    sealed = [one for one in found["data"] if "emission" in one][:PLOTTED_MAX]
    return visit.show(
        "public/epochs.html",
        found=found,
        epochs=found["data"],
        plots=[_plot(list(reversed(sealed)), *each) for each in PLOTS] if sealed else [],
    )


def _plot(epochs: list[Told], title: str, names: tuple[str, ...], series: tuple[str, ...]) -> Bars:
    """A bar for each sealed epoch, the oldest first; what an epoch does not have is zero."""
    bars = [
        Bar(str(one["epoch"]), tuple(int(one.get(name, ZERO)["units"]) for name in names))
        for one in epochs
    ]
    return Bars(title, "TOKEN", 8, bars, series)


async def show(visit: Visit) -> Response:
    """`/epochs/{epoch}`; `?node=` goes on to a node of it."""
    number = _number(visit)
    if node_id := visit.asked("node"):
        if not node_id.replace("_", "").isalnum() or not node_id.isascii():
            raise refused("invalid", "a node is an id such as node_1f0c")
        return visit.to(f"/epochs/{number}/nodes/{node_id}")
    epoch = await visit.read(f"/v1/epochs/{number}")
    rewards = signals = None
    if epoch.get("sealed_position") is not None:
        rewards = await visit.read(f"/v1/epochs/{number}/rewards", limit=ROWS_MAX)
        signals = await visit.read(f"/v1/epochs/{number}/signals", limit=ROWS_MAX)
    weights = await visit.read("/v1/epochs/preview", epoch=number)
    return visit.show(
        "public/epoch.html",
        epoch=epoch,
        rewards=rewards,
        signals=signals,
        weights=weights,
        counted=weights["weights"][:ROWS_MAX],
        plot=_pools(epoch) if "emission" in epoch else None,
    )


def _pools(epoch: Told) -> Bars:
    """Where the TOKEN of one epoch went: what it could pay, and what it paid."""
    names = {
        "emission": "Emission",
        "compute_pool": "Compute",
        "availability_pool": "Availability",
        "treasury_pool": "Treasury",
        "rewards": "Rewards",
        "unissued": "Not issued",
        "minted": "Minted",
    }
    bars = [
        Bar(called, (int(epoch[name]["units"]),)) for name, called in names.items() if name in epoch
    ]
    return Bars("Where its TOKEN went", "TOKEN", 8, bars, ("TOKEN",))


async def file(visit: Visit) -> Response:
    """`/epochs/{epoch}/epoch.json`: the sealed epoch, byte for byte; its SHA-256 is in the seal."""
    number = _number(visit)
    response = await visit.file(f"/v1/epochs/{number}/epoch.json")
    response.headers["content-disposition"] = f'attachment; filename="epoch-{number}.json"'
    return response


async def explain(visit: Visit) -> Response:
    """`/epochs/{epoch}/nodes/{node_id}`"""
    number, node_id = _number(visit), visit.params["node_id"]
    told = await visit.read(f"/v1/epochs/{number}/explain/{node_id}")
    shares = [(heading, told[name]) for name, heading in SHARES]
    return visit.show(
        "public/explained.html", number=number, node_id=node_id, told=told, shares=shares
    )


def _number(visit: Visit) -> str:
    number = visit.params["epoch"]
    if not number.isdecimal() or not number.isascii():
        raise refused("not_found", "an epoch is a whole number")
    return number
