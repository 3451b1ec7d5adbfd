"""Charges in the columns of FOCUS 1.2 or 1.3 (FinOps Open Cost and Usage Specification): CSV,
Parquet.

    sum(BilledCost) == what the account was charged in the month, to the micro-credit
    ListCost == ListUnitPrice x PricingQuantity, exactly, in decimals; ContractedCost likewise

`BilledCost` is what was drawn, floored as the tariff floors it; `ListCost` is price times quantity
without that floor, so the two may differ by less than a micro-credit. Quantities that no decimal
can hold exactly (an hour has 3,600 seconds) are cut after twelve places, and what they cost at list
is the product of what is written. One CREDIT is one US dollar; prices are in the virtual currency.
Null is an empty field, never "" or 0. Columns of our own begin with `x_`.

A unit that has a time in it stands without a number (UnitFormat): `GB-Hours`, never
`3600 GB-Seconds`. Where the tariff prices so many of a unit that no name of the specification holds
exactly, the charge is priced by the credit, and what was consumed stands beside it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from itertools import islice
from typing import Any

from api.income.csv_cell import cell
from domain.calendar import day_named, day_start_us
from domain.duration import DAY_US
from domain.gpu_time import GPU_HOUR_US
from domain.storage.volume import BYTE_US_PER_GB_SECOND, BYTES_PER_GIB
from projections.income.charges import Charge

BATCH_ROWS = 1_000
QUANTITY_PLACES = 12
CREDIT_PLACES = 6
COST_PLACES = QUANTITY_PLACES + CREDIT_PLACES

TEXT, COST, TIME, POSITION = "text", "decimal", "time", "position"

COLUMNS: dict[str, str] = {
    "BilledCost": COST,
    "BillingAccountId": TEXT,
    "BillingAccountName": TEXT,
    "BillingCurrency": TEXT,
    "BillingPeriodEnd": TIME,
    "BillingPeriodStart": TIME,
    "ChargeCategory": TEXT,
    "ChargeClass": TEXT,
    "ChargeDescription": TEXT,
    "ChargeFrequency": TEXT,
    "ChargePeriodEnd": TIME,
    "ChargePeriodStart": TIME,
    "ConsumedQuantity": COST,
    "ConsumedUnit": TEXT,
    "ContractedCost": COST,
    "ContractedUnitPrice": COST,
    "EffectiveCost": COST,
    "InvoiceId": TEXT,
    "InvoiceIssuerName": TEXT,
    "ListCost": COST,
    "ListUnitPrice": COST,
    "PricingCategory": TEXT,
    "PricingCurrency": TEXT,
    "PricingCurrencyContractedUnitPrice": COST,
    "PricingCurrencyEffectiveCost": COST,
    "PricingCurrencyListUnitPrice": COST,
    "PricingQuantity": COST,
    "PricingUnit": TEXT,
    "ProviderName": TEXT,
    "PublisherName": TEXT,
    "RegionId": TEXT,
    "RegionName": TEXT,
    "ResourceId": TEXT,
    "ResourceName": TEXT,
    "ResourceType": TEXT,
    "ServiceCategory": TEXT,
    "ServiceName": TEXT,
    "ServiceSubcategory": TEXT,
    "SkuId": TEXT,
    "SkuMeter": TEXT,
    "SkuPriceDetails": TEXT,
    "SkuPriceId": TEXT,
    "SubAccountId": TEXT,
    "SubAccountName": TEXT,
    "Tags": TEXT,
    "x_ClientId": TEXT,
    "x_EndUser": TEXT,
    "x_FactType": TEXT,
    "x_MarketPosition": POSITION,
}
"""Every column of 1.2, in the order of the file, and what it holds."""

COLUMNS_1_3 = dict(
    sorted({**COLUMNS, "HostProviderName": TEXT, "ServiceProviderName": TEXT}.items())
)
"""1.3 adds the market, which sells, and the provider on whose machine it ran. Its other new columns
are of split costs and contract commitments, and a file is without what its provider has not.
"""


class Version(StrEnum):
    """Of the specification."""

    V1_2 = "1.2"
    V1_3 = "1.3"


VERSIONS = {Version.V1_2: COLUMNS, Version.V1_3: COLUMNS_1_3}

Row = dict[str, Any]

_UNITS = {"core-second": "Core-Seconds", "GB-second": "GB-Seconds", "byte": "B"}
_TIMES = {1: "Seconds", 60: "Minutes", 3_600: "Hours", 86_400: "Days", 2_592_000: "Months"}
"""Seconds of a unit of time; a month is 30 days, as tariffs price it."""
_SIZES = {1_000**power: f"{letter}B" for power, letter in enumerate(("", "K", "M", "G", "T", "P"))}
_SIZES |= {1_024**power: f"{letter}iB" for power, letter in enumerate("KMGTP", start=1)}
VOLUMES = ("Storage", "Other (Storage)", "Volumes")
_RESOURCE_SERVICE = {
    "cpu": ("Compute", "Other (Compute)", "CPU"),
    "memory": ("Compute", "Other (Compute)", "Memory"),
    "storage": ("Storage", "Other (Storage)", "Storage"),
    "network": ("Networking", "Data Transfer", "Network"),
}


@dataclass(frozen=True, slots=True)
class Bill:
    """What all rows of a file have in common: whose month, who billed it, on which invoice."""

    account_id: str
    account_name: str | None
    issuer_name: str
    from_us: int
    to_us: int
    first_position: int
    invoice_number: str | None


@dataclass(frozen=True, slots=True)
class _Priced:
    """One charge in FOCUS's words. `price` in micro-credits for `quantity` of `unit`."""

    category: str
    frequency: str
    service: tuple[str, str, str]  # category, subcategory, name
    description: str
    start_us: int
    end_us: int
    sku: str
    meter: str
    price: int | None
    quantity: Decimal | None
    unit: str | None
    consumed: Decimal | None
    consumed_unit: str | None
    resource: tuple[str, str] | None  # id and type
    is_correction: bool = False


