"""Which lane a node reports into.

    lane = first 8 bytes of SHA-256("tallystick/lane/v1" || node id) mod 64;   for ever

Not a balancer: a node never changes its lane.
"""

from __future__ import annotations

from functools import lru_cache

from domain.metering.report import lane_of as _lane_of

lane_of = lru_cache(maxsize=65_536)(_lane_of)
"""`domain.metering.report.lane_of`, remembered: the hot route asks for the same nodes all day."""
