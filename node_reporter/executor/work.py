"""What the server tells a node's executor: what to start, what to stop, what it should be running.

Read strictly. The hash of the work is computed here from what was told, never taken over: what is
acknowledged is what will run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.jobs.job import workload_hash
from domain.jobs.plan import REFERENCES_MAX, Reference, workspace_of
from domain.lease.mounts import MOUNTS_MAX, mount_rule
from domain.metering import report
from domain.money import PPM
from domain.references import WORKSPACE
from domain.sites.attached import STORES_MAX
from node_reporter.executor.datastores import StoreMount, told_places
from node_reporter.executor.reserved_names import ReservedPort
from node_reporter.executor.volume_store import GIB, VOLUME_ID, Mount

LIST_MAX = 1_000
TEXT_MAX = 4_096
ITEMS_MAX = 256
ENDPOINT_KINDS = ("endpoint", "notebook")
LEASE = re.compile(report.LEASE_PATTERN)
_HASH = re.compile(r"[0-9a-f]{64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class WorkUnreadable(Exception):
    """The server's list is not of the agreed form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Work to start; `told_sha256` is the server's word for it, `workload_sha256` ours."""

    lease_id: str
    account_id: str
    kind: str
    image: str | None
    command: tuple[str, ...]
    env_refs: tuple[str, ...]
    references: tuple[Reference, ...]  # keys, checkpoints, datasets: names, never secrets
    told_sha256: str
    workload_sha256: str
    device_ids: tuple[str, ...]
    share_ppm: int
    mem_ppm: int
    mode: str
    memory_mib: int | None
    encryption_key: bytes | None
    executor: str | None
    part: int | None  # which chunk or member of its job, from 0
    parts: int | None  # of how many, where that is fixed
    attempt: int | None  # of the part, from 1
    volumes: tuple[Mount, ...] = ()
    stores: tuple[StoreMount, ...] = ()
    reserved: ReservedPort | None = None
    workspace: str | None = None  # the digest of the renter's folder, which the hash covers
    waits_for_gang: bool = False  # its program begins when the whole gang is billed

    @property
    def is_what_was_asked(self) -> bool:
        return self.told_sha256 == self.workload_sha256


@dataclass(frozen=True, slots=True)
class Stop:
    """A lease that is over."""

    lease_id: str
    workload_sha256: str


@dataclass(frozen=True, slots=True)
class Running:
    """A lease that runs, as the server sees it; `until_us`: when it ends whatever happens."""

    lease_id: str
    until_us: int | None
    executor: str | None
    ended: bool


@dataclass(frozen=True, slots=True)
class Work:
    """Everything the server tells at once."""

    starts: tuple[Start, ...]
    stops: tuple[Stop, ...]
    running: Mapping[str, Running]
    to_erase: tuple[str, ...] = ()


def parse(document: Any) -> Work:
    """Read the answer of `GET /v1/nodes/{id}/assignments`. Raises WorkUnreadable."""
    try:
        starts = tuple(_start(item) for item in told_items(document["pending"]))
        stops = tuple(_stop(item) for item in told_items(document["stopping"]))
        running = [_running(item) for item in told_items(document["data"])]
        to_erase = tuple(_volume(one) for one in told_texts(document.get("to_erase", [])))
    except (KeyError, TypeError, ValueError) as error:
        raise WorkUnreadable(repr(error)) from error
    return Work(starts, stops, {each.lease_id: each for each in running}, to_erase)


def told_items(value: Any) -> list[dict[str, Any]]:
    if type(value) is not list or len(value) > LIST_MAX:
        raise WorkUnreadable(f"needed a list of at most {LIST_MAX}")
    if not all(type(item) is dict for item in value):
        raise WorkUnreadable("needed objects")
    return value


def _start(item: dict[str, Any]) -> Start:
    work = item["work"]
    image = None if work.get("image") is None else told_text(work["image"])
    command, env_refs = told_texts(work["command"]), told_texts(work["env_refs"])
    references = _references(work.get("references"))
    key = item.get("encryption_key")
    return Start(
        lease_id=_lease(item["lease_id"]),
        account_id=told_text(item["account_id"]),
        kind=told_text(work["kind"]),
        image=image,
        command=command,
        env_refs=env_refs,
        told_sha256=_hash(work["workload_sha256"]),
        references=tuple(one for one in references if one.kind != WORKSPACE),
        workspace=_digest(workspace_of(references)),
        workload_sha256=workload_hash(image, command, env_refs, references),
        device_ids=told_texts(item["device_ids"]),
        share_ppm=told_whole(item["share_ppm"]),
        mem_ppm=told_whole(item["mem_ppm"]),
        mode=told_text(item.get("mode", "whole")),
        memory_mib=told_whole_or_none(item.get("memory_mib")),
        encryption_key=None if key is None else bytes.fromhex(_hash(key)),
        executor=told_text_or_none(item.get("executor")),
        part=told_whole_or_none(item.get("part")),
        parts=told_whole_or_none(item.get("parts")),
        attempt=told_whole_or_none(item.get("attempt")),
        volumes=_mounts(item.get("volumes")),
        stores=told_stores(work.get("mounts")),
        reserved=_reserved(work.get("reserved_port")),
        waits_for_gang=item.get("waits_for_gang") is True,
    )


def _digest(value: str | None) -> str | None:
    return None if value is None else _hash(value)


def told_whole_or_none(value: Any) -> int | None:
    return None if value is None else told_whole(value)


def _mounts(value: Any) -> tuple[Mount, ...]:
    """What the job mounts; a path that leaves the folder of mounts is not taken from anybody."""
    found = [] if value is None else told_items(value)
    if len(found) > MOUNTS_MAX:
        raise WorkUnreadable(f"at most {MOUNTS_MAX} volumes")
    mounts = tuple(
        Mount(
            _volume(one["volume_id"]),
            told_text(one["path"]),
            one["read_only"] is True,
            told_whole(one["size_gib"]) * GIB,
        )
        for one in found
    )
    broken = next((rule for one in mounts if (rule := mount_rule(one.path)) is not None), None)
    if broken is not None:
        raise WorkUnreadable(f"needed {broken}")
    return mounts


def told_stores(value: Any) -> tuple[StoreMount, ...]:
    """What the work mounts of datastores; which paths are confined is asked when it starts."""
    found = [] if value is None else told_items(value)
    if len(found) > STORES_MAX:
        raise WorkUnreadable(f"at most {STORES_MAX} datastores")
    return tuple(
        StoreMount(
            name=told_text(one["name"]),
            kind=told_text(one["kind"]),
            address=told_text(one["address"]),
            root_path=told_text(one["root_path"]),
            path=told_text(one["path"]),
            use=told_text(one["use"]),
            user=told_text_or_none(one.get("user")),
            password=told_text_or_none(one.get("password")),
        )
        for one in found
    )


def _reserved(value: Any) -> ReservedPort | None:
    if value is None:
        return None
    return ReservedPort(told_text(value["host_name"]), told_whole(value["port"]))


def _volume(value: Any) -> str:
    if type(value) is not str or VOLUME_ID.fullmatch(value) is None:
        raise WorkUnreadable("needed the id of a volume")
    return value


def _references(value: Any) -> tuple[Reference, ...]:
    found = [] if value is None else told_items(value)
    if len(found) > REFERENCES_MAX:
        raise WorkUnreadable(f"at most {REFERENCES_MAX} references")
    return tuple(Reference(told_text(one["kind"]), told_text(one["name"])) for one in found)


def _stop(item: dict[str, Any]) -> Stop:
    return Stop(_lease(item["lease_id"]), _hash(item["workload_sha256"]))


def _running(item: dict[str, Any]) -> Running:
    until = item.get("until_us")
    executor = item.get("executor")
    return Running(
        _lease(item["lease_id"]),
        None if until is None else told_whole(until),
        None if executor is None else told_text(executor),
        item.get("work_ended") is True,
    )


def share_variables(start: Start) -> dict[str, str]:
    """The share of a lease, told as every program of the field reads it."""
    devices = ",".join(start.device_ids)
    told = {
        "CUDA_VISIBLE_DEVICES": devices,
        "NVIDIA_VISIBLE_DEVICES": devices,
        "TALLYSTICK_LEASE_ID": start.lease_id,
        "TALLYSTICK_DEVICES": devices,
        "TALLYSTICK_SHARE_PPM": str(start.share_ppm),
        "TALLYSTICK_MEM_PPM": str(start.mem_ppm),
        "TALLYSTICK_MODE": start.mode,
    }
    told |= part_variables(start)
    if start.stores:
        told["TALLYSTICK_STORES"] = told_places(start.stores)
    if start.reserved is not None:
        told["TALLYSTICK_HOST_NAME"] = start.reserved.full_name
        told["TALLYSTICK_PORT"] = str(start.reserved.port)
    if start.memory_mib is not None:
        told["TALLYSTICK_GPU_MEMORY_MIB"] = str(start.memory_mib)
    if start.mode == "mps":
        told["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(max(1, start.share_ppm * 100 // PPM))
        if start.memory_mib is not None:
            each = [f"{number}={start.memory_mib}M" for number in range(len(start.device_ids))]
            told["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(each)
    return told


def part_variables(start: Start) -> dict[str, str]:
    """Which part of a job the program is to do; absent where the job has no parts (R-4)."""
    numbers = {
        "TALLYSTICK_PART": start.part,
        "TALLYSTICK_PARTS": start.parts,
        "TALLYSTICK_ATTEMPT": start.attempt,
    }
    return {name: str(number) for name, number in numbers.items() if number is not None}


def is_variable(name: str) -> bool:
    """Whether an environment reference can be the name of a variable."""
    return _VARIABLE.fullmatch(name) is not None


def _lease(value: Any) -> str:
    if type(value) is not str or LEASE.fullmatch(value) is None:
        raise WorkUnreadable("needed the id of a lease")
    return value


def _hash(value: Any) -> str:
    if type(value) is not str or _HASH.fullmatch(value) is None:
        raise WorkUnreadable("needed 64 hex digits")
    return value


def told_text(value: Any) -> str:
    if type(value) is not str or len(value) > TEXT_MAX or "\0" in value:
        raise WorkUnreadable(f"needed a text of at most {TEXT_MAX} characters")
    try:
        value.encode()  # half of a pair of surrogates is in no file name and on no command line
    except UnicodeEncodeError:
        raise WorkUnreadable("needed a text") from None
    return value


def told_text_or_none(value: Any) -> str | None:
    return None if value is None else told_text(value)


def told_texts(value: Any) -> tuple[str, ...]:
    if type(value) is not list or len(value) > ITEMS_MAX:
        raise WorkUnreadable(f"needed a list of at most {ITEMS_MAX}")
    return tuple(told_text(each) for each in value)


def told_whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= report.INT_MAX:
        raise WorkUnreadable("needed a whole number, 0..2^53-1")
    return value
