"""Whose work an epoch's rewards pay for: the work of each client weighs as its node's does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.epochs.clients import ClientUse, weights_of
from domain.epochs.settlement import NodeCut, Use, compute_weight
from domain.gpu_time import GPU_HOUR_US
from tests.domain.epochs.test_settlement import TERMS
from tests.domain.scenes.epochs import POLICY

LEAST = 10_000


@pytest.mark.parametrize("base", ["burned_value", "gpu_time"])
@pytest.mark.parametrize("least", [None, LEAST])
def test_the_work_of_a_nodes_only_client_weighs_what_the_node_does(
    base: str, least: int | None
) -> None:
    """By time, too, where a weight costs what was burned."""
    terms = replace(TERMS, burned_per_gpu_hour=least)
    policy = replace(POLICY, rewards=terms, compute_base=base)
    for burned, gpu_us in ((LEAST, 3 * GPU_HOUR_US), (5 * LEAST, GPU_HOUR_US), (0, GPU_HOUR_US)):
        uses = [ClientUse("node_1", "acct_io", "cash", burned, gpu_us)]
        told = weights_of(uses, policy)["node_1"].get("acct_io", 0)
        node = NodeCut("node_1", "acct_1", (Use("cash", burned, gpu_us),))
        plain = replace(terms, bonus_max_ppm=0)
        assert told // 1_000_000 == compute_weight(node, plain, base)
