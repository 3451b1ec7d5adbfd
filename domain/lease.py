"""A lease: one renter holding devices, or a share of them, of one node at one locked price.

    requested --MatchDecided + LeaseReserved--> reserved --LeaseReady + LeaseOpened--> active
    active --UsageAccrued*--> active --LeaseClosed--> closing --UsageAccrued + LeaseSettled--> settled
    requested, reserved --LeaseClosed + LeaseSettled--> settled, charge 0

    charged == floor(gpu_us x price_per_gpu_hour / 3_600_000_000)            after every accrual
    fee + provider + platform + burn == charge                               part by part, to the unit
    escrow == charged + refunded + held                                      always

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.money import Amount, Big


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node the matcher looked at: enough to recompute the choice."""

    node_id: str
    offer_id: str
    price_per_gpu_hour: Big
    stranded_ppm: int  # capacity that would be left unsellable on the chosen devices
    served_gpu_us: Big  # this epoch: ties go to who served least


@dataclass(frozen=True, slots=True)
class EscrowPart:
    """Credits of one source held for one lease. Drained in order."""

    source: str  # "grant", "earned", "cash", "card" or "burned"
    amount: Amount


@dataclass(frozen=True, slots=True)
class Parts:
    """Where a charge goes. fee + provider + platform + burn == charge."""

    fee: Big
    provider: Big
    platform: Big
    burn: Big


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a device's time has been counted for this lease."""

    device_id: str
    boot: str
    mono_end_us: int
    wall_end_us: int
    ppm_us: Big  # credited to this device so far, unfloored


@dataclass(frozen=True, slots=True)
class RefusedTime:
    """Reported time that earned nothing, and the rule it broke."""

    rule: str
    us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequested:
    """Stream `lease:{lease_id}`."""

    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: tuple[str, ...]
    max_price_per_gpu_hour: Amount
    term_us: int | None  # fixed term, or open end
    funds: Amount | None  # open end: what to hold; fixed term: the largest possible charge
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchDecided:
    lease_id: str
    rule: str  # "lowest_cost/1"
    fleet_position: int  # position of the fleet projection that was asked
    candidates: tuple[Candidate, ...]  # the first 20, best first
    considered: int
    node_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReserved:
    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    node_id: str
    provider_id: str
    provider_account_id: str
    offer_id: str
    device_ids: tuple[str, ...]
    share_ppm: int
    mem_ppm: int
    gpu_class: str
    price_per_gpu_hour: Amount  # of the offer; for own jobs the usage fee
    settlement: str  # "cash" or "burn"
    own: bool  # the renter's own node: only the usage fee is charged
    tariff_version: int
    fee_per_gpu_hour: Amount
    provider_share_ppm: int
    burn_share_ppm: int
    escrow: tuple[EscrowPart, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReady:
    lease_id: str
    node_id: str
    endpoint: str | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOpened:
    """Billing starts: the price is locked and the funded end is known."""

    lease_id: str
    price_per_gpu_hour: Amount
    opened_at_us: int
    funds_end_us: int
    term_end_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAccrued:
    """One lease hour, or the last part of it. Cumulative values first, then what is new."""

    lease_id: str
    hour_index: int  # accounting hour [opened + k h, opened + (k + 1) h)
    until_us: int  # end of what this accrual covers
    node_id: str
    account_id: str
    provider_account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    lane: int
    usage_position: int  # every report of the lane up to here has been read
    ppm_us: Big  # cumulative sum(share_ppm x us), unfloored
    gpu_us: Big  # cumulative floor(ppm_us / 10^6)
    gpu_us_new: Big
    charge: Amount  # cumulative
    charge_new: Amount
    parts: Parts  # cumulative
    parts_new: Parts
    drawn: tuple[EscrowPart, ...]  # new: which credits of the escrow paid, in order
    watermarks: tuple[Watermark, ...]
    refused: tuple[RefusedTime, ...]  # new: time that earned nothing
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClosed:
    lease_id: str
    account_id: str
    closed_at_us: int
    party: str  # who asked: "renter", "provider", "job", "operator"
    code: int  # its range names the party at fault
    refund: tuple[EscrowPart, ...]  # above the largest still possible charge
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettled:
    lease_id: str
    account_id: str
    charge: Amount
    gpu_us: Big
    refund: tuple[EscrowPart, ...]
    at_us: int
