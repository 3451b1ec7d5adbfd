"""The bill: what was charged in a month, for what, what is left, and how long it lasts."""

from __future__ import annotations

from nicegui import ui

from api.console.reading import (
    Reader,
    Refused,
    Told,
    amount,
    by_day,
    decimal,
    facts,
    frame,
    gpu_hours,
    table,
    when,
)

LEASES_MAX = 50
LINES_MAX = 200


def page() -> None:
    """`/console/bill`"""
    frame("Bill", _show)


async def _show(reader: Reader, account_id: str, month: str, from_: str, to: str) -> None:
    account = f"/v1/accounts/{account_id}"
    period = {"from": from_, "to": to}
    bill = await reader.read(f"{account}/statements/{month}", limit=LEASES_MAX)
    lines = await reader.read(f"{account}/statements", limit=LINES_MAX, **period)
    days = await reader.read(
        "/v1/usage/summary", by="day", account_id=account_id, limit=31, **period
    )
    forecast = await reader.read(f"{account}/forecast")
    _figures(bill, forecast)
    if days["data"]:
        spent = [(when(one["day"])[:10], decimal(one["charge"])) for one in days["data"]]
        by_day("Charged by day", spent, "by-day")
    _kinds(lines)
    _leases(bill["leases"])
    _lines(reader, account, lines["lines"])


def _figures(bill: Told, forecast: Told) -> None:
    cash = next(one for one in forecast["balances"] if one["settlement"] == "cash")
    facts(
        [
            ("Charged for leases", amount(bill["charge"])),
            ("GPU-hours", gpu_hours(bill["gpu_us"])),
            ("Spendable", amount(cash["spendable"])),
            ("Running at, per hour", amount(cash["charge_per_hour"])),
            ("Funds last until (UTC)", when(cash.get("lasts_until")) or "nothing runs"),
            ("Period", "over" if bill["is_final"] else "still running"),
        ],
        "figures",
    )


def _kinds(lines: Told) -> None:
    opening = {one["part"]: amount(one["balance"]) for one in lines["opening"]}
    rows = [
        {
            "part": one["part"],
            "opening": opening.get(one["part"], "0"),
            "moved": "; ".join(
                f"{kind['kind']} {amount(kind['movement'])}"
                for kind in lines["kinds"]
                if kind["part"] == one["part"]
            ),
            "closing": amount(one["balance"]),
        }
        for one in lines["closing"]
    ]
    columns = [
        ("part", "Balance"),
        ("opening", "Before"),
        ("moved", "Moved by"),
        ("closing", "After"),
    ]
    table("Balances", columns, rows, "balances")


def _leases(leases: list[Told]) -> None:
    used = ("gpu_us", "matched_gpu_us", "unconfirmed_gpu_us", "contested_gpu_us")
    rows = [
        {
            "lease_id": lease["lease_id"],
            "charge": amount(lease["charge"]),
            **{name: gpu_hours(lease[name]) for name in used},
        }
        for lease in leases
    ]
    columns = [
        ("lease_id", "Lease"),
        ("gpu_us", "GPU-hours"),
        ("charge", "Charged"),
        ("matched_gpu_us", "Matched"),
        ("unconfirmed_gpu_us", "Unconfirmed"),
        ("contested_gpu_us", "Contested"),
    ]
    table("Leases", columns, rows, "leases")


def _lines(reader: Reader, account: str, lines: list[Told]) -> None:
    rows = [
        {
            "place": f"{line['position']} {line['part']}",
            "position": line["position"],
            "at": when(line["at"]),
            "kind": line["kind"],
            "part": line["part"],
            "movement": amount(line["movement"]),
            "balance": amount(line["balance_after"]),
        }
        for line in lines
    ]
    columns = [
        ("position", "Position"),
        ("at", "At (UTC)"),
        ("kind", "For"),
        ("part", "Balance"),
        ("movement", "Moved"),
        ("balance", "After"),
    ]
    table("Every line", columns, rows, "lines")
    with ui.row().classes("items-end"):
        position = ui.input("Position").classes("w-32")
        button = ui.button("Take this line down to its signed reports")
    found = ui.column().classes("w-full")

    async def take_down() -> None:
        found.clear()
        with found:
            try:
                await _line(reader, account, (position.value or "").strip())
            except Refused as refused:
                ui.label(str(refused)).classes("text-negative")

    button.on_click(take_down)


async def _line(reader: Reader, account: str, position: str) -> None:
    if not position.isdecimal():
        raise Refused("a position is a whole number")
    path = f"{account}/statements/lines/{position}"
    line = await reader.read(path)
    table(
        "The arithmetic, all in whole units",
        [
            ("name", "Value"),
            ("formula", "Formula"),
            ("before", "Before"),
            ("new", "New"),
            ("after", "After"),
        ],
        line.get("arithmetic", []),
        "arithmetic",
    )
    reports = await reader.read(f"{path}/reports", limit=LEASES_MAX)
    columns = [
        ("usage_position", "Position"),
        ("lane", "Lane"),
        ("seq", "Report of the node"),
        ("received_at", "Received (UTC)"),
        ("leaf", "Leaf in the lane's tree"),
    ]
    rows = [{**one, "received_at": when(one["received_at"])} for one in reports["data"]]
    table("The signed reports it was counted from", columns, rows, "reports")
    ui.label(f"Leaf of the fact: {line['leaf']}").classes("font-mono text-xs")
