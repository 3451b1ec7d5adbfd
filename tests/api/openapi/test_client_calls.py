"""How the client calls: what it repeats and what never, how it reads lists, what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallystick_client
from tallystick_client import (
    NEVER,
    ApiProblem,
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    NotFound,
    RateLimited,
    Retry,
    ServerFailed,
    Unauthenticated,
    Unprocessable,
)
from tallystick_client.problems import retry_after

QUICK = Retry(tries=4, first_seconds=0.001, longest_seconds=2)
Answers = Callable[[httpx.Request], httpx.Response]


def problem(status: int, code: str, *, retryable: bool = False, **more: Any) -> httpx.Response:
    document = {
        "type": f"/problems/{code}",
        "title": "No",
        "status": status,
        "code": code,
        "retryable": retryable,
        "instance": "/v1",
        "request_id": "req_1",
    }
    headers = more.pop("headers", {})
    return httpx.Response(status, json={**document, **more}, headers=headers)


def scripted(*answers: httpx.Response | Exception) -> tuple[Answers, list[httpx.Request]]:
    """Each answer once, in order; what was asked."""
    rest, seen = iter(answers), list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        found = next(rest)
        if isinstance(found, Exception):
            raise found
        # A new one each time: the client binds an answer to its own connection.
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    return answer, seen


def client(answer: Answers, retry: Retry = QUICK, key: str | None = "ts_key") -> Client:
    http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(answer))
    return Client("", key, retry=retry, http=http)


def async_client(answer: Answers, retry: Retry = QUICK) -> AsyncClient:
    http = httpx.AsyncClient(base_url="http://server", transport=httpx.MockTransport(answer))
    return AsyncClient("", "ts_key", retry=retry, http=http)


# --- what is made again ----------------------------------------------------------------------


BUSY = problem(503, "busy", retryable=True, headers={"Retry-After": "0"})
LOST = httpx.ReadError("the connection is gone")
DONE = httpx.Response(200, json={"lease_id": "lease_1"}, headers={"Tallystick-Position": "7"})
PROXY = httpx.Response(502, text="<html>bad gateway</html>")


@pytest.mark.parametrize("failure", [BUSY, LOST, PROXY], ids=["busy", "lost", "proxy"])
def test_a_recording_call_is_made_again_with_the_same_key(
    failure: httpx.Response | Exception,
) -> None:
    answer, seen = scripted(failure, failure, DONE)
    with client(answer) as tallystick:
        assert tallystick.close_lease("lease_1", {})["lease_id"] == "lease_1"
        assert tallystick.position == 7
    assert len(seen) == 3
    (key,) = {request.headers["Idempotency-Key"] for request in seen}
    assert len(key) == 32


@pytest.mark.parametrize("failure", [BUSY, LOST, PROXY], ids=["busy", "lost", "proxy"])
def test_a_read_is_made_again(failure: httpx.Response | Exception) -> None:
    answer, seen = scripted(failure, DONE)
    client(answer).read_lease("lease_1")
    assert [request.method for request in seen] == ["GET", "GET"]


@pytest.mark.parametrize("failure", [BUSY, LOST, PROXY], ids=["busy", "lost", "proxy"])
def test_what_records_nothing_by_a_key_is_never_made_again(
    failure: httpx.Response | Exception,
) -> None:
    calls: tuple[Callable[[Client], object], ...] = (
        lambda one: one.test_webhook("hook_1", {}),
        lambda one: one.delete_api_key("acct_1", "key_1"),
    )
    for call in calls:
        answer, seen = scripted(failure)
        with pytest.raises((ServerFailed, httpx.ReadError)):
            call(client(answer))
        assert len(seen) == 1
        assert "Idempotency-Key" not in seen[0].headers


def test_no_call_is_made_more_often_than_its_bound() -> None:
    answer, seen = scripted(*[BUSY] * 9)
    with pytest.raises(ServerFailed) as raised:
        client(answer).read_lease("lease_1")
    assert (len(seen), raised.value.code) == (QUICK.tries, "busy")
    answer, seen = scripted(LOST, DONE)
    with pytest.raises(httpx.ReadError):
        client(answer, NEVER).read_lease("lease_1")
    assert len(seen) == 1


@pytest.mark.parametrize(
    "refused",
    [
        problem(409, "no_match"),
        problem(500, "http_error"),
        problem(413, "too_large", retryable=True),
        problem(429, "rate_limited", retryable=True, headers={"Retry-After": "3600"}),
    ],
    ids=lambda one: str(one.status_code),
)
def test_a_refusal_and_a_long_wait_are_told_at_once(refused: httpx.Response) -> None:
    answer, seen = scripted(refused)
    with pytest.raises(ApiProblem):
        client(answer).close_lease("lease_1", {})
    assert len(seen) == 1


@given(st.integers(1, 20), st.floats(0, 40), st.booleans())
def test_a_wait_is_as_long_as_asked_and_never_longer_than_its_bound(
    tried: int, asked: float, says: bool
) -> None:
    retry = Retry(tries=21, first_seconds=0.5, longest_seconds=30)
    document = problem(503, "busy", retryable=True).json()
    seconds = retry.wait_seconds(tried, ServerFailed(document, asked if says else None))
    if says and asked > 30:
        assert seconds is None
    elif says:
        assert seconds is not None
        assert asked <= seconds <= asked + 0.5
    else:
        grown = min(0.5 * 2 ** (tried - 1), 30)
        assert seconds is not None
        assert grown / 2 <= seconds <= grown
    assert retry.wait_seconds(21, ServerFailed(document, 0)) is None


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    now = datetime(2026, 11, 26, 12, tzinfo=UTC)
    assert retry_after("17", now) == 17
    assert retry_after("Thu, 26 Nov 2026 12:00:09 GMT", now) == 9
    assert retry_after("Thu, 26 Nov 2026 11:00:00 GMT", now) == 0
    for odd in (None, "", "soon", "-5", "1.5", "²"):
        assert retry_after(odd, now) is None


# --- what is raised --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (412, Conflict),
        (422, Unprocessable),
        (429, RateLimited),
        (500, ServerFailed),
        (503, ServerFailed),
    ],
)
def test_a_problem_is_raised_as_its_kind(status: int, kind: type[ApiProblem]) -> None:
    field = {"pointer": "#/share_ppm", "rule": "le", "detail": "at most 1000000"}
    answer, _ = scripted(problem(status, "a_code", detail="Why.", errors=[field]))
    with pytest.raises(kind) as raised:
        client(answer, NEVER).close_lease("lease_1", {})
    told = raised.value
    assert (told.code, told.status, told.request_id) == ("a_code", status, "req_1")
    assert (told.detail, told.pointer, told.errors) == ("Why.", "#/share_ppm", [field])
    assert str(told) == "a_code: Why.; #/share_ppm: at most 1000000 (request req_1)"


@pytest.mark.parametrize(
    "answered",
    [
        httpx.Response(502, text="<html>"),
        httpx.Response(404, json=["no document"]),
        httpx.Response(404, json={"code": 3}),
        httpx.Response(302, headers={"Location": "http://elsewhere/"}),
    ],
)
def test_an_answer_that_is_not_of_the_api_is_a_problem_too(answered: httpx.Response) -> None:
    answer, seen = scripted(answered)
    with pytest.raises(ApiProblem) as raised:
        client(answer, NEVER).read_lease("lease_1")
    assert (raised.value.code, raised.value.status) == ("http_error", answered.status_code)
    assert (raised.value.pointer, len(seen)) == (None, 1)


# --- lists -----------------------------------------------------------------------------------


def page(ids: list[str], following: str | None) -> httpx.Response:
    told: dict[str, Any] = {"data": [{"lease_id": one} for one in ids], "position": 1}
    told |= {"has_more": following is not None}
    return httpx.Response(200, json=told | ({"next_cursor": following} if following else {}))


def test_a_list_is_read_page_by_page_and_no_further_than_it_is_used() -> None:
    answer, seen = scripted(page(["a", "b"], "c1"), BUSY, page([], "c2"), page(["c"], None))
    leases = client(answer).iter_leases(state="active", limit=2)
    assert seen == []
    assert next(leases)["lease_id"] == "a"
    assert len(seen) == 1
    assert [one["lease_id"] for one in leases] == ["b", "c"]
    assert [request.url.params.get("cursor") for request in seen] == [None, "c1", "c1", "c2"]
    assert {(one.url.params["state"], one.url.params["limit"]) for one in seen} == {("active", "2")}


def test_a_list_that_would_never_end_ends() -> None:
    answer, seen = scripted(page(["a"], "same"), page(["b"], "same"))
    with pytest.raises(ValueError, match="same page again"):
        list(client(answer).iter_leases())
    assert len(seen) == 2


# --- asyncio ---------------------------------------------------------------------------------


def test_the_twin_for_asyncio_does_the_same() -> None:
    answer, seen = scripted(
        LOST, DONE, page(["a"], "c1"), page(["b"], None), problem(404, "lease_unknown"), DONE
    )

    async def work() -> None:
        async with async_client(answer) as tallystick:
            assert (await tallystick.close_lease("lease_1", {}))["lease_id"] == "lease_1"
            assert [one["lease_id"] async for one in tallystick.iter_leases()] == ["a", "b"]
            with pytest.raises(NotFound):
                await tallystick.read_lease("lease_2")
            pieces = [piece async for piece in tallystick.download("/v1/a.csv")]
            assert b"".join(pieces) == DONE.content

    asyncio.run(work())
    assert seen[0].headers["Idempotency-Key"] == seen[1].headers["Idempotency-Key"]
    assert seen[2].headers["Tallystick-Min-Position"] == "7", "it reads what it wrote"


def test_both_clients_have_the_same_operations() -> None:
    def told(kind: type) -> dict[str, list[str]]:
        return {
            name: [*vars(kind)[name].__annotations__]
            for name in vars(kind)
            if not name.startswith("_")
        }

    assert told(Client) == told(AsyncClient)
    assert len([name for name in told(Client) if name.startswith("iter_")]) > 60
    for kind, iterator in ((Client, Iterator), (AsyncClient, AsyncIterator)):
        answered = kind.iter_leases.__annotations__["return"]
        assert answered == f"{iterator.__name__}[forms.LeaseAnswer]"
    with pytest.raises(AttributeError):
        tallystick_client.pages  # noqa: B018 - lists are iterators now


# --- where the key goes ----------------------------------------------------------------------


def test_the_key_goes_to_the_named_server_alone() -> None:
    answer, seen = scripted()
    for elsewhere in ("http://elsewhere/v1", "//elsewhere/v1", "v1", ""):
        with pytest.raises(ValueError, match="no path of the API"):
            list(client(answer).download(elsewhere))
    assert seen == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_no_key_is_sent_in_the_clear_unless_the_program_says_so(kind: Any) -> None:
    with pytest.raises(ValueError, match="in the clear"):
        kind("http://tallystick.example", "ts_key")
    for odd in ("tallystick.example", "ftp://tallystick.example", ""):
        with pytest.raises(ValueError, match="not an address"):
            kind(odd, "ts_key")
    for fine in ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://a.example"):
        kind(fine, "ts_key")
    kind("http://tallystick.example", "ts_key", allow_http=True)
    kind("http://tallystick.example")


def test_no_redirect_is_followed_on_connections_that_would_follow_it() -> None:
    to_another = httpx.Response(307, headers={"Location": "https://thief.example/v1/accounts"})
    calls: tuple[Callable[[Client], object], ...] = (
        lambda one: one.list_accounts(),
        lambda one: one.close_lease("lease_1", {}),
        lambda one: list(one.download("/v1/files/1")),
    )
    for call in calls:
        answer, seen = scripted(to_another)
        http = httpx.Client(
            base_url="http://server", transport=httpx.MockTransport(answer), follow_redirects=True
        )
        with pytest.raises(ApiProblem) as refused:
            call(Client("", "ts_key", retry=QUICK, http=http))
        assert refused.value.status == 307
        assert [request.url.host for request in seen] == ["server"]


def test_asyncio_follows_no_redirect_either() -> None:
    answer, seen = scripted(httpx.Response(307, headers={"Location": "https://thief.example/"}))
    http = httpx.AsyncClient(
        base_url="http://server", transport=httpx.MockTransport(answer), follow_redirects=True
    )
    with pytest.raises(ApiProblem):
        asyncio.run(AsyncClient("", "ts_key", retry=QUICK, http=http).list_accounts())
    assert [request.url.host for request in seen] == ["server"]
