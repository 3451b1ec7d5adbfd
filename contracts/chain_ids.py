"""Which chains are for development. Everybody knows the keys of their accounts."""

from __future__ import annotations

EMBEDDED_CHAIN_ID = 131277322940537
"""The chain in the process. Beyond 32 bits, so any place that cuts it shows at once."""

DEVNET_CHAIN_IDS = frozenset({EMBEDDED_CHAIN_ID, 1337, 31337})
