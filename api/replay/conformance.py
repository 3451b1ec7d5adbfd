"""Conformance: published cases, run through the functions the product itself uses.

Not a second implementation: each suite below only translates a case into one call of `domain`,
`ledger` or `contracts` and its answer back into JSON. All files are read before any case runs.

    passed + failed == number of cases
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO, cast

from domain import calendar
from domain.epochs import emission, net_emission
from domain.governance import grant
from domain.hardware import admission as hardware_admission
from domain.hardware import capacity, mig
from domain.hardware.cloud_quota import Quota, runnable_jobs
from domain.hardware.facts import SataDrive
from domain.hardware.reasons import HardwareReason
from domain.lease import escrow
from domain.money import share_out, share_out_all
from domain.parties.reasons import PartiesReason
from domain.pools import drf
from domain.prices import charge_split as earnings
from domain.prices import device_fee, oracle, tariff, token_burn
from domain.record import dataclass
from domain.refusal import Refused

Case = Mapping[str, Any]
Suite = Callable[[Case], dict[str, Any]]

VERSION = 1
_INT = re.compile(r"0|-?[1-9][0-9]*")


class Unusable(Exception):
    """A file cannot be used, so no case was run."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failing case, and what differs."""

    suite: str
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Result:
    """How all cases came out, in file and case order."""

    passed: int
    failures: tuple[Failure, ...]

    @property
    def failed(self) -> int:
        return len(self.failures)

    def document(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "failed": self.failed,
            "failures": [
                {"suite": failure.suite, "name": failure.name, "detail": failure.detail}
                for failure in self.failures
            ],
        }


@dataclass(frozen=True, slots=True)
class VectorFile:
    suite: str
    cases: tuple[Case, ...]


# The command.


def main(paths: Sequence[str], *, as_json: bool = False, out: TextIO, err: TextIO) -> int:
    """The command `conformance FILE...`: the exit code, with the report on the two streams."""
    try:
        result = run_files([Path(path) for path in paths])
    except Unusable as reason:
        err.write(f"{_printable(str(reason))}\n")
        return 2
    if as_json:
        out.write(json.dumps(result.document()) + "\n")
    else:
        for failure in result.failures:
            line = f"FAIL {failure.suite}/{failure.name}: {failure.detail}"
            out.write(_printable(line) + "\n")
        out.write(f"{result.passed} passed, {result.failed} failed\n")
    return 1 if result.failed else 0


def run_files(paths: Sequence[Path]) -> Result:
    """Run every case of every file. Raises Unusable, before any case has run."""
    if not paths:
        raise Unusable("name at least one file of conformance vectors")
    with _integers_of_any_size():
        files = [read_file(path) for path in paths]
        total = sum(len(file.cases) for file in files)
        failures = tuple(failure for file in files for failure in _failures(file))
    return Result(total - len(failures), failures)


def _failures(file: VectorFile) -> Iterator[Failure]:
    for case in file.cases:
        detail = _run(file.suite, case)
        if detail is not None:
            yield Failure(file.suite, case["name"], detail)


def _run(suite: str, case: Case) -> str | None:
    """What differs, or None."""
    try:
        got: Any = suite_of(suite)(case["input"])
    except Refused as refusal:
        got = {"refused": refusal.reason.value}
    except Exception as error:  # a case that raises is a failing case, whatever it raises
        return f"raised {type(error).__name__}: {_one_line(str(error))}"
    return difference(case["expect"], got)


# Files.


def read_file(path: Path) -> VectorFile:
    """Read and check one file. Raises Unusable."""
    try:
        document = json.loads(path.read_bytes().decode(), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(f"{path}: {_one_line(str(error))}") from error
    try:
        return _checked(document)
    except Unusable as error:
        raise Unusable(f"{path}: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _checked(document: Any) -> VectorFile:
    kinds = {"suite": str, "version": int, "about": str, "cases": list}
    _check_shape("the file", document, kinds)
    if document["version"] != VERSION:
        raise Unusable(f"version {document['version']} is not {VERSION}")
    if document["suite"] not in SUITES:
        raise Unusable(f"unknown suite {json.dumps(document['suite'])}")
    kinds = {"name": str, "source": str, "input": dict, "expect": dict}
    for index, case in enumerate(document["cases"]):
        _check_shape(f"case {index}", case, kinds)
    names = [case["name"] for case in document["cases"]]
    if len(set(names)) != len(names):
        raise Unusable("two cases have one name")
    return VectorFile(document["suite"], tuple(document["cases"]))


def _check_shape(what: str, found: Any, kinds: Mapping[str, type]) -> None:
    if type(found) is not dict:
        raise Unusable(f"{what} is not an object")
    for name, kind in kinds.items():
        if type(found.get(name)) is not kind:  # exactly: true is not a number
            raise Unusable(f"{what}: {name} is missing or of another type")


# Comparing.


def difference(expected: Any, got: Any, where: str = "") -> str | None:
    """The first difference as JSON values, or None: true is not 1, "5" is not 5."""
    if type(expected) is not type(got):
        return _differs(where, expected, got)
    if isinstance(expected, dict):
        return _difference_of_objects(expected, got, where)
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{where or 'result'}: expected {len(expected)} items, got {len(got)}"
        parts = (
            difference(one, other, f"{where}[{index}]")
            for index, (one, other) in enumerate(zip(expected, got, strict=True))
        )
        return next((part for part in parts if part is not None), None)
    return None if expected == got else _differs(where, expected, got)


def _difference_of_objects(
    expected: Mapping[str, Any], got: Mapping[str, Any], where: str
) -> str | None:
    if expected.keys() != got.keys():
        return _differs(where, expected, got)
    for key in expected:
        found = difference(expected[key], got[key], f"{where}.{key}" if where else key)
        if found is not None:
            return found
    return None


def _differs(where: str, expected: Any, got: Any) -> str:
    return f"{where or 'result'}: expected {json.dumps(expected)}, got {json.dumps(got)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _printable(text: str) -> str:
    """One line for any stream: names come from files and may hold anything."""
    return _one_line(text.encode("ascii", "backslashreplace").decode())


@contextmanager
def _integers_of_any_size() -> Iterator[None]:
    """Python refuses to read integers beyond 4,300 digits; the format has no such limit."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


# Reading inputs.


def _int(value: Any) -> int:
    """An INT: a canonical decimal string."""
    if type(value) is not str or not _INT.fullmatch(value):
        raise ValueError(f"not a decimal string: {value!r}")
    return int(value)


def _count(value: Any) -> int:
    """A count: a plain JSON integer."""
    if type(value) is not int:
        raise ValueError(f"not a count: {value!r}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"not a string: {value!r}")
    return value


# The suites.


def _earnings(case: Case) -> dict[str, Any]:
    fees = {row.gpu_class: row.per_gpu_hour.units for row in tariff.CLOUDBENDER.usage_fees}
    member = earnings.member(
        price_per_gpu_hour=_int(case["price_per_gpu_hour"]),
        usage_fees=fees,
        gpu_class=_text(case["gpu_class"]),
        gpus=_count(case["gpus"]),
        workers=_count(case["workers"]),
        own={"own": True, "foreign": False}[_text(case["job"])],
        federated=_text(case["federated"]),
        federated_unit=_text(case["federated_unit"]),
        provider_share_ppm=_count(case["provider_share_ppm"]),
    )
    duration_us = _int(case["duration_us"])
    return {
        **_earned(earnings.earned_after(member, duration_us)),
        "postings": [
            {"elapsed_us": str(posting.elapsed_us), **_earned(posting.new)}
            for posting in earnings.postings(member, duration_us)
        ],
    }


def _earned(earned: earnings.Earned) -> dict[str, str]:
    return {
        "customer_total": str(earned.customer_total),
        "usage_fee": str(earned.usage_fee),
        "federated_fee": str(earned.federated_fee),
        "provider": str(earned.provider),
        "platform": str(earned.platform),
    }


def _share_out(case: Case) -> dict[str, Any]:
    modes = {"floor_carry": share_out, "largest_remainder": share_out_all}
    mode = modes.get(_text(case["mode"]))
    if mode is None:
        raise Refused(PartiesReason.UNKNOWN_MODE, mode=case["mode"])
    weights = [(_text(row["id"]), _int(row["weight"])) for row in case["weights"]]
    shares = mode(_int(case["pool"]), weights)
    return {
        "shares": {who: str(units) for who, units in shares.by_id.items()},
        "carry": str(shares.carry),
    }


def _emission(case: Case) -> dict[str, Any]:
    segments = [
        emission.EmissionSegment(
            _count(row["start_epoch"]), _count(row["n_epochs"]), _int(row["total"])
        )
        for row in case["segments"]
    ]
    epochs = [_count(epoch) for epoch in case["epochs"]]
    cap = _int(case["cap"]) if "cap" in case else None
    answers = emission.emitted(segments, epochs, cap)
    return {
        "emissions": [str(answer.emission) for answer in answers],
        "cumulative": [str(answer.cumulative) for answer in answers],
    }


def _net_emission(case: Case) -> dict[str, Any]:
    burns = [_int(units) for units in case["burns"]]
    run = net_emission.net_emission(
        burns, _int(case["pool_start"]), _count(case["tau"]), _int(case["cap"])
    )
    return {"released": [str(units) for units in run.released], "pool_end": str(run.pool_end)}


def _oracle(case: Case) -> dict[str, Any]:
    sources: dict[str, list[oracle.Observation]] = {}
    for row in case["sources"]:
        sources.setdefault(_text(row["source"]), []).extend(
            oracle.Observation(_int(one["at_us"]), _int(one["price"]))
            for one in row["observations"]
        )
    limits = oracle.Limits(
        window_us=_int(case["window_us"]),
        max_age_us=_int(case["max_age_us"]),
        max_deviation_bps=_count(case["max_deviation_bps"]),
        min_sources=_count(case["min_sources"]),
    )
    reading = oracle.read_price(sources, limits, _int(case["now_us"]))
    return {
        "twaps": {source: str(price) for source, price in reading.twaps.items()},
        "stale": list(reading.stale),
        "median": None if reading.median is None else str(reading.median),
        "deviation_bps": reading.deviation_bps,
        "health": reading.health,
    }


def _burn(case: Case) -> dict[str, Any]:
    burn = token_burn.burn_for(
        _int(case["usd_micro"]), _int(case["price_micro_usd_per_token"]), _count(case["fee_bps"])
    )
    return {
        "fee_micro_usd": str(burn.fee),
        "burn_micro_usd": str(burn.burn),
        "tokens_burned": str(burn.tokens),
    }


def _escrow(case: Case) -> dict[str, Any]:
    deposits = [
        escrow.Deposit(_text(row["depositor"]), _int(row["amount"]), _int(row["reversed"]))
        for row in case["deposits"]
    ]
    rates = [
        escrow.Rate(_text(row["payee"]), _int(row["rate_per_second"])) for row in case["rates"]
    ]
    settled = escrow.settle(deposits, rates, _count(case["elapsed_seconds"]))
    return {
        "end_second": None if settled.end_second is None else str(settled.end_second),
        "ran_seconds": settled.ran_seconds,
        "paid": {payee: str(units) for payee, units in settled.paid.items()},
        "owed": {payee: str(units) for payee, units in settled.owed.items()},
        "refunds": [
            {"depositor": refund.depositor, "amount": str(refund.amount)}
            for refund in settled.refunds
        ],
    }


def _grant(case: Case) -> dict[str, Any]:
    milestones = [
        grant.Milestone(_text(row["id"]), _count(row["share_ppm"])) for row in case["milestones"]
    ]
    completed = [_text(one) for one in case["completed"]]
    parts = grant.split(_int(case["total"]), milestones, completed)
    return {
        "amounts": {name: str(units) for name, units in parts.amounts.items()},
        "unlocked": str(parts.unlocked),
        "locked": str(parts.locked),
        "unassigned": str(parts.unassigned),
    }


def _device_fee(case: Case) -> dict[str, Any]:
    changes = [
        device_fee.DayChange(_count(row["day"]), _count(row["adds"]), _count(row["removes"]))
        for row in case["changes"]
    ]
    fees = device_fee.month_of_fees(
        calendar.month_named(_text(case["month"])),
        _int(case["monthly_fee"]),
        _count(case["devices_before"]),
        changes,
    )
    return {
        "unique_per_day": list(fees.unique_per_day),
        "daily": [str(units) for units in fees.daily],
        "month_total": str(fees.total),
        "devices_after": fees.devices_after,
    }


def _drf(case: Case) -> dict[str, Any]:
    users = [
        drf.User(
            _text(row["user"]),
            {name: _int(units) for name, units in row["demand"].items()},
            _count(row["weight"]),
        )
        for row in case["users"]
    ]
    capacity = {name: _int(units) for name, units in case["capacity"].items()}
    found = drf.allocate(capacity, users, [_text(name) for name in case["tie_order"]])
    return {
        "tasks": dict(found.tasks),
        "used": {name: str(units) for name, units in found.used.items()},
        "order": list(found.order),
        "dominant_share": {name: str(share) for name, share in found.dominant_share.items()},
    }


def _mig(case: Case) -> dict[str, Any]:
    table = mig.TABLES.get(_text(case["model"]))
    if table is None:
        raise Refused(HardwareReason.UNKNOWN_MODEL, model=case["model"])
    held = _occupied(table, case["occupied"])
    results = [_mig_request(table, held, row) for row in case["requests"]]
    cut = frozenset(held.values())
    return {
        "results": results,
        "final": [
            {"id": who, "profile": one.profile, "start": one.start}
            for who, one in sorted(held.items(), key=lambda item: item[1].start)
        ],
        "remaining_placements": mig.remaining(table, cut),
        "stranded_compute_slices": mig.stranded_slices(table, cut),
    }


def _occupied(table: mig.Table, rows: Sequence[Case]) -> dict[str, mig.Instance]:
    held: dict[str, mig.Instance] = {}
    for row in rows:
        who, start = _text(row["id"]), _count(row["start"])
        profile = table.profile(_text(row["profile"]))
        cut = frozenset(held.values())
        if who in held or profile is None or not mig.is_possible(table, cut, profile, start):
            raise Refused(HardwareReason.BAD_INITIAL_STATE, id=who)
        held[who] = mig.Instance(start, profile.name)
    return held


def _mig_request(table: mig.Table, held: dict[str, mig.Instance], row: Case) -> dict[str, Any]:
    """One request, carried out in `held`; a refused one changes nothing."""
    who = _text(row["id"])
    try:
        if _text(row["op"]) == "free":
            if who not in held:
                raise Refused(HardwareReason.UNKNOWN_ID)
            return {"id": who, "freed": held.pop(who).start}
        name = _text(row["profile"])
        mig.require_profile(table, name)
        if who in held:
            raise Refused(HardwareReason.ID_IN_USE)
        start = mig.place(table, frozenset(held.values()), name)
    except Refused as refused:
        return {"id": who, "refused": refused.reason.value}
    held[who] = mig.Instance(start, name)
    return {"id": who, "start": start}


def _cloud_quota(case: Case) -> dict[str, Any]:
    names = ("gpus", "cpus", "local_ssd_gb")
    quotas = (Quota(_count(case[name]["limit"]), _count(case[name]["used"])) for name in names)
    try:
        found = runnable_jobs(_text(case["gpu"]), *quotas)
    except Refused as refused:
        return {"refused": refused.reason.value}
    return {"runnable_jobs": found.jobs, "limited_by": list(found.limited_by)}


def _hardware_admission(case: Case) -> dict[str, Any]:
    system = hardware_admission.System(
        gpus=tuple(
            hardware_admission.Gpu(
                model=_text(row["model"]),
                vram_mib=_count(row["vram_gb"]) * 1_024,
                connection=_text(row["connection"]),
                pcie_gen=_count(row["pcie_gen"]),
                pcie_lanes=_count(row["pcie_lanes"]),
            )
            for row in case["gpus"]
        ),
        storage_mode=_text(case["storage_mode"]),
        nvme_drives_gb=tuple(_count(size) for size in case["nvme_drives_gb"]),
        tpm_2_0=case["tpm_2_0"],
        ram_mib=_count(case["ram_gb"]) * 1_024,
        cpu_cores=_count(case["cpu_cores"]),
        sata_drives=tuple(
            SataDrive(_count(row["size_gb"]), _text(row["kind"]), _count(row["rpm"]))
            for row in case["sata_drives"]
        ),
        ethernet_mbps=_count(case["ethernet_gbps"]) * 1_000,
    )
    verdict = hardware_admission.judge(system)
    return {
        "joinable": verdict.joinable,
        "sellable": verdict.sellable,
        "failing": list(verdict.failing),
    }


def _conservation(case: Case) -> dict[str, Any]:
    found = capacity.conserve(
        _span(case),
        [
            capacity.ShareHeld(_count(row["share_ppm"]), _span(row), _text(row["id"]))
            for row in case["leases"]
        ],
        [capacity.ShareHeld(_count(row["share_ppm"]), _span(row)) for row in case["blocked"]],
        [_span(row) for row in case["unavailable"]],
        _count(case["min_share_ppm"]),
    )
    booked = found.booked
    return {
        "physical": str(booked.physical),
        "leased": str(booked.leased),
        "per_lease": {who: str(units) for who, units in found.per_lease.items()},
        "stranded": str(booked.stranded),
        "unavailable": str(booked.unavailable),
        "idle": str(booked.idle),
    }


def _span(row: Case) -> capacity.Span:
    return capacity.Span(_int(row["from_us"]), _int(row["to_us"]))


SUITES: Mapping[str, Suite | str] = {
    "burn": _burn,
    "chain_hash": "ledger.log.chain",
    "cloud_quota": _cloud_quota,
    "conservation": _conservation,
    "device_fee": _device_fee,
    "drf": _drf,
    "earnings": _earnings,
    "emission": _emission,
    "escrow": _escrow,
    "grant": _grant,
    "hardware_admission": _hardware_admission,
    "merkle": "contracts.payout_tree",
    "mig": _mig,
    "net_emission": _net_emission,
    "oracle": _oracle,
    "share_out": _share_out,
}
"""A suite's own translation, or the module whose `conform` answers it, loaded when it is asked."""


def suite_of(name: str) -> Suite:
    """The function that answers one case input of this suite."""
    suite = SUITES[name]
    return cast("Suite", import_module(suite).conform) if isinstance(suite, str) else suite


if __name__ == "__main__":
    arguments = sys.argv[1:]
    files = [argument for argument in arguments if argument != "--json"]
    raise SystemExit(main(files, as_json=files != arguments, out=sys.stdout, err=sys.stderr))
