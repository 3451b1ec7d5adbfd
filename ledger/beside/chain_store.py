"""Rows of the chain jobs: intents with their signed attempts, blocks read, events seen.

    a row is durable when its function returns

Only rows: when a transaction may be sent and what an event means is for `contracts`, and what the
market log makes of it for `api`. Connections must be in autocommit mode, outside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import psycopg

from ledger import advisory
from ledger.log.durable import wait_for_standbys

Connection = psycopg.Connection[Any]

# --- intents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """Signed bytes; fees in wei per gas."""

    hash: str
    raw: bytes
    max_fee: int
    tip: int
    block: int
    is_cancel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRow:
    """One transaction; `mined` is its receipt as JSON values, `told`: the log knows this state."""

    id: str
    sender: str
    chain_id: int
    recipient: str
    data: bytes
    state: str
    nonce: int | None
    gas: int
    mined: dict[str, Any] | None
    note: str
    told: bool
    attempts: tuple[AttemptRow, ...]


_INTENT = """
    SELECT id, sender, chain_id, recipient, data, state, nonce, gas, mined, note, told
    FROM chain_intent WHERE id = %s
"""
_ATTEMPTS = """
    SELECT hash, raw, max_fee, tip, block, is_cancel
    FROM chain_attempt WHERE intent_id = %s ORDER BY ordinal
"""
_KEEP_INTENT = """
    INSERT INTO chain_intent
        (id, sender, chain_id, recipient, data, state, nonce, gas, mined, note, told)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, false)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, nonce = excluded.nonce,
        gas = excluded.gas, mined = excluded.mined, note = excluded.note, told = false
"""
_KEEP_ATTEMPT = """
    INSERT INTO chain_attempt (hash, intent_id, ordinal, raw, max_fee, tip, block, is_cancel)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (hash) DO NOTHING
