"""What edge devices of a region run: configurations by name, in revisions that never change.

    (region, name) is one configuration          two of them meet one stream
    revision of the next one == revision of the last one + 1

Many devices share one configuration, and a device runs one at a time (`domain/sites/inference.py`).
Image, model and start command are required; checkpoints, a datastore with its path, environment and
keys are not. Row C-35.

    the log holds of the environment names and a keyed digest, and no value

Values of variables may be secret, and the log forgets nothing: they stand beside it, sealed, under
their digest (`ledger/beside/sealed_secrets.py`). Keys are named and never held, and what
looks like a secret is refused in the fields that are told openly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias, assert_never

from domain.fleet.provider import existing_provider, existing_region
from domain.parties.account import open_account
from domain.record import dataclass
from domain.references import (
    CHECKPOINT,
    REFERENCE_MAX,
    THIRD_PARTY_KEY,
    holds_secret,
    reference_rule,
)
from domain.refusal import Refused
from domain.sites.datastore import existing_datastore, require_plan
from domain.sites.names import NAME, NAME_RULE
from domain.sites.paths import require_path
from domain.sites.reasons import SitesReason
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class DeviceEnvironment:
    """Names of variables. `digest` is keyed with what only the server has, so that it gives no
    value away; equal variables of one configuration have equal digests.
    """

    names: tuple[str, ...]
    digest: str  # 64 hex digits


@dataclass(frozen=True, slots=True)
class DeviceMount:
    """A folder of a store of the region, where the command writes and reads."""

    datastore_id: str
    path: str  # below the store's root


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """The one model that a device runs, always on."""

    image: str
    model: str  # where its code is kept; the command begins in its root folder
    command: tuple[str, ...]
    checkpoints: tuple[str, ...] = ()
    datastore: DeviceMount | None = None
    environment: DeviceEnvironment | None = None
    keys: tuple[str, ...] = ()  # names in a secret store of the device's owner


# Facts. Stream `device-config:{region_id}|{name}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfigSet:
    """A revision. Devices go on with the one that was deployed to them."""

    region_id: str
    account_id: str  # the region's provider's
    name: str
    revision: int  # 1, 2, ...
    work: DeviceWork
    by: str
    at_us: int


Fact: TypeAlias = DeviceConfigSet


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDeviceConfig:
    """`revision`: one more than the last one's, so that nobody overwrites what they did not see."""

    region_id: str
    name: str
    revision: int
    work: DeviceWork
    by: str
    at_us: int


IMAGE_MAX = 512
COMMAND_WORDS_MAX = 256
COMMAND_BYTES_MAX = 8_000
LIST_MAX = 32
"""Checkpoints, variables and keys of one configuration, of each: together they fit into a fact."""
VALUE_MAX = 1_000
"""Characters of a variable's value."""
_VARIABLE = re.compile(r"[A-Za-z_][0-9A-Za-z_]{0,99}", re.ASCII)
_BREAKS = str.maketrans("", "", "\n\t")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """The last revision; None: there is no such configuration."""

    last: DeviceConfigSet | None = None


def evolve(_state: DeviceConfig, fact: Fact) -> DeviceConfig:
    match fact:
        case DeviceConfigSet():
            return DeviceConfig(fact)
        case _:
            assert_never(fact)


def device_config_stream(region_id: str, name: str) -> Stream[DeviceConfig]:
    return Stream("device-config", f"{region_id}|{name}")


def existing_device_config(world: World, region_id: str, name: str) -> DeviceConfigSet:
    """The last revision. Raises Refused: DEVICE_CONFIG_UNKNOWN."""
    last = world.state(device_config_stream(region_id, name)).last
    if last is None:
        raise Refused(SitesReason.DEVICE_CONFIG_UNKNOWN, name=name, region_id=region_id)
    return last


