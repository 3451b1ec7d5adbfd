"""Every benchmark there is, and what each result says in one common form.

A figure stands beside a peer and the machine's limit, measured in the same run, because rates of
another machine or another minute say little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.books import accrual, books, export, projections, statements
from benchmarks.epochs import rehearsal, seal_beside, settle
from benchmarks.fleet import gang, lease_open, matching
from benchmarks.history import slopes
from benchmarks.log import append, append_market, append_shared, ingest, verify
from benchmarks.node import reporter_footprint, reporter_week
from benchmarks.size import Size
from benchmarks.workplace import Server


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. Rates are per second; `of_limit` is a part of 1, `of_peer` a multiple.

    `reached` is None where there is no figure to reach, and in any size but the full one.
    `slope`: the time of one operation in 100 x the history, as a multiple of its time in 1 x.
    `processor_ns`: what one of ours costs, by who spends it: client, server, this process (the
    library alone, without HTTP), PostgreSQL. `is_busy`: others used the machine meanwhile.
    """

    what: str
    wanted: str
    reached: bool | None
    ours: int
    peer: int | None
    limit: int | None
    of_peer: float | None
    of_limit: float | None
    more: str = ""
    slope: float | None = None
    processor_ns: dict[str, int] | None = None
    is_busy: bool = False


# --- what each benchmark says, in one form ----------------------------------------------------


def ingest_lines(result: dict[str, Any]) -> Iterator[Line]:
    servers = result["servers"]
    ours = servers["ours"]
    yield Line(
        "reports of 100 samples over HTTP",
        f">= {ingest.FIGURE_RATE:,}/s, {ingest.FIGURE_PEER} x peer, p99 < {ingest.FIGURE_MS} ms",
        ours["reports_per_second"] >= ingest.FIGURE_RATE
        and ours["of_peer"] >= ingest.FIGURE_PEER
        and ours["p99_ms"] < ingest.FIGURE_MS,
        ours["reports_per_second"],
        servers["peer"]["reports_per_second"],
        servers["limit"]["reports_per_second"],
        ours["of_peer"],
        ours["of_limit"],
        f"p50 {ours['p50_ms']} ms, p99 {ours['p99_ms']} ms",
        processor_ns=_over_http(ours, "_cpu_us_per_report", "load", "server", "database"),
    )


def _over_http(side: dict[str, Any], what: str, *names: str) -> dict[str, int]:
    """Nanoseconds of the load generator, the server and PostgreSQL, for one answer."""
    spent = (1_000 * side[f"{name}{what}"] for name in names)
    return dict(zip(("client", "server", "postgresql"), spent, strict=True))


def append_lines(result: dict[str, Any]) -> Iterator[Line]:
    for batch in result["batches"]:
        rows = batch["contenders"]
        peer = rows["peer: INSERT unnest, dedupe only"]["reports_per_second"]
        limit = rows["limit: COPY, prebuilt"]["reports_per_second"]
        checked = append.FIGURES_CHECKED.get(batch["batch"])
        for name, wanted in (("ours", append.FIGURE), ("ours, with checking", checked)):
            row = rows[name]
            yield Line(
                f"usage log append x{batch['batch']}{name.removeprefix('ours')}",
                "" if wanted is None else f">= {wanted:.0%} of limit",
                None if wanted is None else row["of_limit"] >= wanted,
                row["reports_per_second"],
                peer,
                limit,
                _ratio(row["reports_per_second"], peer),
                row["of_limit"],
                processor_ns=row["processor_ns"],
            )


def append_market_lines(result: dict[str, Any]) -> Iterator[Line]:
    for row in result["results"]:
        rates = row["facts_per_second"]
        for side, name in (("books", ""), ("books_and_key", ", with an idempotency row")):
            ratio = row["ratio"] if side == "books" else row["ratio_with_key"]
            yield Line(
                f"market log append x{row['batch']}{name}",
                f">= {row['ratio_at_least']} x peer" if side == "books" else "",
                row["holds"] if side == "books" else None,
                rates[side],
                rates["stock"],
                rates["limit"],
                ratio,
                row["of_limit"] if side == "books" else _ratio(rates[side], rates["limit"]),
                processor_ns=row["processor_ns"][side],
            )