"""
_OF_UNFINISHED = "FROM chain_intent WHERE state NOT IN ('final', 'cancelled', 'failed')"
_UNFINISHED = f"SELECT id {_OF_UNFINISHED} ORDER BY nonce NULLS LAST, id"
_COUNT_UNFINISHED = f"SELECT count(*) {_OF_UNFINISHED}"


@contextmanager
def key_lock(connection: Connection, sender: str, chain_id: int) -> Generator[None, None, None]:
    """One at a time per key of a chain, over all processes; ends with the connection. Raises
    LockHeld.
    """
    digest = sha256(f"tallystick/key/v1/{chain_id}/{sender.lower()}".encode()).digest()
    lock = int.from_bytes(digest[:8], "big", signed=True)
    advisory.lock(connection, lock, f"the key {sender} of chain {chain_id}")
    try:
        # An intent whose commit was cancelled on its way to the standby is not sent by the next.
        wait_for_standbys(connection)
        yield
    finally:
        advisory.unlock(connection, lock)


def intent(connection: Connection, intent_id: str) -> IntentRow | None:
    """An intent with its attempts, oldest first."""
    with connection.transaction():
        row = connection.execute(_INTENT, (intent_id,)).fetchone()
        if row is None:
            return None
        attempts = tuple(
            AttemptRow(
                hash=one[0],
                raw=bytes(one[1]),
                max_fee=int(one[2]),
                tip=int(one[3]),
                block=one[4],
                is_cancel=one[5],
            )
            for one in connection.execute(_ATTEMPTS, (intent_id,))
        )
    return IntentRow(
        id=row[0],
        sender=row[1],
        chain_id=row[2],
        recipient=row[3],
        data=bytes(row[4]),
        state=row[5],
        nonce=row[6],
        gas=row[7],
        mined=row[8],
        note=row[9],
        told=row[10],
        attempts=attempts,
    )


def keep_intent(connection: Connection, row: IntentRow) -> None:
    """Replace an intent; what is kept is not told yet.

    Raises psycopg.errors.UniqueViolation for a nonce that another intent of the key has.
    """
    mined = None if row.mined is None else json.dumps(row.mined)
    with connection.transaction():
        connection.execute(
            _KEEP_INTENT,
            (
                row.id,
                row.sender,
                row.chain_id,
                row.recipient,
                row.data,
                row.state,
                row.nonce,
                row.gas,
                mined,
                row.note,
            ),
        )
        for ordinal, one in enumerate(row.attempts):
            connection.execute(
                _KEEP_ATTEMPT,
                (
                    one.hash,
                    row.id,
                    ordinal,
                    one.raw,
                    one.max_fee,
                    one.tip,
                    one.block,
                    one.is_cancel,
                ),
            )


def mark_told(connection: Connection, intent_id: str) -> None:
    """The market log knows the state that is kept."""
    connection.execute("UPDATE chain_intent SET told = true WHERE id = %s", (intent_id,))


def untold(connection: Connection) -> list[str]:
    """Intents whose state the market log may not know: a crash came between."""
    rows = connection.execute("SELECT id FROM chain_intent WHERE NOT told ORDER BY id")
    return [row[0] for row in rows]


def nonce_max(connection: Connection, sender: str, chain_id: int) -> int | None:
    """The highest nonce of any intent of this key; None before the first."""
    row = connection.execute(
        "SELECT max(nonce) FROM chain_intent WHERE sender = %s AND chain_id = %s",
        (sender.lower(), chain_id),
    ).fetchone()
    return None if row is None else row[0]


def unfinished(connection: Connection) -> list[str]:
    """Intents that have not ended, oldest nonce first, those without a nonce last."""
    return [row[0] for row in connection.execute(_UNFINISHED)]


# --- blocks and events -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorRow:
    """How far a deployment was read, what was final, and up to where its effects are taken."""

    number: int
    hash: str
    final: int
    settled: int
    settled_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationRow:
    """One event in one block; the arguments are text."""

    chain_id: int
    block_number: int
    block_hash: str
    log_index: int
    transaction: str
    contract: str
    event: str
    arguments: dict[str, str]
    effect_key: str | None


_CURSOR = "SELECT number, hash, final, settled, settled_us FROM chain_cursor WHERE deployment = %s"
_MOVE_CURSOR = """
    INSERT INTO chain_cursor (deployment, number, hash, final, settled, settled_us)
    VALUES (%s, %s, %s, %s, -1, 0)
    ON CONFLICT (deployment) DO UPDATE SET number = excluded.number, hash = excluded.hash,
        final = greatest(chain_cursor.final, excluded.final)
"""
_KEEP_BLOCK = """
    INSERT INTO chain_block VALUES (%s, %s, %s)
    ON CONFLICT (deployment, number) DO UPDATE SET hash = excluded.hash
"""
# A block that was left and came back: the same event is no orphan any more.
_KEEP_OBSERVATION = """
    INSERT INTO chain_observation
        (deployment, block_hash, log_index, block_number, chain_id, transaction, contract, event,
         arguments, effect_key, orphaned)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, false)
    ON CONFLICT (deployment, block_hash, log_index) DO UPDATE SET orphaned = false
"""
_FORGET_OLD_BLOCKS = "DELETE FROM chain_block WHERE deployment = %s AND number < %s"
_WAITING = """
    SELECT o.chain_id, o.block_number, o.block_hash, o.log_index, o.transaction, o.contract,
        o.event, o.arguments, o.effect_key
    FROM chain_observation o
    WHERE o.deployment = %(deployment)s AND o.block_number <= %(final)s
        AND o.effect_key IS NOT NULL AND NOT o.orphaned AND NOT EXISTS (
            SELECT 1 FROM chain_effect e
            WHERE e.deployment = o.deployment AND e.effect_key = o.effect_key)
    ORDER BY o.block_number, o.log_index
