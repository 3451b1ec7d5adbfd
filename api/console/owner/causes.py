"""Why a node gets no work, in words, each with what would help. Pure: what the API told goes in.

What stops all work comes first (the machine, its key, its region), then what keeps renters from
finding it (no offer, its end, no free device), then what makes them choose another (price,
reputation).
"""

from __future__ import annotations

from dataclasses import dataclass

from api.console.drawing.words import decimal, percent
from api.console.visits.reading import Told
from domain.money import PPM


@dataclass(frozen=True, slots=True)
class State:
    """A state of a node: the word for people, its tone, what it means and what comes next."""

    word: str
    tone: str
    says: str


@dataclass(frozen=True, slots=True)
class Cause:
    """`path` and `name`: the page on which it can be changed; empty: not on a page."""

    heading: str
    says: str
    path: str = ""
    name: str = ""
    stops_all: bool = True


STATES = {
    "joining": State("joined", "warn", "Compare its fingerprint with the one on its screen."),
    "confirmed": State("waits to be let in", "warn", "The operator of its region lets it in."),
    "provisioning": State("is being set up", "warn", "It reports by itself when it is ready."),
    "maintenance": State("in maintenance", "warn", "It takes no new leases until you activate it."),
    "active": State("at work", "good", "It takes leases."),
    "draining": State("runs empty", "warn", "Running leases end, and no new one begins."),
    "offline": State("not heard of", "bad", "No word from it for five minutes."),
    "stopped": State("turned off", "idle", "It comes back by way of maintenance."),
    "errored": State("reports an error", "bad", "Mend it, then activate it."),
    "failed": State("failed", "bad", "It must be repaired and activated again."),
    "retired": State("retired", "idle", "It is gone for good."),
    "archived": State("retired", "idle", "It is gone for good."),
}
_QUARANTINED = State(
    "in quarantine", "bad", "Two histories were signed with its key. Retire it and join anew."
)
_LOOK = "Look with: systemctl status tallystick-node"
CALLS = {
    "joining": ("Compare its key", "confirm"),
    "maintenance": ("Activate it", "activate"),
    "draining": ("Activate it", "activate"),
    "stopped": ("Begin maintenance", "maintenance"),
    "errored": ("Begin maintenance", "maintenance"),
    "failed": ("Begin maintenance", "maintenance"),
}
"""What an owner does about a state: the button, and the action of the node's page."""
INPUTS = {
    "completion": "Finish leases: those that your machine breaks off count against it.",
    "uptime": "Keep the machine and its reporter on, and announce maintenance before it begins.",
    "performance": "Let nothing else use the GPUs, and keep them cool.",
    "responsiveness": "Take work quickly: keep the executor running.",
    "disputes": "Answer disputes with evidence; those ruled for the renter count against you.",
}
MISSING = {
    "leases": "finished leases",
    "age_days": "days since it joined",
    "completion_ppm": "leases finished",
    "uptime_ppm": "uptime",
    "score_ppm": "score",
}
LOST = {
    "own": "the renter has an own machine",
    "workload": "its region ranks such work lower",
    "price": "another asked less",
    "score": "another suited the request better",
    "stranded": "it would have left more capacity that cannot be sold",
    "served": "another had worked less",
    "node": "all else was equal",
    "offer": "all else was equal",
    "arrival": "another bid came first",
    "renter": "the renter chose another",
    "paused_bid": "elsewhere a lower bid made room",
}
"""What decided between a node and the winner of a match, in the words of the node's page."""


def lost(reasons: list[Told]) -> list[Told]:
    """By what a node lost, the most frequent first; equal words are one row."""
    found: dict[str, Told] = {}
    for one in reasons:
        row = found.setdefault(
            LOST[one["reason"]], {"says": LOST[one["reason"]], "times": 0, "price": None}
        )
        row["times"] += one["times"]
        if "winning_price_at_most" in one:
            row["price"] = one["winning_price_at_most"]
    return sorted(found.values(), key=lambda row: -int(row["times"]))


def state_of(node: Told) -> State:
    """In which state a node is; quarantine comes before all else."""
    if node.get("revoked"):
        return State("key revoked", "bad", "You revoked its key. It must join anew.")
    if node["quarantined"]:
        return _QUARANTINED
    key = _key(node)
    return STATES.get(key, State(key.replace("_", " "), "idle", ""))


def _key(node: Told) -> str:
    """The state, and `draining` apart: the API tells it as maintenance."""
    return "draining" if node["phase"] == "draining" else str(node["state"])


def call_of(node: Told) -> tuple[str, str] | None:
    """What its owner does about the state of a node: the button and the act; None: nothing."""
    return None if node["quarantined"] or node.get("revoked") else CALLS.get(_key(node))


def doing(node: Told, devices: list[Told]) -> str:
    """What the devices of a node do now, in words, without who rents them."""
    if not devices:
        return "no device admitted yet"
    held = sum(1 for one in devices if one["share_free_ppm"] < 1_000_000)
    if not held:
        return "waits for work" if node["state"] == "active" else "idle"
    if held == len(devices):
        return "leased"
    return f"{held} of {len(devices)} leased"


