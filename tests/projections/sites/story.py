"""Stores of data and reserved ports: added, held, handed on, removed. What edge devices run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.sites import datastore, device_config, inference, reservation
from domain.stream import Stream


def placed(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Two of each, of which one is removed; the other port passes from lease to lease."""
    at: dict[str, Any] = {"by": "mem_a", "at_us": at_us}
    for number in (1, 2):
        name = f"datastore_{number}"
        stream = datastore.datastore_stream(name)
        yield (
            stream,
            datastore.DatastoreAdded(
                datastore_id=name,
                region_id="region_2",
                account_id="acct_cash",
                name=f"store-{number}",
                kind="nfs" if number == 1 else "smb",
                address="10.0.0.5",
                root_path="/dir2",
                has_login=number == 2,
                **at,
            ),
        )
        name = f"reservation_{number}"
        kept = reservation.reservation_stream(name)
        yield (
            kept,
            reservation.ReservationAdded(
                reservation_id=name,
                region_id="region_2",
                account_id="acct_cash",
                name=f"port-{number}",
                kind="port",
                host_name="viewer",
                port=8_000 + number,
                **at,
            ),
        )
    gone = datastore.DatastoreRemoved(datastore_id="datastore_2", region_id="region_2", **at)
    yield datastore.datastore_stream("datastore_2"), gone
    kept = reservation.reservation_stream("reservation_1")
    for number in range(3):
        who: dict[str, Any] = {
            "reservation_id": "reservation_1",
            "lease_id": f"lease_s{number}",
            "at_us": at_us,
        }
        yield kept, reservation.ReservationHeld(node_id=f"node_{number}", **who)
        if number < 2:
            yield kept, reservation.ReservationReleased(**who)
    removed = reservation.ReservationRemoved(reservation_id="reservation_2", **at)
    yield reservation.reservation_stream("reservation_2"), removed


def deployed(account_id: str, at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Two revisions, of which each is deployed to the first device, which tells how they go."""
    at: dict[str, Any] = {"account_id": account_id, "by": "mem_a", "at_us": at_us}
    configured = device_config.device_config_stream("region_1", "counter")
    work = device_config.DeviceWork(
        image="counter:1",
        model="models/counter",
        command=("python", "run.py"),
        environment=device_config.DeviceEnvironment(("THRESHOLD",), "0a" * 32),
    )
    runs = inference.inference_stream("edge_1")
    for number in (1, 2):
        yield (
            configured,
            device_config.DeviceConfigSet(
                region_id="region_1", name="counter", revision=number, work=work, **at
            ),
        )
        yield (
            runs,
            inference.DeviceConfigDeployed(
                device_id="edge_1",
                region_id="region_1",
                config="counter",
                revision=number,
                deployment=number,
                **at,
            ),
        )
        for status, code in (("running", None), ("exited", 3))[:number]:
            yield (
                runs,
                inference.InferenceReported(
                    device_id="edge_1",
                    deployment=number,
                    boot_id="3f0c9a52",
                    status=status,
                    exit_code=code,
                    **at,
                ),
            )
