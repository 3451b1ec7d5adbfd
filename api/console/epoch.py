"""An epoch and one node: from GPU-seconds to tokens, with every number in between. Needs no key."""

from __future__ import annotations

from nicegui import ui

from api.console.reading import Reader, Refused, Told, amount, facts, gpu_hours, header, table

SHARES = (
    ("compute", "Compute: what it served"),
    ("availability_tier_2", "Availability: the part for trust tier 2 and above"),
    ("availability", "Availability: the part for proven devices"),
)


def page() -> None:
    """`/console/epoch`"""
    ui.page_title("tallystick: Epoch")
    header()
    with ui.column().classes("w-full max-w-6xl mx-auto"):
        ui.label("Why a node got what it got").classes("text-2xl")
        with ui.row().classes("items-end"):
            epoch = ui.input("Epoch").classes("w-32")
            node = ui.input("Node").classes("w-96")
            button = ui.button("Explain")
        result = ui.column().classes("w-full")

    async def shown() -> None:
        result.clear()
        with result:
            try:
                await _show((epoch.value or "").strip(), (node.value or "").strip())
            except Refused as refused:
                ui.label(str(refused)).classes("text-negative")

    button.on_click(shown)


async def _show(epoch: str, node_id: str) -> None:
    if not epoch.isdecimal() or not node_id.replace("_", "").isalnum():
        raise Refused("an epoch is a whole number, and a node an id such as node_1f0c")
    told = await Reader("").read(f"/v1/epochs/{epoch}/explain/{node_id}")
    facts(
        [
            ("Paid", amount(told["paid"])),
            ("To account", told["account_id"]),
            ("Reputation", _percent(told.get("score_ppm"), "provisional")),
            ("Bonus", _percent(told["bonus_ppm"], "")),
            ("Policy", f"version {told['policy_version']}"),
            ("Cut", f"position {told['cut_position']}"),
        ],
        "figures",
    )
    for reason in told["reasons"]:
        ui.label(reason).props("data-testid=reason").classes("text-negative")
    rows = [_share_row(heading, told[name]) for name, heading in SHARES]
    table("The two pools", _SHARE_HEADS, rows, "shares")
    ui.label("share = floor(pool x weight / all weights); paid = share, or the cap if it is lower")
    table("Use that counts", _USE_HEADS, [_use_row(one) for one in told["uses"]], "uses")
    table("Attested time", _DEVICE_HEADS, [_device_row(one) for one in told["devices"]], "devices")
    _signals(told["signals"])
    ui.label(f"SHA-256 of the epoch's file: {told['file_sha256']}").classes("font-mono text-xs")


_SHARE_HEADS = [
    ("pool_name", "Pool"),
    ("pool", "To share"),
    ("weight", "Its weight"),
    ("all_weight", "All weights"),
    ("share", "Share"),
    ("cap", "Cap"),
    ("paid", "Paid"),
]
_USE_HEADS = [
    ("source", "Paid from"),
    ("burned", "Burned (CREDIT)"),
    ("gpu_hours", "GPU-hours"),
    ("weight", "Weighs"),
]
_DEVICE_HEADS = [
    ("hardware_class", "Class"),
    ("tier", "Trust tier"),
    ("attested", "Attested GPU-hours"),
    ("promised", "Promised"),
    ("rating", "Rating"),
    ("reason", "Counts"),
]


def _share_row(heading: str, share: Told) -> Told:
    money = {name: amount(share.get(name)) for name in ("pool", "share", "cap", "paid")}
    return {**share, **money, "pool_name": heading}


def _use_row(use: Told) -> Told:
    return {
        "source": use["source"],
        "burned": amount({"asset": "CREDIT", "units": use["burned"]}),
        "gpu_hours": gpu_hours(use["gpu_us"]),
        "weight": _percent(use["weight_ppm"], ""),
    }


def _device_row(device: Told) -> Told:
    return {
        **device,
        "attested": gpu_hours(device["attested_us"]),
        "promised": gpu_hours(device["promised_us"]),
        "rating": _percent(device["rating_ppm"], ""),
        "reason": device.get("reason", "yes"),
    }


def _signals(signals: Told) -> None:
    facts(
        [
            ("Paid for each TOKEN burned", _percent(signals.get("payout_multiple_ppm"), "-")),
            ("Concentration of customers", _percent(signals.get("concentration_ppm"), "-")),
            ("Use by related parties", _percent(signals.get("related_ppm"), "-")),
            ("Looks like wash trade", ", ".join(signals["raised"]) or "no"),
        ],
        "signals",
    )


def _percent(ppm: int | None, absent: str) -> str:
    """Parts per million as a percentage, exactly."""
    return absent if ppm is None else f"{ppm // 10_000}.{ppm % 10_000:04d} %"
