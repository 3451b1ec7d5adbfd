"""Every fault a device can have, injected under a whole reporter, and the bucket it ends in.

fault                                      the time goes to       seen here as
-----------------------------------------  ---------------------  ----------------------------
lost (15), reset required (16), 8, 11      unavailable            energy bridges the outage
one of eight lost, lookups fail            unavailable, that one  neighbours available
a call that hangs                          unknown, that one      test_program (real time)
18, 1, 9, 12, 17                           unknown                a new process is asked for
library replaced on disk                   (as before)            a new process is asked for
999 UNKNOWN                                unknown                new process after a minute
a call that is not there, each in turn     available              its value is null
NOT_FOUND on idle samples                  available              busy is 0
energy reset, backwards, wrapped, absurd   available              a gap, and a new base
energy frozen                              available              energy 0
100 % without a process                    available              busy is null
MIG switched on or off                     one step unknown       reshape
instance made anew, handle reused          one step unknown       reshape, another device
MIG without GPM                            available              busy is null
XID of a program                           available              an event
fatal XID                                  unavailable            an event
XID with another lease's instance          unavailable, that one  neighbours available
a list that grows while it is fetched      available              asked again, at most 3 times
UUIDs in another order                     available              same devices
fork in the caller                         (as before)            the child sees nothing
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.duration import SECOND_US
from node_reporter.gpus.nvml.driver import GONE, RESTART
from tests.node_reporter.conftest import FakeMachine
from tests.node_reporter.faulty_node import WALL_US, Node

GPU = [f"GPU-{n:08x}-0000-0000-0000-000000000000" for n in range(8)]
RATE_MJ = 500_000
"""Of a GPU of these machines, a second."""

Nodes = Callable[..., Node]


@pytest.fixture
def node(machine: Callable[[int], FakeMachine]) -> Iterator[Nodes]:
    """Starts a reporter on a machine with so many GPUs; `script` holds what differs from H200s."""
    started: list[Node] = []

    def make(count: int = 1, **script: str) -> Node:
        found = machine(count)
        since = {f"gpu__{n}__energy_since_ms": str(WALL_US // 1_000) for n in range(count)}
        found.set(**since, **script)
        started.append(Node(found))
        return started[-1]

    yield make
    for one in started:
        one.end()


def buckets(told: dict[str, Any], device: str) -> tuple[int, int, int]:
    """Seconds available, unavailable, unknown; they sum to the elapsed time exactly."""
    of = told[device]
    parts = (of["available_us"], of["unavailable_us"], of["unknown_us"])
    assert sum(parts) == of["len_us"]
    return tuple(part // SECOND_US for part in parts)


def faults(told: dict[str, Any], device: str) -> list[Any]:
    return [data["class"] for name, data in told[device]["events"] if name == "device.fault"]


@pytest.mark.parametrize("code", sorted(GONE))
def test_a_gpu_lost_in_a_lease_and_back_was_unavailable_and_lost_no_energy(
    node: Nodes, code: int
) -> None:
    one = node()
    one("lease", 1, GPU[0])
    one.run(10)
    one.machine.set(gpu__0__err__ALL=str(code))
    one.run(5)
    one.machine.set(gpu__0__err__ALL="")
    one.run(10)
    told = one.told()
    assert buckets(told, GPU[0]) == (19, 6, 0), "both edges belong to the outage"
    assert faults(told, GPU[0]) == ["gone"]
    assert told[GPU[0]]["energy_mj"] == 25 * RATE_MJ
    assert told[GPU[0]]["energy_gaps"] == 0
    assert set(told[GPU[0]]["leases"]) == {f"lease_{1:032d}"}


def test_one_of_eight_is_lost_while_lookups_fail_and_the_others_are_not(node: Nodes) -> None:
    one = node(8)
    lookups = ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID")
    one.machine.set(gpu__3__err__ALL="15", **{f"err__{name}": "15" for name in lookups})
    one.run(10)
    told = one.told()
    assert buckets(told, GPU[3]) == (0, 10, 0)
    assert all(buckets(told, GPU[n]) == (10, 0, 0) for n in range(8) if n != 3)


@pytest.mark.parametrize("code", sorted(RESTART))
def test_a_driver_that_cannot_answer_any_more_is_unknown_and_asks_for_a_new_process(
    node: Nodes, code: int
) -> None:
    one = node()
    assert one.run(5) is False
    one.machine.set(gpu__0__err__ALL=str(code))
    assert one.run(1) is True
    assert buckets(one.told(), GPU[0]) == (5, 0, 1)


def test_999_is_unknown_and_asks_for_a_new_process_after_a_minute_of_all_gpus(node: Nodes) -> None:
    one = node(2)
    one.machine.set(gpu__0__err__ALL="999")
    assert one.run(70) is False, "a new process would blind the other one"
    one.machine.set(gpu__1__err__ALL="999")
    assert one.run(59) is False
    assert one.run(3) is True
    told = one.told()
    assert buckets(told, GPU[0]) == (0, 0, 132)
    assert buckets(told, GPU[1]) == (70, 0, 62)
    assert faults(told, GPU[0]) == ["blind"]


OPTIONAL = {
    "nvmlDeviceGetTotalEnergyConsumption": {"energy_mj"},
    "nvmlDeviceGetFieldValues": set(),
    "nvmlDeviceGetMemoryInfo_v2": {"mem_byte_s"},
    "nvmlGpmSampleGet": {"busy_us"},
    "nvmlGpmSampleAlloc": {"busy_us"},
    "nvmlGpmMetricsGet": {"busy_us"},
    "nvmlGpmQueryDeviceSupport": set(),  # the samples take over
    "nvmlDeviceGetSamples": set(),
    "nvmlDeviceGetUtilizationRates": set(),
    "nvmlDeviceGetComputeRunningProcesses_v3": set(),
    "nvmlDeviceGetMigMode": set(),
    "nvmlDeviceGetPowerManagementLimitConstraints": set(),
    "nvmlDeviceGetPowerUsage": set(),
    "nvmlDeviceGetPciInfo_v3": set(),
    "nvmlDeviceGetCudaComputeCapability": set(),
    "nvmlDeviceGetMaxPcieLinkGeneration": set(),
    "nvmlDeviceGetMaxPcieLinkWidth": set(),
    "nvmlDeviceGetSerial": set(),
    "nvmlDeviceGetVbiosVersion": set(),
    "nvmlSystemGetDriverVersion": set(),
    "nvmlEventSetCreate": set(),
    "nvmlDeviceRegisterEvents": set(),
    "nvmlEventSetWait_v2": set(),
}
MEASURED = {"energy_mj", "mem_byte_s", "busy_us"}
FULL = {"gpu__0__gpm": "37.5", "gpu__0__samples": "1:40"}


@pytest.mark.parametrize("function", OPTIONAL)
def test_a_call_that_is_not_there_costs_its_own_value_only(node: Nodes, function: str) -> None:
    one = node(1, **FULL, **{f"err__{function}": "13"})
    assert one.run(3) is False
    told = one.told()
    assert buckets(told, GPU[0]) == (3, 0, 0)
    missing = {name for name in MEASURED if told[GPU[0]][name] is None}
    assert missing == OPTIONAL[function]


def test_idle_samples_that_are_not_found_are_zero_and_not_unknown(node: Nodes) -> None:
    one = node(1, gpu__0__samples="1000:40,2000:60")
    one.run(3)
    told = one.told()
    assert buckets(told, GPU[0]) == (3, 0, 0)
    assert told[GPU[0]]["busy_us"] == 0
    one.machine.set(gpu__0__samples="1000:40,2000:60,3000:20,4000:40")
    one.run(1)
    assert one.told()[GPU[0]]["busy_us"] == 300_000, "the mean of what is new, over one second"


@pytest.mark.parametrize(
    ("jump_mj", "gaps"),
    [(-1_000_000, 1), (-(10**15), 1), (10**15, 1), (2**64 - 10**9, 1), (0, 0)],
    ids=["backwards", "reset", "absurd", "wrapped", "steady"],
)
def test_an_energy_counter_that_leaps_is_a_gap_and_never_a_claim(
    node: Nodes, jump_mj: int, gaps: int
) -> None:
    one = node(1, gpu__0__energy_mj=str(2 * 10**15))
    one.run(5)
    one.machine.set(gpu__0__energy_mj=str(2 * 10**15 + jump_mj))
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (10, 0, 0)
    assert told[GPU[0]]["energy_gaps"] == gaps
    assert told[GPU[0]]["energy_mj"] == (10 - gaps) * RATE_MJ


def test_an_energy_counter_that_stands_still_measured_zero(node: Nodes) -> None:
    one = node(1, gpu__0__energy_rate_mw="0")
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (5, 0, 0)
    assert (told[GPU[0]]["energy_mj"], told[GPU[0]]["energy_gaps"]) == (0, 0)


@pytest.mark.parametrize(("processes", "busy_us"), [("0", None), ("1", 3 * SECOND_US)])
def test_full_utilisation_without_a_process_is_not_believed(
    node: Nodes, processes: str, busy_us: int | None
) -> None:
    one = node(1, gpu__0__util="100", gpu__0__processes=processes)
    one.run(3)
    told = one.told()
    assert buckets(told, GPU[0]) == (3, 0, 0)
    assert told[GPU[0]]["busy_us"] == busy_us


@pytest.mark.parametrize("growth", ["2", "99"])
def test_a_list_that_grows_while_it_is_fetched_is_asked_for_again_and_blinds_nobody(
    node: Nodes, growth: str
) -> None:
    one = node(1, gpu__0__util="100", gpu__0__processes="3", gpu__0__growth=growth)
    one.run(3)
    told = one.told()
    assert buckets(told, GPU[0]) == (3, 0, 0)
    # That nobody could fetch the list is no reason to disbelieve full utilisation.
    assert told[GPU[0]]["busy_us"] == 3 * SECOND_US


def _identities(one: Node, device: str) -> list[dict[str, Any]]:
    return [data for name, data in one.told()[device]["events"] if name == "device.inventory"]


def test_an_instance_that_comes_later_says_which_board_it_is_a_part_of(node: Nodes) -> None:
    one = node()
    one.run(2)
    one.machine.cut(0, instance("a", 1))
    one.run(2)
    (board,), (part,) = _identities(one, GPU[0]), _identities(one, "MIG-a")
    same = ("pci_id", "compute_capability", "driver", "vbios", "library_sha256")
    assert [part[name] for name in same] == [board[name] for name in same]
    assert None not in [part[name] for name in same]


# --- MIG -------------------------------------------------------------------------------------


def instance(name: str, gi: int, *, slices: int = 3, **more: str) -> dict[str, str]:
    """`slices` of an H200's seven."""
    return {
        "uuid": f"MIG-{name}",
        "gi": str(gi),
        "ci": "0",
        "slices": str(slices),
        "mem_mb": str(slices * 17_000),
        "name": f"NVIDIA H200 MIG {slices}g.71gb",
        **more,
    }