def append_shared_lines(result: dict[str, Any]) -> Iterator[Line]:
    rates, p99_ms = result["facts_per_second"], result["p99_ms"]
    yield Line(
        f"market log append of {result['conditions']['threads']} threads, one fact each",
        f">= {append_shared.FIGURE_RATE:,}/s",
        rates["ours"] >= append_shared.FIGURE_RATE,
        rates["ours"],
        rates["stock"],
        rates["limit"],
        result["of_stock"],
        result["of_limit"],
        f"with an idempotency row each; p99 {p99_ms['ours']} ms, the peer's {p99_ms['stock']} ms",
        processor_ns=result["processor_ns"]["ours"],
    )
    yield Line(
        "the same, with all views following",
        f"they lag < {append_shared.FIGURE_LAG_MS} ms at p99",
        result["lag_p99_ms"] < append_shared.FIGURE_LAG_MS,
        rates["followed"],
        rates["stock"],
        rates["limit"],
        _ratio(rates["followed"], rates["stock"]),
        _ratio(rates["followed"], rates["limit"]),
        f"lag p50 {result['lag_p50_ms']} ms, p99 {result['lag_p99_ms']} ms; an append's p99"
        f" {p99_ms['followed']} ms",
        processor_ns=result["processor_ns"]["followed"],
    )


def accrual_lines(result: dict[str, Any]) -> Iterator[Line]:
    for hour in result["hours"]:
        yield Line(
            f"accrual of {result['leases']:,} lease hours, {hour['hour']}",
            f"100,000 in < {accrual.FIGURE_SECONDS[hour['hour']]:.0f} s",
            hour["seconds_for_100000"] < accrual.FIGURE_SECONDS[hour["hour"]],
            hour["leases_per_second"],
            result["peer_leases_per_second"],
            result["limit_leases_per_second"],
            _ratio(hour["leases_per_second"], result["peer_leases_per_second"]),
            _ratio(hour["leases_per_second"], result["limit_leases_per_second"]),
            f"{hour['seconds']} s; load {hour['load_average_before']}",
            processor_ns={
                "process": round(hour["cpu_seconds"]["python"] * 1e9 / result["leases"]),
                "postgresql": round(hour["cpu_seconds"]["postgresql"] * 1e9 / result["leases"]),
            },
        )


def matching_lines(result: dict[str, Any]) -> Iterator[Line]:
    """Rates of one thread: matches a second by the middle of their times."""
    ours = result["ours"]
    rates = {side: round(1e3 / max(result[side]["p50_ms"], 1e-3)) for side in ("ours", "limit")}
    ours_ms = max(ours["p50_ms"], 1e-3)
    yield Line(
        f"match with explanation, {result['conditions']['nodes']:,} nodes",
        f"p99 < {matching.FIGURE_MS} ms",
        ours["p99_ms"] < matching.FIGURE_MS,
        rates["ours"],
        None,
        rates["limit"],
        _ratio(result["peer"]["p50_ms"], ours_ms),
        _ratio(rates["ours"], rates["limit"]),
        f"p50 {ours['p50_ms']} ms, p99 {ours['p99_ms']} ms (processor {ours['cpu_p99_ms']} ms);"
        f" load {result['conditions']['load_average']}",
        processor_ns={"process": ours["cpu_mean_ns"]},
    )


def lease_open_lines(result: dict[str, Any]) -> Iterator[Line]:
    ours = result["ours"]
    yield Line(
        f"lease open to durable receipt, {result['conditions']['clients']} clients",
        f">= {lease_open.FIGURE_RATE}/s, p99 < {lease_open.FIGURE_MS} ms",
        ours["per_second"] >= lease_open.FIGURE_RATE and ours["p99_ms"] < lease_open.FIGURE_MS,
        ours["per_second"],
        result["peer"]["per_second"],
        result["limit"]["per_second"],
        result["of_peer"],
        result["of_limit"],
        f"p50 {ours['p50_ms']} ms, p99 {ours['p99_ms']} ms, no device held twice;"
        f" load {result['conditions']['load_average']}",
        processor_ns=_over_http(ours, "_cpu_us", "load", "server", "database"),
    )


def gang_lines(result: dict[str, Any]) -> Iterator[Line]:
    rates = {
        side: round(result["gpus"] * 1e3 / max(result[side]["p50_ms"], 0.01))
        for side in ("ours", "peer", "limit")
    }
    ours = result["ours"]
    yield Line(
        f"gang of {result['gpus']} GPUs over {result['members']} nodes, GPUs",
        f"< {gang.FIGURE_MS} ms for all",
        ours["p50_ms"] < gang.FIGURE_MS,
        rates["ours"],
        rates["peer"],
        rates["limit"],
        _ratio(rates["ours"], rates["peer"]),
        _ratio(rates["ours"], rates["limit"]),
        f"p50 {ours['p50_ms']} ms, max {ours['max_ms']} ms;"
        f" load {result['conditions']['load_average']}",
        processor_ns=result["processor_ns"],
    )


