"""The fleet as columns in memory: one row for equal devices of a node under one offer.

    nodes(rows) give back what put(...) was told         for every field that the matcher asks about

Nothing is decided or matched here and nothing is read from anywhere: `projections/market/feed.py`
fills it, `projections/market/match.py` asks. Integers are 64 bits and exact; unknown is -1 in a
column of numbers. Rows are reused after their node is gone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.frozen import replace
from domain.hardware.constraints import ISOLATIONS
from domain.hardware.host_kind import NETWORK_CLASSES
from domain.hardware.sharing import SHARING_MODES
from domain.lease.looked import Stated
from domain.market.dimensions import NEVER_US, FreeDevice, OfferedNode, modes_of, tier_of
from domain.market.matching import peers_of
from domain.market.offer import OfferTerms

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NUMBERS = (
    "price",
    "served",
    "memory_mib",
    "cpu_cores",
    "ram_mib",
    "storage_gib",
    "network_mbps",
    "held_storage",
    "held_network",
    "isolation",
    "security_tier",
    "reputation",
    "min_renter",
    "reclaim_us",
    "available_until",
    "specs_at",
    "device_count",
    "modes",
    "place",
    "kernel",
    "network_class",
    "cloud_jobs",
    "peer_free",
    "peer_devices",
)
WORDS = (
    "node",
    "account",
    "provider",
    "region",
    "pool",
    "phase",
    "kind",
    "vendor",
    "model",
    "arch",
    "os",
    "setting",
    "gpu_class",
    "settlement",
    "sla",
    "capacity",
)
FLAGS = (
    "is_there",
    "is_offered",
    "is_public",
    "is_sellable",
    "fractions",
    "interruptible",
    "keeps_queue",
    "stands_alone",
)
LANES = 8
"""Devices of a row are padded to a multiple of this, so that a row of flags is whole words."""
DEVICE_COLUMNS = ("share", "mem", "least", "slice", "profiles", "divisible", "mode")
MODE_CODES = {mode: code for code, mode in enumerate(SHARING_MODES, start=1)}
NO_DEVICE = -1
_MODES = (None, *SHARING_MODES)
Rest = tuple[OfferTerms, tuple[Stated, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Terms, statements, workloads refused and ranked down, substrates of a row."""
_OF_A_DEVICE = ("share", "mem", "mode", "slice", "profiles", "divisible")


class Dictionary:
    """Words and their codes; code 0 is None. Codes are never taken back."""

    def __init__(self) -> None:
        self.words: list[str | None] = [None]
        self.codes: dict[str | None, int] = {None: 0}

    def code(self, word: str | None) -> int:
        found = self.codes.get(word)
        if found is None:
            found = self.codes[word] = len(self.words)
            self.words.append(word)
        return found

    def known(self, words: Iterable[str | None]) -> list[int]:
        """Codes of those words that some row has or had."""
        return [self.codes[word] for word in words if word in self.codes]


NODES_KEPT_MAX = 10_000
"""Rows read back and kept: the best of the fleet are asked for again and again."""


