"""The payout root a second time: OpenZeppelin's StandardMerkleTree from its rules, 20 lines.

leaf = keccak(keccak(abi.encode(chain id, distributor, account, lifetime total)))
node = keccak(the smaller child, the larger);   the last two of the row become the next first
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import sha3


def _keccak(data: bytes) -> bytes:
    digest: bytes = sha3.keccak_256(data).digest()
    return digest


def _address(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x")).rjust(32, b"\0")


def root_of(chain_id: int, distributor: str, totals: Mapping[str, int]) -> str:
    """The root over these lifetime totals by address, as 0x and 64 hex digits.

    The library fills an array of 2n - 1 from its end, leaves ascending, and pairs 2k + 1 with
    2k + 2 from the highest k down. Read from its end, that array is a queue: the two eldest are
    hashed, and what they give goes to its other end.
    """
    head = chain_id.to_bytes(32, "big") + _address(distributor)
    row = deque(
        sorted(
            _keccak(_keccak(head + _address(account) + total.to_bytes(32, "big")))
            for account, total in totals.items()
        )
    )
    while len(row) > 1:
        one, other = row.popleft(), row.popleft()
        row.append(_keccak(min(one, other) + max(one, other)))
    return "0x" + row.pop().hex()
