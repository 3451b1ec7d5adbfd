"""Edge devices and what they run, over HTTP under production's settings: from add to fee."""

from __future__ import annotations

from typing import Any

import pytest

from api.metering.meter_timer import run_device_fees
from domain.calendar import day_of, day_start_us
from domain.duration import MINUTE_US
from domain.sites.edge_device import EDGE_MODELS
from ledger.beside import sealed_secrets
from tests.scenes.holdings import (
    added_edge_device,
    datastore,
    device_config,
    edge_device,
    with_plan_team,
)
from tests.scenes.server import NOW_US, Scene
from tests.scenes.shell import tallystick_at

BOOT, NEXT_BOOT = "boot_id=3f0c9a52-7d1e", "boot_id=9b57c1aa-11e0"
JETSONS = ("agx-xavier", "xavier-nx", "agx-orin", "orin-nx", "orin-nano")
SECRET = "s3cret-of-the-camera"
SEALED = "SELECT name FROM sealed_secret WHERE name LIKE 'device-environment/%'"


@pytest.fixture
def region(scene: Scene) -> str:
    """A region that takes edge devices: physical, with central storage."""
    return scene.central_region()


def _added(scene: Scene, region: str, **changes: Any) -> str:
    """A device that runs."""
    told = scene.owner.made("/v1/edge-devices", {**edge_device(region), **changes})
    scene.owner.made(f"/v1/edge-devices/{told['device_id']}/report")
    return str(told["device_id"])


def _set(scene: Scene, region: str, revision: int = 1, **work: Any) -> dict[str, Any]:
    body = {**device_config(), "revision": revision}
    body["work"] = {**body["work"], **work}
    return scene.owner.made(f"/v1/regions/{region}/device-configs", body)


def _deploy(scene: Scene, device: str, config: str = "counter") -> dict[str, Any]:
    return scene.owner.made(f"/v1/edge-devices/{device}/deploy", {"config": config})


def _runs(scene: Scene, device: str, boot: str = BOOT) -> dict[str, Any] | None:
    """What the device is told to run in a boot."""
    told = scene.owner.get(f"/v1/edge-devices/{device}/work?{boot}")
    assert told.status_code == 200, told.text
    found: dict[str, Any] | None = told.json().get("run")
    return found


def _tell(scene: Scene, device: str, boot: str = BOOT, **told: Any) -> Any:
    body = {"deployment": 1, "boot_id": boot.removeprefix("boot_id="), **told}
    return scene.owner.post(f"/v1/edge-devices/{device}/inference", body)


def _shown(scene: Scene, device: str) -> dict[str, Any]:
    (found,) = (
        one
        for one in scene.owner.read("/v1/edge-devices", limit=100)["data"]
        if one["device_id"] == device
    )
    return dict(found)


# --- C-34 ------------------------------------------------------------------------------------


def test_c_34_a_device_is_one_of_five_jetsons_with_accelerator_video_and_media(
    scene: Scene, region: str
) -> None:
    assert tuple(f"jetson-{one}" for one in JETSONS) == EDGE_MODELS
    for model in EDGE_MODELS:
        body = {**edge_device(region), "model": model}
        told = scene.owner.made("/v1/edge-devices", body)
        assert (told["model"], told["name"], told["minion_id"]) == (
            model,
            body["name"],
            body["minion_id"],
        )
        assert told["access"] == ["accelerator", "video", "media"]
        scene.owner.made(f"/v1/edge-devices/{told['device_id']}/remove")
        assert _shown(scene, told["device_id"])["state"] == "removed"
    other = scene.owner.post("/v1/edge-devices", {**edge_device(region), "model": "jetson-nano"})
    assert other.status_code == 422
    device = _added(scene, region)
    _set(scene, region)
    _deploy(scene, device)
    run = _runs(scene, device)
    assert run is not None
    assert run["access"] == ["accelerator", "video", "media"]


def test_c_34_name_and_minion_id_stand_for_one_device_of_the_region_at_a_time(
    scene: Scene, region: str
) -> None:
    body = edge_device(region)
    first = scene.owner.made("/v1/edge-devices", body)["device_id"]
    for taken, said in (("name", "is taken"), ("minion_id", "is an edge device of this region")):
        again = {**edge_device(region), taken: body[taken]}
        refused = scene.owner.post("/v1/edge-devices", again)
        assert (refused.status_code, refused.json()["code"]) == (409, "site_name_taken")
        assert said in refused.json()["detail"]
    scene.owner.made(f"/v1/edge-devices/{first}/remove")
    assert scene.owner.made("/v1/edge-devices", body)["device_id"] != first
    elsewhere = {**body, "region_id": scene.central_region("elsewhere")}
    scene.owner.made("/v1/edge-devices", elsewhere)