def test_instances_have_their_share_of_the_board_and_its_energy(node: Nodes) -> None:
    one = node(1, gpu__0__gpm="10")
    one.machine.cut(
        0, instance("a", 1, gpm="50", mem_used="1000"), instance("b", 2, slices=4, gpm="25")
    )
    one.run(6)
    told = one.told()
    assert buckets(told, "MIG-a") == buckets(told, "MIG-b") == (5, 0, 0)
    assert (told["MIG-a"]["shape"], told["MIG-a"]["share_ppm"]) == ("mig:3g.71gb", 428_571)
    assert told["MIG-b"]["share_ppm"] == 571_428
    assert told["MIG-a"]["energy_mj"] <= 5 * RATE_MJ * 3 // 7 + 1
    whole = told["MIG-a"]["energy_mj"] + told["MIG-b"]["energy_mj"]
    assert 5 * RATE_MJ * 999_999 // 1_000_000 - 2 <= whole <= 5 * RATE_MJ
    assert told["MIG-a"]["busy_us"] == 5 * 500_000
    assert told["MIG-b"]["busy_us"] == 5 * 250_000
    assert told["MIG-a"]["mem_byte_s"] == 5 * 1_000


def test_a_board_switched_to_mig_and_back_is_unknown_for_a_step_each_time(node: Nodes) -> None:
    one = node()
    one.run(5)
    one.machine.cut(0, instance("a", 1))
    one.run(5)
    one.machine.cut(0)
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (4 + 1 + 4, 0, 1)
    assert buckets(told, "MIG-a") == (4, 0, 1)
    assert "reshape" in told["MIG-a"]["reasons"]
    assert faults(told, "MIG-a") == ["reshaped"]