class Columns:
    """Rows by (node, offer, model, memory, class). `fill`, `put` and `nodes`; columns are those of
    `numbers`, `words` and `flags`, devices are arrays of rows x width.
    """

    def __init__(self, capacity: int = 1_024) -> None:
        self.size = 0  # rows ever used
        self.dictionaries = {name: Dictionary() for name in WORDS}
        self.numbers: dict[str, Ints] = {n: np.zeros(capacity, np.int64) for n in NUMBERS}
        self.words: dict[str, NDArray[np.int32]] = {n: np.zeros(capacity, np.int32) for n in WORDS}
        self.flags: dict[str, Bools] = {n: np.zeros(capacity, np.bool_) for n in FLAGS}
        self.share = np.zeros((capacity, LANES), np.int32)
        self.mem = np.zeros((capacity, LANES), np.int32)
        self.mode = np.full((capacity, LANES), NO_DEVICE, np.int8)
        self.least = np.zeros((capacity, LANES), np.int32)  # the smaller of share and mem
        self.slice = np.zeros((capacity, LANES), np.int32)
        self.profiles = np.zeros((capacity, LANES), np.uint64)
        self.divisible = np.zeros((capacity, LANES), np.bool_)
        self.profile_bits = Dictionary()
        self._profiles_of: dict[int, tuple[str, ...]] = {}
        self._nodes: dict[int, OfferedNode] = {}  # rows that were read back, until they change
        self.sets: dict[tuple[str, str], Bools] = {}  # ("capability", word) -> rows that have it
        self.stated: dict[str, dict[tuple[str, str], dict[int, int]]] = {}
        self.windows: dict[int, tuple[tuple[int, int], ...]] = {}
        self.device_ids: list[tuple[str, ...]] = []
        self.offer_ids: list[str] = []
        self.rest: list[Rest] = []
        self.rows_of: dict[str, dict[tuple[str, str, int, str], int]] = {}
        self.lists: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._free_rows: list[int] = []
        self._keys: list[tuple[str, str, str, int, str]] = []  # sorted: of rows that are there
        self._terms: dict[OfferTerms, OfferTerms] = {}
        self.region_free = np.zeros(LANES, np.int64)  # by code of the region: of its peers
        self.region_devices = np.zeros(LANES, np.int64)

    # --- filling -----------------------------------------------------------------------------

    def fill(self, nodes: Iterable[OfferedNode]) -> None:
        """Many nodes at once, into empty columns."""
        rows = [(key_of(node), self._write(node)) for node in nodes]
        rows.sort()
        self._keys = [key for key, _ in rows]
        self.numbers["place"][[row for _, row in rows]] = np.arange(len(rows))
        for node_id in self.rows_of:
            self._count_rows_of(node_id)

    def put(self, node_id: str, rows: Iterable[OfferedNode]) -> None:
        """What is there of a node now; what was there before is gone."""
        wanted = {key_of(one)[1:]: one for one in rows}
        present = self.rows_of.setdefault(node_id, {})
        for key in [key for key in present if key not in wanted]:
            self._take_out(node_id, key)
        for key, one in wanted.items():
            if key not in present:
                self._insert((node_id, *key), self._write(one))
            else:
                self._write(one, present[key])
        self._count_rows_of(node_id)

    def has_account(self, account_id: str) -> bool:
        """Whether some row is or was of this account."""
        return account_id in self.dictionaries["account"].codes

    def dearest(self, fees: Iterable[int]) -> int:
        """No row costs more: its price, or for its owner one of these fees."""
        return max(int(self.numbers["price"][: self.size].max(initial=0)), *fees, 0)

    def _count_rows_of(self, node_id: str) -> None:
        """A node with one row counts as one node without looking for its other rows."""
        rows = list(self.rows_of[node_id].values())
        self.flags["stands_alone"][rows] = len(rows) == 1

    def _insert(self, key: tuple[str, str, str, int, str], row: int) -> None:
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        places = self.numbers["place"]
        places[: self.size] += places[: self.size] >= place
        places[row] = place

    def _take_out(self, node_id: str, key: tuple[str, str, int, str]) -> None:
        row = self.rows_of[node_id].pop(key)
        place = bisect_left(self._keys, (node_id, *key))
        del self._keys[place]
        places = self.numbers["place"]
        places[: self.size] -= places[: self.size] > place
        self.flags["is_there"][row] = False
        self._forget(row)
        self._free_rows.append(row)

    def serve(self, places: Any, gpu_us: int) -> None:
        """What nodes have served this epoch, in some rows or in all of a slice."""
        self.numbers["served"][places] = gpu_us
        self._nodes.clear()

    def rate(self, places: Any, score_ppm: int | None) -> None:
        """The reputation of a node in its rows; None: provisional."""
        self.numbers["reputation"][places] = _or_unknown(score_ppm)
        for row in places:
            self._nodes.pop(row, None)

    def deal_with(self, lists: dict[str, tuple[frozenset[str], frozenset[str]]]) -> None:
        """Whom each account allows and denies."""
        self.lists = lists
        self._nodes.clear()

    def _forget(self, row: int) -> None:
        self._nodes.pop(row, None)
        self._count_peers(row, -1)
        terms, stated, refused, ranked, substrate = self.rest[row]
        sets = (
            ("capability", terms.capabilities or ()),
            ("refused", refused),
            ("ranked", ranked),
            ("substrate", substrate),
        )
        for name, found in sets:
            for word in found:
                self.sets[name, word][row] = False
        for one in stated:
            self.stated[one.name][one.value, one.signer].pop(row, None)
        self.windows.pop(row, None)

    def _write(self, node: OfferedNode, row: int | None = None) -> int:
        if row is None:
            row = self._new_row()
            self.rows_of.setdefault(node.node_id, {})[key_of(node)[1:]] = row
        else:
            self._forget(row)
        self._write_numbers(row, node)
        for name, word in _words(node).items():
            self.words[name][row] = self.dictionaries[name].code(word)
        flags = {
            "is_there": True,
            "is_offered": node.is_offered,
            "is_public": node.is_public,
            "is_sellable": node.is_sellable,
            "fractions": node.fractions,
            "interruptible": bool(node.terms.interruptible),
            "keeps_queue": node.keeps_queue,
        }
        for name, flag in flags.items():
            self.flags[name][row] = flag
        self._write_sets(row, node)
        self._write_devices(row, node.devices)
        self.offer_ids[row] = node.offer_id
        self._count_peers(row, 1)
        return row

    def _count_peers(self, row: int, sign: int) -> None:
        """The devices of a row come to its region, or leave it."""
        code = self.words["region"][row]
        if code >= len(self.region_free):
            more = np.zeros(max(len(self.region_free), code), np.int64)
            self.region_free = np.concatenate([self.region_free, more])
            self.region_devices = np.concatenate([self.region_devices, more])
        self.region_free[code] += sign * self.numbers["peer_free"][row]
        self.region_devices[code] += sign * self.numbers["peer_devices"][row]

    def peers(self, rows: Any) -> tuple[Ints, Ints]:
        """Whole free devices, and all of them, of the other rows of the regions of these rows."""
        codes, numbers = self.words["region"][rows], self.numbers
        free: Ints = self.region_free[codes] - numbers["peer_free"][rows]
        devices: Ints = self.region_devices[codes] - numbers["peer_devices"][rows]
        return free, devices

    def _write_numbers(self, row: int, node: OfferedNode) -> None:
        terms = node.terms
        isolation = terms.isolation
        peer_free, peer_devices = peers_of(node)
        values = {
            "peer_free": peer_free,
            "peer_devices": peer_devices,
            "price": node.price,
            "served": node.served_gpu_us,
            "memory_mib": node.memory_mib,
            "cpu_cores": _or_unknown(node.cpu_cores),
            "ram_mib": _or_unknown(node.ram_mib),
            "storage_gib": _or_unknown(terms.storage_gib),
            "network_mbps": _or_unknown(terms.network_mbps),
            "held_storage": node.held_storage_gib,
            "held_network": node.held_network_mbps,
            "isolation": 0 if isolation is None else ISOLATIONS.index(isolation),
            "security_tier": tier_of(node),
            "reputation": _or_unknown(node.reputation_ppm),
            "min_renter": terms.min_renter_ppm or 0,
            "reclaim_us": terms.reclaim_window_us or 0,
            "available_until": (
                NEVER_US if node.available_until_us is None else node.available_until_us
            ),
            "specs_at": _or_unknown(node.specs_at_us),
            "device_count": len(node.devices),
            "kernel": _or_unknown(node.kernel),
            "network_class": NETWORK_CLASSES.index(terms.network_class or NETWORK_CLASSES[0]),
            "cloud_jobs": _or_unknown(node.cloud_jobs),
            "modes": sum(1 << MODE_CODES[mode] for mode in modes_of(node)),
        }
        for name, value in values.items():
            self.numbers[name][row] = value

    def _write_sets(self, row: int, node: OfferedNode) -> None:
        terms = self._terms.setdefault(node.terms, node.terms)
        self.rest[row] = (
            terms,
            node.attributes,
            node.refused_workloads,
            node.down_ranked_workloads,
            node.substrate,
        )
        sets = (
            ("capability", terms.capabilities or ()),
            ("refused", node.refused_workloads),
            ("ranked", node.down_ranked_workloads),
            ("substrate", node.substrate),
        )
        for name, found in sets:
            for word in found:
                if (name, word) not in self.sets:
                    self.sets[name, word] = np.zeros(len(self.flags["is_there"]), np.bool_)
                self.sets[name, word][row] = True
        for one in node.attributes:
            holders = self.stated.setdefault(one.name, {}).setdefault((one.value, one.signer), {})
            ends_us = NEVER_US if one.expires_at_us is None else one.expires_at_us
            holders[row] = max(ends_us, holders.get(row, 0))  # stated twice: the longer one
        if node.maintenance:
            self.windows[row] = node.maintenance

    def _write_devices(self, row: int, devices: tuple[FreeDevice, ...]) -> None:
        self.device_ids[row] = tuple(device.device_id for device in devices)
        count = len(devices)
        if count > self.share.shape[1]:
            self._widen(count)
        self.mode[row] = NO_DEVICE
        self.share[row], self.mem[row], self.least[row] = 0, 0, 0
        if not count:
            return
        self.share[row, :count] = [device.free_share_ppm for device in devices]
        self.mem[row, :count] = [device.free_mem_ppm for device in devices]
        self.least[row] = np.minimum(self.share[row], self.mem[row])
        self.mode[row, :count] = [MODE_CODES.get(device.mode or "", 0) for device in devices]
        self.slice[row, :count] = [device.slice_ppm or 0 for device in devices]
        self.divisible[row, :count] = [device.is_divisible for device in devices]
        self.profiles[row, :count] = [self._bits(device.profiles) for device in devices]

    def _bits(self, profiles: tuple[str, ...]) -> int:
        bits = sum(1 << self.profile_bits.code(profile) for profile in profiles)
        assert bits < 1 << 64, "more MIG profiles than bits"
        return bits

    def _new_row(self) -> int:
        if self._free_rows:
            return self._free_rows.pop()
        if self.size == len(self.flags["is_there"]):
            self._grow(2 * self.size)
        self.device_ids.append(())
        self.offer_ids.append("")
        self.rest.append((OfferTerms(), (), (), (), ()))
        self.size += 1
        return self.size - 1

    def _grow(self, capacity: int) -> None:
        for group in (self.numbers, self.words, self.flags, self.sets):
            columns: Any = group
            for name, column in columns.items():
                columns[name] = np.concatenate(
                    [column, np.zeros(capacity - len(column), column.dtype)]
                )
        for name in DEVICE_COLUMNS:
            old = getattr(self, name)
            new = np.zeros((capacity, old.shape[1]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _widen(self, count: int) -> None:
        width = -(-count // LANES) * LANES
        for name in DEVICE_COLUMNS:
            old = getattr(self, name)
            new = np.full((len(old), width), NO_DEVICE if name == "mode" else 0, old.dtype)
            new[:, : old.shape[1]] = old
            setattr(self, name, new)

    # --- reading back ------------------------------------------------------------------------

    def nodes(self, rows: Sequence[int]) -> list[OfferedNode]:
        """Rows as the reference knows them; the price is the offer's."""
        missing = [row for row in rows if row not in self._nodes]
        if missing:
            self._nodes.update(zip(missing, self._read(missing), strict=True))
        free, devices = (each.tolist() for each in self.peers(np.asarray(rows, np.int64)))
        found = list(map(self._beside, rows, free, devices))
        if len(self._nodes) > NODES_KEPT_MAX:
            self._nodes.clear()
        return found

    def _beside(self, row: int, free: int, devices: int) -> OfferedNode:
        """A row with its peers, which change while it does not."""
        node = self._nodes[row]
        if (node.peers_free, node.peers_devices) != (free, devices):
            node = self._nodes[row] = replace(node, peers_free=free, peers_devices=devices)
        return node

    def _read(self, rows: Sequence[int]) -> list[OfferedNode]:
        chosen = np.asarray(rows, np.int64)
        numbers = {name: column[chosen].tolist() for name, column in self.numbers.items()}
        codes = {name: column[chosen].tolist() for name, column in self.words.items()}
        flags = {name: column[chosen].tolist() for name, column in self.flags.items()}
        devices = [getattr(self, name)[chosen].tolist() for name in _OF_A_DEVICE]
        found = []
        for at, row in enumerate(rows):
            word = {n: self.dictionaries[n].words[codes[n][at]] or "" for n in WORDS}
            number = {name: column[at] for name, column in numbers.items()}
            free = self._devices(row, word["model"], *(column[at] for column in devices))
            flag = {name: column[at] for name, column in flags.items()}
            found.append(self._node(row, word, number, flag, free))
        return found

    def _node(
        self,
        row: int,
        word: dict[str, str],
        number: dict[str, int],
        flag: dict[str, bool],
        devices: tuple[FreeDevice, ...],
    ) -> OfferedNode:
        terms, stated, refused, ranked, substrate = self.rest[row]
        until = number["available_until"]
        allowed, denied = self.lists.get(word["account"], (frozenset(), frozenset()))
        return OfferedNode(
            node_id=word["node"],
            offer_id=self.offer_ids[row],
            account_id=word["account"],
            price=number["price"],
            pay_with=word["settlement"],
            fractions=flag["fractions"],
            is_offered=flag["is_offered"],
            is_public=flag["is_public"],
            is_sellable=flag["is_sellable"],
            served_gpu_us=number["served"],
            devices=devices,
            model=word["model"],
            memory_mib=number["memory_mib"],
            gpu_class=word["gpu_class"] or None,
            kind=word["kind"],
            vendor=word["vendor"],
            phase=word["phase"],
            specs_at_us=_or_none(number["specs_at"]),
            held_storage_gib=number["held_storage"],
            held_network_mbps=number["held_network"],
            provider_id=word["provider"],
            region_id=word["region"],
            setting=word["setting"],
            refused_workloads=refused,
            down_ranked_workloads=ranked,
            security_tier=number["security_tier"],
            pool_id=word["pool"] or None,
            keeps_queue=flag["keeps_queue"],
            arch=word["arch"],
            os=word["os"],
            cpu_cores=_or_none(number["cpu_cores"]),
            ram_mib=_or_none(number["ram_mib"]),
            terms=terms,
            reputation_ppm=_or_none(number["reputation"]),
            attributes=stated,
            maintenance=self.windows.get(row, ()),
            available_until_us=None if until == NEVER_US else until,
            allowed=allowed,
            denied=denied,
            kernel=_or_none(number["kernel"]),
            substrate=substrate,
            capacity_class=word["capacity"],
            cloud_jobs=_or_none(number["cloud_jobs"]),
        )

    def _devices(self, row: int, model: str, *lanes: list[Any]) -> tuple[FreeDevice, ...]:
        share, mem, mode, slices, profiles, divisible = lanes
        return tuple(
            FreeDevice(
                device_id,
                model,
                share[at],
                mem[at],
                _MODES[mode[at]],
                slices[at] or None,
                self._profiles(profiles[at]) if profiles[at] else (),
                divisible[at],
            )
            for at, device_id in enumerate(self.device_ids[row])
        )

    def _profiles(self, bits: int) -> tuple[str, ...]:
        """A word keeps its bit, so what bits mean never changes."""
        known = self._profiles_of.get(bits)
        if known is None:
            words = enumerate(self.profile_bits.words)
            known = tuple(sorted(w for code, w in words if w is not None and bits >> code & 1))
            self._profiles_of[bits] = known
        return known


def key_of(node: OfferedNode) -> tuple[str, str, str, int, str]:
    """What makes a row: the last parts tell devices apart that are not equal."""
    gpu_class = node.gpu_class or ""
    return node.node_id, node.offer_id, node.device_model, node.memory_mib, gpu_class


def _words(node: OfferedNode) -> dict[str, str | None]:
    return {
        "node": node.node_id,
        "account": node.account_id,
        "provider": node.provider_id,
        "region": node.region_id,
        "pool": node.pool_id,
        "phase": node.phase,
        "kind": node.kind,
        "vendor": node.vendor,
        "model": node.device_model,
        "arch": node.arch,
        "os": node.os,
        "setting": node.setting,
        "gpu_class": node.gpu_class,
        "settlement": node.pay_with,
        "sla": node.terms.sla_class,
        "capacity": node.capacity_class,
    }


def _or_unknown(value: int | None) -> int:
    return -1 if value is None else value


def _or_none(value: int) -> int | None:
    return None if value < 0 else value