def test_c_34_the_one_model_begins_again_on_reboot_and_not_when_its_command_exits(
    scene: Scene, region: str
) -> None:
    """With the status of the inference, its date and the deployment as facts of the log."""
    clock: Any = scene.clock
    device = _added(scene, region)
    assert _runs(scene, device) is None
    assert "inference" not in _shown(scene, device)
    _set(scene, region)
    told = _deploy(scene, device)
    assert (told["config"], told["revision"], told["deployment"]) == ("counter", 1, 1)
    shown = _shown(scene, device)
    assert (shown["config"], shown["revision"], shown["inference"]) == ("counter", 1, "pending")
    assert shown["inference_at"] == shown["deployed_at"] == told["deployed_at"]
    steps = (
        (BOOT, {"status": "running"}, True),
        (BOOT, {"status": "exited", "exit_code": 3}, False),
        (NEXT_BOOT, {"status": "running"}, True),
    )
    dates = [shown["inference_at"]]
    for boot, said, goes_on in steps:
        clock.advance(MINUTE_US)
        assert _runs(scene, device, boot), "it begins in each boot"
        answer = _tell(scene, device, boot, **said)
        assert answer.json()["inference"] == said["status"], answer.text
        assert (_runs(scene, device, boot) is not None) is goes_on
        shown = _shown(scene, device)
        assert (shown["inference"], shown.get("exit_code")) == (
            said["status"],
            said.get("exit_code"),
        )
        assert shown["inference_at"] not in dates
        dates.append(shown["inference_at"])
        if not goes_on:
            started = _tell(scene, device, boot, status="running")
            assert (started.status_code, started.json()["code"]) == (409, "device_state")
            assert "Reboot the device" in started.json()["detail"]
    # Deployed anew it begins in the same boot, too.
    _tell(scene, device, NEXT_BOOT, status="exited", exit_code=0)
    assert _runs(scene, device, NEXT_BOOT) is None
    assert _deploy(scene, device)["deployment"] == 2
    assert _runs(scene, device, NEXT_BOOT) is not None
    assert {
        "edge_device.added.v1",
        "edge_device.config_deployed.v1",
        "edge_device.inference_reported.v1",
    } <= set(_topics(scene))


def test_c_34_c_22_the_fee_of_a_device_is_fifteen_credits_a_month_by_the_day(
    scene: Scene, region: str
) -> None:
    """Two devices, one removed at once: both on the first day, one on the second."""
    _added(scene, region)
    gone = _added(scene, region)
    scene.owner.made(f"/v1/edge-devices/{gone}/remove")
    clock: Any = scene.clock
    clock.advance(day_start_us(day_of(NOW_US) + 2) - NOW_US)
    with scene.service.connect() as connection:
        assert run_device_fees(scene.service, connection, clock.now_us()) == 2
    shown = tallystick_at(scene.http, scene.owner.key, "device", "fees").out
    assert [line.split()[1] for line in shown.splitlines()[1:]] == ["2", "1"]
    fees = scene.owner.read("/v1/device-fees")["data"]
    assert {one["fee_per_month"]["units"] for one in fees} == {"15000000"}
    assert [(one["devices"], one["charge"]["units"]) for one in fees] == [
        (2, "1000000"),
        (1, "500000"),
    ]


# --- C-35 ------------------------------------------------------------------------------------


def test_c_35_a_name_is_unique_in_its_region_and_its_revisions_follow_each_other(
    scene: Scene, region: str
) -> None:
    path = f"/v1/regions/{region}/device-configs"
    told = _set(scene, region)
    assert (told["name"], told["revision"]) == ("counter", 1)
    assert _set(scene, region)["set_at"] == told["set_at"], "sent again, it is the same"
    other = {**device_config(), "work": {**device_config()["work"], "image": "other:1"}}
    taken = scene.owner.post(path, other)
    assert (taken.status_code, taken.json()["code"]) == (409, "site_name_taken")
    assert "exists in this region already" in taken.json()["detail"]
    skipped = scene.owner.post(path, {**other, "revision": 3})
    assert (skipped.status_code, skipped.json()["code"]) == (409, "device_config_revision")
    assert "is 2, not 3" in skipped.json()["detail"]
    scene.owner.made(path, {**other, "revision": 2})
    revisions = scene.owner.read(f"{path}/counter")["data"]
    assert [(one["revision"], one["work"]["image"]) for one in revisions] == [
        (1, "counter:1"),
        (2, "other:1"),
    ]
    page = scene.owner.read(f"{path}/counter", limit=1)
    (second,) = scene.owner.read(f"{path}/counter", cursor=page["next_cursor"])["data"]
    assert second["revision"] == 2
    (last,) = scene.owner.read("/v1/device-configs", region_id=region)["data"]
    assert last == second
    scene.owner.made(f"/v1/regions/{scene.central_region('b')}/device-configs", device_config())
    assert len(scene.owner.read("/v1/device-configs")["data"]) == 2
    assert _topics(scene).count("region.device_config_set.v1") == 3


