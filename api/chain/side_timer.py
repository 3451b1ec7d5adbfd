"""The timer of the chain: scan, mint, propose, accept. It fails while chain and ledger differ."""

from __future__ import annotations

import logging

from api.process.service import Service
from api.process.timer import Timer
from projections.runner import Connection

logger = logging.getLogger(__name__)


class ChainDiffers(Exception):
    """Chain and ledger tell different stories: no root is proposed until a person has looked."""


def chain_timer(service: Service) -> Timer | None:
    """The chain's side: scan, mint, propose, accept. Keeps a node's connection between rounds."""
    if not (service.settings.embedded_chain or service.settings.chain_url is not None):
        return None
    from api.chain.side import ChainNotReady, chain_side  # its libraries take a second to import

    side = chain_side(service)

    def run_chain(_service: Service, _connection: Connection, now_us: int) -> int:
        try:
            report = side.step(now_us)
        except ChainNotReady:
            logger.info("the chain waits for a policy and a first epoch")
            return 0
        if report.differences:
            raise ChainDiffers("; ".join(map(str, report.differences)))
        return report.effects + len(report.done)

    return Timer("chain", 15, 600, run_chain, turn=210, close=side.close)
