"""The end of an API key: good until the microsecond before it, and dead at it.

valid at t  <=>  t < expires_at
"""

from __future__ import annotations

from typing import Any

from api.door.moments import moment
from domain.duration import DAY_US
from tests.scenes.server import NOW_US, Caller, Scene

END_US = NOW_US + DAY_US


def ending(scene: Scene) -> Caller:
    """A key that was never rotated and ends in a day."""
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    made = scene.renter.made(path, {"scopes": ["account"], "expires_at": moment(END_US)})
    return Caller(scene.http, made["key"], scene.renter.account_id)


def at(scene: Scene, moment_us: int) -> None:
    clock: Any = scene.clock
    clock.advance(moment_us - clock.now_us())


def test_a_key_that_is_used_all_the_time_dies_at_its_end_to_the_microsecond(scene: Scene) -> None:
    """The server knows it by then, and need not look it up: it is refused all the same."""
    key = ending(scene)
    assert key.get("/v1/accounts").status_code == 200
    at(scene, END_US - 1)
    assert key.get("/v1/accounts").status_code == 200
    at(scene, END_US)
    refused = key.get("/v1/accounts")
    assert refused.status_code == 401, refused.text


def test_a_key_that_is_looked_up_for_the_first_time_is_dead_at_its_end(scene: Scene) -> None:
    first, second = ending(scene), ending(scene)
    at(scene, END_US - 1)
    assert first.get("/v1/accounts").status_code == 200
    at(scene, END_US)
    assert second.get("/v1/accounts").status_code == 401


def test_the_end_of_a_key_stops_what_it_would_record(scene: Scene) -> None:
    key = ending(scene)
    at(scene, END_US)
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    before = scene.head()
    assert key.post(path, {"scopes": ["account"]}).status_code == 401
    assert scene.head() == before