def test_a_board_in_mig_mode_without_instances_is_unknown(node: Nodes) -> None:
    one = node(2, gpu__0__mig="1")
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (0, 0, 5)
    assert buckets(told, GPU[1]) == (5, 0, 0)


def test_an_instance_made_anew_on_the_same_handle_is_another_device(node: Nodes) -> None:
    one = node(1, gpu__0__gpm="10")
    one.machine.cut(0, instance("old", 1, gpm="50"))
    one.run(6)
    one.machine.cut(0, instance("new", 1, gpm="80"))
    one.run(6)
    told = one.told()
    assert buckets(told, "MIG-old") == (5, 0, 1)
    assert buckets(told, "MIG-new") == (5, 0, 0)
    assert told["MIG-old"]["busy_us"] == 5 * 500_000
    assert told["MIG-new"]["busy_us"] == 5 * 800_000, "its counters began anew with it"


def test_a_uuid_that_moved_to_another_place_is_unknown_for_a_step(node: Nodes) -> None:
    one = node()
    one.machine.cut(0, instance("a", 1))
    one.run(6)
    one.machine.cut(0, instance("a", 2))
    one.run(5)
    told = one.told()
    assert buckets(told, "MIG-a") == (5 + 4, 0, 1)
    assert "reshape" in told["MIG-a"]["reasons"]


def test_a_handle_that_another_instance_took_over_tells_of_that_one(node: Nodes) -> None:
    one = node()
    one.machine.cut(0, instance("a", 1), instance("b", 2))
    one.run(6)
    one.machine.cut(0, instance("b", 2))  # b now answers on the handle that was a's
    one.run(5)
    told = one.told()
    assert buckets(told, "MIG-a") == (5, 0, 1)
    assert buckets(told, "MIG-b") == (10, 0, 0)


def test_mig_without_gpm_is_available_and_nobody_knows_how_busy(node: Nodes) -> None:
    one = node()
    one.machine.cut(0, instance("a", 1, gpm="50"))
    one.run(6)
    told = one.told()
    assert buckets(told, "MIG-a") == (5, 0, 0)
    assert told["MIG-a"]["busy_us"] is None


def test_compute_instances_of_one_gpu_instance_share_its_slices(node: Nodes) -> None:
    one = node(1, gpu__0__gpm="10")
    both = [
        instance("x", 1, gpm="50", ci="0", ci_slices="1"),
        instance("y", 1, gpm="50", ci="1", ci_slices="2"),
    ]
    one.machine.cut(0, *both)
    one.run(4)
    told = one.told()
    assert (told["MIG-x"]["share_ppm"], told["MIG-y"]["share_ppm"]) == (142_857, 285_714)
    assert told["MIG-x"]["busy_us"] is None, "GPM knows the GPU instance only"


def test_a_lease_of_a_profile_is_counted_on_an_instance_and_ends_with_it(node: Nodes) -> None:
    one = node()
    one.machine.cut(0, instance("a", 1), instance("b", 2))
    first = one("lease", 1, GPU[0], {"mode": "mig", "mig_profile": "3g.71gb", "mig_start": 0})
    second = one("lease", 2, GPU[0], {"mode": "mig", "mig_profile": "3g.71gb", "mig_start": 4})
    one.run(6)
    one.machine.cut(0, instance("b", 2))
    one.run(5)
    assert one("by_lease") == {
        first: ["MIG-a", "mig:3g.71gb", 428_571, 5 * SECOND_US],
        second: ["MIG-b", "mig:3g.71gb", 428_571, 10 * SECOND_US],
    }
    assert faults(one.told(), "MIG-a") == ["reshaped"]


def test_a_scheduler_on_the_machine_says_in_a_file_how_a_lease_shares_a_gpu(node: Nodes) -> None:
    one = node()
    lease = f"lease_{9:032d}"
    one.run(2)
    one("write", GPU[0], f"{lease} mps:25")
    one.run(4)
    one("write", GPU[0], "")
    one.run(3)
    assert one("by_lease") == {lease: [GPU[0], "mps:25", 250_000, 4 * SECOND_US]}
    assert buckets(one.told(), GPU[0]) == (9, 0, 0)