def rows_of(
    bill: Bill, charges: Iterable[Charge], version: Version = Version.V1_2
) -> Iterator[Row]:
    """The rows of a file, in the order of the charges; every column of the version is there."""
    columns = VERSIONS[version]
    for charge in charges:
        row = _row(bill, charge)
        yield {name: row[name] for name in columns}


def _row(bill: Bill, charge: Charge) -> Row:
    priced = _PRICED[charge.kind](bill, charge)
    paid = _credits(charge.units)
    price = None if priced.price is None else _credits(priced.price)
    cost = paid if price is None or priced.quantity is None else _times(price, priced.quantity)
    body = charge.body
    row: Row = {
        "BilledCost": paid,
        "BillingAccountId": bill.account_id,
        "BillingAccountName": bill.account_name,
        "BillingCurrency": "USD",
        "BillingPeriodEnd": _time(bill.to_us),
        "BillingPeriodStart": _time(bill.from_us),
        "ChargeCategory": priced.category,
        "ChargeClass": "Correction" if priced.is_correction else None,
        "ChargeDescription": priced.description,
        "ChargeFrequency": priced.frequency,
        "ChargePeriodEnd": _time(-(-priced.end_us // 1_000_000) * 1_000_000),
        "ChargePeriodStart": _time(priced.start_us),
        "ConsumedQuantity": priced.consumed,
        "ConsumedUnit": priced.consumed_unit,
        "ContractedCost": cost,
        "ContractedUnitPrice": price,
        "EffectiveCost": paid,
        "HostProviderName": charge.provider_id or bill.issuer_name,
        "InvoiceId": charge.credit_note if _is_given_back(charge) else bill.invoice_number,
        "InvoiceIssuerName": bill.issuer_name,
        "ListCost": cost,
        "ListUnitPrice": price,
        "PricingCategory": None if price is None else "Standard",
        "PricingCurrency": "CREDIT",
        "PricingCurrencyContractedUnitPrice": price,
        "PricingCurrencyEffectiveCost": paid,
        "PricingCurrencyListUnitPrice": price,
        "PricingQuantity": priced.quantity,
        "PricingUnit": priced.unit,
        "ProviderName": bill.issuer_name,
        "PublisherName": bill.issuer_name,
        "RegionId": charge.region_id,
        "RegionName": charge.region_name,
        "ResourceId": None if priced.resource is None else priced.resource[0],
        "ResourceName": None,
        "ResourceType": None if priced.resource is None else priced.resource[1],
        "ServiceCategory": priced.service[0],
        "ServiceName": priced.service[2],
        "ServiceProviderName": bill.issuer_name,
        "ServiceSubcategory": priced.service[1],
        "SkuId": priced.sku,
        "SkuMeter": priced.meter,
        "SkuPriceDetails": None,
        "SkuPriceId": priced.sku,
        "SubAccountId": body.get("project_id") or None,
        "SubAccountName": None,
        "Tags": json.dumps(_tags(body), separators=(",", ":"), sort_keys=True),
        "x_ClientId": body.get("client_id") or None,
        "x_EndUser": body.get("end_user_ref") or None,
        "x_FactType": charge.topic,
        "x_MarketPosition": charge.position,
    }
    assert row.keys() == COLUMNS_1_3.keys()
    return row


def _is_given_back(charge: Charge) -> bool:
    """Whether it is on a credit note: late usage, too, is an adjustment, but one that charges."""
    return charge.kind == "adjustment" and charge.body["reason"] != "late_usage"


def _tags(body: dict[str, Any]) -> dict[str, str]:
    """Only what users set themselves; ids of ours have columns of their own."""
    return {"project": body["project_id"]} if body.get("project_id") else {}


# --- each kind of charge -----------------------------------------------------------------------


def _usage(bill: Bill, charge: Charge) -> _Priced:
    del bill
    body = charge.body
    assert charge.from_us is not None, charge
    gpu_us, whole = int(body["gpu_us_new"]), int(body["charge_new"]["units"])
    # Where several paid for an hour, this one's part of the time is its part of the charge.
    cut = 10**QUANTITY_PLACES
    hours = gpu_us * cut * charge.units // (GPU_HOUR_US * whole)
    seconds = gpu_us * cut * charge.units // (1_000_000 * whole)
    gpu_class = (charge.gpu_class or "").capitalize()
    return _Priced(
        category="Usage",
        frequency="Usage-Based",
        service=("Compute", "Other (Compute)", "GPU leases"),
        description=f"GPU time of lease {body['lease_id']}, hour {body['hour_index'] + 1},"
        f" {gpu_class.lower()} class",
        start_us=charge.from_us,
        end_us=max(int(body["until_us"]), charge.from_us + 1),
        sku=f"gpu-time-{gpu_class.lower()}",
        meter="GPU time",
        price=charge.price_units,
        quantity=_scaled(hours, QUANTITY_PLACES),
        unit="GPU-Hours",
        consumed=_scaled(seconds, QUANTITY_PLACES),
        consumed_unit="GPU-Seconds",
        resource=(body["lease_id"], "GPU lease"),
    )


def _federated(bill: Bill, charge: Charge) -> _Priced:
    """Priced by the hour and worker in the tariff; here by the credit, for it is no GPU time."""
    del bill
    body = charge.body
    assert charge.from_us is not None, charge
    return _by_the_credit(
        charge,
        category="Purchase",
        frequency="Recurring",
        service=("Compute", "Other (Compute)", "Federated jobs"),
        description=f"Federated fee of lease {body['lease_id']}, hour {body['hour_index'] + 1}",
        start_us=charge.from_us,
        end_us=max(int(body["until_us"]), charge.from_us + 1),
        sku="federated-fee",
        resource=(body["lease_id"], "GPU lease"),
    )


def _early_end(bill: Bill, charge: Charge) -> _Priced:
    """What is kept of a prepaid term has no unit: it is a part of what was not used."""
    del bill
    body = charge.body
    return _by_the_credit(
        charge,
        category="Purchase",
        frequency="One-Time",
        service=("Compute", "Other (Compute)", "Reserved terms"),
        description=f"Early end of the reserved term of lease {body['lease_id']}",
        start_us=charge.recorded_us,
        end_us=charge.recorded_us + 1,
        sku="reserved-term-early-end",
        resource=(body["lease_id"], "GPU lease"),
    )


def _resources(bill: Bill, charge: Charge) -> _Priced:
    del bill
    body = charge.body
    rate, meter = body["rate"], body["meter"]
    consumed = int(body["quantity_new"])
    name = _RESOURCE_SERVICE[meter][2]
    return _metered(
        charge,
        rate,
        category="Usage",
        frequency="Usage-Based",
        service=_RESOURCE_SERVICE[meter],
        description=f"{name} of lease {body['lease_id']}",
        start_us=charge.recorded_us,
        end_us=charge.recorded_us + 1,
        sku=f"resource-{meter}",
        quantity=_scaled(consumed * 10**QUANTITY_PLACES // int(rate["per"]), QUANTITY_PLACES),
        consumed=Decimal(consumed),
        consumed_unit=_UNITS[body["unit"]],
        resource=(body["lease_id"], "GPU lease"),
    )


def _volume(bill: Bill, charge: Charge) -> _Priced:
    """Hours of a volume. Where several paid for them, this one's part of the time is its part."""
    del bill
    body = charge.body
    rate, whole, until_us = body["rate"], int(body["charge_new"]["units"]), int(body["until_us"])
    elapsed_us, size_gib, per = int(body["elapsed_us_new"]), int(body["size_gib"]), int(rate["per"])
    byte_us = size_gib * BYTES_PER_GIB * elapsed_us * 10**QUANTITY_PLACES * charge.units
    return _metered(
        charge,
        rate,
        category="Usage",
        frequency="Usage-Based",
        service=VOLUMES,
        description=f"{size_gib} GiB of volume {body['volume_id']}",
        start_us=until_us - elapsed_us,
        end_us=until_us,
        sku="volume",
        quantity=_scaled(byte_us // (BYTE_US_PER_GB_SECOND * per * whole), QUANTITY_PLACES),
        consumed=_scaled(byte_us // (BYTE_US_PER_GB_SECOND * whole), QUANTITY_PLACES),
        consumed_unit="GB-Seconds",
        resource=(body["volume_id"], "Volume"),
    )


def _metered(charge: Charge, rate: dict[str, Any], *, quantity: Decimal, **told: Any) -> _Priced:
    """What has a price for `per` of its unit: in the specification's name for so many, else by the
    credit.
    """
    meter, unit = told["service"][2], pricing_unit(told["consumed_unit"], int(rate["per"]))
    if unit is None:
        return _Priced(
            **told, meter=meter, price=1_000_000, quantity=_credits(charge.units), unit="Credits"
        )
    price = int(rate["price"]["units"])
    return _Priced(**told, meter=meter, price=price, quantity=quantity, unit=unit)


def pricing_unit(base: str, per: int) -> str | None:
    """The name of so many of a unit: 3,600 `GB-Seconds` are `GB-Hours`. None: there is none."""
    if base == "B":
        return _SIZES.get(per, f"{per} B")
    what, _, _ = base.partition("-")
    return f"{what}-{_TIMES[per]}" if per in _TIMES else None


def _storage_node(bill: Bill, charge: Charge) -> _Priced:
    del bill
    region_id = charge.body["region_id"]
    return _by_the_credit(
        charge,
        category="Purchase",
        frequency="Recurring",
        service=("Storage", "Other (Storage)", "Storage nodes"),
        description=f"Storage node {charge.body['number']} of region {region_id}",
        start_us=charge.recorded_us,
        end_us=charge.recorded_us + 1,
        sku="storage-node",
        resource=(region_id, "Region"),
    )


def _device_fee(bill: Bill, charge: Charge) -> _Priced:
    del bill
    body = charge.body
    start_us = day_start_us(day_named(body["day"]))
    price = int(body["fee_per_month"]["units"])
    return _Priced(
        category="Purchase",
        frequency="Recurring",
        service=("Internet of Things", "Other (Internet of Things)", "Edge devices"),
        description=f"{body['unique']} edge devices on {body['day']}",
        start_us=start_us,
        end_us=start_us + DAY_US,
        sku="edge-device",
        meter="Edge devices",
        price=price,
        quantity=_scaled(charge.units * 10**QUANTITY_PLACES // price, QUANTITY_PLACES),
        unit="Device-Months",
        consumed=None,
        consumed_unit=None,
        resource=None,
    )


def _adjustment(bill: Bill, charge: Charge) -> _Priced:
    """A correction of an earlier month has the class; one of this month has none."""
    body = charge.body
    corrects, reason = int(body["corrects_position"]), str(body["reason"])
    is_volume = "volume_id" in body  # a fact does not write what it has not
    return _Priced(
        category="Credit" if reason in ("sla", "goodwill") else "Adjustment",
        frequency="One-Time",
        service=VOLUMES if is_volume else ("Compute", "Other (Compute)", "GPU leases"),
        description=f"Adjustment of the charge at market position {corrects}: {reason}",
        start_us=charge.recorded_us,
        end_us=charge.recorded_us + 1,
        sku="adjustment",
        meter="Adjustments",
        price=None,
        quantity=None,
        unit=None,
        consumed=None,
        consumed_unit=None,
        resource=(body["volume_id"], "Volume") if is_volume else (body["lease_id"], "GPU lease"),
        is_correction=corrects <= bill.first_position,
    )


def _by_the_credit(charge: Charge, **told: Any) -> _Priced:
    """A charge of no unit price of its own: so many credits at one credit each."""
    return _Priced(
        **told,
        meter=told["service"][2],
        price=1_000_000,
        quantity=_credits(charge.units),
        unit="Credits",
        consumed=None,
        consumed_unit=None,
    )


_PRICED = {
    "usage": _usage,
    "federated_fee": _federated,
    "resources": _resources,
    "volume": _volume,
    "storage_node": _storage_node,
    "device_fee": _device_fee,
    "early_end": _early_end,
    "adjustment": _adjustment,
}


# --- numbers and times -------------------------------------------------------------------------


def _scaled(units: int, places: int) -> Decimal:
    """An exact decimal of an integer number of 10^-places."""
    return Decimal((0 if units >= 0 else 1, tuple(map(int, str(abs(units)))), -places))


def _credits(units: int) -> Decimal:
    return _scaled(units, CREDIT_PLACES)


def _times(price: Decimal, quantity: Decimal) -> Decimal:
    """The exact product, whatever precision the process's decimals have."""
    with localcontext() as context:
        context.prec = 100
        return price * quantity


def _time(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def decimal_text(number: Decimal) -> str:
    """Plain digits with a point and no exponent; zeros at the end are left out, but for one."""
    text = f"{number:f}"
    if "." not in text:
        return f"{text}.0"
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}"


# --- files -------------------------------------------------------------------------------------


def csv_pieces(rows: Iterable[Row], version: Version = Version.V1_2) -> Iterator[bytes]:
    """RFC 4180 with a head, a batch of rows at a time; null is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(VERSIONS[version])
    rest = iter(rows)
    while True:
        batch = list(islice(rest, BATCH_ROWS))
        for row in batch:
            writer.writerow(map(_csv, row.values()))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
        if len(batch) < BATCH_ROWS:
            return


def _csv(value: Any) -> Any:
    if isinstance(value, str):
        return cell(value)
    return decimal_text(value) if isinstance(value, Decimal) else value


def parquet_pieces(rows: Iterable[Row], version: Version = Version.V1_2) -> Iterator[bytes]:
    """A Parquet file, a row group at a time: decimals of 38 digits, times of UTC."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        TEXT: pa.string(),
        COST: pa.decimal128(38, COST_PLACES),
        TIME: pa.timestamp("ms", tz="UTC"),
        POSITION: pa.int64(),
    }
    columns = VERSIONS[version]
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in columns.items()])
    sink = _Pieces()
    rest = iter(rows)
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        while batch := list(islice(rest, BATCH_ROWS)):
            told = [
                pa.array([_parquet(kind, row[name]) for row in batch], types[kind])
                for name, kind in columns.items()
            ]
            writer.write_batch(pa.record_batch(told, schema=schema))
            yield sink.take()
    yield sink.take()


def _parquet(kind: str, value: Any) -> Any:
    if value is None or kind in (TEXT, POSITION):
        return value
    if kind == TIME:
        return datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    with localcontext() as context:
        context.prec = 100
        return value.quantize(Decimal(1).scaleb(-COST_PLACES))


class _Pieces(io.RawIOBase):
    """Where the Parquet writer writes; what it wrote is taken away after each row group."""

    def __init__(self) -> None:
        super().__init__()
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._written += piece
        return len(piece)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken
