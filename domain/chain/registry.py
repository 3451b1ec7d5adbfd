"""What the room `chain` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.chain import burn, payout_root, transaction

FILES = (burn, payout_root, transaction)
FACTS: dict[str, type[Any]] = {
    "burn.intended.v1": burn.BurnIntended,
    "burn.confirmed.v1": burn.BurnConfirmed,
    "burn.failed.v1": burn.BurnFailed,
    "chain_tx.intended.v1": transaction.ChainTxIntended,
    "chain_tx.signed.v1": transaction.ChainTxSigned,
    "chain_tx.broadcast.v1": transaction.ChainTxBroadcast,
    "chain_tx.mined.v1": transaction.ChainTxMined,
    "chain_tx.reorged.v1": transaction.ChainTxReorged,
    "chain_tx.finalized.v1": transaction.ChainTxFinalized,
    "chain_tx.failed.v1": transaction.ChainTxFailed,
    "epoch.mint_confirmed.v1": payout_root.EpochMintConfirmed,
    "payout.root_built.v1": payout_root.PayoutRootBuilt,
    "payout.root_proposed.v1": payout_root.RootProposed,
    "payout.root_vetoed.v1": payout_root.RootVetoed,
    "payout.root_accepted.v1": payout_root.RootAccepted,
    "payout.confirmed.v1": payout_root.PayoutConfirmed,
}