"""


def cursor(connection: Connection, deployment: str) -> CursorRow | None:
    """None before the first step."""
    row = connection.execute(_CURSOR, (deployment,)).fetchone()
    if row is None:
        return None
    return CursorRow(number=row[0], hash=row[1], final=row[2], settled=row[3], settled_us=row[4])


def block_hash(connection: Connection, deployment: str, number: int) -> str | None:
    """The hash that was read at a block."""
    row = connection.execute(
        "SELECT hash FROM chain_block WHERE deployment = %s AND number = %s", (deployment, number)
    ).fetchone()
    return None if row is None else row[0]


def advance(
    connection: Connection,
    deployment: str,
    blocks: Sequence[tuple[int, str]],
    seen: Sequence[ObservationRow],
    final: int,
) -> None:
    """Keep blocks (number, hash; ascending) and events; the last block becomes the cursor."""
    number, last_hash = blocks[-1]
    with connection.transaction():
        connection.execute(_MOVE_CURSOR, (deployment, number, last_hash, final))
        with connection.cursor() as many:
            many.executemany(_KEEP_BLOCK, [(deployment, *block) for block in blocks])
            many.executemany(_KEEP_OBSERVATION, [_columns(deployment, one) for one in seen])
        # Nothing walks back beyond the last final block.
        connection.execute(_FORGET_OLD_BLOCKS, (deployment, final))


def rewind(connection: Connection, deployment: str, number: int, hash_: str) -> None:
    """The blocks above a number never happened: forget them, mark their events orphaned."""
    with connection.transaction():
        connection.execute(
            "UPDATE chain_observation SET orphaned = true"
            " WHERE deployment = %s AND block_number > %s",
            (deployment, number),
        )
        connection.execute(
            "DELETE FROM chain_block WHERE deployment = %s AND number > %s", (deployment, number)
        )
        connection.execute(_MOVE_CURSOR, (deployment, number, hash_, -1))


def waiting(connection: Connection, deployment: str, final: int) -> list[ObservationRow]:
    """Events with an effect the market log has not taken, up to a block, in chain order."""
    rows = connection.execute(_WAITING, {"deployment": deployment, "final": final})
    return [
        ObservationRow(
            chain_id=row[0],
            block_number=row[1],
            block_hash=row[2],
            log_index=row[3],
            transaction=row[4],
            contract=row[5],
            event=row[6],
            arguments=row[7],
            effect_key=row[8],
        )
        for row in rows
    ]


def mark_done(connection: Connection, deployment: str, effect_key: str, number: int) -> None:
    """The market log has taken an effect of block `number`, so that block is final."""
    with connection.transaction():
        connection.execute(
            "INSERT INTO chain_effect VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (deployment, effect_key),
        )
        connection.execute(
            "UPDATE chain_cursor SET final = %s WHERE deployment = %s AND final < %s",
            (number, deployment, number),
        )


def settle(connection: Connection, deployment: str, number: int, block_us: int) -> None:
    """Every effect up to final block `number`, mined at `block_us`, is in the market log."""
    connection.execute(
        "UPDATE chain_cursor SET settled = %s, settled_us = %s"
        " WHERE deployment = %s AND settled < %s",
        (number, block_us, deployment, number),
    )


def settled_us(connection: Connection) -> int | None:
    """The moment up to which every followed chain is settled; None when none is followed."""
    row = connection.execute("SELECT min(settled_us) FROM chain_cursor").fetchone()
    return None if row is None else row[0]


def followed(connection: Connection) -> list[tuple[str, int, int]]:
    """By deployment: the last block read, and the time of the last one that is settled."""
    rows = connection.execute("SELECT deployment, number, settled_us FROM chain_cursor ORDER BY 1")
    return [(str(name), int(number), int(at_us)) for name, number, at_us in rows]


def count_unfinished(connection: Connection) -> int:
    """Transactions that are not final yet."""
    row = connection.execute(_COUNT_UNFINISHED).fetchone()
    assert row is not None
    return int(row[0])


def _columns(deployment: str, row: ObservationRow) -> tuple[Any, ...]:
    return (
        deployment,
        row.block_hash,
        row.log_index,
        row.block_number,
        row.chain_id,
        row.transaction,
        row.contract,
        row.event,
        json.dumps(row.arguments, sort_keys=True),
        row.effect_key,
    )