def test_c_35_image_model_and_start_command_are_required_and_the_rest_is_not(
    scene: Scene, region: str
) -> None:
    path, body = f"/v1/regions/{region}/device-configs", device_config()
    assert set(body["work"]) == {"image", "model", "command"}
    for field, empty in (("image", ""), ("model", ""), ("command", [])):
        rest = {name: value for name, value in body["work"].items() if name != field}
        for work in (rest, {**rest, field: empty}):
            refused = scene.owner.post(path, {**body, "work": work})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
            assert field in refused.text
    nameless = scene.owner.post(path, {**body, "work": {**body["work"], "command": [""]}})
    assert (nameless.status_code, nameless.json()["code"]) == (422, "device_invalid")
    assert "command takes the start command" in nameless.json()["detail"]
    assert scene.owner.read("/v1/device-configs")["data"] == []
    told = scene.owner.made(path, body)["work"]
    assert (told["checkpoints"], told["environment"], told["keys"]) == ([], [], [])
    assert "datastore" not in told


def test_c_35_checkpoints_a_store_with_its_path_environment_and_keys_reach_the_device(
    scene: Scene, region: str
) -> None:
    device = _added(scene, region)
    refused = scene.owner.post(
        f"/v1/regions/{region}/device-configs",
        {**device_config(), "work": {**device_config()["work"], **_rest("datastore_x")}},
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_needed")
    with_plan_team(scene)
    smb = {"kind": "smb", "user": "farm", "password": "pw-of-smb", "root_path": "/dir2"}
    store = scene.owner.made(f"/v1/regions/{region}/datastores", {**datastore(), **smb})
    rest = _rest(store["datastore_id"])
    told = _set(scene, region, **rest)["work"]
    assert told["checkpoints"] == ["s3://models/counter-7"]
    assert told["keys"] == ["camera/rtsp"]
    assert told["datastore"] == {"datastore_id": store["datastore_id"], "path": "/out"}
    assert told["environment"] == ["PIN", "THRESHOLD"], "names alone"
    _deploy(scene, device)
    run = _runs(scene, device)
    assert run is not None
    assert {one["name"]: one["value"] for one in run["environment"]} == {
        "PIN": SECRET,
        "THRESHOLD": "70",
    }
    mount = run["mount"]
    assert (mount["path"], mount["user"], mount["password"]) == ("/dir2/out", "farm", "pw-of-smb")
    assert run["work"] == told
    for path in ("/../x", "/%2e%2e/x", "out"):
        away = _rest(store["datastore_id"], path)
        body = {**device_config(), "revision": 2}
        body["work"] = {**body["work"], **away}
        refused = scene.owner.post(f"/v1/regions/{region}/device-configs", body)
        assert (refused.status_code, refused.json()["code"]) == (422, "path_refused")
    elsewhere = scene.owner.post(
        f"/v1/regions/{scene.central_region('b')}/device-configs",
        {**device_config(), "work": {**device_config()["work"], **rest}},
    )
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "datastore_unknown")
    scene.owner.made(f"/v1/datastores/{store['datastore_id']}/remove")
    gone = scene.owner.get(f"/v1/edge-devices/{device}/work?{BOOT}")
    assert (gone.status_code, gone.json()["code"]) == (404, "datastore_unknown")


def _rest(store: str, path: str = "/out") -> dict[str, Any]:
    """Everything that a configuration may leave out."""
    return {
        "checkpoints": ["s3://models/counter-7"],
        "datastore": {"datastore_id": store, "path": path},
        "environment": [{"name": "THRESHOLD", "value": "70"}, {"name": "PIN", "value": SECRET}],
        "keys": ["camera/rtsp"],
    }