def decide_set(command: SetDeviceConfig, world: World) -> list[Change]:
    """The first revision takes the name; the same revision again changes nothing. Whether the
    region is one's own is asked before.

    Raises Refused: REGION_UNKNOWN, ACCOUNT_CLOSED, DEVICE_INVALID, SITE_NAME_TAKEN,
    DEVICE_CONFIG_REVISION, PLAN_NEEDED, DATASTORE_UNKNOWN, PATH_REFUSED.
    """
    provider_id = existing_region(world, command.region_id).provider_id
    account_id = existing_provider(world, provider_id).account_id
    open_account(world, account_id)
    broken = next(_broken(command), None)
    if broken is not None:
        raise Refused(SitesReason.DEVICE_INVALID, field=broken[0], rule=broken[1])
    stream = device_config_stream(command.region_id, command.name)
    last = world.state(stream).last
    if last is not None and (last.revision, last.work) == (command.revision, command.work):
        return []
    _require_next(command, 1 if last is None else last.revision + 1)
    require_store(world, account_id, command.region_id, command.work)
    told = DeviceConfigSet(
        region_id=command.region_id,
        account_id=account_id,
        name=command.name,
        revision=command.revision,
        work=command.work,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, told)]


def require_store(world: World, account_id: str, region_id: str, work: DeviceWork) -> None:
    """The store that it mounts is the account's, in the region, and there.

    Raises Refused: PLAN_NEEDED, DATASTORE_UNKNOWN, PATH_REFUSED.
    """
    mount = work.datastore
    if mount is None:
        return
    require_plan(world, account_id)
    store = existing_datastore(world, mount.datastore_id)
    if (store.account_id, store.region_id) != (account_id, region_id):
        raise Refused(SitesReason.DATASTORE_UNKNOWN, datastore_id=mount.datastore_id)
    require_path("datastore.path", mount.path)


def _require_next(command: SetDeviceConfig, expected: int) -> None:
    if command.revision == expected:
        return
    name, region_id = command.name, command.region_id
    if command.revision == 1:
        raise Refused(
            SitesReason.SITE_NAME_TAKEN, sort="device_config", name=name, region_id=region_id
        )
    raise Refused(
        SitesReason.DEVICE_CONFIG_REVISION, name=name, revision=command.revision, expected=expected
    )


def _broken(command: SetDeviceConfig) -> Iterator[tuple[str, str]]:
    """Fields and the rules that they break. A value is never repeated: it may be a secret."""
    work = command.work
    if NAME.fullmatch(command.name) is None:
        yield "name", NAME_RULE
    if not 1 <= len(work.image) <= IMAGE_MAX or not work.image.isprintable() or " " in work.image:
        yield "image", f"the name of an image, at most {IMAGE_MAX} characters"
    if not work.command or not work.command[0]:
        yield "command", "the start command: its first word is the program"
    size = sum(len(word.encode("utf-8", "replace")) for word in work.command)
    if len(work.command) > COMMAND_WORDS_MAX or size > COMMAND_BYTES_MAX:
        yield "command", f"at most {COMMAND_WORDS_MAX} words, {COMMAND_BYTES_MAX} bytes in all"
    if not all(word.translate(_BREAKS).isprintable() for word in work.command):
        yield "command", "text without control characters, but for line breaks and tabs"
    for field, text in (("image", work.image), *(("command", word) for word in work.command)):
        if holds_secret(text):
            yield field, "no secret: this looks like one, and the log keeps it; use environment"
    if (rule := reference_rule("model", work.model)) is not None:
        yield "model", rule
    yield from _broken_lists(work)


def _broken_lists(work: DeviceWork) -> Iterator[tuple[str, str]]:
    """The same of what may be left out."""
    for field, kind, items in (
        ("checkpoints", CHECKPOINT, work.checkpoints),
        ("keys", THIRD_PARTY_KEY, work.keys),
    ):
        yield from _broken_list(field, items)
        for one in items:
            rule = reference_rule(kind, one)
            if rule is not None or len(one) > REFERENCE_MAX:
                yield field, rule or f"at most {REFERENCE_MAX} characters"
    if work.environment is None:
        return
    assert _DIGEST.fullmatch(work.environment.digest), "the server makes it"
    yield from _broken_list("environment", work.environment.names)
    for name in work.environment.names:
        if _VARIABLE.fullmatch(name) is None:
            yield "environment", "names of letters, digits and _"


def _broken_list(field: str, items: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if len(items) > LIST_MAX or len(set(items)) != len(items):
        yield field, f"at most {LIST_MAX}, each once"


STREAMS: dict[str, tuple[Any, Any]] = {"device-config": (DeviceConfig(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetDeviceConfig: decide_set}