def why_no_work(
    node: Told, devices: list[Told], offers: list[Told], rivals: list[Told], at: str
) -> list[Cause]:
    """All that is in the way, the gravest first; empty: nothing is, it only waits for a renter.

    `rivals` are open offers of the same model by all; `at` is the present moment of the API.
    """
    path = f"/nodes/{node['node_id']}"
    found = _of_the_machine(node, path)
    if node["phase"] in ("retired", "archived"):
        return found
    found += _of_its_offers(node, path, devices, offers, at)
    if offers:
        found += _of_its_price(path, offers, rivals)
    return found


def _of_the_machine(node: Told, path: str) -> list[Cause]:
    state = state_of(node)
    found = []
    if state.word != "at work":
        name, action = call_of(node) or ("", "")
        is_offline = node["state"] == "offline" and state.word == "not heard of"
        says = f"{state.says} {_LOOK}" if is_offline else state.says
        found.append(
            Cause(f"The node {_is(state.word)}", says, f"{path}/{action}" if name else "", name)
        )
    verdict = node.get("verdict")
    if verdict is not None and not verdict["sellable"]:
        rules = ", ".join(rule.replace("_", " ") for rule in verdict["failing"])
        says = f"It does not meet: {rules}. Mend it, or ask the operator to waive the rule."
        found.append(Cause("It may not sell to others", says))
    return found


def _is(word: str) -> str:
    return word if word.split()[0] in ("waits", "reports", "runs", "failed", "is") else f"is {word}"


def _of_its_offers(
    node: Told, path: str, devices: list[Told], offers: list[Told], at: str
) -> list[Cause]:
    if not offers:
        says = "No renter can find it. Name a price; you see your part before it is published."
        return [Cause("It is not offered", says, f"{path}/offer", "Set a price")]
    ended = [one for one in offers if one.get("available_until") and one["available_until"] <= at]
    if len(ended) == len(offers):
        return [Cause("Its offer has ended", "Publish a new one.", f"{path}/offer", "Set a price")]
    open_now = [one for one in offers if one not in ended]
    if node["capacity_class"] == "preemptible" and not any(map(_is_interruptible, open_now)):
        says = (
            "Its machine is preemptible, so only leases that may be paused go there, and it has no"
            " interruptible offer. Publish one, or set its capacity class to on_demand."
        )
        return [Cause("Its offer does not fit its capacity class", says)]
    if devices and all(one["share_free_ppm"] == 0 for one in devices):
        return [Cause("All its devices are leased", "It works: there is nothing to do.")]
    return []


def _is_interruptible(offer: Told) -> bool:
    return bool((offer.get("terms") or {}).get("interruptible"))


def _of_its_price(path: str, offers: list[Told], rivals: list[Told]) -> list[Cause]:
    mine = {one["offer_id"] for one in offers}
    others = [int(one["price_per_gpu_hour"]["units"]) for one in rivals]
    asked = min(int(one["price_per_gpu_hour"]["units"]) for one in offers)
    cheaper = [
        price
        for one, price in zip(rivals, others, strict=True)
        if one["offer_id"] not in mine and price < asked and one.get("devices_free", 0)
    ]
    if not cheaper:
        return []
    says = (
        f"{len(cheaper)} free offers of the same model ask less, from {decimal(min(cheaper), 6, 3)}"
        f" to {decimal(max(cheaper), 6, 3)} CREDIT a GPU-hour; you ask {decimal(asked, 6, 3)}."
    )
    return [Cause("Others are cheaper", says, f"{path}/offer", "Set a price", stops_all=False)]


def raises(reputation: Told) -> list[Told]:
    """What would raise a score most: each input with its weight times what is missing to 1."""
    found = [
        {
            "name": one["name"],
            "weight_ppm": one["weight_ppm"],
            "lower_bound_ppm": one["lower_bound_ppm"],
            "gain_ppm": one["weight_ppm"] * (PPM - one["lower_bound_ppm"]) // PPM // 1000 * 1000,
            "says": INPUTS.get(one["name"], ""),
            "observed": one["total"] > 0,
        }
        for one in reputation["inputs"]
        if one["weight_ppm"]
    ]
    return sorted(found, key=lambda one: -int(one["gain_ppm"]))


def next_tier(reputation: Told) -> Told | None:
    """The next tier of reputation and what is missing to it, in words."""
    standing = reputation.get("standing")
    if standing is None:
        return None
    above = [one for one in standing["tiers"] if one["tier"] > standing["tier"]]
    if not above:
        return None
    tier = min(above, key=lambda one: int(one["tier"]))
    return {"tier": tier["tier"], "wants": [_wanted(tier, name) for name in tier["missing"]]}


def _wanted(tier: Told, name: str) -> str:
    value = percent(tier[name]) if name.endswith("_ppm") else f"{tier[name]:,}"
    return f"{value} {MISSING[name]}"
