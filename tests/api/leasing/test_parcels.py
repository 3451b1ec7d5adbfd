"""Folders, variables and results of leases over HTTP: whose they are, and for how long."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import pytest
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from api.jobs.workspace_timer import run_workspaces
from api.jobs.workspaces import pieces_told
from api.leasing.parcel_timer import run_lease_parcels
from domain.fleet.keys import sealing
from domain.jobs import workspace as rules
from domain.jobs.job import workload_hash
from domain.jobs.plan import Reference
from domain.jobs.workspace import DOCUMENT_BYTES_MAX
from ledger.beside import lease_parcels, workspaces
from tests.api.leasing.test_work import executor_of
from tests.api.pools.test_pools import ask, pool
from tests.scenes.server import Caller, Scene
from tests.scenes.shell import tallystick_at

DAY_US = 86_400_000_000
SALT = "5a" * 16
SEALED = base64.b64encode(b"\5" * 80).decode()


def key_of(body: bytes) -> str:
    return sha256(body).hexdigest()


def text_of(body: bytes) -> str:
    return base64.b64encode(body).decode()


def form(**files: bytes) -> list[dict[str, Any]]:
    return [
        {"path": name, "is_program": False, "size": len(body), "sha256": [key_of(body)]}
        for name, body in files.items()
    ]


def kept(caller: Caller, salt: str = SALT, **files: bytes) -> dict[str, Any]:
    told = {"salt": salt, "files": form(**files), "results": ["model", "other"]}
    return caller.made("/v1/workspaces", told)


def sent(caller: Caller, salt: str = SALT, **files: bytes) -> str:
    """A workspace that is complete; its digest."""
    digest = str(kept(caller, salt, **files)["workspace_sha256"])
    caller.post("/v1/workspaces/pieces", {"data": [text_of(one) for one in files.values()]})
    return digest


def job_with(scene: Scene, digest: str) -> dict[str, Any]:
    return scene.job(
        image=None,
        command=["python3", "train.py"],
        references=[{"kind": "workspace", "name": digest}],
    )


def path_of(scene: Scene, lease: dict[str, Any]) -> str:
    return f"/v1/nodes/{scene.provider.node_id}/assignments/{lease['lease_id']}"


def begin(scene: Scene, executor: Caller, lease: dict[str, Any], digest: str) -> None:
    at = path_of(scene, lease)
    refs = (Reference("workspace", digest),)
    told = {
        "command": "start",
        "executor": "e0" * 8,
        "runner": "process",
        "workload_sha256": workload_hash(None, ("python3", "train.py"), (), refs),
    }
    assert executor.post(f"{at}/acknowledge", told).status_code == 200
    executor.made(f"{at}/ready")


def test_a_piece_that_is_here_is_not_asked_for_again_and_what_nobody_names_is_not_kept(
    scene: Scene,
) -> None:
    first = kept(scene.renter, a=b"one", b=b"two")
    assert sorted(first["missing"]) == sorted([key_of(b"one"), key_of(b"two")])
    told = scene.renter.post(
        "/v1/workspaces/pieces", {"data": [text_of(b"one"), text_of(b"unnamed")]}
    )
    assert told.json()["kept"] == 1
    assert kept(scene.renter, a=b"one", b=b"two")["missing"] == [key_of(b"two")]
    other = kept(scene.renter, "5b" * 16, a=b"one", c=b"three")
    assert other["missing"] == [key_of(b"three")], "by content, whatever folder it was in"
    refused = scene.renter.post("/v1/leases", {"job": job_with(scene, other["workspace_sha256"])})
    assert (refused.status_code, refused.json()["code"]) == (409, "workspace_incomplete")


def test_to_know_a_hash_opens_nothing_of_another_account(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"secret weights")
    assert kept(scene.stranger, a=b"secret weights")["missing"] == [key_of(b"secret weights")]
    scene.deposit(scene.stranger, 50_000_000)
    mine = scene.stranger.made("/v1/workspaces", {"salt": "5c" * 16, "files": []})
    for named, code in ((digest, 409), ("0" * 64, 404)):
        asked = scene.stranger.post("/v1/leases", {"job": job_with(scene, named)})
        assert asked.status_code == code, "a workspace of its own that lacks its pieces, or none"
    empty = {"job": job_with(scene, str(mine["workspace_sha256"]))}
    lease = scene.lease(scene.stranger, **empty)
    executor = executor_of(scene, scene.provider)
    wanted = {"sha256": [key_of(b"secret weights")]}
    answer = executor.post(f"{path_of(scene, lease)}/workspace/pieces", wanted).json()
    assert (answer["data"], answer["unknown"]) == ([], wanted["sha256"])


def test_the_executor_of_the_lease_reads_its_folder_until_the_lease_is_closed(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    sent(scene.renter, "5d" * 16, b=b"of another job")
    lease = scene.lease(job=job_with(scene, digest))
    executor, at = executor_of(scene, scene.provider), path_of(scene, lease)
    told = executor.read(f"{at}/workspace")
    assert rules.digest(rules.read(told["workspace"])) == digest
    wanted = {"sha256": [key_of(b"one"), key_of(b"of another job")]}
    answer = executor.post(f"{at}/workspace/pieces", wanted).json()
    assert [base64.b64decode(one["body"]) for one in answer["data"]] == [b"one"]
    assert answer["unknown"] == [key_of(b"of another job")]
    plain = scene.lease(job=scene.job())
    assert executor.get(f"{path_of(scene, plain)}/workspace").json()["code"] == "workspace_unknown"
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    assert executor.get(f"{at}/workspace").status_code == 404
    assert executor.post(f"{at}/workspace/pieces", wanted).status_code == 404


def test_sealed_variables_are_taken_once_and_gone_when_the_work_has_begun(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    lease = scene.lease(job=job_with(scene, digest))
    executor, at = executor_of(scene, scene.provider), path_of(scene, lease)
    mine = f"/v1/leases/{lease['lease_id']}/secrets"
    assert "sealed" not in executor.read(f"{at}/workspace")
    for _ in range(2):
        assert scene.renter.post(mine, {"sealed": SEALED}).status_code == 200, "a retry is harmless"
    other = {"sealed": base64.b64encode(b"\6" * 80).decode()}
    assert scene.renter.post(mine, other).json()["code"] == "secrets_unusable"
    assert executor.read(f"{at}/workspace")["sealed"] == SEALED
    begin(scene, executor, lease, digest)
    with scene.service.connection() as connection:
        assert run_lease_parcels(scene.service, connection, scene.clock.now_us()) == 1
    assert "sealed" not in executor.read(f"{at}/workspace")
    assert scene.renter.post(mine, {"sealed": SEALED}).json()["code"] == "secrets_unusable"


def test_as_many_files_travel_as_is_promised_there_and_back(scene: Scene) -> None:
    """The door took no list above 1,000: larger folders were refused, their results were lost."""
    many = form(**{f"part/{number}": b"x" for number in range(rules.FILES_MAX)})
    told = {"salt": SALT, "files": many, "results": ["part"]}
    digest = str(scene.renter.made("/v1/workspaces", told)["workspace_sha256"])
    scene.renter.post("/v1/workspaces/pieces", {"data": [text_of(b"x")]})
    opened = scene.lease(job=job_with(scene, digest))
    executor = executor_of(scene, scene.provider)
    begin(scene, executor, opened, digest)
    back = form(**{f"part/{number}": b"y" for number in range(rules.FILES_MAX)})
    listed = executor.post(f"{path_of(scene, opened)}/results", {"files": back})
    assert listed.status_code == 201, listed.text
    told["files"] = [*many, *form(more=b"x")]
    refused = scene.renter.post("/v1/workspaces", told)
    assert (refused.status_code, refused.json()["code"]) == (400, "malformed_json")
    assert "at most 5000 items" in refused.text


def test_results_are_read_by_the_renter_alone(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    lease = scene.lease(job=job_with(scene, digest))
    executor, at = executor_of(scene, scene.provider), path_of(scene, lease)
    mine = f"/v1/leases/{lease['lease_id']}/results"
    left_out = [{"path": "other", "detail": "there is no such file", "is_lost": True}]
    files = {"files": form(model=b"weights"), "left_out": left_out}
    assert executor.post(f"{at}/results", files).json()["code"] == "lease_state", "not begun"
    begin(scene, executor, lease, digest)
    assert not scene.renter.read(mine)["is_listed"]
    assert executor.post(f"{at}/results", files).json()["missing"] == [key_of(b"weights")]
    unasked = executor.post(f"{at}/results", {"files": form(filler=b"x")}).json()
    assert unasked["code"] == "workspace_invalid", "nothing else fills the renter's room"
    again = executor.post(f"{at}/results", {"files": form(other=b"x")}).json()
    assert again["missing"] == [key_of(b"weights")], "listed once"
    told = executor.post(f"{at}/results/pieces", {"data": [text_of(b"weights"), text_of(b"no")]})
    assert told.json()["kept"] == 1
    found = scene.renter.read(mine)
    assert (found["files"], found["missing"], found["is_listed"]) == (files["files"], [], True)
    assert found["left_out"] == left_out
    wanted = {"sha256": [key_of(b"weights")]}
    (piece,) = scene.renter.post(f"{mine}/pieces", wanted).json()["data"]
    assert base64.b64decode(piece["body"]) == b"weights"
    assert scene.owner.get(mine).status_code == 404, "the provider of the lease is no renter"
    clock: Any = scene.clock
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    clock.advance(3_600_000_001)
    assert executor.post(f"{at}/results", files).json()["code"] == "lease_state", "too late"
    with scene.service.connection() as connection:
        run_lease_parcels(scene.service, connection, scene.clock.now_us() + DAY_US)
    assert not scene.renter.read(mine)["is_listed"]


def test_a_list_of_results_that_the_version_before_kept_is_read(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    lease = scene.lease(job=job_with(scene, digest))
    executor, at = executor_of(scene, scene.provider), path_of(scene, lease)
    begin(scene, executor, lease, digest)
    executor.post(f"{at}/results", {"files": form(model=b"weights")})
    with scene.service.connection() as connection:
        kept_then = json.dumps(form(model=b"weights")).encode()
        connection.execute("UPDATE lease_result SET document = %s", (kept_then,))
    found = scene.renter.read(f"/v1/leases/{lease['lease_id']}/results")
    assert (found["files"], found["left_out"]) == (form(model=b"weights"), [])


def test_a_list_of_results_may_be_as_long_as_before_and_what_is_left_out_beside(
    scene: Scene,
) -> None:
    """The longest list was an error of the server with its wrapping, and all results were lost."""
    digest = sent(scene.renter, a=b"one")
    executor = executor_of(scene, scene.provider)
    one = {"path": "", "is_program": False, "size": 0, "sha256": []}
    gone = {"path": "é" * 1_024, "detail": "é" * 300, "is_lost": True}
    for left_out in ([], [gone] * 20):
        files = [{**one, "path": f"model/{'m' * 100}{number:04}"} for number in range(4_320)]
        room = DOCUMENT_BYTES_MAX - len(json.dumps(files, separators=(",", ":")))
        length = room - len(json.dumps({**one, "path": "model/"}, separators=(",", ":"))) - 1
        assert 0 < length < 250, f"the last path fills it up: {length}"
        files.append({**one, "path": "model/" + "z" * length})
        lease = scene.lease(job=job_with(scene, digest))
        at = path_of(scene, lease)
        begin(scene, executor, lease, digest)
        longer = [*files, {**one, "path": "model/one"}]
        refused = executor.post(f"{at}/results", {"files": longer, "left_out": left_out})
        assert refused.json()["code"] == "workspace_invalid"
        listed = executor.post(f"{at}/results", {"files": files, "left_out": left_out})
        assert listed.status_code == 201, listed.text
        found = scene.renter.read(f"/v1/leases/{lease['lease_id']}/results")
        assert (found["files"], found["left_out"]) == (files, left_out)


def test_a_renter_deletes_results_early_and_alone_and_their_room_is_free(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    lease = scene.lease(job=job_with(scene, digest))
    executor, at = executor_of(scene, scene.provider), path_of(scene, lease)
    mine = f"/v1/leases/{lease['lease_id']}/results"
    begin(scene, executor, lease, digest)
    executor.post(f"{at}/results", {"files": form(model=b"weights")})
    executor.post(f"{at}/results/pieces", {"data": [text_of(b"weights")]})
    for other in (scene.owner, scene.stranger):
        assert other.post(f"{mine}/delete", {}).status_code == 404
    assert executor.post(f"{mine}/delete", {}).status_code in (403, 404)
    assert scene.renter.read(mine)["is_listed"]
    words = ("lease", "delete-results", lease["lease_id"], "--json")
    ran = tallystick_at(scene.http, scene.renter.key, *words)
    assert (ran.code, ran.document["is_deleted"]) == (0, True)
    assert not scene.renter.read(mine)["is_listed"]
    with scene.service.connection() as connection:
        for table in ("lease_result", "lease_result_piece"):
            (left,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (1,)
            assert left == 0
    assert not scene.renter.post(f"{mine}/delete", {}).json()["is_deleted"], "twice is once"
    late = executor.post(f"{at}/results/pieces", {"data": [text_of(b"weights")]})
    assert late.json()["kept"] == 0, "what still comes is not kept"


def test_what_is_too_large_or_out_of_form_is_refused_with_the_rule(scene: Scene) -> None:
    size = 101 * 1_048_576
    hashes = [f"{n:064x}" for n in range(rules.count_of_pieces(size))]
    large = {"path": "a", "is_program": False, "size": size, "sha256": hashes}
    told = scene.renter.post("/v1/workspaces", {"salt": SALT, "files": [large]}).json()
    assert told["code"] == "workspace_too_large"
    assert "104,857,600 bytes of one folder" in told["detail"]
    escaping = {**large, "path": "../a", "size": 0, "sha256": []}
    told = scene.renter.post("/v1/workspaces", {"salt": SALT, "files": [escaping]}).json()
    assert (told["code"], "below the folder" in told["detail"]) == ("workspace_invalid", True)


def test_an_account_has_its_quota_and_what_no_open_work_names_makes_room(scene: Scene) -> None:
    with scene.service.connection() as connection:
        now_us = scene.clock.now_us()

        def keep(name: str, size: int, at_us: int, most: int = 100) -> list[str]:
            return workspaces.keep(
                connection,
                "acct_a",
                key_of(name.encode()),
                b"",
                {key_of(name.encode() * 2): size},
                workspaces.Room(most, 150),
                at_us,
                is_open=lambda jobs: "job_open" in jobs,
            )

        keep("first", 60, now_us)
        workspaces.use(connection, "acct_a", key_of(b"first"), "job_open", now_us)
        keep("second", 30, now_us)
        with pytest.raises(workspaces.QuotaReached) as full:
            keep("third", 60, now_us)
        assert (full.value.needed, full.value.of_all) == (150, False), "fresh ones make no room"
        later = now_us + workspaces.FRESH_US
        with pytest.raises(workspaces.QuotaReached):
            keep("third", 60, later)
        keep("third", 40, later)
        assert workspaces.missing(connection, "acct_a", key_of(b"second")) is None, "it went"
        assert workspaces.missing(connection, "acct_a", key_of(b"first")) is not None, "in use"
        with pytest.raises(workspaces.QuotaReached) as total:
            keep("fourth", 60, later, most=1_000)
        assert total.value.of_all


def test_a_list_without_a_byte_of_a_file_fills_the_quota_too(scene: Scene) -> None:
    with scene.service.connection() as connection:

        def keep(name: bytes, account_id: str) -> list[str]:
            room = workspaces.Room(100, 130)
            told = (key_of(name), b"d" * 60, dict[str, int](), room, scene.clock.now_us())
            return workspaces.keep(connection, account_id, *told, is_open=lambda _jobs: False)

        keep(b"first", "acct_a")
        with pytest.raises(workspaces.QuotaReached) as full:
            keep(b"second", "acct_a")
        assert (full.value.needed, full.value.of_all) == (120, False)
        keep(b"first", "acct_b")
        with pytest.raises(workspaces.QuotaReached) as total:
            keep(b"first", "acct_c")
        assert (total.value.needed, total.value.of_all) == (180, True)


def test_no_two_at_once_pass_a_quota_together(scene: Scene) -> None:
    """The second waits for the first, and counts what it kept."""
    room, now_us = workspaces.Room(100, 1_000), scene.clock.now_us()

    def keep(connection: Any, name: bytes) -> list[str]:
        told = (key_of(name), b"", {key_of(name): 60}, room, now_us)
        return workspaces.keep(connection, "acct_a", *told, is_open=lambda _jobs: False)

    def leave(connection: Any, name: bytes) -> list[str]:
        told = (f"lease_{name!r}", "acct_a", b"", {key_of(name): 60}, room, now_us)
        return lease_parcels.list_results(connection, *told)

    for store in (keep, leave):
        with (
            scene.service.connection() as first,
            scene.service.connection() as second,
            ThreadPoolExecutor(1) as beside,
        ):
            with first.transaction():
                store(first, b"one")
                other = beside.submit(store, second, b"two")
                with pytest.raises(TimeoutError):
                    other.result(0.2)
            with pytest.raises(workspaces.QuotaReached) as full:
                other.result(10)
            assert full.value.needed == 120


def test_no_more_pieces_are_read_than_one_answer_holds() -> None:
    first, large, larger, small, absent = (f"{n:064x}" for n in range(5))
    lengths = {first: 10, large: rules.PIECE_BYTES, larger: rules.PIECE_BYTES, small: 1}
    read: list[str] = []

    def pieces(wanted: list[str]) -> dict[str, bytes]:
        read.extend(wanted)
        return {one: bytes(lengths[one]) for one in wanted}

    told = pieces_told([large, large, absent, first, larger, small], lengths, pieces)
    assert read == [one.sha256 for one in told.data] == [large, first]
    assert told.unknown == [absent]


def test_a_folder_that_new_work_names_while_it_is_forgotten_stays(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    later = scene.clock.now_us() + 2 * DAY_US
    with scene.service.connection() as connection, scene.service.connection() as other:

        def named_meanwhile(_jobs: Any) -> bool:
            workspaces.use(other, scene.renter.account_id, digest, "job_new", later)
            return False

        assert workspaces.forget(connection, later, named_meanwhile) == 0
        assert workspaces.missing(connection, scene.renter.account_id, digest) == []


def test_a_folder_stays_while_a_gang_waits_and_a_job_whose_folder_went_gets_no_lease(
    scene: Scene,
) -> None:
    pool_id = pool(scene, scene.provider)
    ask(scene, pool_id)
    waits, idle = sent(scene.renter, a=b"one"), sent(scene.renter, "5d" * 16, b=b"two")
    asked = job_with(scene, waits) | {"constraints": {"pool_id": pool_id}}
    gang = scene.renter.made("/v1/gangs", {"job": asked, "members": 2})
    assert (gang["state"], gang["lease_ids"]) == ("requested", [])
    job_id = scene.renter.made("/v1/jobs", job_with(scene, idle))["job_id"]
    with scene.service.connection() as connection:
        assert run_workspaces(scene.service, connection, scene.clock.now_us() + 2 * DAY_US) == 1
        assert workspaces.missing(connection, scene.renter.account_id, waits) == []
    told = scene.renter.post("/v1/leases", {"job_id": job_id})
    assert (told.status_code, told.json()["code"]) == (404, "workspace_unknown")


def test_a_folder_goes_a_day_after_its_work_is_settled_and_not_before(scene: Scene) -> None:
    digest = sent(scene.renter, a=b"one")
    lease = scene.lease(job=job_with(scene, digest))
    executor, account_id = executor_of(scene, scene.provider), scene.renter.account_id
    with scene.service.connection() as connection:
        later = scene.clock.now_us() + 2 * DAY_US
        assert run_workspaces(scene.service, connection, later) == 0
        assert workspaces.missing(connection, account_id, digest) == []
        executor.made(f"{path_of(scene, lease)}/decline")
        assert run_workspaces(scene.service, connection, later + 2 * DAY_US) == 1
        assert workspaces.missing(connection, account_id, digest) is None
        found = connection.execute("SELECT count(*) FROM workspace_piece").fetchone()
        assert found == (0,), "its pieces went with it"


def test_the_key_for_secrets_is_under_the_nodes_signature(scene: Scene) -> None:
    node_id = scene.provider.node_id
    at, public = f"/v1/nodes/{node_id}/executor-key", bytes(PrivateKey.generate().public_key).hex()
    forged = SigningKey.generate().sign(sealing(node_id, public)).signature.hex()
    asked = {"sealing_key": public, "sealing_signature": forged}
    refused = scene.provider.node.post(at, asked)
    assert (refused.status_code, refused.json()["code"]) == (401, "bad_signature")
    assert scene.provider.node.post(at, {"sealing_key": public}).status_code == 422
    signing: Any = scene.provider.signing
    good = signing.key.sign(sealing(node_id, public)).signature.hex()
    scene.provider.node.made(at, {"sealing_key": public, "sealing_signature": good})
    lease = scene.lease()
    told = scene.renter.read(f"/v1/leases/{lease['lease_id']}/work")
    assert (told["node_id"], told["sealing_key"]) == (node_id, public)
    assert told["sealing_signature"] == good
    assert told["node_key"] == bytes(signing.key.verify_key).hex()
