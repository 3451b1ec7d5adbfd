"""What the rooms add to the server, merged: every resource and every timer.

A new resource or timer stands in `registry.py` of its room; only a new room adds lines here. What
a registry lists is imported when it is asked for: a server that starts answers before it knows the
forms of hundreds of operations (`index.py` says where each is).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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

RESOURCES: Mapping[str, Callable[[], tuple[Resource, ...]]] = {
    "parties": parties.resources,
    "authority": authority.resources,
    "prices": prices.resources,
    "funds": funds.resources,
    "fleet": fleet.resources,
    "cloud": cloud.resources,
    "machines": machines.resources,
    "regions": regions.resources,
    "sites": sites.resources,
    "metering": metering.resources,
    "storage": storage.resources,
    "trust": trust.resources,
    "epochs": epochs.resources,
    "governance": governance.resources,
    "chain": chain.resources,
    "market": market.resources,
    "pools": pools.resources,
    "jobs": jobs.resources,
    "leasing": leasing.resources,
    "income": income.resources,
    "corrections": corrections.resources,
    "audit": audit.resources,
    "monitoring": monitoring.resources,
}
"""By room, in the order of the document."""
TIMERS: Sequence[Callable[[], tuple[Timer | TimerOf, ...]]] = (
    parties.timers,
    authority.timers,
    funds.timers,
    fleet.timers,
    metering.timers,
    storage.timers,
    trust.timers,
    epochs.timers,
    chain.timers,
    market.timers,
    pools.timers,
    jobs.timers,
    leasing.timers,
    income.timers,
    corrections.timers,
    audit.timers,
    monitoring.timers,
)
PAGES: Sequence[Callable[[], tuple[Callable[[FastAPI], None], ...]]] = (monitoring.pages,)
"""What is no operation of the API, such as what monitors read."""
