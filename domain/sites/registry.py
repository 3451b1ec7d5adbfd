"""What the room `sites` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.sites import datastore, device_config, edge_device, inference, names, reservation

FILES = (datastore, device_config, edge_device, inference, names, reservation)
FACTS: dict[str, type[Any]] = {
    "region.site_name_taken.v1": names.SiteNameTaken,
    "region.site_name_freed.v1": names.SiteNameFreed,
    "datastore.added.v1": datastore.DatastoreAdded,
    "datastore.removed.v1": datastore.DatastoreRemoved,
    "edge_device.added.v1": edge_device.EdgeDeviceAdded,
    "edge_device.activated.v1": edge_device.EdgeDeviceActivated,
    "edge_device.removed.v1": edge_device.EdgeDeviceRemoved,
    "edge_device.fee_charged.v1": edge_device.DeviceFeeCharged,
    "edge_device.config_deployed.v1": inference.DeviceConfigDeployed,
    "edge_device.inference_reported.v1": inference.InferenceReported,
    "region.device_config_set.v1": device_config.DeviceConfigSet,
    "reservation.added.v1": reservation.ReservationAdded,
    "reservation.held.v1": reservation.ReservationHeld,
    "reservation.released.v1": reservation.ReservationReleased,
    "reservation.removed.v1": reservation.ReservationRemoved,
}