# --- what the driver reports by itself -------------------------------------------------------


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_an_xid_of_a_program_costs_no_time(node: Nodes, xid: int) -> None:
    one = node()
    one.machine.set(event__1=f"0:8:{xid}")
    assert one("fault", 0.05) is True
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (5, 0, 0)
    events = [data for name, data in told[GPU[0]]["events"] if name == "device.xid"]
    assert [(data["xid"], data["fatal"]) for data in events] == [(xid, False)]


def test_a_fatal_xid_is_unavailable_until_the_driver_needs_no_recovery(node: Nodes) -> None:
    one = node(2)
    one.run(2)
    one.machine.set(event__1="0:8:79", gpu__0__field__230="2")
    assert one("fault", 0.05) is True
    one.run(5)
    one.machine.set(gpu__0__field__230="0")
    one.run(5)
    told = one.told()
    assert buckets(told, GPU[0]) == (2 + 3, 7, 0)
    assert buckets(told, GPU[1]) == (12, 0, 0)


def test_a_gpu_that_fell_off_the_bus_is_named_though_it_answers_nothing(node: Nodes) -> None:
    one = node(2)
    one.run(2)
    one.machine.set(event__1="1:8:79", gpu__1__err__ALL="15")
    assert one("fault", 0.05) is True
    one.run(3)
    told = one.told()
    assert [d["xid"] for name, d in told[GPU[1]]["events"] if name == "device.xid"] == [79]
    assert buckets(told, GPU[1]) == (2, 3, 0)
    assert buckets(told, GPU[0]) == (5, 0, 0)


def test_an_xid_of_another_leases_instance_takes_only_that_instance(node: Nodes) -> None:
    one = node()
    one.machine.cut(0, instance("a", 1), instance("b", 2))
    one.run(4)
    one.machine.set(event__1="0:8:94:2:0", gpu__0__field__230="")
    assert one("fault", 0.05) is True
    one.run(4)
    told = one.told()
    assert buckets(told, "MIG-a") == (7, 0, 0)
    assert buckets(told, "MIG-b") == (3, 4, 0)
    (xid,) = [data for name, data in told["MIG-b"]["events"] if name == "device.xid"]
    assert (xid["gi"], xid["ci"]) == (2, 0)


def test_an_error_of_the_wait_takes_no_gpu_away(node: Nodes) -> None:
    one = node(2, err__nvmlEventSetWait_v2="999")
    assert one("fault", 0.01) is False
    one.run(5)
    told = one.told()
    assert all(buckets(told, GPU[n]) == (5, 0, 0) for n in range(2))


# --- the process itself ----------------------------------------------------------------------


def test_uuids_in_another_order_after_a_reboot_are_the_same_devices(
    machine: Callable[[int], FakeMachine],
) -> None:
    found = machine(2)
    first = Node(found)
    before = first("inventory")
    first.end()
    found.set(gpu__0__uuid=GPU[1], gpu__1__uuid=GPU[0])
    second = Node(found)
    second.run(3)
    told, after = second.told(), second("inventory")
    second.end()
    assert after == list(reversed(before))
    assert buckets(told, GPU[0]) == buckets(told, GPU[1]) == (3, 0, 0)


def test_a_child_that_was_forked_sees_nothing_and_its_parent_goes_on(node: Nodes) -> None:
    one = node()
    assert one("fork", GPU[0]) == ["MonitorBlind", True]
    assert one.run(3) is False
    assert buckets(one.told(), GPU[0]) == (3, 0, 0)


def test_a_library_replaced_on_disk_asks_for_a_new_process_and_loses_nothing(
    machine: Callable[[int], FakeMachine], tmp_path: Path
) -> None:
    found = machine(1)
    own = tmp_path / "lib" / found.library.name
    own.parent.mkdir()
    own.write_bytes(found.library.read_bytes())
    found.library = own
    one = Node(found)
    assert one.run(3) is False
    own.unlink()
    assert one("fault", 0.01) is False
    assert one.run(1) is True
    assert buckets(one.told(), GPU[0]) == (4, 0, 0)
    one.end()


def test_every_fault_of_the_documents_table_names_its_test() -> None:
    document = Path(__file__).parents[3] / "docs" / "explanation" / "metering.md"
    table = document.read_text(encoding="utf-8").split("## Faults, injected")[1].split("## ")[0]
    named = re.findall(r"`(test_[a-z0-9_]+)` \|$", table, re.MULTILINE)
    assert len(named) >= 20
    assert [name for name in named if name not in globals()] == []
