"""The peer of `ingest.py`: a careful service for the same reports, of what one is usually made of.

FastAPI route, pydantic models, `cryptography`, a connection pool, one INSERT a request.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from starlette.requests import Request

from benchmarks.log.reports import bench_node
from domain.metering import report

STRICT = ConfigDict(strict=True, extra="forbid")
Nat = Annotated[int, Field(ge=0, le=report.INT_MAX)]
Column = Nat | None | Annotated[list[Nat | None], Field(max_length=report.ROWS_MAX)]


class Device(BaseModel):
    model_config = STRICT
    id: str
    parent: str | None
    gi: int | None
    ci: int | None
    shape: str
    share_ppm: int
    mem_ppm: int
    busy_source: Literal["gpm", "samples", "util", "counter", "none"]
    energy_scope: Literal["device", "board_share", "module", "none"]


class Body(BaseModel):
    model_config = STRICT
    v: Literal[1]
    node: str
    seq: Nat
    prev: str
    boot: str
    agent: str
    mono_us: Nat
    wall_us: Nat
    clock_offset_us: int | None
    clock_rtt_us: int | None
    devices: list[Device]
    leases: list[str]
    n: Nat
    cols: dict[str, Column | str | list[str]]
    events: list[dict[str, Any]]


class Envelope(BaseModel):
    specversion: str
    id: str
    source: str
    type: str
    time: str
    datacontenttype: str
    dataschema: str
    sequence: str
    prevhash: str
    signature: str
    keyid: str
    data_base64: str


def peer(uri: str, nodes: int) -> FastAPI:
    """It takes the reports of so many nodes into the table `peer_report`."""
    read = TypeAdapter(Body).validate_json
    keys = {
        node.id: Ed25519PublicKey.from_public_bytes(node.public_key)
        for node in map(bench_node, range(nodes))
    }
    pool = AsyncConnectionPool(uri, min_size=8, max_size=8, open=False)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None, None]:
        async with pool:
            yield

    app = FastAPI(lifespan=life)

    # The media type is not FastAPI's own, so the batch is validated here, as pydantic would.
    batch_of = TypeAdapter(list[Envelope]).validate_json

    async def store(node_id: str, raw: Request) -> dict[str, int]:
        for one in batch_of(await raw.body()):
            body, signature = base64.b64decode(one.data_base64), base64.b64decode(one.signature)
            keys[node_id].verify(signature, report.pae(body))
            read(body)
            async with pool.connection() as connection:
                await connection.execute(
                    "INSERT INTO peer_report VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (node_id, int(one.sequence), signature, body),
                    prepare=True,
                )
        return {"accepted": 1}

    app.post("/v1/nodes/{node_id}/usage")(store)
    return app
