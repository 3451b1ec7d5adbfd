"""`tallystick dispute` against a running server, from the claim to the ruling."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from api.main import create_app
from domain.metering.report import lane_of
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick
from tests.scenes.work import hours_of_work


@contextmanager
def served(scene: Scene) -> Generator[str, None, None]:
    """The scene's market on a port of this machine."""
    app = create_app(scene.service)  # the scene's own client has started the service's usage log
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()


def test_a_dispute_by_command_line_from_the_claim_to_the_ruling(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    lease_id = lease["lease_id"]
    line = scene.renter.read(f"/v1/leases/{lease_id}/charges")["data"][0]["position"]
    with served(scene) as url:
        renter, owner, operator = (
            {"URL": url, "API_KEY": who.key} for who in (scene.renter, scene.owner, scene.operator)
        )
        opened = tallystick(
            "dispute",
            "open",
            lease_id,
            "--line",
            f"{line}=1.5",
            "--why",
            "too_slow",
            "--json",
            **renter,
        ).document
        dispute_id = opened["dispute_id"]
        assert opened["claimed"]["units"] == "1500000"
        evidence = f"report:{lane_of(scene.provider.node_id)}/1"
        answered = tallystick(
            "dispute",
            "answer",
            dispute_id,
            "--statement",
            "It ran.",
            "--evidence",
            evidence,
            "--json",
            **owner,
        ).document
        assert answered["state"] == "answered"
        ruled = tallystick(
            "dispute", "rule", dispute_id, "split", "--renter-part", "0.5", "--json", **operator
        ).document
        assert ruled["upheld"]["units"] == "750000"
        shown = tallystick("dispute", "show", dispute_id, **renter)
        assert (shown.code, "It ran." in shown.out, "split" in shown.out) == (0, True, True)
        listed = tallystick("dispute", "list", "--state", "resolved", "--json", **owner).document
        assert [one["dispute_id"] for one in listed["data"]] == [dispute_id]
        for wrong in (["--line", "x"], ["--line", "1", "--evidence", "a photo"]):
            refused = tallystick("dispute", "open", lease_id, *wrong, "--why", "other", **renter)
            assert refused.code == 2, refused.err