def books_lines(result: dict[str, Any]) -> Iterator[Line]:
    for row in result["results"]:
        wanted = books.FIGURES.get(row["batch"])
        rates = result["transfers_per_second"]
        writers = [name for name in rates if name.startswith(f"ours x{row['batch']}/")]
        quickest = max(writers, key=lambda name: rates[name])
        cost = result["cpu_us_per_transfer"][quickest]
        yield Line(
            f"double entry x{row['batch']}",
            "" if wanted is None else f">= {wanted:.0f} x peer",
            None if wanted is None else row["to_peer"] >= wanted,
            row["ours"],
            row["peer"],
            row["limit"],
            row["to_peer"],
            row["of_limit"],
            f"the peer: {books.PEER_BATCH} statements a transaction",
            processor_ns={who: round(1_000 * spent) for who, spent in cost.items()},
        )


def projections_lines(result: dict[str, Any]) -> Iterator[Line]:
    market, usage, matcher = result["market"], result["usage"], result["matcher"]
    peer, limit = market["peer_per_second"], market["limit_per_second"]
    for name, rate in market["facts_per_second"].items():
        yield Line(
            f"rebuild of {name}, market facts",
            f">= {projections.FIGURE:,}/s",
            rate >= projections.FIGURE,
            rate,
            peer,
            limit,
            _ratio(rate, peer),
            _ratio(rate, limit),
            processor_ns=market["processor_ns"][name],
        )
    rate, one_core = usage["reports_per_second"], usage["limit_per_second_one_core"]
    yield Line(
        "rebuild of usage, reports of 100 rows",
        ">= 20,000/s",
        rate >= 20_000,
        rate,
        usage["peer_per_second"],
        2 * one_core,
        usage["to_peer"],
        _ratio(rate, 2 * one_core),
        "two workers; the limit is reading and decoding alone, on two cores",
    )
    yield Line(
        f"the matcher in a fleet of {matcher['nodes']:,} nodes",
        "",
        None,
        round(1_000 / max(matcher["p50_ms"], 0.01)),
        None,
        None,
        None,
        None,
        f"p50 {matcher['p50_ms']} ms, p99 {matcher['p99_ms']} ms",
    )


def export_lines(result: dict[str, Any]) -> Iterator[Line]:
    peer, limit = result["peer_per_second"], result["limit_per_second"]
    for form, row in result["forms"].items():
        rate = row["postings_per_second"]
        said = {None: "not installed", True: "accepts it", False: "REFUSES it"}[row["accepted"]]
        yield Line(
            f"{form} export, postings",
            f"1,000,000 in < {export.SECONDS_MAX} s, accepted",
            rate * export.SECONDS_MAX > 1_000_000 and row["accepted"] is not False,
            rate,
            peer,
            limit,
            _ratio(rate, peer),
            _ratio(rate, limit),
            f"{result['postings']:,} postings, {result['lines']:,} lines in {row['seconds']} s;"
            f" the tool {said} in {row['tool_seconds']} s",
            processor_ns=row["processor_ns"],
        )


def statements_lines(result: dict[str, Any]) -> Iterator[Line]:
    measured, facts = result["measured"], result["logs"][-1]["facts"]
    for name, what in (
        ("month", "statement of one account-month"),
        ("month_as_of_any_position", "the same, as of random positions"),
        ("any_renters_month", "the month of any account"),
    ):
        small, large = measured[name]
        yield Line(
            f"{what}, {facts:,} facts",
            "p99 < 50 ms, <= 1.5 x short log" if name == "month" else "",
            result["holds"] if name == "month" else None,
            round(1_000 / large["p50_ms"]),
            None,
            round(1_000 / measured["reads_nothing"][-1]["p50_ms"]),
            None,
            None,
            f"p50 {large['p50_ms']} ms, p99 {large['p99_ms']} ms; in {result['logs'][0]['facts']:,}"
            f" facts {small['p50_ms']} and {small['p99_ms']} ms; the limit reads nothing",
            slope=_ratio(large["p50_ms"], small["p50_ms"]),
            processor_ns=measured["processor_ns"] if name == "month" else None,
        )


