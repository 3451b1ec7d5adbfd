"""A process that records final claims, as the chain's scanner does: one after the other, forever.

    python -m tests.e2e.payer FOLDER FIRST

Writes the number of each payout once it is recorded. Started again, it may repeat some: each is one
claim of one unit, and its key says which.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from psycopg import OperationalError

from api.process import secret_files
from api.process.embedded_postgres import EmbeddedPostgres
from domain.chain.payout_root import ConfirmPayout
from domain.money import token
from ledger.log.handle import CommandKey, Ledger, LogBusy, StreamMoved

ACCOUNT = "treasury"


def command(number: int, at_us: int) -> ConfirmPayout:
    """The claim that brings the account's lifetime total to `number` units."""
    return ConfirmPayout(
        distributor="0x" + "d0" * 20,
        account_id=ACCOUNT,
        address="0x" + "ab" * 20,
        seq=1,
        amount=token(1),
        cumulative=token(number),
        tx_hash=f"0x{number:064x}",
        log_index=0,
        block_number=number,
        at_us=at_us,
    )


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    blinding_key = secret_files.read_or_make(secret_files.made_folder(folder) / "blinding.key")
    address = EmbeddedPostgres(folder).uri
    with Ledger(address, blinding_key=blinding_key, connections_max=1) as ledger:
        while True:
            now_us = time.time_ns() // 1_000
            key = CommandKey("job", f"claim/{number}")
            try:
                ledger.handle(command(number, now_us), key=key, now_us=now_us)
            except (LogBusy, StreamMoved, OperationalError):
                time.sleep(0.05)  # the database is away: it will come back
                continue
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            number += 1
            time.sleep(0.01)


if __name__ == "__main__":
    main()
