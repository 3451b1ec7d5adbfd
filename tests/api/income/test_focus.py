"""FOCUS 1.2 and 1.3: every column and rule of the specification, against files of real charges."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.income import focus
from api.income.focus import COLUMNS, COLUMNS_1_3, Bill, Version, pricing_unit
from domain.income.invoice import period_bounds_us
from projections.income.charges import KINDS, Charge
from projections.income.invoices import KINDS_OF
from tests.scenes.server import Scene
from tests.scenes.work import hours_of_work

# --- the specification's rules, in our own words -----------------------------------------------

MANDATORY = {
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
}
NEVER_NULL = MANDATORY - {"BillingAccountName", "ChargeClass", "PricingQuantity", "PricingUnit"}
NEVER_NULL |= {
    "ChargeFrequency",
    "PricingCurrency",
    "PricingCurrencyEffectiveCost",
    "ServiceSubcategory",
}
WHEN_USED_OR_BOUGHT = {
    "ContractedUnitPrice",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "SkuId",
    "SkuPriceId",
    "PricingCurrencyListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
}
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {
        "AI and Machine Learning",
        "Analytics",
        "Business Applications",
        "Compute",
        "Databases",
        "Developer Tools",
        "Multicloud",
        "Identity",
        "Integration",
        "Internet of Things",
        "Management and Governance",
        "Media",
        "Migration",
        "Mobile",
        "Networking",
        "Security",
        "Storage",
        "Web",
        "Other",
    },
    "BillingCurrency": {"USD"},
}
SUBCATEGORY_OF = {
    "Other (Compute)": "Compute",
    "Other (Storage)": "Storage",
    "Data Transfer": "Networking",
    "Other (Internet of Things)": "Internet of Things",
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
NUMBER = re.compile(r"-?(0|[1-9]\d*)\.\d+")
SIZE = r"(?:[KMGTPE]i?)?[Bb]"
TIMES = "Years|Months|Days|Hours|Minutes|Seconds"
COUNT = r"[A-Z][A-Za-z0-9]*"
UNIT = re.compile(
    rf"({SIZE}|{TIMES}|{COUNT}s)"  # GB, Hours, Credits
    rf"|({SIZE}|{COUNT})-({TIMES})"  # GB-Hours: without a number before it
    rf"|[1-9]\d* ({SIZE}|{TIMES}|{COUNT}s)"  # 1000 Credits
    rf"|({SIZE}|{COUNT}s)/(Year|Month|Day|Hour|Minute|Second)"  # GB/Hour
)
"""UnitFormat as the official validator (2.0.1, model 1.2) asks for it, and capitals."""


def exactly(price: str, quantity: str) -> Decimal:
    """The product, which may have more digits than decimals keep by themselves."""
    with localcontext() as context:
        context.prec = 100
        return Decimal(price) * Decimal(quantity)


def broken_rules(row: dict[str, str]) -> Iterator[str]:
    """What the specification says no to in one row of a CSV file; nothing, if it is valid."""
    missing = MANDATORY - row.keys()
    if missing:
        yield f"mandatory columns are missing: {sorted(missing)}"
        return
    for name, value in row.items():
        custom = name.startswith("x_")
        if not custom and name not in COLUMNS:
            yield f"{name} is no column of the specification and none of ours"
        if value == "null" or value != value.strip():
            yield f"{name}: null is an empty field"
        if not value:
            if name in NEVER_NULL:
                yield f"{name} is null"
        elif COLUMNS.get(name) == focus.COST and NUMBER.fullmatch(value) is None:
            yield f"{name}: {value} is no plain decimal"
        elif COLUMNS.get(name) == focus.TIME and TIME.fullmatch(value) is None:
            yield f"{name}: {value} is no time in seconds with Z"
    for name, allowed in ALLOWED.items():
        if row[name] not in allowed:
            yield f"{name}: {row[name]} is not allowed"
    yield from _broken_together(row)


def _broken_together(row: dict[str, str]) -> Iterator[str]:
    used = row["ChargeCategory"] in ("Usage", "Purchase") and not row["ChargeClass"]
    for name in WHEN_USED_OR_BOUGHT:
        if used and not row[name]:
            yield f"{name} is null"
    if row["ChargeCategory"] == "Purchase" and row["ChargeFrequency"] == "Usage-Based":
        yield "a purchase is not usage-based"
    if bool(row["ConsumedQuantity"]) != bool(row["ConsumedUnit"]):
        yield "a consumed quantity and its unit go together"
    if row["ChargeCategory"] != "Usage" and row["ConsumedQuantity"]:
        yield "only usage is consumed"
    if bool(row["PricingQuantity"]) != bool(row["PricingUnit"]):
        yield "a pricing quantity and its unit go together"
    for name in ("PricingUnit", "ConsumedUnit"):
        if row[name] and UNIT.fullmatch(row[name]) is None:
            yield f"{name}: {row[name]}"
    for cost, price in (("ListCost", "ListUnitPrice"), ("ContractedCost", "ContractedUnitPrice")):
        if row[price] and Decimal(row[cost]) != exactly(row[price], row["PricingQuantity"]):
            yield f"{cost} is not {price} times PricingQuantity"
    if row["ChargePeriodStart"] >= row["ChargePeriodEnd"]:
        yield "a charge period ends after it starts"
    if row["BillingPeriodStart"] >= row["BillingPeriodEnd"]:
        yield "a billing period ends after it starts"
    if SUBCATEGORY_OF.get(row["ServiceSubcategory"]) != row["ServiceCategory"]:
        yield "a subcategory has one category"
    tags = json.loads(row["Tags"])
    if not isinstance(tags, dict) or any(isinstance(v, dict | list) for v in tags.values()):
        yield "tags are one flat object"


def read_csv(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def must_be_valid(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert list(broken_rules(row)) == [], row


# --- files of real charges ---------------------------------------------------------------------


def test_a_month_of_real_charges_is_valid_focus_and_adds_up_to_the_statement(scene: Scene) -> None:
    """FOCUS 1.2 CSV and Parquet of an account's charges."""
    lease = hours_of_work(scene)[0]
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    answer = scene.renter.get(f"{path}.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "focus.csv" in answer.headers["Content-Disposition"]
    rows = read_csv(answer.content)
    must_be_valid(rows)
    (row,) = rows
    assert (row["ResourceId"], row["PricingUnit"]) == (lease["lease_id"], "GPU-Hours")
    assert (row["PricingQuantity"], row["ListUnitPrice"], row["BilledCost"]) == (
        "1.0",
        "2.0",
        "2.0",
    )
    assert (row["ConsumedQuantity"], row["ConsumedUnit"]) == ("3600.0", "GPU-Seconds")
    assert (row["RegionName"], row["InvoiceId"]) == ("alpha", "")
    charge = scene.renter.read(path)["charge"]["units"]
    assert sum(Decimal(each["BilledCost"]) for each in rows) * 1_000_000 == int(charge)
    table = pq.read_table(io.BytesIO(scene.renter.get(f"{path}.parquet").content))
    assert table.column_names == list(COLUMNS)
    (told,) = table.to_pylist()
    assert (told["BilledCost"], told["ChargeClass"]) == (Decimal(2), None)
    assert f"{told['ChargePeriodStart']:%Y-%m-%dT%H:%M:%SZ}" == row["ChargePeriodStart"]


def test_an_empty_month_is_a_head_alone(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.stranger.account_id}/statements/2026-11"
    content = scene.stranger.get(f"{path}.csv").content
    assert content.decode() == ",".join(COLUMNS) + "\r\n"
    table = pq.read_table(io.BytesIO(scene.stranger.get(f"{path}.parquet").content))
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))