def reporter_footprint_lines(result: dict[str, Any]) -> Iterator[Line]:
    """No rates and no peer: what the reporter takes from the machine it watches."""
    starts = result["start_to_first_report_ms"]
    middle_ms = starts[len(starts) // 2]
    cpu_ppm, resident = result["cpu_ppm_of_a_core"], result["resident_kib"]
    for what, wanted, reached, more in (
        ("processor", "<= 1% of a core", cpu_ppm <= 10_000, f"{cpu_ppm / 10_000:.2f}%"),
        ("resident memory", "<= 48 MiB", resident <= 48 * 1_024, f"{resident / 1_024:.1f} MiB"),
        ("start to first report", "< 2 s", middle_ms < 2_000, f"{middle_ms} ms, {starts}"),
    ):
        yield Line(
            f"node reporter, 8 GPUs at 1 Hz: {what}",
            wanted,
            reached,
            {"processor": cpu_ppm, "resident memory": resident}.get(what, middle_ms),
            None,
            None,
            None,
            None,
            more,
        )


def reporter_week_lines(result: dict[str, Any]) -> Iterator[Line]:
    yield Line(
        "node reporter, 8 GPUs offline for a week: rows caught up",
        "nothing lost, <= 64 MiB, < 60 s",
        result["holds"],
        result["rows_per_second"],
        None,
        result["limit_rows_per_second"],
        None,
        result["of_limit"],
        f"{result['seconds']} s; spool {result['spool_with_14_days_kept']:,} bytes with 14 days"
        f" kept; lost {result['lost_us']} us",
        processor_ns={
            "process": round(
                result["cpu_seconds"] * 1e9 / max(1, result["conditions"]["rows_waiting"])
            )
        },
    )


def settle_lines(result: dict[str, Any]) -> Iterator[Line]:
    """Of the stages whatever has something beside it."""
    wall, cpu = result["cut_to_root_seconds"], result["shares_and_tree_cpu_seconds"]
    for what, seconds, most in (
        ("cut to root, epoch file kept", wall, settle.CUT_TO_ROOT_SECONDS),
        ("shares and cumulative tree, one core", cpu, settle.SHARES_AND_TREE_SECONDS),
    ):
        yield Line(
            f"epoch of {result['nodes']:,} nodes: {what}",
            f"1,000,000 in < {most:.0f} s",
            seconds < most,
            round(result["nodes"] / max(seconds, 0.01)),
            None,
            None,
            None,
            None,
            f"{seconds} s; load {result['load_average']}",
        )
    for stage in result["stages"]:
        if stage["limit_seconds"] is None:
            continue
        count = result["rows"] if stage["stage"] == "sums" else result["nodes"]
        rates = [
            None if seconds is None else round(count / max(seconds, 0.01))
            for seconds in (stage["cpu_seconds"], stage["peer_seconds"], stage["limit_seconds"])
        ]
        yield Line(
            f"epoch of {result['nodes']:,} nodes: {stage['stage']}, processor time",
            "",
            None,
            rates[0] or 0,
            rates[1],
            rates[2],
            stage["of_peer"],
            stage["of_limit"],
            processor_ns={"process": round(stage["cpu_seconds"] * 1e9 / count)},
        )


def seal_beside_lines(result: dict[str, Any]) -> Iterator[Line]:
    alone, beside = result["alone"], result["beside"]
    nodes, seconds = result["nodes"], result["seal_seconds"]
    mib = result["peak_mb"] + 2 * result["peak_mb_of_a_worker"]
    yield Line(
        f"live seal of {nodes:,} nodes, views to root",
        f"< {seal_beside.SECONDS_MAX} s, <= {seal_beside.MIB_MAX:,} MiB",
        seconds < seal_beside.SECONDS_MAX and mib <= seal_beside.MIB_MAX,
        round(nodes / max(seconds, 0.1)),
        None,
        None,
        None,
        None,
        f"{seconds} s; {result['peak_mb']} MiB and {result['peak_mb_of_a_worker']} in each of two"
        f" workers at most; credited in {result['credit_seconds']} s",
        processor_ns={"process": round(result["cpu_seconds"] * 1e9 / nodes)},
    )
    yield Line(
        "appends of two writers beside it",
        f"none waits {seal_beside.WAIT_MAX_MS} ms",
        beside["max_ms"] < seal_beside.WAIT_MAX_MS,
        round(1e3 / max(beside["p50_ms"], 0.1)),
        round(1e3 / max(alone["p50_ms"], 0.1)),
        None,
        _ratio(alone["p50_ms"], max(beside["p50_ms"], 0.1)),
        None,
        f"p50 {beside['p50_ms']}, p99 {beside['p99_ms']}, max {beside['max_ms_while_sealed']} ms"
        f" while sealed, {beside['max_ms_while_credited']} while credited; the peer is the same"
        f" without a seal: p99 {alone['p99_ms']}, max {alone['max_ms']} ms",
    )


def verify_lines(result: dict[str, Any]) -> Iterator[Line]:
    """Serial beside the signatures alone; two processes beside serial."""
    limit, serial = result["limit_signatures_per_second"], result["executors"]["serial"]
    rate = serial["reports_per_second"]
    yield Line(
        f"audit verify, reports of {verify.ROWS} rows, one core",
        f">= {verify.PER_CORE:,}/s",
        rate >= verify.PER_CORE,
        rate,
        None,
        limit,
        None,
        result["of_limit"],
        f"{serial['seconds']} s of {result['reports']:,} reports; the limit is their signatures"
        " alone",
        processor_ns={"process": round(serial["cpu_seconds_here"] * 1e9 / result["reports"])},
    )
    two = result["executors"]["processes:2"]
    yield Line(
        "the same by two processes",
        f">= {verify.TWO_OF_SERIAL} x serial",
        result["two_processes_of_serial"] >= verify.TWO_OF_SERIAL,
        two["reports_per_second"],
        None,
        2 * limit,
        None,
        _ratio(two["reports_per_second"], 2 * limit),
        f"{two['seconds']} s, {result['two_processes_of_serial']} x serial, one digest;"
        f" load {result['load_average'][0]}",
    )


def rehearsal_lines(result: dict[str, Any]) -> Iterator[Line]:
    nodes = result["epochs"] * result["nodes"]
    yield Line(
        f"policy rehearsed on {result['epochs']} epochs of {result['nodes']:,} nodes",
        f"52 in < {rehearsal.FIGURE_SECONDS:.0f} s",
        result["seconds"] < rehearsal.FIGURE_SECONDS,
        round(nodes / max(result["seconds"], 0.01)),
        None,
        round(nodes / max(result["limit_cpu_seconds"], 0.01)),
        None,
        result["of_limit"],
        f"{result['seconds']} s, {result['cpu_seconds']} s of processor",
        processor_ns={"process": round(result["cpu_seconds"] * 1e9 / nodes)},
    )


def slopes_lines(result: dict[str, Any]) -> Iterator[Line]:
    """The time of each operation in a market of 1, 10 and 100 days."""
    days = result["conditions"]["days"]
    for name, row in result["operations"].items():
        p50_ms = row["p50_ms"]
        yield Line(
            f"{name}, {days[-1]} days old",
            f"<= {slopes.FIGURE} x of {days[0]} day",
            row["slope"] <= slopes.FIGURE,
            round(1e3 / max(p50_ms[-1], 1e-6)),
            None,
            None,
            None,
            None,
            f"middle {', '.join(f'{ms:g}' for ms in p50_ms)} ms at {_listed(days)} days",
            slope=row["slope"],
            processor_ns=row["processor_ns"],
        )


def _listed(days: list[int]) -> str:
    return ", ".join(map(str, days))


def _ratio(one: float, other: float) -> float:
    return round(one / other, 3)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`run(size, server)` measures; `lines` says it in the common form.

    Without a server it makes one of its own, if it needs any.
    """

    name: str
    run: Callable[[Size, Server | None], dict[str, Any]]
    lines: Callable[[dict[str, Any]], Iterator[Line]]


@dataclass(frozen=True, slots=True)
class Serverless:
    """A benchmark that needs no database, in the form of the others; it travels by pickle."""

    measure: Callable[[Size], dict[str, Any]]

    def __call__(self, size: Size, _: Server | None = None) -> dict[str, Any]:
        return self.measure(size)


BENCHMARKS = (
    Benchmark("ingest", ingest.run, ingest_lines),
    Benchmark("append", append.run, append_lines),
    Benchmark("append_market", append_market.run, append_market_lines),
    Benchmark("append_shared", append_shared.run, append_shared_lines),
    Benchmark("books", books.run, books_lines),
    Benchmark("accrual", accrual.run, accrual_lines),
    Benchmark("projections", projections.run, projections_lines),
    Benchmark("export", export.run, export_lines),
    Benchmark("statements", statements.run, statements_lines),
    Benchmark("slopes", slopes.run, slopes_lines),
    Benchmark("matching", Serverless(matching.run), matching_lines),
    Benchmark("lease_open", lease_open.run, lease_open_lines),
    Benchmark("gang", gang.run, gang_lines),
    Benchmark("settle", Serverless(settle.run), settle_lines),
    Benchmark("seal_beside", seal_beside.run, seal_beside_lines),
    Benchmark("verify", Serverless(verify.run), verify_lines),
    Benchmark("rehearsal", Serverless(rehearsal.run), rehearsal_lines),
    Benchmark("reporter_footprint", Serverless(reporter_footprint.run), reporter_footprint_lines),
    Benchmark("reporter_week", reporter_week.run, reporter_week_lines),
)
