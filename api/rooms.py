"""What the rooms add to the server, merged: every resource and every timer.

A new resource or timer stands in `registry.py` of its room; only a new room adds lines here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI

from api.audit import registry as audit
from api.authority import registry as authority
from api.chain import registry as chain
from api.cloud import registry as cloud
from api.corrections import registry as corrections
from api.door.operation import Resource
from api.epochs import registry as epochs
from api.fleet import registry as fleet
from api.funds import registry as funds
from api.governance import registry as governance
from api.income import registry as income
from api.jobs import registry as jobs
from api.leasing import registry as leasing
from api.machines import registry as machines
from api.market import registry as market
from api.metering import registry as metering
from api.monitoring import registry as monitoring
from api.parties import registry as parties
from api.pools import registry as pools
from api.prices import registry as prices
from api.process.timer import Timer, TimerOf
from api.regions import registry as regions
from api.sites import registry as sites
from api.storage import registry as storage
from api.trust import registry as trust

RESOURCES: Sequence[Resource] = (
    *parties.RESOURCES,
    *authority.RESOURCES,
    *prices.RESOURCES,
    *funds.RESOURCES,
    *fleet.RESOURCES,
    *cloud.RESOURCES,
    *machines.RESOURCES,
    *regions.RESOURCES,
    *sites.RESOURCES,
    *metering.RESOURCES,
    *storage.RESOURCES,
    *trust.RESOURCES,
    *epochs.RESOURCES,
    *governance.RESOURCES,
    *chain.RESOURCES,
    *market.RESOURCES,
    *pools.RESOURCES,
    *jobs.RESOURCES,
    *leasing.RESOURCES,
    *income.RESOURCES,
    *corrections.RESOURCES,
    *audit.RESOURCES,
    *monitoring.RESOURCES,
)
TIMERS: Sequence[Timer | TimerOf] = (
    *parties.TIMERS,
    *authority.TIMERS,
    *funds.TIMERS,
    *fleet.TIMERS,
    *metering.TIMERS,
    *storage.TIMERS,
    *trust.TIMERS,
    *epochs.TIMERS,
    *chain.TIMERS,
    *market.TIMERS,
    *pools.TIMERS,
    *jobs.TIMERS,
    *leasing.TIMERS,
    *income.TIMERS,
    *corrections.TIMERS,
    *audit.TIMERS,
    *monitoring.TIMERS,
)
PAGES: Sequence[Callable[[FastAPI], None]] = (*monitoring.PAGES,)
"""What is no operation of the API, such as what monitors read."""
