"""Earnings: what each node earned in a month, when it can be spent, and the arithmetic of it."""

from __future__ import annotations

from nicegui import ui

from api.console.reading import (
    Reader,
    Refused,
    Told,
    amount,
    by_day,
    facts,
    frame,
    gpu_hours,
    table,
    when,
)

ROWS_MAX = 500
PARTS = ("charge", "fee", "provider", "client", "platform", "burn", "earned")


def page() -> None:
    """`/console/earnings`"""
    frame("Earnings", _show)


async def _show(reader: Reader, account_id: str, month: str, from_: str, to: str) -> None:
    maturity = await reader.read(f"/v1/accounts/{account_id}/maturity")
    period: dict[str, str | int] = {"from": from_, "to": to, "limit": ROWS_MAX}
    nodes = await reader.read("/v1/earnings", by="node_id", **period)
    hours = await reader.read("/v1/earnings", by="node_id,lease_id,hour", **period)
    _figures(month, maturity)
    if hours["data"]:
        by_day("Earned by day", _days(hours["data"]), "by-day")
    table("By node", [("node_id", "Node"), *_HEADS], [_row(one) for one in nodes["data"]], "nodes")
    columns = [("hour", "Hour (UTC)"), ("lease_id", "Lease"), *_HEADS]
    table("By hour", columns, [_row(one) for one in hours["data"]], "hours")
    _coming(maturity)
    _explained(reader)


_HEADS = [
    ("gpu_hours", "GPU-hours"),
    ("charge", "Charged"),
    ("fee", "Usage fee"),
    ("provider", "Provider"),
    ("platform", "Platform"),
    ("earned", "Yours"),
]


def _row(one: Told) -> Told:
    parts = {part: amount(one.get(part)) for part in PARTS}
    return {
        **one,
        **parts,
        "gpu_hours": gpu_hours(one["gpu_us"]),
        "hour": when(one.get("hour"))[:13],
    }


def _figures(month: str, maturity: Told) -> None:
    facts(
        [
            ("Held back", amount(maturity["held_back"])),
            ("Matured, to be swept", amount(maturity["payable"])),
            ("Spendable", amount(maturity["earned"])),
            ("Swept so far", amount(maturity["swept"])),
            ("Month shown", month),
        ],
        "figures",
    )


def _days(hours: list[Told]) -> list[tuple[str, str]]:
    """Whole micro-credits are added up; the decimal point comes last."""
    sums: dict[str, int] = {}
    for one in hours:
        day = one["hour"][:10]
        sums[day] = sums.get(day, 0) + int(one["earned"]["units"])
    return [(day, f"{units // 10**6}.{units % 10**6:06d}") for day, units in sorted(sums.items())]


def _coming(maturity: Told) -> None:
    rows = [
        {
            "position": one["at_position"],
            "amount": amount(one["amount"]),
            "posted": when(one["posted_at"]),
            "matures": when(one["matures_at"]),
        }
        for one in maturity["upcoming"]
    ]
    columns = [
        ("position", "Position"),
        ("amount", "Amount"),
        ("posted", "Earned (UTC)"),
        ("matures", "Matures (UTC)"),
    ]
    table("What matures next", columns, rows, "upcoming")


def _explained(reader: Reader) -> None:
    with ui.row().classes("items-end"):
        position = ui.input("Position").classes("w-32")
        button = ui.button("Show the arithmetic")
    found = ui.column().classes("w-full")

    async def explain() -> None:
        found.clear()
        with found:
            try:
                text = (position.value or "").strip()
                if not text.isdecimal():
                    raise Refused("a position is a whole number")
                told = await reader.read(f"/v1/earnings/explain/{text}")
                columns = [
                    ("name", "Value"),
                    ("formula", "Formula"),
                    ("before", "Before"),
                    ("new", "New"),
                    ("after", "After"),
                ]
                title = f"Lease hour {told['hour_index']}, tariff {told['tariff_version']}"
                table(title, columns, told["steps"], "steps")
            except Refused as refused:
                ui.label(str(refused)).classes("text-negative")

    button.on_click(explain)