def test_the_lines_of_a_month_are_the_accounts_own_books(scene: Scene) -> None:
    hours_of_work(scene)
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    rows = read_csv(scene.renter.get(f"{path}/lines.csv").content)
    told = [json.loads(line) for line in scene.renter.get(f"{path}/lines.jsonl").text.splitlines()]
    assert [row["position"] for row in rows] == [str(each["position"]) for each in told]
    cash = [row for row in rows if row["account"].endswith(":cash")]
    assert {row["account"].partition(":")[0] for row in rows} == {"party", "escrow"}
    own = f"party:{scene.renter.account_id}:cash"
    assert [row for row in cash if row["account"] == own][-1]["balance_after"] == "98000000"


def test_another_partys_files_do_not_exist_and_a_key_needs_the_scope(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    for ending in (".csv", ".parquet", ".journal", "/lines.csv", "/lines.jsonl"):
        answer = scene.stranger.get(f"{path}{ending}")
        assert (answer.status_code, answer.json()["code"]) == (404, "account_unknown")
    assert scene.renter.get(f"{path[:-2]}13.csv").status_code == 422


def test_one_file_at_a_time_for_each_account(scene: Scene) -> None:
    from api.income import exports

    exports._begin(scene.renter.account_id)
    try:
        path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11.csv"
        answer = scene.renter.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    finally:
        exports._end(scene.renter.account_id)
    assert scene.renter.get(path).status_code == 200
    assert exports._running == set()


# --- every kind of charge ----------------------------------------------------------------------

FROM_US, TO_US = period_bounds_us("2026-11")
BILL = Bill("acct_a", None, "Example", FROM_US, TO_US, 100, "INV-000001")
LEASE = {"lease_id": "lease_a", "client_id": "", "project_id": "p", "end_user_ref": "u"}


def charge(kind: str, units: int, body: dict[str, Any], **changes: Any) -> Charge:
    told: dict[str, Any] = {
        "position": 200,
        "kind": kind,
        "units": units,
        "topic": "a.fact.v1",
        "recorded_us": FROM_US + 5,
        "body": body,
        "from_us": FROM_US,
        "price_units": 2_780_000,
        "gpu_class": "datacenter",
        "region_id": "region_a",
        "region_name": "home",
    }
    return Charge(**{**told, **changes})


def usage(units: int, gpu_us: int, whole: int | None = None) -> Charge:
    body = {
        **LEASE,
        "gpu_us_new": str(gpu_us),
        "hour_index": 3,
        "until_us": FROM_US + 1_500_000,
        "charge_new": {"asset": "CREDIT", "units": str(whole or units)},
    }
    return charge("usage", units, body)


def metered(units: int, quantity: int, price: int, per: int) -> Charge:
    rate = {"meter": "storage", "price": {"asset": "CREDIT", "units": str(price)}, "per": str(per)}
    body = {
        **LEASE,
        "meter": "storage",
        "unit": "GB-second",
        "quantity_new": str(quantity),
        "rate": rate,
    }
    return charge("resources", units, body)


def adjusted(corrects: int, reason: str = "dispute") -> Charge:
    body = {
        **LEASE,
        "account_id": "acct_a",
        "provider_account_id": "acct_p",
        "reason": reason,
        "corrects_position": corrects,
    }
    return charge("adjustment", -7, body)


def device_day(units: int, unique: int) -> Charge:
    body = {
        "day": "2026-11-20",
        "unique": unique,
        "fee_per_month": {"asset": "CREDIT", "units": "15000000"},
    }
    return charge("device_fee", units, body, from_us=None, price_units=None, gpu_class=None)


def volume_hours(units: int, elapsed_us: int, size_gib: int, whole: int | None = None) -> Charge:
    body = {
        "volume_id": "volume_a",
        "project_id": "p",
        "size_gib": size_gib,
        "until_us": FROM_US + elapsed_us,
        "elapsed_us_new": str(elapsed_us),
        "rate": {"price": {"asset": "CREDIT", "units": "100000"}, "per": "2592000"},
        "charge_new": {"asset": "CREDIT", "units": str(whole or units)},
    }
    return charge("volume", units, body, from_us=None, price_units=None, gpu_class=None)


def storage_node(units: int) -> Charge:
    body = {"region_id": "region_a", "number": 1}
    return charge("storage_node", units, body, from_us=None, price_units=None, gpu_class=None)


def federated(units: int) -> Charge:
    body = {**LEASE, "hour_index": 0, "until_us": FROM_US + 3_600_000_000}
    return charge("federated_fee", units, body)


EVERY = [
    usage(2_779_999, 3_599_999_000),
    metered(3, 12_345, 1_000, 3_600),
    volume_hours(14_913, 3_600_000_000, 100),
    storage_node(100_000),
    device_day(500_000, 1),
    federated(1_850_000),
    charge("early_end", 647_100_000, dict(LEASE)),
    adjusted(150),
]


def written(*charges: Charge) -> list[dict[str, str]]:
    rows = read_csv(b"".join(focus.csv_pieces(focus.rows_of(BILL, charges))))
    must_be_valid(rows)
    return rows


def test_every_kind_of_charge_is_valid_and_every_kind_is_here() -> None:
    assert {each.kind for each in EVERY} == set(KINDS) == set(focus._PRICED)
    assert set(KINDS) - {"adjustment"} == set(KINDS_OF["charges"])
    rows = written(*EVERY)
    assert sum(Decimal(row["BilledCost"]) for row in rows) * 1_000_000 == sum(
        each.units for each in EVERY
    )
    assert [row["InvoiceId"] for row in rows] == ["INV-000001"] * 7 + [""]


def test_a_correction_has_the_class_only_when_it_corrects_an_earlier_month() -> None:
    this, before, credit = written(adjusted(150), adjusted(100), adjusted(150, "sla"))
    assert (this["ChargeClass"], before["ChargeClass"]) == ("", "Correction")
    assert (this["ChargeCategory"], credit["ChargeCategory"]) == ("Adjustment", "Credit")
    assert this["BilledCost"] == "-0.000007"


@given(st.integers(1, 10**12), st.integers(1, 10**15), st.integers(1, 100))
def test_list_cost_is_exactly_price_times_quantity_whatever_was_used(
    units: int, gpu_us: int, payers: int
) -> None:
    (row,) = written(usage(units, gpu_us, units * payers))
    exact = Decimal(gpu_us) / payers / 3_600_000_000
    assert abs(Decimal(row["PricingQuantity"]) - exact) < Decimal("1e-11")


@given(st.integers(1, 10**9), st.integers(1, 10**12), st.integers(1, 2**20), st.integers(1, 9))
def test_volumes_are_priced_by_their_gb_seconds(
    units: int, elapsed_us: int, size_gib: int, payers: int
) -> None:
    """Where several paid, each one's part of the time is its part of the charge."""
    (row,) = written(volume_hours(units, elapsed_us, size_gib, units * payers))
    exact = Decimal(size_gib * 2**30 * elapsed_us) / 10**15 / payers
    assert abs(Decimal(row["ConsumedQuantity"]) - exact) < Decimal("1e-11")
    assert abs(Decimal(row["PricingQuantity"]) - exact / 2_592_000) < Decimal("1e-11")


@given(st.integers(1, 10**9), st.integers(1, 10**15), st.integers(1, 10**9), st.integers(1, 10**6))
def test_meters_are_priced_exactly(units: int, quantity: int, price: int, per: int) -> None:
    (row,) = written(metered(units, quantity, price, per))
    assert (row["ConsumedQuantity"], row["ConsumedUnit"]) == (f"{quantity}.0", "GB-Seconds")
    unit = pricing_unit("GB-Seconds", per)
    assert row["PricingUnit"] == (unit or "Credits")
    if unit is None:
        assert (
            Decimal(row["PricingQuantity"])
            == Decimal(units) / 1_000_000
            == Decimal(row["ListCost"])
        )
    else:
        assert abs(Decimal(row["PricingQuantity"]) - Decimal(quantity) / per) < Decimal("1e-11")
        assert Decimal(row["ListUnitPrice"]) == Decimal(price) / 1_000_000


def test_so_many_of_a_unit_have_the_specification_s_name_or_none() -> None:
    """No number stands before a unit with a time in it, and none is lost."""
    times = {1: "Seconds", 60: "Minutes", 3_600: "Hours", 86_400: "Days", 2_592_000: "Months"}
    for per, name in times.items():
        for what in ("GB", "Core"):
            assert pricing_unit(f"{what}-Seconds", per) == f"{what}-{name}"
    assert pricing_unit("GB-Seconds", 7) is None
    sizes = {1: "B", 10**3: "KB", 10**9: "GB", 10**15: "PB", 2**10: "KiB", 2**30: "GiB"}
    assert {per: pricing_unit("B", per) for per in sizes} == sizes
    assert pricing_unit("B", 5_000) == "5000 B"
    for unit in (*sizes.values(), "5000 B", "Credits", "GPU-Hours", "Core-Seconds"):
        assert UNIT.fullmatch(unit), unit
    for wrong in ("3600 GB-Seconds", "GPU hours", "GB-hours", "iB", "0 B", "", "GB-Seconds/Hour"):
        assert UNIT.fullmatch(wrong) is None, wrong


def test_1_3_has_every_column_of_1_2_and_names_market_and_provider(scene: Scene) -> None:
    """A superset: `ProviderName` and `PublisherName` are deprecated there, and still mandatory."""
    hours_of_work(scene)
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    (old,) = read_csv(scene.renter.get(f"{path}.csv").content)
    content = scene.renter.get(f"{path}.csv", focus="1.3").content
    (new,) = read_csv(content)
    assert list(new) == list(COLUMNS_1_3) == sorted([*COLUMNS, *NEW_IN_1_3])
    assert {name: new[name] for name in COLUMNS} == old
    must_be_valid([{name: new[name] for name in COLUMNS}])
    assert new["HostProviderName"] == scene.provider.provider_id
    assert new["ServiceProviderName"] == new["ProviderName"] != ""
    answer = scene.renter.get(f"{path}.parquet", focus="1.3")
    (told,) = pq.read_table(io.BytesIO(answer.content)).to_pylist()
    assert list(told) == list(COLUMNS_1_3)
    assert told["HostProviderName"] == scene.provider.provider_id
    assert scene.renter.get(f"{path}.csv", focus="1.2").content == (
        scene.renter.get(f"{path}.csv").content
    )
    assert scene.renter.get(f"{path}.csv", focus="1.4").status_code == 422


NEW_IN_1_3 = {"HostProviderName", "ServiceProviderName"}


def test_every_kind_of_charge_has_what_1_3_wants_of_each_row() -> None:
    pieces = focus.csv_pieces(focus.rows_of(BILL, EVERY, Version.V1_3), Version.V1_3)
    rows = read_csv(b"".join(pieces))
    assert len(rows) == len(EVERY)
    assert {row[name] for row in rows for name in NEW_IN_1_3} == {"Example"}, "never null"


def test_parquet_holds_the_same_decimals(tmp_path: Path) -> None:
    path = tmp_path / "focus.parquet"
    path.write_bytes(b"".join(focus.parquet_pieces(focus.rows_of(BILL, EVERY * 400))))
    table = pq.read_table(path)
    assert table.num_rows == 400 * len(EVERY)
    rows = written(*EVERY)
    for name, kind in COLUMNS.items():
        if kind == focus.COST:
            told = [None if not row[name] else Decimal(row[name]) for row in rows]
            assert table[name].to_pylist()[: len(EVERY)] == told


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("ChargeCategory", "Gift", "not allowed"),
        ("BilledCost", "", "BilledCost is null"),
        ("BilledCost", "1e3", "no plain decimal"),
        ("ListCost", "5.0", "times PricingQuantity"),
        ("ChargePeriodStart", "2026-11-01T00:00:00.5Z", "no time"),
        ("SkuPriceId", "", "is null"),
        ("PricingUnit", "GPU hours", "PricingUnit"),
        ("Tags", '{"a": []}', "flat"),
        ("ChargeClass", "null", "empty field"),
        ("ServiceSubcategory", "Bots", "one category"),
    ],
)
def test_the_rules_above_can_say_no(name: str, value: str, rule: str) -> None:
    row = {**written(EVERY[0])[0], name: value}
    assert any(rule in each for each in broken_rules(row)), list(broken_rules(row))


@pytest.mark.parametrize("text", ['=HYPERLINK("http://evil","x")', "+1", "-1", "@SUM(A1)", "\t=1"])
def test_s_l19_a_name_that_begins_like_a_formula_is_a_text_in_the_csv_file(text: str) -> None:
    row = dict.fromkeys(COLUMNS) | {"BillingAccountName": text, "BilledCost": Decimal("-1.5")}
    (told,) = read_csv(b"".join(focus.csv_pieces([row])))
    assert told["BillingAccountName"] == f"'{text}"
    assert told["BilledCost"] == "-1.5", "a number stays one"
