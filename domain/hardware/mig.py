"""MIG: instances of an NVIDIA GPU, cut from its compute slices and its memory slices.

    compute slices in use <= the GPU's          memory slices of two instances never overlap
    stranded == GPU's compute slices - the most that could be in use, without moving anything

An instance begins at a memory slice that its profile allows. Where it begins decides what still
fits beside it: a `3g` at 0 leaves no room for a `4g`, at 4 it does; `1g` at 0, 1 and 5 leaves
neither. So the start is chosen here, never by the caller: the one after which the most placements
are still possible, of equals the highest.

Placements are as `nvidia-smi mig -lgipp` prints them on an A100 and an H100; those of the H200 are
the same and not seen on hardware. Source: conformance suite `mig`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from domain.hardware.classes import words_of
from domain.hardware.reasons import HardwareReason
from domain.money import PPM
from domain.refusal import Refused


@dataclass(frozen=True, slots=True)
class Profile:
    """One size of instance of one GPU."""

    name: str
    compute: int  # compute slices it uses
    memory: int  # memory slices it covers, from its start on
    starts: tuple[int, ...]
    most: int  # instances of this profile at once


@dataclass(frozen=True, slots=True)
class Table:
    """How one model of GPU can be cut."""

    model: str
    compute: int
    memory: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile | None:
        return next((one for one in self.profiles if one.name == name), None)

    def share_ppm(self, profile: Profile) -> int:
        """floor(compute slices x 10^6 / the GPU's): four sevenths are 571,428."""
        return profile.compute * PPM // self.compute

    def mem_ppm(self, profile: Profile) -> int:
        """floor(memory slices x 10^6 / the GPU's), exact for eight and for four."""
        return profile.memory * PPM // self.memory


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """A profile placed: it covers memory slices [start, start + the profile's memory)."""

    start: int
    profile: str


Held = frozenset[Instance]


def _seven(model: str, *names: str) -> Table:
    """The GPUs of seven compute and eight memory slices; only the names of the sizes differ."""
    shapes = (
        (1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
        (1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
        (1, 2, (0, 2, 4, 6), 4),
        (2, 2, (0, 2, 4), 3),
        (3, 4, (0, 4), 2),
        (4, 4, (0,), 1),
        (7, 8, (0,), 1),
    )
    profiles = (Profile(name, *shape) for name, shape in zip(names, shapes, strict=True))
    return Table(model, 7, 8, tuple(profiles))


_EIGHTY = ("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")

TABLES: dict[str, Table] = {
    table.model: table
    for table in (
        _seven(
            "A100-40GB",
            "1g.5gb",
            "1g.5gb+me",
            "1g.10gb",
            "2g.10gb",
            "3g.20gb",
            "4g.20gb",
            "7g.40gb",
        ),
        _seven("A100-80GB", *_EIGHTY),
        _seven("H100-80GB", *_EIGHTY),
        _seven(
            "H100-94GB",
            "1g.12gb",
            "1g.12gb+me",
            "1g.24gb",
            "2g.24gb",
            "3g.47gb",
            "4g.47gb",
            "7g.94gb",
        ),
        _seven(
            "H200-141GB",
            "1g.18gb",
            "1g.18gb+me",
            "1g.35gb",
            "2g.35gb",
            "3g.71gb",
            "4g.71gb",
            "7g.141gb",
        ),
        Table(
            "A30-24GB",
            4,
            4,
            (
                Profile("1g.6gb", 1, 1, (0, 1, 2, 3), 4),
                Profile("2g.12gb", 2, 2, (0, 2), 2),
                Profile("4g.24gb", 4, 4, (0,), 1),
            ),
        ),
    )
}

_BOARDS: tuple[tuple[str, range, str], ...] = (
    ("A100", range(36_000, 42_000), "A100-40GB"),
    ("A100", range(78_000, 84_000), "A100-80GB"),
    ("H100", range(78_000, 84_000), "H100-80GB"),
    ("H100", range(92_000, 96_500), "H100-94GB"),
    ("H200", range(138_000, 146_000), "H200-141GB"),
    ("A30", range(22_000, 25_000), "A30-24GB"),
)
"""A word of the model's name and its memory in MiB: drivers report a little less than they sell."""


@lru_cache(maxsize=1_024)
def table_of(model: str, memory_mib: int) -> Table | None:
    """How a GPU can be cut, from its model's name and its memory; None: not at all, or not known.

    "NVIDIA A100-SXM4-40GB" of 40,960 MiB is an A100-40GB. A memory that no listed board has, as of
    an H100 of 96 GB, is never guessed.
    """
    words = words_of(model)
    return next(
        (TABLES[name] for word, mib, name in _BOARDS if word in words and memory_mib in mib), None
    )


def has_profile(model: str, name: str) -> bool:
    """Whether a GPU whose name has these words can have a profile, with whatever memory."""
    words = words_of(model)
    return any(word in words and TABLES[board].profile(name) for word, _, board in _BOARDS)


def sizes_ppm(name: str) -> frozenset[tuple[int, int]]:
    """Compute and memory share, in ppm, that a profile of this name has on one GPU or another.

    `1g.10gb` is an eighth of the memory of an A100-80GB and a quarter of an A100-40GB's.
    Raises Refused: UNKNOWN_PROFILE.
    """
    found = frozenset(
        (table.share_ppm(profile), table.mem_ppm(profile))
        for table in TABLES.values()
        if (profile := table.profile(name)) is not None
    )
    if not found:
        raise Refused(HardwareReason.UNKNOWN_PROFILE, mig_profile=name)
    return found


def asked_ppm(name: str) -> tuple[int, int]:
    """The shares of a profile before the GPU is known: the least that it can have.

    Raises Refused: UNKNOWN_PROFILE.
    """
    return min(sizes_ppm(name))


# What fits beside what.


def is_possible(table: Table, held: Held, profile: Profile, start: int) -> bool:
    """Whether an instance of the profile can begin at `start` beside those held."""
    return start in _starts(held, profile, *_left(table, held))


def placements(table: Table, held: Held) -> Iterator[Instance]:
    """Every placement that is possible now, were it the only one."""
    left = _left(table, held)
    for profile in table.profiles:
        for start in _starts(held, profile, *left):
            yield Instance(start, profile.name)


def _left(table: Table, held: Held) -> tuple[int, int]:
    """Slices of compute that are free, and the mask of the slices of memory that are taken."""
    return table.compute - _compute_of(table, held), _taken_of(table, held)


def _starts(held: Held, profile: Profile, compute: int, taken: int) -> list[int]:
    """Where an instance of the profile can begin, with this left by those held."""
    if profile.compute > compute or _count_of(held, profile) >= profile.most:
        return []
    return [start for start in profile.starts if not taken & _mask(start, profile.memory)]


def place(table: Table, held: Held, name: str) -> int:
    """Where an instance of this profile begins: the start that leaves the most placements, of
    equals the highest.

    Raises Refused: UNKNOWN_PROFILE, PROFILE_LIMIT, COMPUTE_FULL, NO_PLACEMENT.
    """
    require_profile(table, name)
    return _place(table.model, held, name)


def require_profile(table: Table, name: str) -> Profile:
    """Raises Refused: UNKNOWN_PROFILE."""
    profile = table.profile(name)
    if profile is None:
        raise Refused(HardwareReason.UNKNOWN_PROFILE, model=table.model, mig_profile=name)
    return profile


@lru_cache(maxsize=65_536)
def _place(model: str, held: Held, name: str) -> int:
    table = TABLES[model]
    profile = require_profile(table, name)
    if _count_of(held, profile) >= profile.most:
        raise Refused(HardwareReason.PROFILE_LIMIT, mig_profile=name, at_most=profile.most)
    if _compute_of(table, held) + profile.compute > table.compute:
        raise Refused(HardwareReason.COMPUTE_FULL, mig_profile=name, compute=table.compute)
    starts = starts_by_choice(table, held, profile)
    if not starts:
        raise Refused(HardwareReason.NO_PLACEMENT, mig_profile=name)
    return starts[0]


def starts_by_choice(table: Table, held: Held, profile: Profile) -> tuple[int, ...]:
    """Where an instance of the profile can begin, in the order in which it would be placed."""

    def room(start: int) -> tuple[int, int]:
        return remaining(table, held | {Instance(start, profile.name)}), start

    return tuple(sorted(_starts(held, profile, *_left(table, held)), key=room, reverse=True))


def remaining(table: Table, held: Held) -> int:
    """How many placements are possible now."""
    return sum(1 for _ in placements(table, held))


# What a partition strands.


def further_slices(table: Table, held: Held) -> int:
    """The most compute slices that further instances could use, without moving anything."""
    return _further(table.model, held)


def stranded_slices(table: Table, held: Held) -> int:
    """Compute slices that nobody uses and nobody can, however this partition is filled up."""
    return table.compute - _compute_of(table, held) - further_slices(table, held)


@lru_cache(maxsize=65_536)
def _further(model: str, held: Held) -> int:
    table = TABLES[model]
    left = table.compute - _compute_of(table, held)
    best = 0
    for instance in placements(table, held):
        profile = table.profile(instance.profile)
        assert profile is not None
        best = max(best, profile.compute + _further(model, held | {instance}))
        if best == left:
            break
    return best


def _count_of(held: Held, profile: Profile) -> int:
    return sum(1 for instance in held if instance.profile == profile.name)


def _compute_of(table: Table, held: Held) -> int:
    return sum(_profile_of(table, instance).compute for instance in held)


def _taken_of(table: Table, held: Held) -> int:
    """Memory slices in use, as a bit each."""
    taken = 0
    for instance in held:
        taken |= _mask(instance.start, _profile_of(table, instance).memory)
    return taken


def _mask(start: int, size: int) -> int:
    return ((1 << size) - 1) << start


def _profile_of(table: Table, instance: Instance) -> Profile:
    profile = table.profile(instance.profile)
    assert profile is not None, (table.model, instance)
    return profile