def test_c_35_values_of_the_environment_are_in_no_log_and_no_answer_but_the_device_s(
    scene: Scene, region: str
) -> None:
    device, variables = _added(scene, region), [{"name": "PIN", "value": SECRET}]
    assert SECRET not in str(_set(scene, region, environment=variables))
    _deploy(scene, device)
    for path in (
        "/v1/device-configs",
        f"/v1/regions/{region}/device-configs/counter",
        "/v1/edge-devices",
    ):
        assert SECRET not in scene.owner.get(path).text
    with scene.service.connect() as connection:
        for table, column, named in (
            ("market_events", "state", 1),
            ("command", "body", 1),
            ("sealed_secret", "sealed", 0),
        ):
            held = f"SELECT count(*) FROM {table} WHERE position(%s::bytea IN {column}) > 0"
            for text, count in ((SECRET, 0), ('"PIN"', named)):
                assert connection.execute(held, (text.encode(),)).fetchone() == (count,), table
        (name,) = connection.execute(SEALED).fetchone() or ("",)
        assert sealed_secrets.read(connection, scene.service.server_key, name) is None
        assert SECRET in str(sealed_secrets.read(connection, scene.service.sealing_key, name))
    # A value that is changed is another revision, and the one that a device runs keeps its own.
    other = [{"name": "PIN", "value": "other"}]
    path, body = f"/v1/regions/{region}/device-configs", device_config()
    same = {**body, "work": {**body["work"], "environment": other}}
    assert scene.owner.post(path, same).json()["code"] == "site_name_taken"
    with scene.service.connect() as connection:
        kept = connection.execute(SEALED).fetchall()
        assert len(kept) == 1, "what is refused leaves no values"
    scene.owner.made(path, {**same, "revision": 2})
    run = _runs(scene, device)
    assert run is not None
    assert run["environment"] == variables
    _deploy(scene, device)
    run = _runs(scene, device)
    assert run is not None
    assert run["environment"] == other
    # Where the values are gone, it is refused rather than run without them.
    with scene.service.connect() as connection:
        connection.execute("DELETE FROM sealed_secret")
    lost = scene.owner.get(f"/v1/edge-devices/{device}/work?{BOOT}")
    assert (lost.status_code, lost.json()["code"]) == (409, "device_state")
    assert "Send them with the next revision" in lost.json()["detail"]


def test_c_35_many_devices_share_a_configuration_and_a_device_runs_one(
    scene: Scene, region: str
) -> None:
    devices = [_added(scene, region) for _ in range(3)]
    _set(scene, region)
    for device in devices:
        _deploy(scene, device)
    assert {_shown(scene, one)["config"] for one in devices} == {"counter"}
    other = {**device_config("other"), "work": {**device_config()["work"], "image": "other:1"}}
    scene.owner.made(f"/v1/regions/{region}/device-configs", other)
    assert _deploy(scene, devices[0], "other")["deployment"] == 2
    images = []
    for device in devices:
        run = _runs(scene, device)
        assert run is not None
        images.append((run["config"], run["work"]["image"]))
    assert images == [("other", "other:1"), ("counter", "counter:1"), ("counter", "counter:1")]
    # A new revision is run once it is deployed.
    _set(scene, region, 2, image="counter:2")
    assert _deploy(scene, devices[1])["revision"] == 2
    shown = [(_shown(scene, one)["config"], _shown(scene, one)["revision"]) for one in devices]
    assert shown == [("other", 1), ("counter", 2), ("counter", 1)]
    # A word about what was replaced is answered and counts no more.
    late = _tell(scene, devices[0], status="exited", exit_code=0)
    assert (late.status_code, late.json()["inference"]) == (200, "pending")


def test_c_35_only_the_owner_of_a_region_configures_and_only_its_active_devices_are_deployed_to(
    scene: Scene, region: str
) -> None:
    path = f"/v1/regions/{region}/device-configs"
    assert scene.rival.post(path, device_config()).status_code == 404
    assert scene.operator.post(path, device_config()).status_code == 404, "not theirs either"
    _set(scene, region)
    assert scene.rival.read("/v1/device-configs")["data"] == []
    assert scene.rival.get(f"{path}/counter").status_code == 404
    idle = scene.owner.made("/v1/edge-devices", edge_device(region))["device_id"]
    where = f"/v1/edge-devices/{idle}/deploy"
    early = scene.owner.post(where, {"config": "counter"})
    assert (early.status_code, early.json()["code"]) == (409, "device_state")
    assert "only an active device gets a configuration" in early.json()["detail"]
    scene.owner.made(f"/v1/edge-devices/{idle}/report")
    for caller, config in ((scene.rival, "counter"), (scene.owner, "nothing")):
        assert caller.post(where, {"config": config}).status_code == 404
    elsewhere = added_edge_device(scene)
    scene.owner.made(f"/v1/edge-devices/{elsewhere}/report")
    foreign = scene.owner.post(f"/v1/edge-devices/{elsewhere}/deploy", {"config": "counter"})
    assert (foreign.status_code, foreign.json()["code"]) == (404, "device_config_unknown")
    assert scene.rival.get(f"/v1/edge-devices/{idle}/work?{BOOT}").status_code == 404
    assert scene.owner.get(f"/v1/edge-devices/{idle}/work").status_code == 422, "which boot?"


def _topics(scene: Scene) -> list[str]:
    """The stored names of the facts of the log."""
    with scene.service.connect() as connection:
        return [topic for (topic,) in connection.execute("SELECT topic FROM market_events")]
