"""Datasets over HTTP: under the names that jobs refer to, the regions of their data."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    AnswerModel,
    EmptyRequest,
    Position,
    RegionId,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.references import REFERENCE_MAX
from domain.refusal import Refused
from domain.storage.dataset import REGIONS_MAX, PlaceDataset, RemoveDataset, dataset_stream
from domain.storage.reasons import StorageReason
from projections.storage import volumes
from projections.storage.volumes import VOLUMES

resource = Resource("datasets")

WRITE = with_scope("renter", "client")
READ = with_scope("renter", "client", "operator", "audit:read")
DatasetId = Annotated[str, Field(pattern=r"^dataset_[0-9a-f]{32}$")]
DatasetInPath = Annotated[str, Path(pattern=r"^dataset_[0-9a-f]{32}$")]


class DatasetRequest(RequestModel):
    """Where the data of a name lie, registered or moved. Jobs that refer to the name run near them
    where nothing else decides; with `pinned` nowhere else.
    """

    name: Annotated[str, Field(min_length=1, max_length=REFERENCE_MAX)]
    region_ids: Annotated[list[RegionId], Field(min_length=1, max_length=REGIONS_MAX)]
    pinned: bool = False

    model_config = with_examples({"name": "s3://corpus/v3", "region_ids": ["region_" + "1" * 32]})


class DatasetAnswer(AnswerModel):
    dataset_id: DatasetId
    account_id: AccountId
    name: str
    region_ids: list[RegionId]
    pinned: bool
    placed_at: Told_at
    position: Position | None = None


class DatasetRemovedAnswer(AnswerModel):
    dataset_id: DatasetId
    name: str
    position: Position | None = None


@resource.post(
    "/v1/datasets",
    WRITE,
    DatasetAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_CLOSED,
        StorageReason.DATASET_INVALID,
        FleetReason.REGION_UNKNOWN,
    ],
)
def place_dataset(body: DatasetRequest, call: Caller) -> Response:
    """Registers where a dataset lies, or moves it."""
    account_id = call.principal.account_id
    command = PlaceDataset(
        dataset_id=call.id("dataset"),
        account_id=account_id,
        name=body.name,
        region_ids=tuple(body.region_ids),
        pinned=body.pinned,
        by=call.principal.member_id,
        at_us=call.now_us,
    )

    def told(after: After) -> DatasetAnswer:
        placed = after.state(dataset_stream(account_id, body.name)).placed
        assert placed is not None
        return DatasetAnswer(
            dataset_id=placed.dataset_id,
            account_id=account_id,
            name=placed.name,
            region_ids=list(placed.region_ids),
            pinned=placed.pinned,
            placed_at=moment(placed.at_us),
        )

    return call.record(lambda: command, told)


@resource.get("/v1/datasets", READ, page_of(DatasetAnswer), problems=["cursor_invalid"])
def list_datasets(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists datasets in the order in which they were last placed."""
    place = call.place(cursor, [0], order)
    with call.read(VOLUMES) as view:
        rows = volumes.read_datasets(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _dataset)


@resource.post(
    "/v1/datasets/{dataset_id}/remove",
    WRITE,
    DatasetRemovedAnswer,
    problems=[StorageReason.DATASET_UNKNOWN],
)
def remove_dataset(dataset_id: DatasetInPath, body: EmptyRequest, call: Caller) -> Response:
    """Removes the place of a dataset. Jobs may still refer to its name."""
    del body
    account_id = call.principal.account_id

    def commands() -> RemoveDataset:
        with call.service.connection() as connection:
            call.service.follow(connection, [VOLUMES])
            rows = volumes.read_datasets(
                connection, account_id=account_id, dataset_id=dataset_id, limit=1, removed=True
            )
        if not rows:
            raise Refused(StorageReason.DATASET_UNKNOWN, dataset_id=dataset_id)
        names.append(rows[0].name)
        return RemoveDataset(
            dataset_id=dataset_id,
            account_id=account_id,
            name=rows[0].name,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    names: list[str] = []

    def told(after: After) -> DatasetRemovedAnswer:
        del after
        return DatasetRemovedAnswer(dataset_id=dataset_id, name=names[-1])

    return call.record(commands, told)


def _dataset(row: volumes.DatasetRow) -> DatasetAnswer:
    return DatasetAnswer(
        dataset_id=row.dataset_id,
        account_id=row.account_id,
        name=row.name,
        region_ids=row.region_ids,
        pinned=row.pinned,
        placed_at=moment(row.at_us),
    )
