"""The forms that are sent and answered. Written by `python -m api.openapi.write`: do not edit.

One TypedDict per schema of docs/reference/openapi.json.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AcceleratorModelAnswer(TypedDict):
    """Devices of one model on nodes that may be leased. `share_free_ppm`: of all of them."""

    vendor: str
    model: str
    gpu_class: NotRequired[str]
    devices: int
    whole_free: int
    share_free_ppm: str
    memory_mib: int


class AccountAnswer(TypedDict):
    """`unverified`: it signed itself up, and the operator has not verified it."""

    account_id: str
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: str
    closed_at: NotRequired[str]
    unverified: NotRequired[bool]
    position: NotRequired[int]


class AccountClosedAnswer(TypedDict):
    """A second call changes nothing and answers with the time of the first one."""

    account_id: str
    closed_at: str
    position: NotRequired[int]


class AccountFundingAnswer(TypedDict):
    """What an account may spend now: `sources` one after the other, then the payer's."""

    account_id: str
    sources: list[FundingSourceAnswer]
    payer: NotRequired[AccountPayerAnswer]
    position: int


class AccountInvitationAnswer(TypedDict):
    """`code` is there only in the answer that makes it. Hand it over: the person that
    redeems it owns the account and alone sees the key.
    """

    account_id: str
    kind: Literal["party", "client", "auditor"]
    member_id: str
    invitation_id: str
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    expires_at: str
    code: NotRequired[str]
    position: NotRequired[int]


class AccountInvitationRequest(TypedDict):
    """`scopes` of the first key; absent: everything the kind of account may do.
    `expires_at` absent: in 24 hours; at most in seven days.
    """

    kind: NotRequired[Literal["party", "client", "auditor"]]
    scopes: NotRequired[
        list[
            Literal[
                "account",
                "account:admin",
                "provider",
                "renter",
                "client",
                "billing:read",
                "earnings:read",
                "payout:read",
                "payout:approve",
                "operator",
                "audit:read",
                "meter",
                "oracle:write",
            ]
        ]
        | None
    ]
    expires_at: NotRequired[str | None]


class AccountMemberAnswer(TypedDict):
    member_id: str
    role: Literal["owner", "admin", "billing", "member", "viewer"]
    added_at: NotRequired[str]
    removed_at: NotRequired[str]
    position: NotRequired[int]


class AccountMemberRemovedAnswer(TypedDict):
    member_id: str
    position: NotRequired[int]


class AccountMembersAnswer(TypedDict):
    data: list[AccountMemberAnswer]
    position: int


class AccountOpenedAnswer(TypedDict):
    account_id: str
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: str
    closed_at: NotRequired[str]
    unverified: NotRequired[bool]
    position: NotRequired[int]
    member_id: str
    key_id: str
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    key: NotRequired[str]


class AccountPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[AccountAnswer]


class AccountPayerAnswer(TypedDict):
    """The account that pays what this account's own balances do not, and how much it has
    for that now.
    """

    payer_account_id: str
    since: str
    monthly_cap: NotRequired[Money]
    available: Money


class AccountPlanAnswer(TypedDict):
    """A plan unlocks what lower ones do: `team` has datastores and reservations."""

    account_id: str
    plan: Literal["individual", "team", "enterprise"]
    position: NotRequired[int]


class AccountPlanRequest(TypedDict):
    plan: Literal["individual", "team", "enterprise"]


class AccountRequest(TypedDict):
    """`scopes` of the first key; absent: everything the kind of account may do."""

    kind: NotRequired[Literal["party", "client", "auditor"]]
    scopes: NotRequired[
        list[
            Literal[
                "account",
                "account:admin",
                "provider",
                "renter",
                "client",
                "billing:read",
                "earnings:read",
                "payout:read",
                "payout:approve",
                "operator",
                "audit:read",
                "meter",
                "oracle:write",
            ]
        ]
        | None
    ]


AccountStatementAnswer = TypedDict(
    "AccountStatementAnswer",
    {
        "account_id": "str",
        "from": "NotRequired[str]",
        "to": "NotRequired[str]",
        "as_of": "NotRequired[str]",
        "opening_position": "int",
        "closing_position": "int",
        "opening": "list[BalancePartAnswer]",
        "closing": "list[BalancePartAnswer]",
        "kinds": "list[StatementKindAnswer]",
        "lines": "list[StatementLineAnswer]",
        "has_more": "bool",
        "next_cursor": "NotRequired[str]",
        "usage": "NotRequired[StatementUsageAnswer]",
        "unbilled_estimate": "NotRequired[UnbilledUsageAnswer]",
        "position": "int",
    },
)


class AccountVerifiedAnswer(TypedDict):
    """A second call changes nothing."""

    account_id: str
    position: NotRequired[int]


class AdjustmentAnswer(TypedDict):
    """`returned` of the charge is the payer's; `recovered` is what the accounts that were
    paid answer for. `owed`: of `returned`, what the network cannot pay yet; below zero,
    what it pays now of that. `charge_new`: the cost of usage that came late.
    """

    adjustment_id: str
    corrects_position: int
    lease_id: NotRequired[str]
    volume_id: NotRequired[str]
    account_id: str
    provider_account_id: str
    reason: Literal["late_usage", "dispute", "sla", "goodwill", "owed"]
    cause: str
    returned: Money
    recovered: Money
    owed: SignedMoney
    gpu_us_new: NotRequired[str]
    charge_new: NotRequired[Money]
    lines: list[BookLineAnswer]
    booked_at: str
    position: NotRequired[int]


class AdjustmentPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[AdjustmentAnswer]


class AdmissionAnswer(TypedDict):
    """`steps_left`: what the firmware still needs, Secure Boot with NVIDIA's GPUs only."""

    admission_id: str
    account_id: str
    region_id: str
    vendor: str
    model: str
    gpus: int
    state: Literal["requested", "validated", "shipped", "installed", "refused"]
    why: NotRequired[str]
    tracking: NotRequired[str]
    steps_done: list[Literal["tpm_cleared", "csm_off", "secure_boot_off"]]
    steps_left: list[Literal["tpm_cleared", "csm_off", "secure_boot_off"]]
    minion_id: NotRequired[str]
    requested_at: str
    position: NotRequired[int]


class AdmissionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[AdmissionAnswer]


class AdmissionRefusalRequest(TypedDict):
    why: str


class AdmissionRequest(TypedDict):
    """The machine that is to come in, as its owner describes it."""

    region_id: str
    vendor: str
    model: str
    gpus: int


class AlertHeldAnswer(TypedDict):
    """One alert that holds by the numbers of now; `of`: which timer, asset or deployment."""

    name: str
    told: str
    severity: Literal["page", "ticket"]
    of: NotRequired[str]


class AlertsHeldAnswer(TypedDict):
    """Pages before tickets; `figures` by name."""

    data: list[AlertHeldAnswer]
    figures: list[ServerFigureAnswer]
    position: NotRequired[int]


class ApiKeyAnswer(TypedDict):
    """`key` is there only in the answer that makes it. `scopes` are those the key was
    issued with; `opens` are those that its member's role leaves of them now.
    """

    key_id: str
    member_id: str
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    opens: NotRequired[
        list[
            Literal[
                "account",
                "account:admin",
                "provider",
                "renter",
                "client",
                "billing:read",
                "earnings:read",
                "payout:read",
                "payout:approve",
                "operator",
                "audit:read",
                "meter",
                "oracle:write",
            ]
        ]
    ]
    succeeds: NotRequired[str]
    expires_at: NotRequired[str]
    revoked_at: NotRequired[str]
    key: NotRequired[str]
    position: NotRequired[int]


class ApiKeyRequest(TypedDict):
    """A key of your own. Its scopes are among those of the key you call with, and it ends
    with that key at the latest: `expires_at` absent is that end.
    """

    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    expires_at: NotRequired[str | None]


class ApiKeyRotationRequest(TypedDict):
    """`expires_at` of the new key, not after the old one's; absent: as the old one's."""

    expires_at: NotRequired[str | None]


class ApiKeysAnswer(TypedDict):
    data: list[ApiKeyAnswer]
    position: int


class ArithmeticStepAnswer(TypedDict):
    """One quantity of the arithmetic: its formula, the numbers in it, its total before and
    after. `new` = `after` - `before` is what this accrual added.
    """

    name: str
    formula: str
    given: dict[str, str]
    before: str
    after: str
    new: str


class AssignmentAnswer(TypedDict):
    """One lease on one device, in server time; without `until_us` its end is not known.
    `mode` says how the lease shares the device; a MIG instance begins at memory slice
    `mig_start`. `executor` has taken up its work, which runs until it ended or was stopped.
    """

    lease_id: str
    device_id: str
    from_us: int
    until_us: NotRequired[int]
    share_ppm: int
    mem_ppm: int
    mode: Literal["whole", "mig", "mps", "time_slice", "memory"]
    mig_profile: NotRequired[str]
    mig_start: NotRequired[int]
    state: Literal["active", "paused", "degraded", "reclaiming", "closing"]
    job_id: str
    executor: NotRequired[str]
    work_ended: NotRequired[bool]


class AssignmentsAnswer(TypedDict):
    """`data`: leases that are running or have not been reported to their end. `pending` is
    to be started, `stopping` to be stopped. `to_erase`: deleted volumes that this node had
    attached: their data are to be erased here.
    """

    data: list[AssignmentAnswer]
    pending: list[PendingLeaseAnswer]
    stopping: list[WorkToStopAnswer]
    to_erase: list[str]
    position: int


class AttestationAnswer(TypedDict):
    node_id: str
    device_id: str
    passed: bool
    detail: str
    position: NotRequired[int]


class AttestationNonceAnswer(TypedDict):
    """Sign `nonce` within ten minutes: it covers the node's reports up to `acked_seq`."""

    node_id: str
    device_id: str
    server_nonce: str
    acked_seq: int
    head: str
    nonce: str
    expires_at: str
    position: NotRequired[int]


class AttestationRequest(TypedDict):
    """Evidence in base64, as the plug-in of this name reads it."""

    server_nonce: str
    plugin: str
    evidence: str


class AttributeAnswer(TypedDict):
    """`valid`: neither taken back by its signer nor expired."""

    statement_id: str
    subject_id: str
    name: str
    value: str
    signer_account_id: str
    key_id: str
    signature: str
    stated_at: str
    expires_at: NotRequired[str]
    revoked_at: NotRequired[str]
    valid: bool
    position: NotRequired[int]


class AttributeInForceAnswer(TypedDict):
    """A statement that counts now; `/v1/attributes` has its signature."""

    name: str
    value: str
    signer_account_id: str


class AttributePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[AttributeAnswer]


class AttributeRequest(TypedDict):
    """`signature` (hex, Ed25519) is over five lines joined by newlines:
    `tallystick/attribute/v1`, `subject ID`, `NAME VALUE`, `stated_at_us N`, and
    `expires_at_us N` or `expires_at_us never`. The key is one of the signer's signing keys.
    Any account that has the statement may send it.
    """

    subject_id: str
    name: str
    value: str
    signer_account_id: str
    key_id: str
    signature: str
    stated_at: str
    expires_at: NotRequired[str | None]


class AttributeRevokedAnswer(TypedDict):
    statement_id: str
    revoked: bool
    position: NotRequired[int]


class AuctionAnswer(TypedDict):
    """A request that takes bids until `closes_at`, or what came of it. `sla_class`: what
    the lease promises its renter; an offer that promises less cannot win.
    """

    lease_id: str
    state: Literal["open", "awarded", "ended"]
    pricing: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    max_price_per_gpu_hour: Money
    term_seconds: NotRequired[int]
    sla_class: NotRequired[str]
    deposit: Money
    bids_max: int
    bids: int
    pick: Literal["cheapest", "renter"]
    closes_at: str
    winner_bid_id: NotRequired[str]
    price_per_gpu_hour: NotRequired[Money]
    opened_at: str
    position: NotRequired[int]


class AuctionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[AuctionAnswer]


class AutoTopUpAnswer(TypedDict):
    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: str


class AutoTopUpRequest(TypedDict):
    """Pay `amount` when less than `threshold` is spendable, with what `payment_id` saved,
    and never more than `monthly_max` in a UTC month.
    """

    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: str


class BalanceAnswer(TypedDict):
    """One book account of the party, on its normal side; `part` is the last part of its
    name.
    """

    name: str
    part: str
    balance: Money


class BalanceForecastAnswer(TypedDict):
    """What can be spent in one way of paying, and until when it would last. As if each
    running lease that is paid this way went on after its funds end and drew on the balance
    at its own rate, to its term. Exact to the second; absent: it lasts for ever.
    """

    settlement: Literal["cash", "burn"]
    spendable: Money
    charge_per_hour: Money
    leases: int
    lasts_until: NotRequired[str]


class BalancePartAnswer(TypedDict):
    """What the account has of one sort; of `owed`, what it owes."""

    part: str
    balance: Money


class BalanceWarningsRequest(TypedDict):
    """Highest first; none: no warnings."""

    thresholds: list[Money]


class BalancesAnswer(TypedDict):
    """`recorded_by`: the time asked for with `as_of`."""

    account_id: str
    data: list[BalanceAnswer]
    position: int
    as_of: NotRequired[str]


class BallotAnswer(TypedDict):
    """What is voted on, and the votes that count. The text that a vote signs has these
    lines: `network`, `kind`, `subject`, `revision`, `content_sha256`, `governors`, the
    choice, and the hash of a rehearsal. `needed` yes votes carry it; in mode `single` that
    is one.
    """

    network: str
    kind: str
    subject: str
    revision: int
    content: NotRequired[dict[str, Any]]
    content_sha256: str
    governors: int
    mode: Literal["single", "shared"]
    needed: int
    yes: list[str]
    no: list[str]
    cancel: list[str]


class BankConfirmationRequest(TypedDict):
    """`reference`: of the line on the bank's statement. `amount` absent: what was asked
    for.
    """

    reference: str
    amount: NotRequired[Money | None]


class BankReversalRequest(TypedDict):
    amount: Money
    reference: str
    reason: str


class BidAcceptedAnswer(TypedDict):
    """Reserved at the bid, and waiting for the node. `held` is what the escrow holds."""

    lease_id: str
    bid_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    node_id: str
    price_per_gpu_hour: Money
    held: Money
    position: NotRequired[int]


class BidAnswer(TypedDict):
    """`deposit_state`: held while the bid stands or has won and not started; then returned,
    or forfeited to the network.
    """

    bid_id: str
    lease_id: str
    place: int
    account_id: str
    provider_id: str
    offer_id: str
    node_id: str
    device_ids: list[str]
    price_per_gpu_hour: Money
    deposit: Money
    deposit_state: Literal["held", "returned", "forfeited"]
    state: Literal["standing", "withdrawn", "expired", "unavailable", "won", "lost"]
    expires_at: str
    placed_at: str
    ended_at: NotRequired[str]
    position: NotRequired[int]


class BidPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[BidAnswer]


class BidRequest(TypedDict):
    """With which offer of yours, at which price. `device_ids` absent: free ones of its
    node. `expires_at` absent: it stands until the auction is over; else no later than the
    closing, from which on a bid binds.
    """

    offer_id: str
    price_per_gpu_hour: Money
    device_ids: NotRequired[list[str] | None]
    expires_at: NotRequired[str | None]


class BidWithdrawnAnswer(TypedDict):
    bid_id: str
    lease_id: str
    returned: Money
    position: NotRequired[int]


class BillingDetailsAnswer(TypedDict):
    account_id: str
    name: NotRequired[str]
    address: list[str]
    country: NotRequired[str]
    tax_id: NotRequired[str]
    position: int


class BillingDetailsRequest(TypedDict):
    """The name and address on invoices, beside the account's id. A `tax_id` marks a
    business.
    """

    name: str
    address: list[str]
    country: NotRequired[str | None]
    tax_id: NotRequired[str | None]


class BookLineAnswer(TypedDict):
    account: str
    movement: SignedMoney


class BookMovementAnswer(TypedDict):
    """One account's part of the entry: debits above zero, credits below; an entry sums to
    zero.
    """

    name: str
    movement: SignedMoney


class BooksSolvencyAnswer(TypedDict):
    """`balanced`: what is held equals what is claimed, of each asset."""

    data: list[SolvencyKindAnswer]
    held: list[Money]
    claimed: list[Money]
    balanced: bool
    position: NotRequired[int]


class BootDriveRequest(TypedDict):
    """Where the parcel can be followed."""

    tracking: str


class BreakerAnswer(TypedDict):
    """`aggregate` counts against the limit now, and fades within a window."""

    breaker: Literal["mint", "payout", "cash_out"]
    asset: Literal["TOKEN", "CREDIT"]
    limit: NotRequired[str]
    window_seconds: int
    aggregate: str
    waiting: list[BreakerWaitingAnswer]
    position: NotRequired[int]


class BreakerLimitRequest(TypedDict):
    """`limit`: units that may pass in a window; absent: no limit."""

    limit: NotRequired[str | None]
    window_seconds: int
    reason: str


class BreakerWaitingAnswer(TypedDict):
    """What does not pass yet: `aggregate` and `amount` were more than the limit."""

    ref: str
    amount: str
    aggregate: str
    reason: str
    since: str


class BreakersAnswer(TypedDict):
    breakers: list[BreakerAnswer]
    position: NotRequired[int]


class BroughtByClientAnswer(TypedDict):
    """Lifetime totals by compute client. `received`: from accounts that are paid to this
    one, and from regions that share. `paid`: in cash, whatever came back of it.
    """

    client_id: NotRequired[str]
    matured: Money
    received: Money
    swept: Money
    paid: Money


class BudgetAnswer(TypedDict):
    """`used`: what went into escrow this month less what came back of it.
    `alerted_percent`: the highest threshold crossed this month.
    """

    scope: Literal["project", "key", "account"]
    target: str
    monthly: NotRequired[Money]
    month: str
    used: Money
    left: NotRequired[Money]
    alerted_percent: NotRequired[int]
    position: NotRequired[int]


class BudgetPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[BudgetAnswer]


class BudgetRequest(TypedDict):
    """`target`: a project, or the 8 characters of an API key. `monthly` absent: no cap any
    more.
    """

    scope: Literal["project", "key"]
    target: str
    monthly: NotRequired[Money | None]


class CapacityClassAnswer(TypedDict):
    node_id: str
    capacity_class: Literal["on_demand", "preemptible", "committed"]
    position: NotRequired[int]


class CapacityClassRequest(TypedDict):
    """`on_demand`: for as long as it is wanted. `preemptible`: it may be taken back, so
    only leases that may be paused go there. `committed`: held for a term that was agreed.
    """

    capacity_class: Literal["on_demand", "preemptible", "committed"]


class CashOutAnswer(TypedDict):
    """requested -> started -> sent -> paid; or failed, or cancelled. `asked_at`: of the
    processor. `returned` is what came back after it was paid. `clients`: whose work it pays
    for; their amounts are the whole amount.
    """

    cash_out_id: str
    account_id: str
    amount: Money
    clients: list[ClientUnitsAnswer]
    destination: str
    by: str
    state: Literal["requested", "started", "sent", "paid", "failed", "cancelled"]
    requested_at: str
    processor: NotRequired[str]
    asked_at: NotRequired[str]
    reference: NotRequired[str]
    instructions: NotRequired[str]
    reason: NotRequired[str]
    ended_at: NotRequired[str]
    returned: NotRequired[Money]
    position: NotRequired[int]


class CashOutFailureRequest(TypedDict):
    reason: str


class CashOutHoldAnswer(TypedDict):
    hold_id: str
    reason: str
    by: str
    held_at: str


class CashOutHoldReleaseRequest(TypedDict):
    """`hold_id` absent: the operator's own."""

    hold_id: NotRequired[str]


class CashOutHoldRequest(TypedDict):
    reason: str


class CashOutHoldsAnswer(TypedDict):
    """The holds that are left."""

    account_id: str
    hold_ids: list[str]
    position: NotRequired[int]


class CashOutMinimumRequest(TypedDict):
    minimum: Money


class CashOutPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[CashOutAnswer]


class CashOutRequest(TypedDict):
    """`amount` in whole cents (10,000 micro-credits); absent: everything earned."""

    amount: NotRequired[Money | None]


class CashOutStateAnswer(TypedDict):
    cash_out_id: str
    state: Literal["requested", "started", "sent", "paid", "failed", "cancelled"]
    amount: Money
    position: NotRequired[int]


class ChargeSplitForm(TypedDict):
    """What remains after the usage fee, peeled in this order; `residual` gets the rest."""

    shares: list[ChargeSplitShareForm]
    residual: Literal["provider", "client", "platform", "burn"]


class ChargeSplitShareForm(TypedDict):
    bucket: Literal["provider", "client", "platform", "burn"]
    share_ppm: int


class ChargebackReserveAnswer(TypedDict):
    """`funded`: set aside so far."""

    amount: Money
    funded: Money
    position: NotRequired[int]


class ChargebackReserveRequest(TypedDict):
    amount: Money


class CheckInAnswer(TypedDict):
    """`send_to`: a `region` that the machine can join, with a code where everybody may
    join; a `wait_list` that the account is on now; or `nowhere`, because its place is not
    known. `place_by`: the `address` of the call, what was `stated`, or `nothing`. `phase`:
    of the region.
    """

    send_to: Literal["region", "wait_list", "nowhere"]
    place_by: Literal["address", "stated", "nothing"]
    country: NotRequired[str]
    state: NotRequired[str]
    city: NotRequired[str]
    region: NotRequired[CheckInRegionAnswer]
    phase: NotRequired[Literal["waitlisted", "opening", "open", "draining", "closed"]]
    list_id: NotRequired[str]
    number: NotRequired[int]
    waiting: NotRequired[int]
    threshold: NotRequired[int]
    code_expires_at: NotRequired[str]
    code: NotRequired[str]
    position: NotRequired[int]


class CheckInRegionAnswer(TypedDict):
    """`address`: where the region's control is; absent: it is this server."""

    region_id: str
    name: str
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless"]
    address: NotRequired[str]


class CheckInRequest(TypedDict):
    """Where the machine says it is; what the server knows of its address outweighs it."""

    country: NotRequired[str | None]
    state: NotRequired[str | None]
    city: NotRequired[str | None]


class ClientKeyAnswer(TypedDict):
    """A key of an instance; the key itself is there only in the answer that makes it."""

    key_id: str
    instance_id: str
    bound_at: str
    revoked_at: NotRequired[str]
    key: NotRequired[str]
    position: NotRequired[int]


class ClientKeyRequest(TypedDict):
    """A key with the scope `client`, for one instance."""

    expires_at: NotRequired[str | None]


class ClientPolicyRequest(TypedDict):
    """`min_reputation_ppm` absent: no floor."""

    min_reputation_ppm: NotRequired[int | None]


class ClientQuotaAnswer(TypedDict):
    """`pool_id` absent: everywhere. `gpu_ppm_max` absent: counted, and not limited."""

    pool_id: NotRequired[str]
    gpu_ppm_max: NotRequired[int]
    used_ppm: NotRequired[int]
    position: NotRequired[int]


class ClientQuotaRequest(TypedDict):
    """`pool_id` absent: of everything it leases. `gpu_ppm_max` absent: no limit any more."""

    pool_id: NotRequired[str | None]
    gpu_ppm_max: NotRequired[int | None]


class ClientUnitsAnswer(TypedDict):
    """What of an amount is for work that one compute client brought; without a `client_id`:
    what no client is known of.
    """

    client_id: NotRequired[str]
    amount: Money


class CloudAccountAnswer(TypedDict):
    """`ready`: every required step is done, and regions can be opened."""

    provider_id: str
    ready: bool
    steps: list[CloudStepAnswer]
    project_id: NotRequired[str]
    project_made_on: NotRequired[str]
    service_account: NotRequired[str]
    reported_at: NotRequired[str]
    position: NotRequired[int]


class CloudAccountRequest(TypedDict):
    """The whole checklist at once: what is not in `done` is not done. `service_account`:
    its e-mail address, which enters no log and stays as it is when it is left out. Never
    send its key file: this server does not need it and refuses it.
    """

    project_id: str
    project_made_on: str
    done: list[
        Literal[
            "paid_billing",
            "project",
            "api_compute",
            "api_pubsub",
            "api_logging",
            "api_billing",
            "service_account",
            "role_compute_admin",
            "role_pubsub_admin",
            "role_logs_writer",
            "role_service_account_user",
            "role_billing_viewer",
            "token_creator",
        ]
    ]
    service_account: NotRequired[str | None]


class CloudLimitAnswer(TypedDict):
    """`free`: the limit less what is used, at least 0."""

    limit: int
    used: int
    free: int


class CloudLimitRequest(TypedDict):
    """What the cloud allows in the region, and what of it is used."""

    limit: int
    used: int


class CloudQuotasAnswer(TypedDict):
    """The last report, with the `leases` that began since among what is used. Before the
    first report there are no quotas, and no lease can start.
    """

    region_id: str
    gpus: list[GpuQuotaAnswer]
    cpus: NotRequired[CloudLimitAnswer]
    local_ssd_gb: NotRequired[CloudLimitAnswer]
    leases: NotRequired[int]
    reported_at: NotRequired[str]
    position: NotRequired[int]


class CloudQuotasRequest(TypedDict):
    """All quotas of the region at once. A GPU model that is left out has none."""

    gpus: list[GpuQuotaRequest]
    cpus: CloudLimitRequest
    local_ssd_gb: CloudLimitRequest


class CloudRegionAnswer(TypedDict):
    cloud: str
    name: str
    place: str


class CloudRegionsAnswer(TypedDict):
    """The regions that can be opened, by the cloud's own names; the list is in force from a
    day.
    """

    from_day: str
    data: list[CloudRegionAnswer]
    position: NotRequired[int]


class CloudStepAnswer(TypedDict):
    step: Literal[
        "paid_billing",
        "project",
        "api_compute",
        "api_pubsub",
        "api_logging",
        "api_billing",
        "service_account",
        "role_compute_admin",
        "role_pubsub_admin",
        "role_logs_writer",
        "role_service_account_user",
        "role_billing_viewer",
        "token_creator",
    ]
    what: str
    required: bool
    done: bool


class ComputeClientAnswer(TypedDict):
    client_id: str
    min_reputation_ppm: NotRequired[int]
    suspended: bool
    registered_at: NotRequired[str]
    keys: NotRequired[list[ClientKeyAnswer]]
    quotas: NotRequired[list[ClientQuotaAnswer]]
    position: NotRequired[int]


class ComputeClientPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ComputeClientAnswer]


class ComputeClientRequest(TypedDict):
    """An account of the kind `client`. `min_reputation_ppm`: no node below it runs its
    jobs.
    """

    client_id: str
    min_reputation_ppm: NotRequired[int | None]


class ConsumedReportAnswer(TypedDict):
    """A signed report that the accrual read, and what its rows of this lease came to.
    `hash` is what the next report of the node names as `prev`; `leaf` stands in the lane's
    tree. Of GPU time `ppm_us` is what it came to and `refused_us` what not; of another
    resource `measured` and `refused`, in microseconds of processor, byte-seconds or bytes.
    """

    lane: int
    usage_position: int
    node_id: str
    seq: int
    key_id: str
    received_at: str
    hash: str
    leaf: str
    rows: int
    ppm_us: NotRequired[str]
    refused_us: NotRequired[str]
    measured: NotRequired[str]
    refused: NotRequired[str]


class ConsumedReportPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ConsumedReportAnswer]


class ControllerCheckAnswer(TypedDict):
    """What the contract said at a final block. No differences: it says what the log says."""

    block: int
    agrees: bool
    differences: list[str]
    checked_at: str


class CounterpartyAnswer(TypedDict):
    counterparty_id: str
    verdict: Literal["allow", "deny", "none"]
    since: str
    position: NotRequired[int]


class CounterpartyPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[CounterpartyAnswer]


class CounterpartyRequest(TypedDict):
    """`deny`: never deal with it. `allow`: deal with those that are allowed alone. `none`:
    off the list.
    """

    counterparty_id: str
    verdict: Literal["allow", "deny", "none"]


class CountersignatureAnswer(TypedDict):
    lease_id: str
    account_id: str
    key_id: str
    gpu_us: str
    until: str
    signature: str
    signed_at: str
    position: NotRequired[int]


class CountersignatureRequest(TypedDict):
    """`signature` (hex) is over these bytes: `tallystick/countersign/v1`, the lease id,
    `gpu_us N` and `until_us N`, joined by single newlines. `gpu_us` counts from the
    opening.
    """

    key_id: str
    gpu_us: str
    until: str
    signature: str


class CountersignedUsageAnswer(TypedDict):
    """matched + unconfirmed + contested = gpu_us, what was metered and accrued so far.
    Matched: both halves agree. Contested: metered before `signed_until` and not signed for.
    Unconfirmed: metered later than that. `signatures`: the last hundred at most, newest
    last.
    """

    lease_id: str
    gpu_us: str
    matched_gpu_us: str
    unconfirmed_gpu_us: str
    contested_gpu_us: str
    signed_until: NotRequired[str]
    signatures: list[CountersignatureAnswer]
    position: int


class CreditNoteLineRequest(TypedDict):
    """A line of the invoice, counted from 1, and what comes off it."""

    line: int
    amount: Money


class CreditNoteRequest(TypedDict):
    """`cause`: what gave the money back, a reference of yours; one credit note for each."""

    lines: list[CreditNoteLineRequest]
    cause: str
    reason: str


class DatasetAnswer(TypedDict):
    dataset_id: str
    account_id: str
    name: str
    region_ids: list[str]
    pinned: bool
    placed_at: str
    position: NotRequired[int]


class DatasetPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DatasetAnswer]


class DatasetRemovedAnswer(TypedDict):
    dataset_id: str
    name: str
    position: NotRequired[int]


class DatasetRequest(TypedDict):
    """Where the data of a name lie, registered or moved. Jobs that refer to the name run
    near them where nothing else decides; with `pinned` nowhere else.
    """

    name: str
    region_ids: list[str]
    pinned: NotRequired[bool]


class DatastoreAnswer(TypedDict):
    """`advice`: for the server that it is on. User and password are never told here."""

    datastore_id: str
    region_id: str
    account_id: str
    name: str
    kind: Literal["nfs", "smb"]
    address: str
    root_path: str
    has_login: bool
    advice: list[str]
    added_at: str
    position: NotRequired[int]


class DatastorePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DatastoreAnswer]


class DatastoreRemovedAnswer(TypedDict):
    datastore_id: str
    position: NotRequired[int]


class DatastoreRequest(TypedDict):
    """`root_path`: what lies beside it stays hidden. `user` and `password`: of an smb
    server; they enter no log, and only a node that mounts the store is told them.
    """

    name: str
    kind: Literal["nfs", "smb"]
    address: str
    root_path: str
    user: NotRequired[str | None]
    password: NotRequired[str | None]


class DebtWriteOffAnswer(TypedDict):
    account_id: str
    amount: Money
    position: NotRequired[int]


class DebtWriteOffRequest(TypedDict):
    amount: Money
    reason: str


class DepositAnswer(TypedDict):
    deposit_id: str
    source: Literal["cash", "card", "burned"]
    amount: Money
    reference: str
    tokens_burned: NotRequired[Money]
    confirmed_at: NotRequired[str]
    position: NotRequired[int]


class DepositPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DepositAnswer]


class DepositRequest(TypedDict):
    """Money that arrived outside. `reference` is the payment's own number: it counts once."""

    source: Literal["cash", "card"]
    amount: Money
    reference: str


class DeviceAnswer(TypedDict):
    """`gpu_class` absent: the model is listed and not priced. Free shares are parts per
    million. `memory` unified: it is the host's memory, not a second one beside it. `mode`:
    how its holders share it now; absent: it has no holder, and the next lease decides.
    `partition`: of a model that MIG can cut, what is still possible beside the instances
    held; `stranded_ppm`: compute that no lease can hold as the device is partitioned now.
    """

    device_id: str
    node_id: str
    provider_id: str
    account_id: str
    vendor: str
    model: str
    kind: str
    gpu_class: NotRequired[str]
    memory_mib: int
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    retired: bool
    share_free_ppm: int
    mem_free_ppm: int
    mode: NotRequired[Literal["whole", "mig", "mps", "time_slice", "memory"]]
    stranded_ppm: NotRequired[int]
    partition: NotRequired[DevicePartitionAnswer]
    registered_at: str
    holdings: NotRequired[list[DeviceHoldingAnswer]]
    position: NotRequired[int]


class DeviceConfigAnswer(TypedDict):
    """One revision, which never changes."""

    region_id: str
    account_id: str
    name: str
    revision: int
    work: DeviceWorkAnswer
    set_at: str
    position: NotRequired[int]


class DeviceConfigPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DeviceConfigAnswer]


class DeviceConfigRequest(TypedDict):
    """`revision`: 1 for a new name, and one more than the last one's after that."""

    name: str
    revision: int
    work: DeviceWorkRequest


class DeviceDeploymentAnswer(TypedDict):
    device_id: str
    config: str
    revision: int
    deployment: int
    deployed_at: str
    position: NotRequired[int]


class DeviceDeploymentRequest(TypedDict):
    """`config`: a configuration of the device's region; its last revision is deployed."""

    config: str


class DeviceFeeAnswer(TypedDict):
    """The fee of one UTC day; `due` is what the month has come to by then."""

    account_id: str
    day: str
    devices: int
    fee_per_month: Money
    tariff_version: NotRequired[int]
    due: Money
    charge: Money
    owed: Money
    charged_at: str
    charged_position: int


class DeviceFeePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DeviceFeeAnswer]


class DeviceForm(TypedDict):
    """One accelerator as its node describes it; null: not known."""

    device_id: str
    vendor: str
    model: str
    memory_mib: int
    connection: NotRequired[Literal["pcie", "sxm", "soc"]]
    pcie_gen: NotRequired[int | None]
    pcie_lanes: NotRequired[int | None]
    kind: NotRequired[str | None]
    memory: NotRequired[Literal["unified"] | None]


class DeviceHoldingAnswer(TypedDict):
    """A MIG instance begins at memory slice `mig_start`."""

    lease_id: str
    share_ppm: int
    mem_ppm: int
    mode: Literal["whole", "mig", "mps", "time_slice", "memory"]
    mig_profile: NotRequired[str]
    mig_start: NotRequired[int]
    since: str


class DeviceInferenceAnswer(TypedDict):
    """`inference` of the last deployment, which `deployment` is."""

    device_id: str
    deployment: int
    inference: Literal["pending", "running", "exited"]
    position: NotRequired[int]


class DeviceInferenceRequest(TypedDict):
    """`deployment`: the one that it is told of. `boot_id`: another one after each boot.
    `exit_code`: of a command that exited.
    """

    deployment: int
    boot_id: str
    status: Literal["running", "exited"]
    exit_code: NotRequired[int | None]


class DeviceMountAnswer(TypedDict):
    """A datastore of the region, and the folder below its root that the command uses."""

    datastore_id: str
    path: str


class DeviceMountRequest(TypedDict):
    """A datastore of the region, and the folder below its root that the command uses."""

    datastore_id: str
    path: NotRequired[str]


class DevicePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DeviceAnswer]


class DevicePartitionAnswer(TypedDict):
    """How a GPU is cut, and what fits beside that."""

    model: str
    compute_slices: int
    memory_slices: int
    stranded_compute_slices: int
    possible: list[MigPlacementAnswer]


class DeviceReshapedAnswer(TypedDict):
    """`closed`: leases that ended with code 10005, at no charge from then on."""

    device_id: str
    node_id: str
    closed: list[str]
    reshaped_at: str
    position: NotRequired[int]


class DeviceReshapingRequest(TypedDict):
    """The leases whose part of the device is gone."""

    lease_ids: list[str]


class DeviceRunAnswer(TypedDict):
    """What the device runs, always on. `access`: what of the board the command may use.
    `mount`: the folder of the datastore, with the login of an smb server. `environment`:
    with its values.
    """

    config: str
    revision: int
    deployment: int
    work: DeviceWorkAnswer
    environment: list[DeviceVariableAnswer]
    access: list[Literal["accelerator", "video", "media"]]
    mount: NotRequired[StoreMountAnswer]


class DeviceRunsAnswer(TypedDict):
    """`run` is absent where nothing was deployed, or where the command exited in this boot:
    then the device runs nothing until it is rebooted or something is deployed.
    """

    device_id: str
    run: NotRequired[DeviceRunAnswer]
    position: NotRequired[int]


class DeviceTimeAnswer(TypedDict):
    """One device's attested time. `reason` says why it does not count; absent when it does."""

    hardware_class: str
    tier: int
    attested_us: str
    promised_us: str
    rating_ppm: int
    reason: NotRequired[str]


class DeviceTrustAnswer(TypedDict):
    """One device in the epoch; `simulated`: its driver says so itself."""

    device_id: str
    tier: int
    simulated: bool
    rows: int
    available_us: int
    energy_mj: int
    findings: list[TrustFindingAnswer]


class DeviceVariableAnswer(TypedDict):
    """A variable of the environment, with its value."""

    name: str
    value: str


class DeviceVariableRequest(TypedDict):
    """A variable of the environment. Its value enters no log, and only the device is told
    it.
    """

    name: str
    value: str


class DeviceWorkAnswer(TypedDict):
    """`environment`: names of variables; their values are told to the device alone."""

    image: str
    model: str
    command: list[str]
    checkpoints: list[str]
    datastore: NotRequired[DeviceMountAnswer]
    environment: list[str]
    keys: list[str]


class DeviceWorkRequest(TypedDict):
    """`model`: where the code is kept; `command` begins in its root folder. `checkpoints`,
    `datastore`, `environment` and `keys` may be left out; keys are names in a secret store
    of yours.
    """

    image: str
    model: str
    command: list[str]
    checkpoints: NotRequired[list[str]]
    datastore: NotRequired[DeviceMountRequest | None]
    environment: NotRequired[list[DeviceVariableRequest]]
    keys: NotRequired[list[str]]


class DisputeAnswer(TypedDict):
    """`reserved` waits in `dispute:{id}` until the ruling, at the latest until
    `expires_at`.
    """

    dispute_id: str
    lease_id: NotRequired[str]
    volume_id: NotRequired[str]
    account_id: str
    provider_account_id: str
    opened_by: Literal["renter", "provider"]
    state: Literal["opened", "answered", "upheld", "rejected", "split", "timed_out"]
    claim_code: Literal[
        "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
    ]
    claimed: Money
    reserved: Money
    upheld: NotRequired[Money]
    upheld_ppm: NotRequired[int]
    unfounded: NotRequired[bool]
    opened_at: str
    expires_at: str
    resolved_at: NotRequired[str]
    position: NotRequired[int]


class DisputeAnswerRequest(TypedDict):
    """A statement, evidence, or both."""

    statement: NotRequired[str | None]
    evidence: NotRequired[list[DisputeEvidenceRequest]]


class DisputeDetailAnswer(TypedDict):
    """A dispute with every line and every statement."""

    dispute_id: str
    lease_id: NotRequired[str]
    volume_id: NotRequired[str]
    account_id: str
    provider_account_id: str
    opened_by: Literal["renter", "provider"]
    state: Literal["opened", "answered", "upheld", "rejected", "split", "timed_out"]
    claim_code: Literal[
        "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
    ]
    claimed: Money
    reserved: Money
    upheld: NotRequired[Money]
    upheld_ppm: NotRequired[int]
    unfounded: NotRequired[bool]
    opened_at: str
    expires_at: str
    resolved_at: NotRequired[str]
    position: NotRequired[int]
    lines: list[DisputedLineAnswer]
    statements: list[DisputeStatementAnswer]


class DisputeEvidenceAnswer(TypedDict):
    """`signed`: the server found a valid signature over it, and that it is about the lease
    or volume.
    """

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: NotRequired[int]
    position: NotRequired[int]
    sha256: NotRequired[str]
    signed: bool


class DisputeEvidenceRequest(TypedDict):
    """`usage_report`: lane and position in the usage log, of this lease, or of a lease that
    had this volume mounted after the last disputed charge began. `market_fact`: a position
    of the market log, about this lease or volume. `statement`: the SHA-256 of anything
    else.
    """

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: NotRequired[int | None]
    position: NotRequired[int | None]
    sha256: NotRequired[str | None]


class DisputePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[DisputeAnswer]


class DisputeRequest(TypedDict):
    """Charges of one lease, or of one volume, that should not have been charged. `claim`
    can be erased later.
    """

    lease_id: NotRequired[str | None]
    volume_id: NotRequired[str | None]
    lines: list[DisputedLineRequest]
    claim_code: Literal[
        "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
    ]
    claim: NotRequired[str | None]
    evidence: NotRequired[list[DisputeEvidenceRequest]]


class DisputeRulingRequest(TypedDict):
    """`upheld_ppm` for a split only: the renter's part; remainders are the provider's."""

    outcome: Literal["upheld", "rejected", "split"]
    upheld_ppm: NotRequired[int | None]
    reason: NotRequired[str | None]


class DisputeStatementAnswer(TypedDict):
    """A statement of one side. `text` absent although `sha256` is present: the text was
    erased.
    """

    side: Literal["renter", "provider"] | Literal["arbiter"]
    sha256: NotRequired[str]
    text: NotRequired[str]
    evidence: list[DisputeEvidenceAnswer]
    by: str
    at: str
    position: int


class DisputedLineAnswer(TypedDict):
    position: int
    charge: Money
    claimed: Money
    gpu_us: str
    upheld: NotRequired[Money]
    adjustment_id: NotRequired[str]


class DisputedLineRequest(TypedDict):
    """A charge of the lease or volume, by its market position. Without `claimed` all of it."""

    position: int
    claimed: NotRequired[Money | None]


class DriverLibrariesAnswer(TypedDict):
    data: list[DriverLibraryAnswer]
    position: int


class DriverLibraryAnswer(TypedDict):
    driver: str
    sha256: str
    known: bool
    position: NotRequired[int]


class DriverLibraryRequest(TypedDict):
    """The file `libnvidia-ml.so` of a driver version, by its SHA-256."""

    driver: str
    sha256: str


class EarningAnswer(TypedDict):
    """fee + provider + client + platform + burn = charge. `provider` is the provider's
    part; `burn` is retired for it and paid in TOKEN when the epoch is sealed. What volumes
    earn in the provider's regions has neither node_id nor lease_id. `earned` is what this
    account got: of its own leases, or as an owner of the node or as the client that brought
    the job, whose rows hold nothing else. A lease hour counts in the UTC `hour` in which it
    begins.
    """

    account_id: str
    node_id: NotRequired[str]
    lease_id: NotRequired[str]
    hour: NotRequired[str]
    epoch: NotRequired[int]
    accruals: int
    gpu_us: str
    charge: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    client: Money
    earned: Money


class EarningExplanationAnswer(TypedDict):
    """One accrual, step by step: the terms locked at the opening, the totals, and each
    receiver's part. Amounts are computed on the lease's cumulative totals and booked as
    differences.
    """

    position: int
    lease_id: str
    node_id: str
    account_id: str
    hour_index: int
    until: str
    settlement: str
    own_node: bool
    gpu_class: str
    share_ppm: int
    tariff_version: int
    price_per_gpu_hour: Money
    fee_per_gpu_hour: Money
    provider_share_ppm: int
    burn_share_ppm: int
    steps: list[ArithmeticStepAnswer]
    entry: list[BookMovementAnswer]


class EarningPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[EarningAnswer]


class EarningsForgoneAnswer(TypedDict):
    account_id: str
    position: NotRequired[int]


class EarningsMaturityAnswer(TypedDict):
    """held_back -> payable -> earned. `matured`, `reduced`, `swept` are lifetime totals.
    `upcoming`: what matures next, in order, at most 50. `holds`: why no cash-out leaves
    now. `clients`: which compute clients brought it, at most 200, the one that brought most
    first.
    """

    account_id: str
    held_back: Money
    payable: Money
    earned: Money
    matured: Money
    reduced: Money
    swept: Money
    upcoming: list[UpcomingMaturityAnswer]
    holds: list[CashOutHoldAnswer]
    clients: list[BroughtByClientAnswer]
    position: NotRequired[int]


class EdgeDeviceAnswer(TypedDict):
    """Charged for every UTC day from `first_day` to `last_day`, both included. `access`:
    what of the board the one model that runs on it may use. `inference`: how the last
    deployment goes, since `inference_at`; it is pending until the device tells of it.
    """

    device_id: str
    account_id: str
    region_id: str
    name: str
    minion_id: str
    model: Literal[
        "jetson-agx-xavier",
        "jetson-xavier-nx",
        "jetson-agx-orin",
        "jetson-orin-nx",
        "jetson-orin-nano",
    ]
    access: list[Literal["accelerator", "video", "media"]]
    state: Literal["added", "active", "removed"]
    config: NotRequired[str]
    revision: NotRequired[int]
    deployment: NotRequired[int]
    deployed_at: NotRequired[str]
    inference: NotRequired[Literal["pending", "running", "exited"]]
    exit_code: NotRequired[int]
    inference_at: NotRequired[str]
    first_day: str
    last_day: NotRequired[str]
    added_at: str
    removed_at: NotRequired[str]
    position: NotRequired[int]


class EdgeDevicePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[EdgeDeviceAnswer]


class EdgeDeviceRemovedAnswer(TypedDict):
    device_id: str
    last_day: str
    position: NotRequired[int]


class EdgeDeviceRequest(TypedDict):
    """Each add is a new device, also of the same machine, and is charged from today on.
    `name` is unique in the region; `minion_id` is what the machine shows.
    """

    region_id: str
    name: str
    minion_id: str
    model: Literal[
        "jetson-agx-xavier",
        "jetson-xavier-nx",
        "jetson-agx-orin",
        "jetson-orin-nx",
        "jetson-orin-nano",
    ]


class EdgeDeviceStateAnswer(TypedDict):
    device_id: str
    state: Literal["active"]
    position: NotRequired[int]


class EmissionSegmentAnswer(TypedDict):
    start_epoch: int
    n_epochs: int
    total: Money


class EmptyRequest(TypedDict):
    """No fields: `{}`."""


class EpochAnswer(TypedDict):
    """Amounts of TOKEN are there once the epoch is sealed; a sealed epoch never changes."""

    epoch: int
    state: Literal["open", "closing", "sealed", "credited", "settled"]
    start: str
    end: str
    policy_version: int
    opened_at: str
    closing_at: NotRequired[str]
    sealed_at: NotRequired[str]
    sealed_position: NotRequired[int]
    cut_position: NotRequired[int]
    emission: NotRequired[Money]
    compute_pool: NotRequired[Money]
    availability_pool: NotRequired[Money]
    treasury_pool: NotRequired[Money]
    compute_carry_before: NotRequired[Money]
    compute_carry: NotRequired[Money]
    rewards: NotRequired[Money]
    recipients: NotRequired[int]
    chunks: NotRequired[int]
    chunks_credited: int
    chunks_matured: int
    file_sha256: NotRequired[str]
    clients_sha256: NotRequired[str]
    unissued: NotRequired[Money]
    recyclable: NotRequired[Money]
    release: NotRequired[Money]
    returned: NotRequired[Money]
    returned_release: NotRequired[Money]
    availability_carry_before: NotRequired[Money]
    availability_carry: NotRequired[Money]
    compute_weight: NotRequired[str]
    availability_weight: NotRequired[str]
    availability_tier_2_weight: NotRequired[str]
    minted: NotRequired[Money]
    mint_tx_hash: NotRequired[str]
    position: NotRequired[int]


class EpochExplanationAnswer(TypedDict):
    """The way from GPU-seconds to tokens; `paid` is before the cap of an owner, if there is
    one. `clients`: whose work the compute part of it pays for.
    """

    epoch: int
    node_id: str
    account_id: str
    cut_position: int
    policy_version: int
    compute_base: str
    file_sha256: str
    uses: list[FundingSourceUseAnswer]
    score_ppm: NotRequired[int]
    bonus_ppm: int
    burned_tokens: str
    compute: RewardShareAnswer
    devices: list[DeviceTimeAnswer]
    availability_tier_2: RewardShareAnswer
    availability: RewardShareAnswer
    owner_cap: NotRequired[Money]
    paid: Money
    clients: list[RewardClientAnswer]
    reasons: list[str]
    signals: WashSignalsAnswer
    position: int


class EpochPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[EpochAnswer]


class EpochPreviewAnswer(TypedDict):
    """The weights an epoch's compute pool will be split by, as far as the log has been
    read. `nodes`: the largest, at most 1000 lines.
    """

    epoch: int
    is_final: bool
    weights: list[RewardWeightAnswer]
    nodes: list[NodeWeightAnswer]
    position: int


class EpochRewardAnswer(TypedDict):
    account_id: str
    chunk: int
    credited: Money
    matured: Money
    slashed: NotRequired[Money]


class EpochRewardPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[EpochRewardAnswer]


class EscrowDepositAnswer(TypedDict):
    """What is left of one deposit from one source, in the order in which they are drained."""

    deposit: int
    source: str
    account_id: str
    held: Money


class EscrowDrawAnswer(TypedDict):
    """Which credits of the escrow paid."""

    source: str
    amount: Money
    account_id: NotRequired[str]
    purpose: NotRequired[Literal["federated"]]


class EscrowFundingRequest(TypedDict):
    amount: Money


class EscrowLeaseAnswer(TypedDict):
    """A lease that draws on it, or still may. `gpu_ppm`: its devices' shares together."""

    lease_id: str
    phase: Literal["reserved", "running", "closed"]
    gpu_ppm: int
    price_per_gpu_hour: Money
    charged: Money
    opened_at: NotRequired[str]
    closed_at: NotRequired[str]


class ExecutorKeyAnswer(TypedDict):
    """`executor_key` is shown once, in this answer; the key before it ends now."""

    node_id: str
    executor_key: NotRequired[str]
    position: NotRequired[int]


class ExecutorKeyRequest(TypedDict):
    """`sealing_key`: an X25519 key of the executor, hex, to which renters seal what it
    alone may read; `sealing_signature`: by the node's own key over the key and the node's
    id.
    """

    sealing_key: NotRequired[str | None]
    sealing_signature: NotRequired[str | None]


class FaultsByPartyAnswer(TypedDict):
    """How many closed leases ended through the fault of each party. Faults of the network
    and of a client count against no other party.
    """

    none: int
    renter: int
    provider: int
    network: int
    client: int


class FederatedFeeForm(TypedDict):
    inference_per_hour: Money
    training_per_hour: Money
    unit: Literal["worker", "job"]


class FieldError(TypedDict):
    """One broken rule: where, and which."""

    pointer: str
    detail: str


class FirmwareStepRequest(TypedDict):
    step: Literal["tpm_cleared", "csm_off", "secure_boot_off"]


class FlaggedReportAnswer(TypedDict):
    """A stored report that earns nothing, and the rule it broke."""

    seq: int
    lane: int
    usage_position: int
    flags: int
    rule: str
    detail: str
    claimed_us: NotRequired[int]
    recorded_at: str


class FragmentationAnswer(TypedDict):
    """The free parts of devices now, in ppm of a device. `fragmented_ppm`: the free part on
    devices that have a holder, which cannot be sold whole. `room_N`: how many requests for
    N whole devices of one node fit side by side.
    """

    pool: NotRequired[str]
    region: NotRequired[str]
    model: NotRequired[str]
    devices: int
    whole_free: int
    partly_free: int
    free_ppm: str
    free_on_parts_ppm: str
    unsellable_ppm: str
    fragmented_ppm: int
    room_1: int
    room_2: int
    room_4: int
    room_8: int


class FragmentationsAnswer(TypedDict):
    data: list[FragmentationAnswer]
    position: int


class FreeStartForm(TypedDict):
    """The time before a program's start succeeded is free for `at_most_seconds`, and not at
    all for starts that follow on `failed_per_hour` failed ones of the account within an
    hour.
    """

    at_most_seconds: int
    failed_per_hour: int


class FundedAccountAnswer(TypedDict):
    """`used`: of the cap, this month. Without a cap nothing is counted."""

    payer_account_id: str
    funded_account_id: str
    monthly_cap: NotRequired[Money]
    used: NotRequired[Money]
    since: NotRequired[str]
    ended_at: NotRequired[str]
    position: NotRequired[int]


class FundedAccountPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[FundedAccountAnswer]


class FundedAccountRequest(TypedDict):
    """`monthly_cap` absent: as much as you have. Given again, it is set anew."""

    funded_account_id: str
    monthly_cap: NotRequired[Money | None]


class FundingSourceAnswer(TypedDict):
    """One balance, in spend order. `expires_at` of a grant: what is unspent then is lost."""

    source: str
    available: Money
    priority: NotRequired[int]
    expires_at: NotRequired[str]


class FundingSourceUseAnswer(TypedDict):
    """What one funding source paid for. `weight_ppm`: what the policy lets it weigh."""

    source: str
    burned: str
    gpu_us: str
    weight_ppm: int


class FundsForecastAnswer(TypedDict):
    """As things stand now: what is deposited, opened or closed later is not foreseen."""

    account_id: str
    at: str
    leases: list[LeaseForecastAnswer]
    leases_left_out: int
    balances: list[BalanceForecastAnswer]
    position: NotRequired[int]


class FundsSettingsAnswer(TypedDict):
    """`below`: thresholds above the balance when it was last looked at. `auto_top_up`
    absent: off, and `stopped_reason` says why if it was on before.
    """

    account_id: str
    warnings: list[Money]
    below: list[Money]
    auto_top_up: NotRequired[AutoTopUpAnswer]
    stopped_reason: NotRequired[str]
    open_payment_id: NotRequired[str]
    failures: int
    retry_at: NotRequired[str]
    position: NotRequired[int]


class GangAnswer(TypedDict):
    """`lease_ids`: none while it waits, for a waiting gang holds nothing. `place`: how many
    wait before it in the pool's queue, itself included. `ready`: members so far.
    """

    gang_id: str
    job_id: str
    account_id: str
    pool_id: NotRequired[str]
    state: Literal["requested", "reserved", "open", "closed"]
    members: int
    min_members: int
    gpus_per_member: int
    lease_ids: list[str]
    ready: int
    place: NotRequired[int]
    ready_until: NotRequired[str]
    opened_at: NotRequired[str]
    closed_at: NotRequired[str]
    closed_by: NotRequired[str]
    close_code: NotRequired[int]
    requested_at: str
    position: NotRequired[int]


class GangPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[GangAnswer]


class GangRequest(TypedDict):
    """`members` leases of a job of yours, or of a new one; each is one node's devices as
    the job says. `min_members`: fewer do not start; the others may join later (default:
    all). `funds`: of each member. `timeout_seconds`: from the reservation until the last
    one has to be ready, by default the pool's, or ten minutes. A job that names a pool with
    a queue may wait for its turn.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[JobRequest | None]
    members: int
    min_members: NotRequired[int | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    timeout_seconds: NotRequired[int | None]


class GoodwillAdjustmentRequest(TypedDict):
    """Part of a charge, given back at the network's own cost."""

    corrects_position: int
    amount: Money


class GovernorAnswer(TypedDict):
    governor_id: str
    key: str


class GovernorChangeAnswer(TypedDict):
    """`from_epoch`: it comes into force once this epoch was opened."""

    number: int
    action: Literal["enrol", "remove", "threshold"]
    status: Literal["proposed", "scheduled", "applied", "rejected", "cancelled"]
    governor_id: NotRequired[str]
    key: NotRequired[str]
    threshold: NotRequired[int]
    from_epoch: NotRequired[int]
    proposed_by: str
    proposed_at: str
    ballot: BallotAnswer


class GovernorChangeRequest(TypedDict):
    """`enrol`: a public key, and its own signature over the text of `tallystick governor
    v1`. `remove`: a governor. `threshold`: how many votes carry. `governors`: the version
    you have read.
    """

    action: Literal["enrol", "remove", "threshold"]
    governors: int
    key: NotRequired[str | None]
    signature: NotRequired[str | None]
    governor_id: NotRequired[str | None]
    threshold: NotRequired[int | None]


class GovernorVoteRequest(TypedDict):
    """`cancel` stops a change that is scheduled and not in force yet."""

    choice: Literal["yes", "no", "cancel"]
    vote: VoteRequest


class GovernorsAnswer(TypedDict):
    """`mode`: `single` until three governors are enrolled at once, `shared` for ever after.
    `threshold` votes carry what is proposed now.
    """

    network: str
    version: int
    mode: Literal["single", "shared"]
    threshold: int
    governors: list[GovernorAnswer]
    changes: list[GovernorChangeAnswer]
    position: NotRequired[int]


class GpuQuotaAnswer(TypedDict):
    """`runnable_jobs`: how many more jobs of one GPU can start; `limited_by`: what stops
    the next one.
    """

    limit: int
    used: int
    free: int
    gpu: str
    runnable_jobs: int
    limited_by: list[Literal["gpus", "cpus", "local_ssd"]]


class GpuQuotaRequest(TypedDict):
    limit: int
    used: int
    gpu: Literal["P100", "V100", "T4", "A100"]


class GrantAcceptanceRequest(TypedDict):
    """A governor's signed vote: on the `opening`, on one `milestone`, or on the `clawback`."""

    what: Literal["opening", "milestone", "clawback"]
    milestone_id: NotRequired[str | None]
    vote: VoteRequest


class GrantClawbackAnswer(TypedDict):
    scope: Literal["unassigned", "unearned"]
    proposed_by: str


class GrantClawbackRequest(TypedDict):
    """`unassigned`: what has no milestone. `unearned`: all that is not unlocked; the grant
    ends.
    """

    scope: Literal["unassigned", "unearned"]
    reason: str


class GrantMilestoneAnswer(TypedDict):
    milestone_id: str
    share_ppm: int
    amount: Money
    state: Literal["locked", "proposed", "accepted"]
    proposed_by: NotRequired[str]


class GrantMilestoneDoneRequest(TypedDict):
    """`evidence`: where it can be seen that the work is done."""

    milestone_id: str
    evidence: str


class GrantMilestoneRequest(TypedDict):
    """A milestone and its share of the total, in parts per million."""

    milestone_id: str
    share_ppm: int


class HardwareForm(TypedDict):
    """What the rules of joining and selling need; null: not known, an empty list: none.
    Drives in decimal gigabytes; `ram_gb` is what is built in, `cpu_cores` counts no
    threads, `ethernet_mbps` is the fastest port that has a link.
    """

    nvme_drives_gb: NotRequired[list[int] | None]
    sata_drives: NotRequired[list[SataDriveForm] | None]
    tpm_2_0: NotRequired[bool | None]
    ram_gb: NotRequired[int | None]
    cpu_cores: NotRequired[int | None]
    ethernet_mbps: NotRequired[int | None]


class HardwareRulesRequest(TypedDict):
    """The rules of hardware that a region insists on; those of them that a node fails are
    told of it in any case. That there is a GPU, and one model of it, is always needed.
    """

    rules: list[
        Literal[
            "nvme_count",
            "nvme_size",
            "tpm_2_0",
            "sata_drives",
            "ethernet",
            "ram",
            "pcie_lanes",
            "cpu_cores",
        ]
    ]


class HardwareVerdictAnswer(TypedDict):
    """What the rules of hardware say of the node in its region (C-11 to C-18): every rule
    that does not hold, in their order, those among them that are `waived`, and the two
    verdicts that follow from the others. Only nodes that are sellable run jobs of other
    accounts.
    """

    joinable: bool
    sellable: bool
    failing: list[str]
    waived: list[str]


class HealthCountAnswer(TypedDict):
    """How many nodes, or components, are so."""

    health: str
    count: int


class HealthReportAnswer(TypedDict):
    lease_id: str
    half: Literal["initiator", "acceptor"]
    well: bool
    position: NotRequired[int]


class HostForm(TypedDict):
    """The machine around the accelerators; null: not known."""

    arch: str
    os: str
    cpu_cores: NotRequired[int | None]
    ram_mib: NotRequired[int | None]
    driver: NotRequired[str | None]
    kernel: NotRequired[str | None]
    substrate: NotRequired[list[str] | None]


class IdleMiningRequest(TypedDict):
    """Whether the machine mines while no lease runs on it."""

    enabled: bool


class IngressBytesAnswer(TypedDict):
    node_id: str
    position: NotRequired[int]


IngressBytesRequest = TypedDict(
    "IngressBytesRequest", {"from": "str", "until": "str", "bytes_in": "int", "bytes_out": "int"}
)


class IngressDayAnswer(TypedDict):
    node_id: str
    date: str
    bytes_in: int
    bytes_out: int
    until: str


class IngressDaysAnswer(TypedDict):
    region_id: str
    data: list[IngressDayAnswer]
    position: int


class IngressLoadAnswer(TypedDict):
    """`leases`: those that hold something of its workers now. `served_gpu_us`: in this
    epoch.
    """

    node_id: str
    workers: int
    leases: int
    served_gpu_us: str


class IngressLoadsAnswer(TypedDict):
    region_id: str
    data: list[IngressLoadAnswer]
    position: int


class InstalledMachineRequest(TypedDict):
    """`minion_id`: what the machine shows once it started from its boot drive, which stays
    in.
    """

    minion_id: str


class InvitationAnswer(TypedDict):
    """`code` is there only in the answer that makes it. With it the invitee becomes a
    member.
    """

    invitation_id: str
    member_id: str
    role: Literal["owner", "admin", "billing", "member", "viewer"]
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    key_expires_at: NotRequired[str]
    expires_at: str
    code: NotRequired[str]
    position: NotRequired[int]


class InvitationRedeemRequest(TypedDict):
    code: str


class InvitationRedeemedAnswer(TypedDict):
    """`account_id`: the account whose member you are now."""

    key_id: str
    member_id: str
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    opens: NotRequired[
        list[
            Literal[
                "account",
                "account:admin",
                "provider",
                "renter",
                "client",
                "billing:read",
                "earnings:read",
                "payout:read",
                "payout:approve",
                "operator",
                "audit:read",
                "meter",
                "oracle:write",
            ]
        ]
    ]
    succeeds: NotRequired[str]
    expires_at: NotRequired[str]
    revoked_at: NotRequired[str]
    key: NotRequired[str]
    position: NotRequired[int]
    account_id: str


class InvitationRequest(TypedDict):
    """The invitee's first key has these `scopes`, which the role may hold and the key you
    call with has; it ends at `key_expires_at`, or with your key. `member_id`: a present
    member, for another key, redeemed with one of their own. `expires_at` absent: in 24
    hours.
    """

    role: Literal["owner", "admin", "billing", "member", "viewer"]
    scopes: list[
        Literal[
            "account",
            "account:admin",
            "provider",
            "renter",
            "client",
            "billing:read",
            "earnings:read",
            "payout:read",
            "payout:approve",
            "operator",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    member_id: NotRequired[str | None]
    key_expires_at: NotRequired[str | None]
    expires_at: NotRequired[str | None]


class InvitationWithdrawnAnswer(TypedDict):
    invitation_id: str
    position: NotRequired[int]


class InvitationsAnswer(TypedDict):
    data: list[InvitationAnswer]
    position: int


class InvoiceAnswer(TypedDict):
    """The whole document. `canonical` is the text whose SHA-256 is in the fact."""

    account_id: str
    written_number: str
    document: Literal["invoice", "credit_note"]
    kind: Literal["charges", "earnings"]
    period: NotRequired[str]
    corrects: NotRequired[str]
    net: Money
    total: Money
    document_sha256: str
    issued_at: str
    recorded_position: int
    lines: list[InvoiceLineAnswer]
    taxes: list[InvoiceTaxAnswer]
    first_position: NotRequired[int]
    last_position: NotRequired[int]
    cause: NotRequired[str]
    reason: NotRequired[str]
    credit_notes: list[str]
    canonical: str
    position: int


class InvoiceIssuedAnswer(TypedDict):
    """What was issued; it is read at its address."""

    account_id: str
    written_number: str
    total: Money
    document_sha256: str
    position: NotRequired[int]


class InvoiceLineAnswer(TypedDict):
    """One line: how much of what, at which amount. `credited`: what later credit notes took
    off.
    """

    what: str
    detail: NotRequired[str]
    quantity: NotRequired[str]
    unit: NotRequired[str]
    amount: Money
    credited: NotRequired[Money]


class InvoiceRequest(TypedDict):
    """Issue one month's invoice now; the monthly job issues all others."""

    period: str
    kind: NotRequired[Literal["charges", "earnings"]]


class InvoiceSummaryAnswer(TypedDict):
    """An invoice, or a credit note that corrects one."""

    account_id: str
    written_number: str
    document: Literal["invoice", "credit_note"]
    kind: Literal["charges", "earnings"]
    period: NotRequired[str]
    corrects: NotRequired[str]
    net: Money
    total: Money
    document_sha256: str
    issued_at: str
    recorded_position: int


class InvoiceSummaryPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[InvoiceSummaryAnswer]


class InvoiceTaxAnswer(TypedDict):
    """Part of the total: prices include tax. `remainder` is what the floor left out."""

    name: str
    rate_ppm: int
    net: Money
    tax: Money
    remainder: str


class JobAnswer(TypedDict):
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
    kind: Literal["batch", "notebook", "endpoint", "scheduled", "queue", "interactive"]
    image: NotRequired[str]
    command: list[str]
    env_refs: list[str]
    workload_sha256: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    max_price_per_gpu_hour: Money
    federated: NotRequired[Literal["inference", "training"]]
    participants: NotRequired[list[str]]
    sla_class: NotRequired[str]
    auto_restart: NotRequired[bool]
    constraints: NotRequired[NodeDemandsForm]
    work: NotRequired[Literal["inference", "training"]]
    references: NotRequired[list[JobReferenceForm]]
    plan: NotRequired[JobPlanForm]
    parent_job_id: NotRequired[str]
    instance_id: NotRequired[str]
    meter_maxima: NotRequired[list[MeterMaxForm]]
    volumes: NotRequired[list[VolumeMountForm]]
    attached: NotRequired[JobAttachmentsForm]
    state: Literal["open", "cancelled", "completed", "failed"]
    submitted_at: str
    ended_at: NotRequired[str]
    position: NotRequired[int]


class JobAttachmentAnswer(TypedDict):
    """A lease that has the volume, or had it until `detached_at`."""

    lease_id: str
    job_id: str
    node_id: str
    path: str
    read_only: bool
    attached_at: str
    detached_at: NotRequired[str]
    cause: NotRequired[Literal["lease_over", "funds_ended"]]


class JobAttachmentsForm(TypedDict):
    """What a job uses of a region of yours. It runs there and nowhere else; a lease of it
    holds the reservation until it ends.
    """

    mounts: NotRequired[list[StoreMountForm]]
    reservation_id: NotRequired[str | None]


class JobCancelledAnswer(TypedDict):
    job_id: str
    state: Literal["open", "cancelled", "completed", "failed"]
    position: NotRequired[int]


class JobCostAnswer(TypedDict):
    """What the leases of one job came to; each lease is in exactly one job."""

    job_id: str
    parent_job_id: NotRequired[str]
    kind: str
    state: str
    leases: int
    open_leases: int
    gpu_us: str
    charge: Money


class JobEscrowAnswer(TypedDict):
    """`funds_end_at`: the second at which every lease that runs on it ends; absent: none
    runs. Another account that paid into it is told what it holds of that account's
    deposits, and no more.
    """

    job_id: str
    account_id: str
    put_in: NotRequired[Money]
    held: Money
    funds_end_at: NotRequired[str]
    deposits: list[EscrowDepositAnswer]
    leases: list[EscrowLeaseAnswer]
    position: NotRequired[int]


class JobExplanationAnswer(TypedDict):
    """`matches`: the recorded decisions. `now`: of an open job without one, what it would
    get at this moment, and if nothing, which demand to ease.
    """

    job_id: str
    matches: list[LeaseMatchAnswer]
    now: NotRequired[JobQuoteAnswer]
    position: int


class JobPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[JobAnswer]


class JobPartAnswer(TypedDict):
    """A chunk or a member by its latest lease. `charge`: of all its leases, as accrued."""

    part: int
    attempt: int
    lease_id: str
    node_id: NotRequired[str]
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    close_code: NotRequired[int]
    charge: Money


class JobPartPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[JobPartAnswer]


class JobPlanForm(TypedDict):
    """Which leases the server opens for the job. `chunks`: a batch job in so many parts,
    complete when all are. `min_members` to `max_members`: members that are kept running,
    replaced when lost; of a queue job one for each `tasks_per_member` open tasks.
    `schedule`: five fields of cron, UTC: a lease at each due time. `run_seconds`: fixed
    term of each of these leases; absent: open end.
    """

    chunks: NotRequired[int | None]
    min_members: NotRequired[int | None]
    max_members: NotRequired[int | None]
    tasks_per_member: NotRequired[int | None]
    schedule: NotRequired[str | None]
    run_seconds: NotRequired[int | None]


class JobQuoteAnswer(TypedDict):
    """What a request would get now; nothing is recorded and nothing is held. `impossible`
    names the demand that no registered node could ever meet. `free_by`: all matching GPUs
    are leased, and the next is free by then, unless its lease is extended. `nearest`: where
    nothing is offered, the cheapest node that lacks only room or money; beside an offer one
    that lacks only room and costs less.
    """

    rule: str
    fleet_position: int
    nodes: int
    considered: int
    offered: NotRequired[QuotedPlacementAnswer]
    nearest: NotRequired[QuoteNearestAnswer]
    runner_up: NotRequired[str]
    deciding: NotRequired[str]
    candidates: list[MatchCandidateAnswer]
    dimensions: list[MatchDimensionAnswer]
    relaxations: list[MatchRelaxationAnswer]
    impossible: NotRequired[str]
    free_by: NotRequired[str]
    position: int


class JobQuoteRequest(TypedDict):
    """A job of yours, or a new one that is not submitted. `term_seconds`: a fixed term;
    else what an hour costs, or `funds`, is what the balance must hold.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[JobRequest | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]


class JobReferenceForm(TypedDict):
    """Something the job uses that is kept elsewhere: the name of a key in a secret store,
    or the address of a checkpoint or a data set, without user, password and query; of a
    `workspace`, which was kept here, its digest. Never a secret.
    """

    kind: Literal["third_party_key", "checkpoint", "dataset", "workspace"]
    name: str


class JobRequest(TypedDict):
    """An image or a command, and what it needs: `share_ppm` on each of `gpu_count` devices.
    `env_refs` name secrets and never hold one. `models` empty: any model. `federated`: the
    accounts in `participants` may lease for it in projects of theirs, and pay the usage;
    the federated fee of the tariff is yours. `sla_class`: an availability that the tariff
    promises. `auto_restart`: a lease of it whose funds ended is opened anew when the
    balance funds an hour. `constraints`: what else its nodes must be and have; of a
    `mig_profile` the shares are the profile's. `work`: what it does; of a federated job it
    settles the fee, and an endpoint is inference. `plan`: which leases are opened for it.
    `parent_job_id`: a job of yours that it is a part of; their costs add up.
    `meter_maxima`: what each of its leases is charged at most for a resource beside the
    GPU, held with its escrow; a resource that is not named is charged nothing. `volumes`:
    what its leases mount; they run in the region of the volumes.
    """

    kind: NotRequired[Literal["batch", "notebook", "endpoint", "scheduled", "queue", "interactive"]]
    image: NotRequired[str | None]
    command: NotRequired[list[str]]
    env_refs: NotRequired[list[str]]
    gpu_count: NotRequired[int]
    share_ppm: NotRequired[int]
    mem_ppm: NotRequired[int | None]
    models: NotRequired[list[str]]
    max_price_per_gpu_hour: Money
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    federated: NotRequired[Literal["inference", "training"] | None]
    participants: NotRequired[list[str]]
    sla_class: NotRequired[str | None]
    auto_restart: NotRequired[bool]
    constraints: NotRequired[NodeDemandsForm | None]
    work: NotRequired[Literal["inference", "training"] | None]
    references: NotRequired[list[JobReferenceForm]]
    plan: NotRequired[JobPlanForm | None]
    parent_job_id: NotRequired[str | None]
    meter_maxima: NotRequired[list[MeterMaxForm]]
    volumes: NotRequired[list[VolumeMountForm]]
    attached: NotRequired[JobAttachmentsForm | None]


class JobRestartRequest(TypedDict):
    """No fields: `{}`."""


class JobRestartedAnswer(TypedDict):
    """`restart_of`: the lease whose funds ended."""

    lease_id: str
    job_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    node_id: NotRequired[str]
    offer_id: NotRequired[str]
    device_ids: NotRequired[list[str]]
    share_ppm: int
    mem_ppm: int
    mode: NotRequired[Literal["whole", "mig", "mps", "time_slice", "memory"]]
    mig_profile: NotRequired[str]
    mig_starts: NotRequired[list[int]]
    gpu_class: NotRequired[str]
    price_per_gpu_hour: NotRequired[Money]
    usage_fee_per_gpu_hour: NotRequired[Money]
    settlement: NotRequired[Literal["cash", "burn"]]
    held: Money
    waits_for: NotRequired[str]
    reserved_at: NotRequired[str]
    pricing: NotRequired[str]
    position: NotRequired[int]
    restart_of: str


class JobScaleRequest(TypedDict):
    """Within `min_members` and `max_members` of the job's plan."""

    members: int


class JobScaledAnswer(TypedDict):
    """`closing`: leases that end with this, billed up to now. Those to be added follow."""

    job_id: str
    members: int
    closing: list[str]
    position: NotRequired[int]


class JobTreeCostAnswer(TypedDict):
    """A job with all that is part of it: `charge` is the sum over their leases, as accrued."""

    job_id: str
    leases: int
    open_leases: int
    gpu_us: str
    charge: Money
    jobs: list[JobCostAnswer]
    next_run_at: NotRequired[str]
    position: NotRequired[int]


class JobVolumesAnswer(TypedDict):
    """What the next leases of the job mount."""

    job_id: str
    volumes: list[VolumeMountForm]
    position: NotRequired[int]


class JoinCodeAnswer(TypedDict):
    """Type `code` at the machine within ten minutes; it works once."""

    region_id: str
    expires_at: str
    code: NotRequired[str]
    position: NotRequired[int]


class JoinCodeRequest(TypedDict):
    """`lifetime`: an ephemeral node is retired with the last lease on it.
    `owner_account_id`: of the machine, if it is not the provider's own.
    """

    region_id: str
    owner_account_id: NotRequired[str | None]
    lifetime: NotRequired[Literal["permanent", "ephemeral"]]


class JournalLineAnswer(TypedDict):
    """One account's part of one posting: debits above zero, credits below."""

    name: str
    movement: SignedMoney
    balance_after: Money
    type: str
    lease_id: NotRequired[str]
    at: str
    recorded_at: str
    position: int


class JournalLinePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[JournalLineAnswer]


class KeyRecoveriesAnswer(TypedDict):
    """Newest last."""

    data: list[KeyRecoveryAnswer]
    position: NotRequired[int]


class KeyRecoveryAnswer(TypedDict):
    """A new key of the operator. It works from `effective_at` on unless it is cancelled
    before.
    """

    number: int
    status: Literal["waiting", "cancelled", "ended"]
    member_id: str
    key_id: str
    announced_at: str
    effective_at: str
    ballot: BallotAnswer


class KeyRecoveryCancelRequest(TypedDict):
    """`vote`: a governor's signed `cancel`; needed once a governor is enrolled."""

    vote: NotRequired[VoteRequest | None]


class LateUsageAdjustmentRequest(TypedDict):
    """A settled lease whose late reports are to be charged."""

    lease_id: str


class LeaseAcceptorAnswer(TypedDict):
    """`reported_at`: when the node's last signed report was stored. If the node is silent,
    its work counts as silent, whatever its executor reports. `node_state`: what the node is
    now, in one word; `heard_at`: when it last told its inventory or sent a report.
    `has_executor`: its owner has given an executor a key; without one nothing starts the
    work by itself. These three are told until the lease is closed.
    """

    account_id: str
    machine: NotRequired[str]
    arch: NotRequired[str]
    os: NotRequired[str]
    kernel: NotRequired[str]
    health: Literal["well", "unwell", "silent", "unknown"]
    detail: NotRequired[str]
    since: NotRequired[str]
    seen_at: NotRequired[str]
    node_id: NotRequired[str]
    node_state: NotRequired[
        Literal[
            "joining",
            "confirmed",
            "provisioning",
            "maintenance",
            "active",
            "offline",
            "stopped",
            "errored",
            "failed",
            "archived",
        ]
    ]
    heard_at: NotRequired[str]
    has_executor: NotRequired[bool]
    substrate: NotRequired[list[str]]
    reported_at: NotRequired[str]


class LeaseAnswer(TypedDict):
    """A lease as far as it has come. `charge` and `gpu_us` are what has been billed so far,
    each full hour and the rest at the end; `estimate`, while it runs, is what it comes to
    by the reports received, to the second. `project_id` and `end_user_ref` are not told to
    the provider. `remoting_session_id` and `split_label` name the session and the part of
    the program that a layer forwards to the devices, `route_id` the network route that its
    traffic takes.
    """

    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    max_price_per_gpu_hour: Money
    term_seconds: NotRequired[int]
    funds: NotRequired[Money]
    requested_at: str
    node_id: NotRequired[str]
    provider_id: NotRequired[str]
    provider_account_id: NotRequired[str]
    offer_id: NotRequired[str]
    device_ids: NotRequired[list[str]]
    mode: NotRequired[Literal["whole", "mig", "mps", "time_slice", "memory"]]
    mig_profile: NotRequired[str]
    mig_starts: NotRequired[list[int]]
    gpu_class: NotRequired[str]
    price_per_gpu_hour: NotRequired[Money]
    usage_fee_per_gpu_hour: NotRequired[Money]
    settlement: NotRequired[Literal["cash", "burn"]]
    own_node: NotRequired[bool]
    tariff_version: NotRequired[int]
    escrow: NotRequired[Money]
    reserved_at: NotRequired[str]
    endpoint: NotRequired[str]
    opened_at: NotRequired[str]
    funds_end_at: NotRequired[str]
    term_end_at: NotRequired[str]
    closed_at: NotRequired[str]
    closed_by: NotRequired[Literal["renter", "client", "provider", "job", "operator"]]
    close_code: NotRequired[int]
    settled_at: NotRequired[str]
    archived_at: NotRequired[str]
    quoted_until: NotRequired[str]
    paused_at: NotRequired[str]
    degraded_since: NotRequired[str]
    reclaim_deadline: NotRequired[str]
    reclaim_window_seconds: NotRequired[int]
    interruptible: NotRequired[bool]
    revised_close_code: NotRequired[int]
    sla_class: NotRequired[str]
    client_account_id: NotRequired[str]
    federated_account_id: NotRequired[str]
    federated_fee_per_hour: NotRequired[Money]
    restart_of: NotRequired[str]
    escrow_id: NotRequired[str]
    remoting_session_id: NotRequired[str]
    split_label: NotRequired[str]
    route_id: NotRequired[str]
    part: NotRequired[int]
    attempt: NotRequired[int]
    run_due_at: NotRequired[str]
    overflow: NotRequired[bool]
    restarted_as: NotRequired[str]
    charge: Money
    gpu_us: str
    hours_accrued: int
    estimate: NotRequired[LeaseEstimateAnswer]
    version: int
    position: NotRequired[int]


class LeaseChargeAnswer(TypedDict):
    """What one accrual cost and where it went: fee + provider + client + platform + burn =
    charge. The federated fee is beside the charge, paid by the job's creator.
    """

    hour_index: int
    until: str
    gpu_us: str
    charge: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    client: NotRequired[Money]
    owners: NotRequired[list[OwnerShareAnswer]]
    federated: NotRequired[Money]
    drawn: list[EscrowDrawAnswer]
    cumulative_charge: Money
    position: int


class LeaseChargePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseChargeAnswer]


class LeaseCheckInRequest(TypedDict):
    """A machine of the renter's that uses the lease. `well`: it reaches the node and goes
    on.
    """

    machine: str
    arch: NotRequired[str | None]
    os: NotRequired[str | None]
    kernel: NotRequired[str | None]
    well: NotRequired[bool]
    detail: NotRequired[str]


class LeaseClosedAnswer(TypedDict):
    """A second call changes nothing and answers with the end of the first one."""

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    closed_at: str
    closed_by: Literal["renter", "client", "provider", "job", "operator"]
    close_code: int
    charge: Money
    position: NotRequired[int]


class LeaseClosingRequest(TypedDict):
    """`code` absent: the renter's 1 (or 101 before the start), the provider's 10002, the
    operator's 20002. `evidence_sha256`: of what the party can show for it.
    """

    code: NotRequired[int | None]
    evidence_sha256: NotRequired[str | None]


class LeaseEstimateAnswer(TypedDict):
    """What a lease has used and costs so far: what is billed, and what the reports received
    since would add. An estimate until the lease is settled; `until` is the last moment it
    covers.
    """

    gpu_us: str
    charge: Money
    until: str


class LeaseExtensionRequest(TypedDict):
    """How much longer, in seconds; all of it is held at once, at the locked price."""

    seconds: int


class LeaseFactAnswer(TypedDict):
    type: str
    at: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    version: int
    position: int


class LeaseFactPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseFactAnswer]


class LeaseForecastAnswer(TypedDict):
    """A running lease. It ends at `ends_at`: its funds end then, or its term. Absent
    `funds_end_at`: it never runs out. `charge_per_hour` is for all of its devices.
    """

    lease_id: str
    settlement: Literal["cash", "burn"]
    price_per_gpu_hour: Money
    gpu_ppm_total: int
    charge_per_hour: Money
    held: Money
    funds_end_at: NotRequired[str]
    term_end_at: NotRequired[str]
    ends_at: NotRequired[str]


class LeaseHalfHealthAnswer(TypedDict):
    """`health`: well or unwell, as reported; silent, when no report came for three minutes
    while the lease runs; unknown, when no report ever came. `since`: the time of the
    present value.
    """

    account_id: str
    machine: NotRequired[str]
    arch: NotRequired[str]
    os: NotRequired[str]
    kernel: NotRequired[str]
    health: Literal["well", "unwell", "silent", "unknown"]
    detail: NotRequired[str]
    since: NotRequired[str]
    seen_at: NotRequired[str]


class LeaseHealthAnswer(TypedDict):
    """The initiator pays, the acceptor's owner earns."""

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    remoting_session_id: NotRequired[str]
    initiator: LeaseHalfHealthAnswer
    acceptor: LeaseAcceptorAnswer
    position: NotRequired[int]


class LeaseHourAnswer(TypedDict):
    """One accrual: an hour of the lease, or its last part."""

    hour_index: int
    hour: str
    until: str
    gpu_us: str
    refused_us: str
    charge: Money
    position: int


class LeaseHourPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseHourAnswer]


class LeaseMatchAnswer(TypedDict):
    """Why this node: the candidates, best first, by the rule. `deciding` is what put the
    first before the second. `recomputed`: the recorded choice follows from the recorded
    inputs.
    """

    lease_id: str
    rule: str
    fleet_position: int
    considered: int
    node_id: str
    offer_id: str
    device_ids: list[str]
    rank: int
    runner_up: NotRequired[str]
    deciding: NotRequired[str]
    weights: NotRequired[MatchWeightsForm]
    candidates: list[MatchCandidateAnswer]
    dimensions: NotRequired[list[MatchDimensionAnswer]]
    recomputed: bool
    differences: list[str]
    decided_at: str


class LeaseOpenedAnswer(TypedDict):
    """Reserved, and waiting for the node; or it `waits_for` a pool that keeps a queue, for
    bids or for devices, and has no node, devices and price yet. `held` is what the escrow
    holds. `mode`: how the lease shares each device; a MIG instance begins at the memory
    slice of `mig_starts`, one per device.
    """

    lease_id: str
    job_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    node_id: NotRequired[str]
    offer_id: NotRequired[str]
    device_ids: NotRequired[list[str]]
    share_ppm: int
    mem_ppm: int
    mode: NotRequired[Literal["whole", "mig", "mps", "time_slice", "memory"]]
    mig_profile: NotRequired[str]
    mig_starts: NotRequired[list[int]]
    gpu_class: NotRequired[str]
    price_per_gpu_hour: NotRequired[Money]
    usage_fee_per_gpu_hour: NotRequired[Money]
    settlement: NotRequired[Literal["cash", "burn"]]
    held: Money
    waits_for: NotRequired[str]
    reserved_at: NotRequired[str]
    pricing: NotRequired[str]
    position: NotRequired[int]


class LeasePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseAnswer]


class LeasePricingRequest(TypedDict):
    """How the lease is priced. An auction (`reverse_auction`, `second_price`) waits for
    bids until `closes_in_seconds` from now; `pick`: the cheapest wins by itself, or you
    accept one. A standing bid (`continuous_bid`) has `bid`. A reserved term (`reserved`)
    has `months`.
    """

    module: str
    closes_in_seconds: NotRequired[int]
    deposit: NotRequired[Money | None]
    bids_max: NotRequired[int | None]
    pick: NotRequired[Literal["cheapest", "renter"]]
    bid: NotRequired[Money | None]
    months: NotRequired[Literal[1, 3, 6] | None]


class LeaseQuoteAnswer(TypedDict):
    """A price that holds until `expires_at`. Nothing is held for it, and no device either."""

    quote_id: str
    lease_id: str
    job_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    node_id: str
    offer_id: str
    device_ids: list[str]
    price_per_gpu_hour: Money
    reclaim_window_seconds: NotRequired[int]
    expires_at: str
    position: NotRequired[int]


class LeaseQuoteRequest(TypedDict):
    """As for a lease; `valid_seconds`: how long the price is promised."""

    job_id: NotRequired[str | None]
    job: NotRequired[JobRequest | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    refill: NotRequired[bool]
    project_id: NotRequired[str | None]
    encryption_key: NotRequired[str | None]
    remoting_session_id: NotRequired[str | None]
    split_label: NotRequired[str | None]
    route_id: NotRequired[str | None]
    pricing: NotRequired[LeasePricingRequest | None]
    valid_seconds: NotRequired[int]


class LeaseReadinessRequest(TypedDict):
    """Where the renter reaches the work, if anywhere. `credentials`: base64 of a libsodium
    sealed box for the key that the renter named; only the renter can open it.
    """

    endpoint: NotRequired[str | None]
    credentials: NotRequired[str | None]


class LeaseReadyAnswer(TypedDict):
    """Billing starts at `opened_at`; it ends at `funds_end_at` or at the term's end. In a
    gang that is the moment the last member is ready: before it, neither is there.
    """

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    opened_at: NotRequired[str]
    funds_end_at: NotRequired[str]
    term_end_at: NotRequired[str]
    position: NotRequired[int]


class LeaseReclaimRequest(TypedDict):
    """Why, by a provider's code: 10000 unstable, 10001 decommission, 10002 unspecified."""

    code: NotRequired[int]


class LeaseRequest(TypedDict):
    """A job of yours, or a new one. `term_seconds`: a fixed term, paid for in full
    beforehand; else the lease runs until it is closed or `funds` end (default: one hour's
    price). `settlement` absent: any that the account has credits for. `refill`: an
    open-ended lease is topped up from the balance, an hour at a time, before its funds end.
    `project_id`: your project that takes part in a federated job of another account;
    absent: the job's. `encryption_key`: an X25519 key of yours, hex; the node seals to it
    what is needed to reach the work. `remoting_session_id` and `split_label` name a session
    of a layer that forwards calls to the devices, and the part of the program it forwards;
    `route_id` names the network route across clusters that its traffic takes; they cost
    nothing. `pricing` absent: at the offer's price, or as the job's pool prices.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[JobRequest | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    refill: NotRequired[bool]
    project_id: NotRequired[str | None]
    encryption_key: NotRequired[str | None]
    remoting_session_id: NotRequired[str | None]
    split_label: NotRequired[str | None]
    route_id: NotRequired[str | None]
    pricing: NotRequired[LeasePricingRequest | None]


class LeaseResourceAnswer(TypedDict):
    """One meter of a lease: all that counts, its price, and where the charge went.
    `measured` sums rows: microseconds of processor, byte-seconds or bytes; `quantity` is
    that in whole units; `charge` is floor(quantity x price / per). `agreed`: the most that
    the renter pays.
    """

    lease_id: str
    node_id: str
    meter: Literal["cpu", "memory", "storage", "network"]
    unit: str
    measured: str
    quantity: str
    price: Money
    per: str
    tariff_version: int
    charge: Money
    provider: Money
    platform: Money
    burn: Money
    agreed: NotRequired[Money]
    rows: int
    through_position: int
    accrued_at: str
    accrued_position: int


class LeaseResourcesAnswer(TypedDict):
    """`used`: what the node signed; absent: nothing. `resources`: what of it was charged; a
    meter that is not there costs nothing, as the renter agreed to no maximum or it has no
    price.
    """

    lease_id: str
    used: NotRequired[LeaseUsedAnswer]
    resources: list[LeaseResourceAnswer]
    position: int


class LeaseResultsAnswer(TypedDict):
    """`is_listed`: the node has said which files there are. `missing`: pieces that it has
    still to send. `left_out`: what does not come back, or all of it where the node or the
    server refused.
    """

    lease_id: str
    missing: list[str]
    position: NotRequired[int]
    is_listed: bool
    files: list[WorkspaceFileForm]
    left_out: list[ResultLeftOutForm]


class LeaseResultsDeletedAnswer(TypedDict):
    """`is_deleted`: there was something, and nothing of it is kept any more."""

    lease_id: str
    is_deleted: bool
    position: NotRequired[int]


class LeaseResultsRequest(TypedDict):
    """The files that lie under the paths which the workspace asks back, and what is left
    out.
    """

    files: list[WorkspaceFileForm]
    left_out: NotRequired[list[ResultLeftOutForm]]


class LeaseSecretsAnswer(TypedDict):
    lease_id: str
    position: NotRequired[int]


class LeaseSecretsRequest(TypedDict):
    """`sealed`: base64 of a libsodium sealed box for the executor's sealing key, over the
    JSON `{"lease_id": ..., "variables": {...}}`. The server cannot open it.
    """

    sealed: str


class LeaseStateAnswer(TypedDict):
    """A lease after a turn. Moments that go with other states are absent."""

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    funds_end_at: NotRequired[str]
    term_end_at: NotRequired[str]
    paused_at: NotRequired[str]
    reclaim_deadline: NotRequired[str]
    reclaim_code: NotRequired[int]
    held: Money
    position: NotRequired[int]


class LeaseStepAnswer(TypedDict):
    """One fact: its cause, its actor, the state it led to, and its money. `by_timer`: the
    server's own timer. `fault`: the party that the code names.
    """

    type: str
    position: int
    version: int
    at: str
    recorded_at: str
    state_before: NotRequired[
        Literal[
            "requested",
            "quoted",
            "reserved",
            "gang_waiting",
            "active",
            "paused",
            "degraded",
            "reclaiming",
            "closing",
            "settled",
            "disputed",
            "resolved",
            "archived",
        ]
    ]
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    party: str
    by: NotRequired[str]
    by_timer: bool
    code: NotRequired[int]
    reason: NotRequired[str]
    fault: NotRequired[Literal["none", "renter", "provider", "network", "client"]]
    command_id: NotRequired[str]
    money: list[LeaseStepLineAnswer]


class LeaseStepLineAnswer(TypedDict):
    """One line of the books: debits are positive. Of accounts that are others' the name is
    `*`.
    """

    account: str
    asset: str
    units: str


class LeaseStepPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseStepAnswer]


class LeaseTopUpRequest(TypedDict):
    """`federated`: into what pays the federated fee, which is the job creator's."""

    amount: Money
    federated: NotRequired[bool]


class LeaseToppedUpAnswer(TypedDict):
    """`funds_end_at`: absent while the lease waits for its node, and for an account that
    may not read the lease.
    """

    lease_id: str
    deposited: Money
    funds_end_at: NotRequired[str]
    position: NotRequired[int]


class LeaseTransfersAnswer(TypedDict):
    """Bytes over the network, as the lease's node signed them, in and out; and the datasets
    that its job names. `measured_us` is the time in which they could be measured.
    """

    lease_id: str
    job_id: str
    route_id: NotRequired[str]
    received_bytes: str
    sent_bytes: str
    bytes: str
    measured_us: str
    datasets: list[str]
    position: int


class LeaseTurnRequest(TypedDict):
    """No fields: `{}`."""


class LeaseUseAnswer(TypedDict):
    """`gpu_us` and `charge` are estimates while `is_final` is false: reports still under
    way add to them. `busy_ppm`: how busy the devices were over the last `busy_seconds` that
    the node reported; absent where that cannot be measured. `reported_until`: to where the
    node has told its use.
    """

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    opened_at: NotRequired[str]
    closed_at: NotRequired[str]
    gpu_us: str
    charge: Money
    is_final: bool
    reported_until: NotRequired[str]
    busy_ppm: NotRequired[int]
    busy_seconds: NotRequired[int]
    position: NotRequired[int]


LeaseUsedAnswer = TypedDict(
    "LeaseUsedAnswer",
    {
        "cpu_us": "str",
        "memory_byte_s": "str",
        "storage_byte_s": "str",
        "received_bytes": "str",
        "sent_bytes": "str",
        "rows": "int",
        "time_us": "str",
        "known": "UsedKnownAnswer",
        "from": "str",
        "to": "str",
    },
)


class LeaseWorkAnswer(TypedDict):
    """`credentials` are sealed to the key the renter named: base64 of a libsodium sealed
    box. `sealing_key`: the executor's X25519 key, for what it alone may read;
    `sealing_signature` is over it by `node_key`, which signed the node's usage then.
    """

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    acknowledged_at: NotRequired[str]
    free_start_us: NotRequired[int]
    start_us: NotRequired[int]
    ended_at: NotRequired[str]
    exit_code: NotRequired[int]
    stopped_at: NotRequired[str]
    position: NotRequired[int]
    executor: NotRequired[str]
    runner: NotRequired[Literal["process", "trusted", "docker", "other"]]
    workload_sha256: NotRequired[str]
    outcome: NotRequired[Literal["exited", "limited", "lost", "not_started"]]
    endpoint: NotRequired[str]
    credentials: NotRequired[str]
    node_id: NotRequired[str]
    node_key: NotRequired[str]
    sealing_key: NotRequired[str]
    sealing_signature: NotRequired[str]


class LeaseWorkloadAnswer(TypedDict):
    """What the executor runs. `workload_sha256` covers all of it but the kind. `references`
    name keys, checkpoints and datasets, and hold no secret.
    """

    kind: str
    image: NotRequired[str]
    command: list[str]
    env_refs: list[str]
    references: NotRequired[list[JobReferenceForm]]
    mounts: NotRequired[list[StoreMountAnswer]]
    reserved_port: NotRequired[ReservedPortAnswer]
    workload_sha256: str


class LeaseWorkspaceAnswer(TypedDict):
    """What the job of the lease brings. `sealed`: variables in a box that the executor's
    sealing key opens, once the renter has sent them.
    """

    lease_id: str
    workspace: WorkspaceContentsForm
    sealed: NotRequired[str]
    position: NotRequired[int]


LicenceAnswer = TypedDict(
    "LicenceAnswer",
    {
        "licence_id": "str",
        "provider_id": "str",
        "vendor": "str",
        "model": "str",
        "seats": "int",
        "terms_sha256": "str",
        "from": "str",
        "until": "NotRequired[str]",
        "granted_at": "str",
        "revoked_at": "NotRequired[str]",
        "position": "NotRequired[int]",
    },
)


class LicencePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LicenceAnswer]


LicenceRequest = TypedDict(
    "LicenceRequest",
    {
        "provider_id": "str",
        "vendor": "str",
        "model": "str",
        "seats": "int",
        "terms_sha256": "str",
        "from": "str",
        "until": "NotRequired[str | None]",
    },
)


class LicenceRevokedAnswer(TypedDict):
    licence_id: str
    revoked: bool
    position: NotRequired[int]


class LifetimeRewardsAnswer(TypedDict):
    """Ever credited, ever matured (what the next leaf holds), ever claimed on chain."""

    account_id: str
    credited: Money
    matured: Money
    claimed: Money
    position: NotRequired[int]


class LogEventAnswer(TypedDict):
    """One fact as stored. `body` is what the leaf's hash covers, the blind left out."""

    position: int
    type: str
    version: int
    recorded_at: str
    leaf: str
    body: dict[str, Any]


class LogEventPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LogEventAnswer]


class LogKeyAnswer(TypedDict):
    """`name+key id+key`, as C2SP writes it, and the keys before it by their replacements."""

    verifier_key: str
    rotations: list[LogKeyRotationAnswer]
    position: NotRequired[int]


class LogKeyRotationAnswer(TypedDict):
    """One replacement of the key. Both keys sign `tallystick/log-key/v1`, origin, number,
    old key, new key (hex) and the microseconds of `old_key_signs_until`, each with a line
    end.
    """

    number: int
    old: str
    new: str
    position: int
    rotated_at: str
    old_key_signs_until: str
    old_key_signed: bool
    fact: dict[str, Any]


class LostMatchesAnswer(TypedDict):
    """Lost matches with one reason: what told the winner from this node first, in the order
    of the rule. `winning_price_at_most`: of a reason of price, the dearest price that won.
    """

    reason: Literal[
        "own",
        "workload",
        "price",
        "score",
        "stranded",
        "served",
        "node",
        "offer",
        "arrival",
        "renter",
        "paused_bid",
    ]
    times: int
    winning_price_at_most: NotRequired[Money]


MaintenanceWindowAnswer = TypedDict(
    "MaintenanceWindowAnswer",
    {
        "maintenance_id": "str",
        "node_id": "str",
        "kind": 'Literal["planned", "emergency", "security", "network", "capacity"]',
        "from": "str",
        "until": "str",
        "keep_leases": "bool",
        "status": 'Literal["scheduled", "running", "over", "cancelled"]',
        "announced_at": "str",
        "cancelled_at": "NotRequired[str]",
        "position": "NotRequired[int]",
    },
)


class MaintenanceWindowPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[MaintenanceWindowAnswer]


MaintenanceWindowRequest = TypedDict(
    "MaintenanceWindowRequest",
    {
        "kind": 'Literal["planned", "emergency", "security", "network", "capacity"]',
        "from": "str",
        "until": "str",
        "keep_leases": "NotRequired[bool]",
    },
)


class MarketPriceAnswer(TypedDict):
    """The standing bids that hold devices of a class: how many leases, the lowest and the
    highest. A bid above `lowest` displaces it.
    """

    gpu_class: Literal["development", "professional", "datacenter"]
    holding: int
    lowest: Money
    highest: Money


class MarketPricesAnswer(TypedDict):
    data: list[MarketPriceAnswer]
    position: int


class MatchCandidateAnswer(TypedDict):
    """`served_gpu_us`: this epoch; ties go to the node that served least. `score_ppm` is
    the sum of weight x factor. `paused_bid`: the lowest standing bid that would make room
    there.
    """

    node_id: str
    offer_id: str
    price_per_gpu_hour: Money
    stranded_ppm: int
    served_gpu_us: str
    own_node: NotRequired[bool]
    down_ranked: NotRequired[bool]
    score_ppm: NotRequired[int]
    factors_ppm: NotRequired[MatchFactorsAnswer]
    paused_bid: NotRequired[Money]


class MatchDimensionAnswer(TypedDict):
    """One demand, in the order of asking: what it left of the nodes before it, and the best
    that those had to offer.
    """

    dimension: str
    required: str
    best_offered: NotRequired[str]
    nodes_left: int
    nodes_refused: int


class MatchFactorsAnswer(TypedDict):
    """Each in ppm; the formulas are on the page about matching."""

    spec_fit: int
    reputation: int
    locality: int
    free_peers: int
    storage: int
    price: int


class MatchRelaxationAnswer(TypedDict):
    """Easing this one field of the request gives a match on so many nodes. Nearest first:
    `distance_ppm` is how far a number moves, in parts per million of it; words count as a
    whole.
    """

    field: str
    required: str
    offered: str
    nodes: int
    distance_ppm: int


class MatchWeightsForm(TypedDict):
    """In ppm; together exactly 1,000,000."""

    spec_fit: NotRequired[int]
    reputation: NotRequired[int]
    locality: NotRequired[int]
    free_peers: NotRequired[int]
    storage: NotRequired[int]
    price: NotRequired[int]


class MaturityWindowAnswer(TypedDict):
    version: int
    window_seconds: int
    effective_from: str
    set_at: str
    by: str


class MaturityWindowRequest(TypedDict):
    """`version` is one more than the last. What was posted before keeps its window."""

    version: int
    window_seconds: int
    effective_from: str


class MemberRoleRequest(TypedDict):
    role: Literal["owner", "admin", "billing", "member", "viewer"]


class MeterMaxForm(TypedDict):
    """The most that a lease is charged for one resource beside the GPU."""

    meter: Literal["cpu", "memory", "storage", "network"]
    amount: Money


class MigPlacementAnswer(TypedDict):
    """An instance that could be placed: a lease of the profile begins at the first start
    listed.
    """

    mig_profile: str
    starts: list[int]


class MilestoneGrantAnswer(TypedDict):
    """locked + unlocked + unassigned + clawed_back = total, once it is open. `unassigned`
    has no milestone. `clawback`: one that waits for votes. `ballots`: what is voted on now.
    `implied_micro_usd` is what one TOKEN is worth by the stated value: floor(value /
    total).
    """

    grant_id: str
    account_id: str
    state: Literal["proposed", "open", "ended"]
    total: Money
    stated_micro_usd: NotRequired[int]
    implied_micro_usd: NotRequired[int]
    locked: Money
    unlocked: Money
    unassigned: Money
    clawed_back: Money
    milestones: list[GrantMilestoneAnswer]
    clawback: NotRequired[GrantClawbackAnswer]
    ballots: list[BallotAnswer]
    proposed_by: str
    proposed_at: str
    position: NotRequired[int]


class MilestoneGrantPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[MilestoneGrantAnswer]


class MilestoneGrantRequest(TypedDict):
    """What the shares leave of the total has no milestone: it is told, and can only go
    back. `stated_micro_usd`: what the total is said to be worth, in micro-dollars; it
    decides nothing.
    """

    account_id: str
    total: Money
    stated_micro_usd: NotRequired[int | None]
    milestones: list[GrantMilestoneRequest]


class ModelClassAnswer(TypedDict):
    vendor: str
    model: str
    gpu_class: str
    effective_from: str
    position: NotRequired[int]


class ModelClassRequest(TypedDict):
    """A vendor's models with these words in their name pay this class's fee: a row of the
    tariff. Nothing but the vendor's own words may stand before them.
    """

    vendor: str
    model: str
    gpu_class: str
    effective_from: str


class Money(TypedDict):
    """Units of one asset: micro-credits, 10^-8 TOKEN, GPU- or seat-milliseconds."""

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: str


class MoneyOutTermsAnswer(TypedDict):
    """`window_seconds`: how long what is posted now waits until it matures."""

    window_seconds: int
    windows: list[MaturityWindowAnswer]
    minimum: Money
    position: NotRequired[int]


MonthlyStatementAnswer = TypedDict(
    "MonthlyStatementAnswer",
    {
        "account_id": "str",
        "period": "str",
        "from": "str",
        "to": "str",
        "opening_position": "int",
        "closing_position": "int",
        "opening": "list[BalanceAnswer]",
        "closing": "list[BalanceAnswer]",
        "leases": "list[StatementLeaseAnswer]",
        "has_more": "bool",
        "next_cursor": "NotRequired[str]",
        "charge": "Money",
        "gpu_us": "str",
        "earned": "Money",
        "is_final": "bool",
        "position": "int",
    },
)


class MountedVolumeAnswer(TypedDict):
    """A volume that the work finds at `path`, and how much may lie in it."""

    volume_id: str
    path: str
    read_only: NotRequired[bool]
    size_gib: int


class NodeAdmissionRequest(TypedDict):
    """`waive`: hardware rules that this node need not meet, set by the operator. Absent:
    earlier waivers stay.
    """

    waive: NotRequired[
        list[
            Literal[
                "nvme_count",
                "nvme_size",
                "tpm_2_0",
                "sata_drives",
                "ethernet",
                "ram",
                "pcie_lanes",
                "cpu_cores",
            ]
        ]
        | None
    ]


class NodeAnswer(TypedDict):
    """`state`: the phase and the last heartbeat in one word; a node at work that was not
    heard for five minutes is offline. `error`: the last one told. `agent`: version of its
    reporter, as last reported. `advice`: for the file servers of its region; it stops
    nothing. `revoked`: its owner revoked its key, and the server rejects its reports.
    `client_id`: the compute client that it joined through.
    """

    node_id: str
    phase: Literal[
        "joining",
        "confirmed",
        "provisioning",
        "maintenance",
        "active",
        "draining",
        "stopped",
        "errored",
        "failed",
        "retired",
    ]
    quarantined: bool
    verdict: NotRequired[HardwareVerdictAnswer]
    position: NotRequired[int]
    state: Literal[
        "joining",
        "confirmed",
        "provisioning",
        "maintenance",
        "active",
        "offline",
        "stopped",
        "errored",
        "failed",
        "archived",
    ]
    lifetime: Literal["permanent", "ephemeral"]
    minion_id: NotRequired[str]
    error: NotRequired[str]
    heard_at: str
    revoked: NotRequired[bool]
    capacity_class: Literal["on_demand", "preemptible", "committed"]
    advice: NotRequired[list[str]]
    provider_id: str
    account_id: str
    region_id: str
    client_id: NotRequired[str]
    agent: str
    key_id: str
    fingerprint: str
    joined_at: str
    phase_at: str
    specs: NotRequired[NodeInventoryAnswer]


class NodeConditionAnswer(TypedDict):
    """`stated` lists what is only the owner's word. `upnp_advised` follows from the uplink.
    `private_network`: whether it reaches the admitted nodes of its region on private
    addresses, as the nodes tried; also before it is admitted. Absent in a region of a
    cloud.
    """

    node_id: str
    phase: str
    lifetime: Literal["permanent", "ephemeral"]
    minion_id: NotRequired[str]
    error: NotRequired[str]
    uplink: NotRequired[Literal["corporate_firewall", "internet_provider"]]
    upnp: NotRequired[bool]
    upnp_advised: NotRequired[bool]
    exclusive_access: bool
    idle_mining: bool
    stated: list[str]
    private_network: NotRequired[Literal["connected", "disconnected", "unknown", "single"]]
    position: NotRequired[int]


class NodeDayEarningsAnswer(TypedDict):
    """What a node's accruals of one UTC day came to, for its provider, up to now: its last
    hour may not be accrued yet. `earned` is in credits; what is paid in TOKEN instead is
    `burn`.
    """

    node_id: str
    day: str
    accruals: int
    gpu_us: str
    earned: Money
    burn: Money
    position: int


class NodeDemandsForm(TypedDict):
    """What a node must be and have; every field is one dimension of the match, absent:
    anything. `memory_mib`: what the lease gets on each device. `isolation`: this level or a
    stronger one. `regions`: only there; `near_region` only ranks. `accept_provisional`:
    nodes without a reputation yet; absent: yes, unless `min_reputation_ppm` is given. Your
    own nodes are exempt from reputation. `network_class`: this one or a better one.
    `substrate`: what the node runs on, like bare_metal, esxi or kubernetes.
    `capacity_classes`: absent, on demand and committed, and for an interruptible lease
    preemptible too. `rank`: lowest_cost, or best_score with `weights`.
    """

    kinds: NotRequired[list[str] | None]
    vendors: NotRequired[list[str] | None]
    mode: NotRequired[Literal["whole", "mig", "mps", "time_slice", "memory"] | None]
    mig_profile: NotRequired[str | None]
    memory_mib: NotRequired[int | None]
    isolation: NotRequired[Literal["process", "container", "vm", "machine"] | None]
    cpu_cores: NotRequired[int | None]
    ram_mib: NotRequired[int | None]
    storage_gib: NotRequired[int | None]
    network_mbps: NotRequired[int | None]
    arch: NotRequired[str | None]
    os: NotRequired[str | None]
    capabilities: NotRequired[list[str] | None]
    setting: NotRequired[Literal["edge", "datacenter"] | None]
    workload_class: NotRequired[str | None]
    security_tier: NotRequired[int | None]
    min_reputation_ppm: NotRequired[int | None]
    accept_provisional: NotRequired[bool | None]
    regions: NotRequired[list[str] | None]
    near_region: NotRequired[str | None]
    attributes: NotRequired[list[RequiredAttributeForm] | None]
    pool_id: NotRequired[str | None]
    reclaim_window_seconds: NotRequired[int | None]
    interruptible: NotRequired[bool | None]
    rank: NotRequired[Literal["lowest_cost", "best_score"] | None]
    weights: NotRequired[MatchWeightsForm | None]
    min_kernel: NotRequired[str | None]
    network_class: NotRequired[Literal["internet", "local", "switched"] | None]
    substrate: NotRequired[str | None]
    capacity_classes: NotRequired[list[Literal["on_demand", "preemptible", "committed"]] | None]


class NodeDrainRequest(TypedDict):
    """Without `keep_leases` every running lease is reclaimed, within the window it was
    quoted.
    """

    keep_leases: NotRequired[bool]


class NodeErrorRequest(TypedDict):
    """What keeps the machine from working, in its own words."""

    error: str


class NodeHourAnswer(TypedDict):
    """What a node reported for one UTC hour. Busy time and energy count where measurable;
    `throttled_us`, when power or heat held a clock down, is out of `throttle_known_us`.
    """

    hour: str
    rows: int
    leased_gpu_us: str
    idle_gpu_us: str
    unavailable_us: str
    unknown_us: str
    busy_us: str
    energy_mj: str
    throttled_us: str
    throttle_known_us: str


class NodeHourPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[NodeHourAnswer]


class NodeInventoryAnswer(TypedDict):
    devices: list[DeviceForm]
    host: HostForm
    hardware: NotRequired[HardwareForm]
    reported_at: NotRequired[str]


class NodeJoinRequest(TypedDict):
    """What the machine says about itself; `public_key` is Ed25519, `key_id` its short name:
    the first 16 hex digits of its SHA-256, so that confirming the name confirms the key.
    """

    code: str
    public_key: str
    key_id: str
    agent: str
    client_id: NotRequired[str | None]
    devices: list[DeviceForm]
    host: HostForm
    hardware: NotRequired[HardwareForm | None]


class NodeJoinedAnswer(TypedDict):
    """`node_key` is shown to the node that holds the code and the key, and kept nowhere."""

    node_id: str
    provider_id: str
    region_id: str
    fingerprint: str
    node_key: NotRequired[str]
    position: NotRequired[int]


class NodeKeyAnswer(TypedDict):
    """An Ed25519 public key, of the reports from `from_seq` on, up to that of the next key.
    Before it is confirmed, once it is revoked and once it equivocated, nothing it signs is
    taken; a retired node still sends what it had kept.
    """

    key_id: str
    public_key: str
    confirmed_at: NotRequired[str]
    retired_at: NotRequired[str]
    equivocated_at: NotRequired[str]
    revoked_at: NotRequired[str]
    from_seq: NotRequired[int]


class NodeKeyConfirmationRequest(TypedDict):
    """The key id that the machine shows."""

    key_id: str


class NodeKeyRevocationRequest(TypedDict):
    """Revokes the key that the node signs with: the server rejects the node's reports.
    Revokes a replaced key: the server rejects reports that it signed and that are not
    stored yet, and the node goes on.
    """

    key_id: str


class NodeKeyRotatedAnswer(TypedDict):
    """`sealed_node_key`: the bearer key that replaces the one of the previous signing key,
    which is not valid any more. It is a sealed box of libsodium, in hex, and only the new
    signing key opens it (`crypto_box_seal_open`, with the X25519 key that follows from the
    Ed25519 key).
    """

    node_id: str
    key_id: str
    from_seq: int
    sealed_node_key: str
    position: NotRequired[int]


class NodeKeyRotationRequest(TypedDict):
    """From report `from_seq` on, the next to be sent, `public_key` signs. Both signatures
    (hex) are over the DSSE encoding, with the payload type
    `org.tallystick.node.key-rotated.v1`, of four lines: the node's id, `from_seq`, the
    previous public key and the new one (hex).
    """

    public_key: str
    previous_key_id: str
    from_seq: int
    previous_signature: str
    signature: str


class NodeKeysAnswer(TypedDict):
    """Every key of a node."""

    node_id: str
    data: list[NodeKeyAnswer]
    position: NotRequired[int]


class NodeLatencyAnswer(TypedDict):
    """What the node's reporter measured last."""

    node_id: str
    data: list[NodeWayAnswer]
    position: NotRequired[int]


class NodeLatencyRequest(TypedDict):
    ways: list[NodeLatencyWayRequest]


class NodeLatencyWayRequest(TypedDict):
    """The median round trip of `samples` connections, in microseconds."""

    target: Literal["control", "ingress"]
    rtt_us: int
    samples: int


class NodeMatchesAnswer(TypedDict):
    """The newest matches since a moment in which the node was among the recorded candidates
    (the first twenty of a match); `has_more`: there are earlier ones since then, which are
    not counted.
    """

    node_id: str
    since: str
    matches: int
    won: int
    lost: int
    reasons: list[LostMatchesAnswer]
    has_more: bool
    position: int


class NodeNeighbourTargetAnswer(TypedDict):
    """`addresses`: private ones, as that node told them; `public_key`: it signs what
    answers.
    """

    node_id: str
    addresses: list[str]
    public_key: str


class NodeNeighbourTargetsAnswer(TypedDict):
    """`challenge`: what a neighbour that answers signs, with both nodes' ids."""

    challenge: str
    data: list[NodeNeighbourTargetAnswer]


class NodeNeighboursAnswer(TypedDict):
    """`verdict` of the node among the admitted nodes of its region: `connected` when each
    reached the other within a day, `disconnected` when one of a pair tried and did not,
    `unknown` when a pair was not tried, `single` when there is no other node. Of more than
    129 nodes each tries some 32 that are drawn, and `connected` takes 8 of them and none
    missed. Absent in a region of a cloud.
    """

    node_id: str
    region_id: str
    verdict: NotRequired[Literal["connected", "disconnected", "unknown", "single"]]
    addresses: list[str]
    told_at: NotRequired[str]
    reached: list[str]
    missed: list[str]
    untried: list[str]
    position: NotRequired[int]


class NodeNeighboursRequest(TypedDict):
    """`addresses`: those of RFC 1918 that the node answers its neighbours on."""

    challenge: str
    addresses: list[str]
    tried: list[NodeTriedRequest]


class NodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[NodeAnswer]


class NodePerformanceAnswer(TypedDict):
    """`source`: where the value comes from. The `registry` of hardware classes, the
    `inventory` of the node, the `offer` of the provider, `reports` signed by the node over
    seven days, or a third party's `statement`. `throttled_ppm`: the part of the observable
    time in which power or heat held a clock down.
    """

    name: str
    value: str
    source: Literal["registry", "inventory", "offer", "reports", "statement"]
    signer_account_id: NotRequired[str]


class NodeRoleAnswer(TypedDict):
    node_id: str
    role: Literal["worker", "ingress", "control"]
    ingress_node_id: NotRequired[str]
    position: NotRequired[int]


class NodeRoleRequest(TypedDict):
    """`ingress_node_id`: the ingress of the same region a worker is reached through; left
    out, the server chooses. `address`: host and port of an ingress, which workers time
    connections to.
    """

    role: Literal["worker", "ingress", "control"]
    ingress_node_id: NotRequired[str | None]
    address: NotRequired[str | None]


class NodeSetupRequest(TypedDict):
    """What the owner states; the server does not check it. UPnP belongs off behind a
    corporate firewall and on behind an internet provider. `exclusive_access`: the machine
    is used only through this market.
    """

    uplink: NotRequired[Literal["corporate_firewall", "internet_provider"] | None]
    upnp: NotRequired[bool | None]
    exclusive_access: NotRequired[bool]


class NodeShareAnswer(TypedDict):
    """How a node's part was computed. `available_gpu_us`: attested at the tier of the
    terms; `below_tier_gpu_us`: attested, and not paid for; `revenue`: gathered of what it
    earned.
    """

    node_id: str
    available_gpu_us: str
    below_tier_gpu_us: str
    revenue: Money
    participation: Money
    usage: Money
    parts: list[NodeSharePartAnswer]


class NodeSharePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[NodeShareAnswer]


class NodeSharePartAnswer(TypedDict):
    """`book`: where it waits because the account was closed."""

    account_id: str
    amount: Money
    book: NotRequired[str]


class NodeSpecsRequest(TypedDict):
    """`agent`: version of the reporter that tells this; left out, as it was."""

    devices: list[DeviceForm]
    host: HostForm
    hardware: NotRequired[HardwareForm | None]
    agent: NotRequired[str | None]


class NodeStateAnswer(TypedDict):
    node_id: str
    phase: Literal[
        "joining",
        "confirmed",
        "provisioning",
        "maintenance",
        "active",
        "draining",
        "stopped",
        "errored",
        "failed",
        "retired",
    ]
    quarantined: bool
    verdict: NotRequired[HardwareVerdictAnswer]
    position: NotRequired[int]


class NodeTargetAnswer(TypedDict):
    """`address`: host and port to time a connection to; absent for the control: this
    server's.
    """

    target: Literal["control", "ingress"]
    node_id: NotRequired[str]
    address: NotRequired[str]


class NodeTargetsAnswer(TypedDict):
    """`role`: of an ingress, its reporter tells the bytes that go through it. `neighbours`:
    nodes of the region to try on private addresses; absent in a region of a cloud.
    """

    node_id: str
    region_id: str
    role: Literal["worker", "ingress", "control"]
    data: list[NodeTargetAnswer]
    neighbours: NotRequired[NodeNeighbourTargetsAnswer]
    position: int


class NodeTransferAnswer(TypedDict):
    """`transferred`: what is earned from now on is the new owner's. What was earned before
    stays the old one's.
    """

    node_id: str
    from_account_id: str
    to_account_id: str
    transferred: bool
    expires_at: NotRequired[str]
    position: NotRequired[int]


class NodeTransferRequest(TypedDict):
    """The account that gets your whole part of what the node earns, once it accepts."""

    account_id: str


class NodeTriedRequest(TypedDict):
    """`proof`: hex of the neighbour's Ed25519 signature over the challenge and both ids;
    absent: it did not answer.
    """

    node_id: str
    proof: NotRequired[str | None]


class NodeTroubleAnswer(TypedDict):
    """A node that is not well. `silent`: active, and no signed report in the last three
    minutes; `degraded`: it reports, and a lease on it is degraded.
    """

    node_id: str
    health: Literal[
        "well", "silent", "maintenance", "quarantined", "draining", "joining", "retired", "degraded"
    ]
    role: NotRequired[str]
    degraded_leases: int
    reported_at: NotRequired[str]


class NodeTrustAnswer(TypedDict):
    """Without `epoch` there is none yet, and all that was reported counts."""

    node_id: str
    epoch: NotRequired[int]
    start: NotRequired[str]
    end: NotRequired[str]
    devices: list[DeviceTrustAnswer]
    position: int


class NodeUsageAnswer(TypedDict):
    """Counts of what was stored; flagged reports after the report `after_seq`, at most 100,
    and refused time after `after_position`, of at most 50 accruals.
    """

    node_id: str
    lane: int
    reports: int
    reports_flagged: int
    last_seq: int
    last_recorded_at: NotRequired[str]
    flagged: list[FlaggedReportAnswer]
    refused: list[RefusedTimeAnswer]
    position: int


class NodeWayAnswer(TypedDict):
    target: Literal["control", "ingress"]
    rtt_us: int
    samples: int
    measured_at: str


class NodeWeightAnswer(TypedDict):
    """The use of a node by other accounts, by the funding source that paid; the policy
    weighs sources.
    """

    node_id: str
    account_id: str
    source: str
    burned: str
    gpu_us: str


class OfferAnswer(TypedDict):
    """`devices_free` counts its priced devices without a holder, as the matcher does: none
    is free of a node that is not active, or has not told its inventory for too long.
    `memory_mib` is that of the smallest of its devices.
    """

    offer_id: str
    provider_id: str
    node_id: str
    region_id: NotRequired[str]
    price_per_gpu_hour: Money
    settlement: Literal["cash", "burn"]
    fractions: bool
    available_until: NotRequired[str]
    terms: NotRequired[OfferPromisesForm]
    withdrawn_at: NotRequired[str]
    models: NotRequired[list[str]]
    gpu_classes: NotRequired[list[str]]
    devices_free: NotRequired[int]
    supply: NotRequired[OfferSupplyAnswer]
    memory_mib: NotRequired[int]
    published_at: str
    position: NotRequired[int]


class OfferPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[OfferAnswer]


class OfferPriceListAnswer(TypedDict):
    offer_id: str
    provider_id: str
    interruptible_floor: NotRequired[Money]
    reserved: list[ReservedLineAnswer]
    set_at: str
    position: NotRequired[int]


class OfferPriceListRequest(TypedDict):
    """What is absent is not offered: without a floor no interruptible leases, without a
    line no reserved term of so many months.
    """

    interruptible_floor: NotRequired[Money | None]
    reserved: NotRequired[list[ReservedLineRequest]]


class OfferPromisesForm(TypedDict):
    """What else an offer promises. `modes` absent: what its devices can do; `sla_class`
    absent: whatever the tariff has; `reclaim_window_seconds` absent: it may be closed
    without notice.
    """

    modes: NotRequired[list[Literal["whole", "mig", "mps", "time_slice", "memory"]] | None]
    isolation: NotRequired[Literal["process", "container", "vm", "machine"] | None]
    capabilities: NotRequired[list[str] | None]
    reclaim_window_seconds: NotRequired[int | None]
    sla_class: NotRequired[str | None]
    interruptible: NotRequired[bool | None]
    security_tier: NotRequired[int | None]
    storage_gib: NotRequired[int | None]
    network_mbps: NotRequired[int | None]
    min_renter_ppm: NotRequired[int | None]
    network_class: NotRequired[Literal["internet", "local", "switched"] | None]


class OfferRequest(TypedDict):
    """All devices of one node. `settlement`: cash is shared, burn is retired and paid in
    TOKEN.
    """

    provider_id: str
    node_id: str
    price_per_gpu_hour: Money
    settlement: NotRequired[Literal["cash", "burn"]]
    fractions: NotRequired[bool]
    available_until: NotRequired[str | None]
    terms: NotRequired[OfferPromisesForm | None]


class OfferSupplyAnswer(TypedDict):
    """`expect`: what leases of other accounts got in this setting so far, absent where
    nothing was measured. `reputation_ppm` of the node, a start value while `provisional`.
    `performance`: what is known of its speed, each value with its source. `statements`:
    what counts now, the last 10 of each signer, 50 at most of the node and 50 of its
    provider. `latency`: what its reporter measured to its region's control and its ingress.
    `security_tier`: the lower of the region's and the offer's.
    """

    setting: Literal["edge", "datacenter"]
    expect: RegionSettingAnswer
    capacity_class: Literal["on_demand", "preemptible", "committed"]
    security_tier: int
    refused_workloads: list[str]
    kinds: list[str]
    reputation_ppm: int
    provisional: bool
    statements: list[AttributeInForceAnswer]
    next_maintenance_from: NotRequired[str]
    next_maintenance_until: NotRequired[str]
    performance: NotRequired[list[NodePerformanceAnswer]]
    latency: NotRequired[list[NodeWayAnswer]]


class OfferWithdrawnAnswer(TypedDict):
    offer_id: str
    withdrawn: bool
    position: NotRequired[int]


class OwnerPartAnswer(TypedDict):
    """Of one GPU-hour: `provider` is the owner's part. With the settlement `burn` the whole
    charge is retired, and the owner is paid in TOKEN when the epoch is sealed.
    """

    gpu_class: str
    price: Money
    fee: Money
    provider: Money
    platform: Money
    burn: Money
    settlement: Literal["cash", "burn"]
    offer_id: NotRequired[str]


class OwnerPartsAnswer(TypedDict):
    """`held_back_seconds`: how long what is earned now waits for disputes until it matures;
    `destination_seconds`: how long no cash-out leaves after its destination was changed.
    Owners of parts of the node divide `provider` among them.
    """

    node_id: str
    tariff_version: int
    data: list[OwnerPartAnswer]
    held_back_seconds: int
    cash_out_minimum: Money
    destination_seconds: int
    position: int


class OwnerShareAnswer(TypedDict):
    """One owner's part of what the provider earned."""

    account_id: str
    amount: Money


class OwnerShareForm(TypedDict):
    account_id: str
    share_ppm: int


class PaymentAnswer(TypedDict):
    """`pay_at` or `instructions` say how to pay, in the answer that starts it. `received`
    is what arrived, `left` what of it was not taken back. `has_saved_method`: auto top-up
    can use it.
    """

    payment_id: str
    account_id: str
    method: Literal["card", "bank"]
    processor: str
    state: Literal["started", "failed", "pending", "confirmed", "reversed", "refunded"]
    amount: Money
    received: NotRequired[Money]
    left: NotRequired[Money]
    pay_at: NotRequired[str]
    instructions: NotRequired[str]
    cause: Literal["order", "top_up"]
    has_saved_method: NotRequired[bool]
    failed_reason: NotRequired[str]
    started_at: str
    expires_at: str
    received_at: NotRequired[str]
    confirms_at: NotRequired[str]
    confirmed_at: NotRequired[str]
    takings: NotRequired[list[PaymentReturnAnswer]]
    position: NotRequired[int]


class PaymentEventAnswer(TypedDict):
    """`recorded`: whether it told anything that was not known."""

    recorded: bool
    position: NotRequired[int]


class PaymentEventRequest(TypedDict):
    """Whatever the processor sends: its bytes are checked against its signature, then read."""


class PaymentModeAnswer(TypedDict):
    """Swept every UTC day: as credits to the billing account, or as cash to the
    destination. `destination_is`: what a destination is here.
    """

    account_id: str
    mode: Literal["credits", "cash"]
    billing_account_id: str
    destination: NotRequired[str]
    destination_from: NotRequired[str]
    destination_is: str
    position: NotRequired[int]


class PaymentModeRequest(TypedDict):
    """`billing_account_id` absent: the account itself. `destination` absent: as it is."""

    mode: Literal["credits", "cash"]
    billing_account_id: NotRequired[str | None]
    destination: NotRequired[str | None]


class PaymentPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PaymentAnswer]


class PaymentRefundAnswer(TypedDict):
    refund_id: str
    payment: PaymentAnswer
    position: NotRequired[int]


class PaymentRefundRequest(TypedDict):
    amount: Money


class PaymentRequest(TypedDict):
    """`save_method`: keep the card with the processor, for auto top-up."""

    method: Literal["card", "bank"]
    amount: Money
    save_method: NotRequired[bool]


class PaymentReturnAnswer(TypedDict):
    """Money of a payment that went back, or is going: a reversal or a refund."""

    id: str
    kind: Literal["reversal", "refund"]
    state: Literal["reversed", "reinstated", "refunding", "refunded", "refund_failed"]
    amount: Money
    reason: NotRequired[str]
    at: str


class PaymentTermsAnswer(TypedDict):
    """Version 0: what holds until something is published."""

    version: int
    minimum: Money
    chargeback_window_days: int
    effective_from: str
    position: NotRequired[int]


class PaymentTermsRequest(TypedDict):
    """The next version. A payment keeps the terms it was started under."""

    version: int
    minimum: Money
    chargeback_window_days: int
    effective_from: str


class PayoutClaimAnswer(TypedDict):
    account_id: str
    address: str
    distributor: str
    seq: int
    amount: Money
    cumulative: Money
    tx_hash: str
    block_number: int
    confirmed_at: str
    position: int


class PayoutClaimPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PayoutClaimAnswer]


class PayoutDifferenceAnswer(TypedDict):
    """A payout of the processor's list and our cash-outs do not agree; open until it is
    settled.
    """

    difference_id: str
    kind: Literal["unknown", "unexpected", "amount", "twice", "missing"]
    reference: NotRequired[str]
    cash_out_id: NotRequired[str]
    expected: NotRequired[Money]
    found: NotRequired[Money]
    found_at: str
    note: NotRequired[str]
    by: NotRequired[str]
    settled_at: NotRequired[str]
    position: NotRequired[int]


class PayoutDifferenceClosedAnswer(TypedDict):
    difference_id: str
    position: NotRequired[int]


class PayoutDifferenceNoteRequest(TypedDict):
    note: str


class PayoutDifferencePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PayoutDifferenceAnswer]


class PayoutProofAnswer(TypedDict):
    """What `claim(account, total, proof)` of the distributor takes."""

    epoch: int
    root: str
    account: str
    total: Money
    proof: list[str]
    position: NotRequired[int]


class PayoutRootAnswer(TypedDict):
    """`committed` is the sum of all leaves: lifetime totals, never less than before."""

    epoch: int
    seq: int
    root: str
    previous_root: str
    manifest_sha256: str
    committed: Money
    leaves: int
    state: Literal["built", "proposed", "vetoed", "accepted"]
    valid_at: NotRequired[str]
    tx_hash: NotRequired[str]
    reason: NotRequired[str]
    built_at: str
    position: int


class PayoutRootPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PayoutRootAnswer]


class PendingLeaseAnswer(TypedDict):
    """A lease that waits for the node to say that its work runs. `executor` has
    acknowledged it. `memory_mib`: its part of the memory of the smallest of its devices.
    Credentials are sealed to `encryption_key`. `part` counts the chunks or members of a job
    from 0, of `parts` where that number is fixed; `attempt` counts the leases of the part
    from 1. `waits_for_gang`: say `ready` when all but the program is there, and begin it
    when `data` lists the lease: it is billed then.
    """

    lease_id: str
    job_id: str
    account_id: str
    device_ids: list[str]
    share_ppm: int
    mem_ppm: int
    mode: Literal["whole", "mig", "mps", "time_slice", "memory"]
    mig_profile: NotRequired[str]
    mig_starts: NotRequired[list[int]]
    reserved_at: str
    work: LeaseWorkloadAnswer
    memory_mib: NotRequired[int]
    encryption_key: NotRequired[str]
    route_id: NotRequired[str]
    volumes: NotRequired[list[MountedVolumeAnswer]]
    executor: NotRequired[str]
    part: NotRequired[int]
    parts: NotRequired[int]
    attempt: NotRequired[int]
    waits_for_gang: NotRequired[bool]


class PiecesKeptAnswer(TypedDict):
    """`kept`: how many of them were expected, and are here now."""

    kept: int
    position: NotRequired[int]


class PiecesWantedRequest(TypedDict):
    sha256: list[str]


class PolicyLintAnswer(TypedDict):
    passes: bool
    errors: int
    warnings: int
    document_sha256: str
    findings_sha256: str


class PolicyLintFindingAnswer(TypedDict):
    rule: str
    severity: Literal["error", "warning"]
    field: str
    message: str


class PolicyProposalAnswer(TypedDict):
    """`changes` counts its facts: If-Match of a next call is `"v<changes>"`. Votes are
    those on the newest revision.
    """

    number: int
    title: str
    category: str
    authors: list[str]
    created: str
    status: Literal[
        "draft",
        "linted",
        "in_review",
        "approved",
        "rejected",
        "withdrawn",
        "scheduled",
        "effective",
        "cancelled",
    ]
    revision: int
    changes: int
    proposed_by: str
    proposed_at: str
    approved_by: list[str]
    rejected_by: list[str]
    ballot: BallotAnswer
    lint: PolicyLintAnswer
    policy_version: NotRequired[int]
    effective_from_epoch: NotRequired[int]
    history: list[PolicyProposalStepAnswer]
    position: NotRequired[int]


class PolicyProposalDetailAnswer(TypedDict):
    """With its document, and what the lint finds in it."""

    number: int
    title: str
    category: str
    authors: list[str]
    created: str
    status: Literal[
        "draft",
        "linted",
        "in_review",
        "approved",
        "rejected",
        "withdrawn",
        "scheduled",
        "effective",
        "cancelled",
    ]
    revision: int
    changes: int
    proposed_by: str
    proposed_at: str
    approved_by: list[str]
    rejected_by: list[str]
    ballot: BallotAnswer
    lint: PolicyLintAnswer
    policy_version: NotRequired[int]
    effective_from_epoch: NotRequired[int]
    history: list[PolicyProposalStepAnswer]
    position: NotRequired[int]
    document: dict[str, Any]
    findings: list[PolicyLintFindingAnswer]


class PolicyProposalPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PolicyProposalAnswer]


class PolicyProposalRequest(TypedDict):
    """`document`: what `tallystick policy lint` reads, as JSON."""

    document: dict[str, Any]


class PolicyProposalStepAnswer(TypedDict):
    """One line of the history; `note` in words."""

    status: Literal[
        "draft",
        "linted",
        "in_review",
        "approved",
        "rejected",
        "withdrawn",
        "scheduled",
        "effective",
        "cancelled",
    ]
    by: str
    at: str
    note: NotRequired[str]


class PolicyRehearsalAnswer(TypedDict):
    """`holds`: every sum came out and every epoch file is what its own cut gives.
    `is_same`: no reward would have changed. `kept_emission_plan`: epochs for which the
    proposal plans no emission. `stopped`: why a next epoch could not follow.
    """

    epochs: int
    first_epoch: NotRequired[int]
    last_epoch: NotRequired[int]
    holds: bool
    is_same: bool
    accounts: int
    accounts_gaining: int
    accounts_losing: int
    largest_difference: NotRequired[RewardDifferenceAnswer]
    was: RehearsalTotalsAnswer
    would_be: RehearsalTotalsAnswer
    winners: list[RewardDifferenceAnswer]
    losers: list[RewardDifferenceAnswer]
    by_epoch: list[RehearsedEpochAnswer]
    kept_emission_plan: list[int]
    not_reproduced: list[int]
    stopped: NotRequired[str]
    position: NotRequired[int]


class PolicyRehearsalRequest(TypedDict):
    """`document`: a proposal with `terms` as JSON, or a policy like that of an epoch file.
    Epochs before `from_epoch` keep their policy. `limit`: so many winners, and losers, are
    named.
    """

    document: dict[str, Any]
    from_epoch: NotRequired[int]
    limit: NotRequired[int]


class PolicyRejectionRequest(TypedDict):
    """A governor's signed no, and why."""

    reason: str
    vote: VoteRequest


class PolicyReviewRequest(TypedDict):
    """`stage`: a short text of the reviewer's own."""

    stage: str


class PolicySchedulingRequest(TypedDict):
    """Without an epoch: the earliest that notice and document allow."""

    effective_from_epoch: NotRequired[int | None]


class PolicyVersionAnswer(TypedDict):
    """`in_force`: the newest epoch was opened under it. `cancelled`: governors stopped it
    before its first epoch. `proposal`: absent in the first version, which an operator
    published. `mode`: of the governors when it was scheduled. Without `rewards`,
    availability is not paid.
    """

    version: int
    effective_from_epoch: int
    in_force: bool
    cancelled: bool
    mode: NotRequired[Literal["single", "shared"]]
    epoch_length_seconds: int
    hard_cap: Money
    segments: list[EmissionSegmentAnswer]
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int
    compute_base: str
    holdback_epochs: int
    rewards: NotRequired[RewardTermsAnswer]
    approvals: int
    notice_epochs: int
    proposal: NotRequired[int]
    published_at: str
    published_position: int
    by: str
    position: NotRequired[int]


class PolicyVersionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PolicyVersionAnswer]


class PolicyVoteRequest(TypedDict):
    """A governor's signed vote on the document that was read."""

    vote: VoteRequest


class PoolAnswer(TypedDict):
    """`accelerators`: absent in lists."""

    pool_id: str
    account_id: str
    name: str
    version: int
    policy: PoolPolicyForm
    controller_address: NotRequired[str]
    nodes: int
    waiting: int
    accelerators: NotRequired[list[AcceleratorModelAnswer]]
    created_at: str
    position: NotRequired[int]


class PoolComponentAnswer(TypedDict):
    """`health`: as last reported; `silent` after two hours without a report, `unknown`
    before the first. `reference`: its id on the controller contract.
    """

    pool_id: str
    component_id: str
    kind: str
    name: str
    endpoint: NotRequired[str]
    licence_id: NotRequired[str]
    reference: str
    is_removed: bool
    health: Literal["well", "degraded", "down", "silent", "unknown"]
    detail: NotRequired[str]
    health_since: NotRequired[str]
    reported_at: NotRequired[str]
    registered_at: str
    position: NotRequired[int]


class PoolComponentHealthAnswer(TypedDict):
    pool_id: str
    component_id: str
    health: Literal["well", "degraded", "down"]
    position: NotRequired[int]


class PoolComponentHealthRequest(TypedDict):
    """What a component, or its watcher, says of it."""

    health: Literal["well", "degraded", "down"]
    detail: NotRequired[str]


class PoolComponentPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolComponentAnswer]


class PoolComponentRegisteredAnswer(TypedDict):
    pool_id: str
    component_id: str
    kind: str
    name: str
    endpoint: NotRequired[str]
    licence_id: NotRequired[str]
    position: NotRequired[int]


class PoolComponentRemovedAnswer(TypedDict):
    pool_id: str
    component_id: str
    is_removed: bool
    position: NotRequired[int]


class PoolComponentRequest(TypedDict):
    """`kind`: gateway, scheduler, storage, monitor, licence or a word of your own.
    `endpoint`: where others of the pool reach it. `licence_id`: of the kind licence alone.
    """

    kind: str
    name: str
    endpoint: NotRequired[str | None]
    licence_id: NotRequired[str | None]


class PoolControllerAnswer(TypedDict):
    """Of a pool without a contract there is no `address`. `checked`: absent before the
    first.
    """

    pool_id: str
    address: NotRequired[str]
    metadata: NotRequired[PoolMetadataAnswer]
    heads: NotRequired[PoolHeadsAnswer]
    checked: NotRequired[ControllerCheckAnswer]
    position: NotRequired[int]


class PoolCreatedAnswer(TypedDict):
    pool_id: str
    account_id: str
    name: str
    version: int
    policy: PoolPolicyForm
    controller_address: NotRequired[str]
    created_at: str
    position: NotRequired[int]


class PoolDecisionAnswer(TypedDict):
    """The request that was chosen, and the rule that chose it."""

    pool_id: str
    chosen: str
    rule: str
    policy_version: int
    fleet_position: int
    waiting: int
    decided_at: str
    position: int


class PoolDecisionDetailAnswer(TypedDict):
    """All that a decision looked at, and whether its rule gives the same answer now."""

    pool_id: str
    chosen: str
    rule: str
    policy_version: int
    policy: PoolPolicyForm
    fleet_position: int
    capacity: list[ResourceQuantityAnswer]
    held: list[PoolQueueHoldingAnswer]
    waiting: list[QueueCandidateAnswer]
    window_gpu_us: str
    decided_at: str
    recomputed: NotRequired[str]
    holds: bool
    position: int


class PoolDecisionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolDecisionAnswer]


class PoolHeadsAnswer(TypedDict):
    """Heads over all facts that count up to `cut_position` of the market log."""

    pool_id: str
    cut_position: int
    allocation_head: str
    licence_head: str
    cut_at: str
    position: NotRequired[int]


class PoolHeadsPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolHeadsAnswer]


class PoolHealthAnswer(TypedDict):
    """`troubled_nodes`, `troubled_components`: at most 100 each, in the order they were
    added.
    """

    pool_id: str
    nodes: list[HealthCountAnswer]
    components: list[HealthCountAnswer]
    waiting: int
    degraded_leases: int
    troubled_nodes: list[NodeTroubleAnswer]
    troubled_components: list[PoolComponentAnswer]
    position: NotRequired[int]


class PoolMetadataAnswer(TypedDict):
    """`sha256`: over the canonical JSON of metadata, pool_id and version; the contract
    keeps it.
    """

    pool_id: str
    version: int
    metadata: dict[str, str]
    sha256: str
    position: NotRequired[int]


class PoolMetadataRequest(TypedDict):
    """All entries of the pool's metadata; those that are left out are gone."""

    metadata: dict[str, str]


class PoolNodeAddedAnswer(TypedDict):
    pool_id: str
    node_id: str
    is_in: bool
    position: NotRequired[int]


class PoolNodeAnswer(TypedDict):
    """`free`: devices without a holder."""

    node_id: str
    provider_id: str
    region_id: str
    phase: str
    vendors: list[str]
    models: list[str]
    devices: int
    free: int
    added_at: str


class PoolNodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolNodeAnswer]


class PoolNodeRequest(TypedDict):
    """A node of yours."""

    node_id: str


class PoolPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolAnswer]


class PoolPolicyAnswer(TypedDict):
    pool_id: str
    version: int
    policy: PoolPolicyForm
    position: NotRequired[int]


class PoolPolicyForm(TypedDict):
    """`scheduler`: `immediate` refuses what cannot be placed now; with the others it waits.
    `precedence`: what decides first between waiting requests. `history_ppm`: how much what
    was used in `window_seconds`, halved each `half_life_seconds`, counts against a queue's
    weight. `gang_timeout_seconds`: until the last member has to be ready.
    `gang_patience_seconds`: how long others may be placed before the earliest request that
    they delay.
    """

    pricing: NotRequired[str]
    scheduler: NotRequired[Literal["immediate", "first_come", "fair_share", "drf"]]
    rank: NotRequired[Literal["lowest_cost", "best_score"]]
    precedence: NotRequired[list[Literal["priority", "share", "arrival"]]]
    queues: NotRequired[list[PoolQueueForm]]
    half_life_seconds: NotRequired[int]
    window_seconds: NotRequired[int]
    history_ppm: NotRequired[int]
    gang_timeout_seconds: NotRequired[int]
    gang_patience_seconds: NotRequired[int]
    open_to_providers: NotRequired[bool]


class PoolQueueForm(TypedDict):
    """A queue of the fair-share tree. `deserved_ppm`: GPUs it is owed before any queue is
    over quota, a whole one being 1,000,000. `weight`: of what is left, and of a dominant
    share. With an `account_id`, and a `project_id` of it, the queue of those requests. A
    parent comes first.
    """

    name: str
    parent: NotRequired[str | None]
    deserved_ppm: NotRequired[int]
    weight: NotRequired[int]
    priority: NotRequired[int]
    account_id: NotRequired[str | None]
    project_id: NotRequired[str | None]


class PoolQueueHoldingAnswer(TypedDict):
    queue: str
    held: list[ResourceQuantityAnswer]
    used_gpu_us: str


class PoolRequest(TypedDict):
    """`controller_address`: of a contract that answers for the pool, if there is one."""

    name: str
    policy: NotRequired[PoolPolicyForm]
    controller_address: NotRequired[str | None]


class PriceFeederAnswer(TypedDict):
    source: str
    member_id: str


class PriceObservationAnswer(TypedDict):
    """The newest price of the source; it may be another one than was sent."""

    source: str
    price_micro_usd: int
    published_at: str
    observed_at: str
    position: NotRequired[int]


class PriceObservationRequest(TypedDict):
    """`published_at`: the source's own time, at most a minute before `observed_at`: when it
    was seen, at most a minute ago, or now.
    """

    source: str
    price_micro_usd: int
    published_at: str
    observed_at: NotRequired[str | None]


class PriceSnapshotAnswer(TypedDict):
    """What the sources said when a price was needed; burns refer to `snapshot`."""

    health: Literal["healthy", "too_few_sources", "deviation", "moved"]
    median_micro_usd: NotRequired[int]
    deviation_bps: NotRequired[int]
    sources: list[PriceSourceAnswer]
    window_seconds: int
    max_age_seconds: int
    max_deviation_bps: int
    min_sources: int
    held_to: NotRequired[int]
    max_move_bps: NotRequired[int]
    at: str
    snapshot: int
    by: str
    position: NotRequired[int]


class PriceSnapshotPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PriceSnapshotAnswer]


class PriceSnapshotRequest(TypedDict):
    """No fields: `{}`."""


class PriceSourceAnswer(TypedDict):
    """A source: its average over the window while it is fresh, and its newest price."""

    source: str
    stale: bool
    twap_micro_usd: NotRequired[int]
    price_micro_usd: NotRequired[int]
    published_at: NotRequired[str]
    observed_at: NotRequired[str]


class PriceSourceRequest(TypedDict):
    """`member_id`: whose keys tell what this source published; one member feeds one source."""

    source: str
    member_id: str


class PriceSourcesAnswer(TypedDict):
    sources: list[PriceFeederAnswer]
    position: NotRequired[int]


class PriceSourcesRequest(TypedDict):
    """All sources that count from now on. Prices of other sources are not kept."""

    sources: list[PriceSourceRequest]


class PricingModuleAnswer(TypedDict):
    """`kind`: posted (at once), auction (after bids), standing (a lasting bid), term
    (months).
    """

    pricing: str
    kind: Literal["posted", "auction", "standing", "term"]
    meaning: str


class PricingModulesAnswer(TypedDict):
    data: list[PricingModuleAnswer]
    position: int


class Problem(TypedDict):
    """RFC 9457. Switch on `code`, never on text."""

    type: str
    title: str
    status: int
    code: str
    retryable: bool
    instance: str
    request_id: str
    detail: NotRequired[str]
    facts: NotRequired[dict[str, str]]
    errors: NotRequired[list[FieldError]]


class ProjectAnswer(TypedDict):
    project_id: str
    overflow: Literal["refuse", "rent"]
    position: NotRequired[int]


class ProjectPolicyRequest(TypedDict):
    """What happens when a quota that a project counts in is full: its next lease is
    refused, or rented elsewhere and not counted.
    """

    project_id: str
    overflow: Literal["refuse", "rent"]


class ProjectsAnswer(TypedDict):
    """Projects that have a policy; all others are refused."""

    data: list[ProjectAnswer]
    position: int


class PromotionAnswer(TypedDict):
    """`left`: what the fund can still grant."""

    program: str
    sponsor_account_id: str
    opened: Money
    granted: Money
    left: Money
    opened_at: str
    closed_at: NotRequired[str]
    position: NotRequired[int]


class PromotionClosedAnswer(TypedDict):
    program: str
    sponsor_account_id: str
    position: NotRequired[int]


class PromotionGrantAnswer(TypedDict):
    """`breakage`: what of it had expired unspent by now."""

    program: str
    account_id: str
    granted: Money
    priority: int
    expires_at: NotRequired[str]
    breakage: Money
    granted_at: str
    position: NotRequired[int]


class PromotionGrantPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PromotionGrantAnswer]


class PromotionGrantRequest(TypedDict):
    """More for an account of the same program has the same terms. `expires_at` absent:
    never.
    """

    account_id: str
    amount: Money
    priority: NotRequired[int]
    expires_at: NotRequired[str | None]


class PromotionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PromotionAnswer]


class PromotionRequest(TypedDict):
    """`amount` is taken from the cash of the operator's own account: the fund is paid for."""

    program: str
    amount: Money


class ProposalReasonRequest(TypedDict):
    reason: str


class ProviderAnswer(TypedDict):
    provider_id: str
    account_id: str
    kind: str
    payment_mode: Literal["credits", "cash"]
    registered_at: NotRequired[str]
    position: NotRequired[int]


class ProviderKindAnswer(TypedDict):
    kind: str
    cloud: bool
    cost_per_gpu_hour: Money
    effective_from: str
    position: NotRequired[int]


class ProviderKindRequest(TypedDict):
    """`cost_per_gpu_hour`: what the cheapest GPU-hour of this kind costs its owner beside
    the usage fee. It is above that of physical machines, which are the cheapest kind.
    """

    kind: str
    cloud: bool
    cost_per_gpu_hour: Money
    effective_from: str


class ProviderKindsAnswer(TypedDict):
    """The seeded rows and those the network registered; of one kind the newest in force
    counts.
    """

    data: list[ProviderKindAnswer]
    position: int


class ProviderPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ProviderAnswer]


class ProviderRequest(TypedDict):
    """`payment_mode`: how the account is paid, set in the same append. An account that has
    set one leaves it out, or names the same; cash is set with its destination, at
    `/payment-mode`.
    """

    kind: str
    payment_mode: NotRequired[Literal["credits", "cash"] | None]


class QueueCandidateAnswer(TypedDict):
    """`fits`: there was room for it. `delays_first`: it would have taken what the earliest
    request, which had waited for the pool's patience, could use.
    """

    request_id: str
    queue: str
    place: int
    is_gang: bool
    demand: list[ResourceQuantityAnswer]
    fits: bool
    delays_first: bool
    waits_since: str


class QueueTaskAnswer(TypedDict):
    """No `task_id`: there is nothing to do now. `delivery` above 1: a lease held it before."""

    task_id: NotRequired[str]
    payload: NotRequired[str]
    delivery: NotRequired[int]
    held_until: NotRequired[str]
    position: NotRequired[int]


class QueueTaskDoneAnswer(TypedDict):
    task_id: str
    position: NotRequired[int]


class QueueTaskRequest(TypedDict):
    """`payload`: what to do, or where it is described. No secrets."""

    task_id: str
    payload: NotRequired[str]


class QueueTaskTakeRequest(TypedDict):
    """For how long the task is held; then another lease may take it."""

    hold_seconds: NotRequired[int]


class QueueTasksRequest(TypedDict):
    """Tasks whose ids are known already are left out."""

    tasks: list[QueueTaskRequest]


class QuotaGroupAnswer(TypedDict):
    """`used_ppm`: what its leases hold now."""

    group_id: str
    account_id: str
    pool_id: NotRequired[str]
    parent_id: NotRequired[str]
    gpu_ppm_max: NotRequired[int]
    used_ppm: int
    created_at: str
    members: NotRequired[list[QuotaGroupMemberAnswer]]
    position: NotRequired[int]


class QuotaGroupLimitRequest(TypedDict):
    """`gpu_ppm_max` absent: no limit any more. Lowered: what runs goes on."""

    gpu_ppm_max: NotRequired[int | None]


class QuotaGroupMemberAddedAnswer(TypedDict):
    group_id: str
    kind: Literal["project", "member", "account"]
    target: str
    position: NotRequired[int]


class QuotaGroupMemberAnswer(TypedDict):
    kind: Literal["project", "member", "account"]
    target: str
    since: str


class QuotaGroupMemberRequest(TypedDict):
    """A project or a member of your account, or in a group of a pool an account."""

    kind: Literal["project", "member", "account"]
    target: str


class QuotaGroupPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[QuotaGroupAnswer]


class QuotaGroupRequest(TypedDict):
    """Of projects and members of your account, or with `pool_id` of accounts in a pool of
    yours. `parent_id`: what it holds counts there too. `gpu_ppm_max` absent: counted, and
    not limited.
    """

    pool_id: NotRequired[str | None]
    parent_id: NotRequired[str | None]
    gpu_ppm_max: NotRequired[int | None]


class QuoteAcceptanceRequest(TypedDict):
    """The quote that is accepted."""

    quote_id: str


class QuoteNearestAnswer(TypedDict):
    """A node that lacks one thing: room, which others hold now, or the renter's money."""

    node_id: str
    offer_id: str
    model: str
    memory_mib: int
    price_per_gpu_hour: Money
    missing: Literal["room", "money"]


class QuotedPlacementAnswer(TypedDict):
    """Where a lease would go now. An `edge` node stands in a home or an office: expect
    lower performance and that it goes offline more often than one in a `datacenter`.
    `performance`: what is known of this machine's speed, each value with its source.
    """

    node_id: str
    offer_id: str
    region_id: str
    model: str
    memory_mib: int
    devices: int
    price_per_gpu_hour: Money
    own_node: bool
    setting: Literal["edge", "datacenter"]
    lower_performance: bool
    higher_offline_odds: bool
    expected: NotRequired[SettingExpectationAnswer]
    performance: list[NodePerformanceAnswer]


class RefundConfirmationRequest(TypedDict):
    reference: str


class RefusedRowAnswer(TypedDict):
    """A row of a stored report: the stretch of server time it tells of, and what of it was
    refused.
    """

    device_id: str
    usage_position: int
    rule: str
    start: str
    end: str
    microseconds: str


class RefusedTimeAnswer(TypedDict):
    """Reported time of a lease hour that earned nothing, the rule it broke, and the rows it
    is of (the first 200 of an accrual).
    """

    lease_id: str
    hour_index: int
    until: str
    rule: str
    microseconds: str
    rows: list[RefusedRowAnswer]
    position: int


class RefusedUseAnswer(TypedDict):
    """What of a report's rows a meter did not count, in the unit of the rows, and the rule."""

    usage_position: int
    rule: str
    amount: str
    charged_position: int


class RegionAdminAnswer(TypedDict):
    """`cause`: granted by `hand`, or the `first_user` that waited for the region."""

    account_id: str
    cause: Literal["hand", "first_user"]
    granted_at: str


class RegionAdminRequest(TypedDict):
    account_id: str


class RegionAdminsAnswer(TypedDict):
    """Beside the provider's own account, in the order of their grants."""

    region_id: str
    account_ids: list[str]
    data: NotRequired[list[RegionAdminAnswer]]
    position: NotRequired[int]


class RegionAnswer(TypedDict):
    region_id: str
    provider_id: str
    name: str
    storage_mode: Literal["local", "central"]
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless", "approved"]
    allow_public_jobs: bool
    refused_workloads: NotRequired[list[str]]
    down_ranked_workloads: NotRequired[list[str]]
    security_tier: NotRequired[int]
    hardware_rules: NotRequired[list[str]]
    cloud_region: NotRequired[str]
    site: NotRequired[str]
    opened_at: NotRequired[str]
    position: NotRequired[int]


class RegionBoundaryForm(TypedDict):
    """`value`: an IP network, a city as `DE-BE/Berlin`, a state of ISO 3166-2, or a
    country.
    """

    kind: Literal["network", "city", "state", "country"]
    value: str


class RegionDayAnswer(TypedDict):
    """gathered + carry_before = infra + participation + usage + carry. `forgone`: cost of
    control and ingress above the arrears that the terms allow, which is never paid.
    """

    date: str
    terms_version: int
    gathered: Money
    carry_before: Money
    infra_due: Money
    arrears_before: Money
    infra: Money
    infra_account_id: str
    arrears: Money
    forgone: Money
    participation: Money
    usage: Money
    carry: Money
    control_nodes: int
    ingress_nodes: int
    ingress_bytes: int
    nodes: int
    shared_at: str
    position: int


class RegionDayPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RegionDayAnswer]


class RegionGrowthAnswer(TypedDict):
    """`cause` of the phase: `hand`, its `wait_list`, its `first_user`, or its `workers`."""

    region_id: str
    phase: Literal["waitlisted", "opening", "open", "draining", "closed"]
    cause: NotRequired[Literal["hand", "wait_list", "first_user", "workers"]]
    since: NotRequired[str]
    workers_min: int
    workers_max: NotRequired[int]
    homogeneous: bool
    cpu_and_gpu: bool
    owner_share_ppm: int
    workers: int
    ingress: int
    control: int
    position: NotRequired[int]


class RegionGrowthRequest(TypedDict):
    """`workers_min`: other accounts can lease once there were so many. `workers_max`: no
    more join; absent: no cap. `homogeneous`: all GPUs are of one model. `cpu_and_gpu`:
    nodes without GPUs beside nodes with them. `owner_share_ppm`: the part of the owner of a
    machine that was joined by a check-in. `waitlisted`: accounts wait, and no node joins.
    """

    workers_min: NotRequired[int]
    workers_max: NotRequired[int | None]
    homogeneous: NotRequired[bool]
    cpu_and_gpu: NotRequired[bool]
    owner_share_ppm: NotRequired[int]
    waitlisted: NotRequired[bool]


class RegionInfraTermsAnswer(TypedDict):
    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money
    per_gib: Money


class RegionInfraTermsRequest(TypedDict):
    """Credits per UTC day: `base` in any case, for each node with the role, and `per_gib`
    of the bytes that ingress nodes report; together at most `most`. What a day cannot pay
    waits as arrears, up to `arrears_max`.
    """

    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money
    per_gib: NotRequired[Money | None]


class RegionMapAnswer(TypedDict):
    """GeoJSON (RFC 7946). `kind` of a feature: `region`, `waiting` or `node`; longitude
    comes first.
    """

    type: Literal["FeatureCollection"]
    features: list[RegionMapFeatureAnswer]
    position: int


class RegionMapFeatureAnswer(TypedDict):
    type: Literal["Feature"]
    geometry: dict[str, Any]
    properties: dict[str, Any]


class RegionNeighbourAnswer(TypedDict):
    """How many other nodes it reaches both ways, misses, and has not tried."""

    node_id: str
    verdict: Literal["connected", "disconnected", "unknown", "single"]
    addresses: list[str]
    told_at: NotRequired[str]
    reached: int
    missed: int
    untried: int


class RegionNeighboursAnswer(TypedDict):
    """`verdict` of the region: of all of its admitted nodes. Absent in a region of a cloud."""

    region_id: str
    verdict: NotRequired[Literal["connected", "disconnected", "unknown", "single"]]
    data: list[RegionNeighbourAnswer]
    position: int


class RegionNodeAnswer(TypedDict):
    node_id: str
    phase: str
    state: Literal[
        "joining",
        "confirmed",
        "provisioning",
        "maintenance",
        "active",
        "offline",
        "stopped",
        "errored",
        "failed",
        "archived",
    ]
    quarantined: bool


class RegionNodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RegionNodeAnswer]


class RegionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RegionAnswer]


class RegionPhaseRequest(TypedDict):
    phase: Literal["waitlisted", "opening", "open", "draining", "closed"]


class RegionPlaceAnswer(TypedDict):
    region_id: str
    boundaries: list[RegionBoundaryForm]
    address: NotRequired[str]
    latitude_e6: NotRequired[int]
    longitude_e6: NotRequired[int]
    position: NotRequired[int]


class RegionPlaceRequest(TypedDict):
    """Where a region is. `address`: host and port of its control, if that is not this
    server. Millionths of a degree: its dot on the map.
    """

    boundaries: list[RegionBoundaryForm]
    address: NotRequired[str | None]
    latitude_e6: NotRequired[int | None]
    longitude_e6: NotRequired[int | None]


class RegionPolicyRequest(TypedDict):
    """What is left out stays as it is. Edge regions start with `ip_lease` refused and
    `large_storage` ranked down; `security_tier`: what the region promises, 0 is nothing.
    """

    allow_public_jobs: bool
    refused_workloads: NotRequired[list[str] | None]
    down_ranked_workloads: NotRequired[list[str] | None]
    security_tier: NotRequired[int | None]


class RegionRequest(TypedDict):
    """The storage mode never changes: another mode needs a new region. `cloud_region`: of a
    cloud provider, each used by one region; `site`: where machines of one's own stand, for
    as many regions as there are policies.
    """

    provider_id: str
    name: str
    storage_mode: Literal["local", "central"]
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless", "approved"]
    allow_public_jobs: bool
    cloud_region: NotRequired[str | None]
    site: NotRequired[str | None]


class RegionSettingAnswer(TypedDict):
    """What leases of other accounts got on nodes of this setting so far.
    `availability_ppm`: served of the time promised, over settled leases. `offline_ppm`:
    leases that ended because their node was silent for too long, of all that closed.
    """

    setting: Literal["edge", "datacenter"]
    leases: int
    availability_ppm: NotRequired[int]
    offline_ppm: NotRequired[int]


class RegionSettingsAnswer(TypedDict):
    data: list[RegionSettingAnswer]
    position: int


class RegionTermsAnswer(TypedDict):
    """Every version, oldest first; without any the region shares nothing."""

    region_id: str
    notice_days: int
    versions: list[RegionTermsVersionAnswer]
    position: NotRequired[int]


class RegionTermsRequest(TypedDict):
    """`version` is one more than the last one's. With `shared` false every owner keeps what
    its node earns from that day on. Time below the tier is not paid for.
    """

    version: int
    effective_from: str
    shared: bool
    participation_ppm: int
    availability_min_tier: NotRequired[int]
    infra: RegionInfraTermsRequest


class RegionTermsVersionAnswer(TypedDict):
    version: int
    effective_from: str
    shared: bool
    participation_ppm: int
    availability_min_tier: int
    infra: RegionInfraTermsAnswer
    set_at: str


class RehearsalTotalsAnswer(TypedDict):
    """The last three were paid to no account, by reason; they were carried on or returned."""

    rewards: Money
    minted: Money
    emission: Money
    release: Money
    returned: Money
    treasury: Money
    rounding: Money
    zero_weight: Money
    cap: Money


class RehearsedEpochAnswer(TypedDict):
    """`broken`: what does not hold of it; empty unless there is a bug."""

    epoch: int
    accounts: int
    accounts_changed: int
    largest_difference: NotRequired[RewardDifferenceAnswer]
    was: RehearsalTotalsAnswer
    would_be: RehearsalTotalsAnswer
    broken: list[str]


class ReputationAnswer(TypedDict):
    """`good` of `total` leases that count. `score_ppm`: the weighted lower bounds of all
    inputs on `day`, with evidence halved every 30 days; provisional below ten leases.
    `client_id`: leases through one client, whose score starts from the experience of all
    others. The same facts give the same answer: it depends on `as_of_position` and `day`
    alone.
    """

    kind: Literal["node", "provider", "renter"]
    subject_id: str
    client_id: NotRequired[str]
    good: int
    total: int
    completion_ppm: NotRequired[int]
    score_ppm: int
    provisional: bool
    inputs: list[ReputationInputAnswer]
    standing: NotRequired[ReputationStandingAnswer]
    closed_by_fault: FaultsByPartyAnswer
    as_of_position: int
    day: str
    position: int


class ReputationEvidenceAnswer(TypedDict):
    """What the fact at `fact_position` said for one input, known since `known_position`:
    `good` of `total` micro-observations, or microseconds of uptime; below zero where it
    takes back what was counted, or takes time away. It counts from `counts_from` on. The
    sums by input, day, first day and client, each floored and `good` not below zero, give
    the score again.
    """

    input: Literal[
        "completion", "uptime", "performance", "responsiveness", "payment", "conduct", "disputes"
    ]
    fact_position: int
    known_position: int
    client_id: str
    day: str
    counts_from: str
    good: int
    total: int


class ReputationEvidencePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ReputationEvidenceAnswer]


class ReputationInputAnswer(TypedDict):
    """One input of a score, in micro-observations. `good` of `total` were counted; `g` of
    `n` is what is left of them after decay. `mean_ppm` is the mean with the start
    (`prior_ppm`) in it, `lower_bound_ppm` what may be relied on, and the score is the sum
    of `weight_ppm` x `lower_bound_ppm`.
    """

    name: Literal[
        "completion", "uptime", "performance", "responsiveness", "payment", "conduct", "disputes"
    ]
    weight_ppm: int
    good: int
    total: int
    g: int
    n: int
    prior_ppm: int
    mean_ppm: int
    lower_bound_ppm: int


class ReputationStandingAnswer(TypedDict):
    """Tier (0: none) and what every tier demands, of nodes and owners. `bonus_ppm`, of a
    node: what its compute weight is multiplied with under the policy of the newest epoch,
    by the lesser of its own and its owner's score.
    """

    tier: int
    age_days: int
    uptime_ppm: NotRequired[int]
    owner_score_ppm: NotRequired[int]
    bonus_ppm: NotRequired[int]
    tiers: list[ReputationTierAnswer]


class ReputationTierAnswer(TypedDict):
    """What a tier demands, and which of it is missing."""

    tier: int
    leases: int
    age_days: int
    completion_ppm: int
    uptime_ppm: int
    score_ppm: int
    missing: list[Literal["leases", "age_days", "completion_ppm", "uptime_ppm", "score_ppm"]]


class RequiredAttributeForm(TypedDict):
    """`value` absent: any. `signers`: one of these must have signed it; absent: any signer."""

    name: str
    value: NotRequired[str | None]
    signers: NotRequired[list[str] | None]


class ReservationAnswer(TypedDict):
    """`lease_id` holds it now, on `node_id`."""

    reservation_id: str
    region_id: str
    account_id: str
    name: str
    kind: Literal["port"]
    host_name: str
    port: int
    lease_id: NotRequired[str]
    node_id: NotRequired[str]
    added_at: str
    position: NotRequired[int]


class ReservationPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ReservationAnswer]


class ReservationRemovedAnswer(TypedDict):
    reservation_id: str
    position: NotRequired[int]


class ReservationRequest(TypedDict):
    """`host_name`: published with mDNS on the region's network, without `.local`."""

    name: str
    kind: NotRequired[Literal["port"]]
    host_name: str
    port: int


class ReservedLineAnswer(TypedDict):
    months: int
    price_per_gpu_hour: Money
    refund_ppm: int


class ReservedLineRequest(TypedDict):
    """The price of so many months, and how much of what is unused an early end gives back."""

    months: Literal[1, 3, 6]
    price_per_gpu_hour: Money
    refund_ppm: int


class ReservedPortAnswer(TypedDict):
    """The name that is published with mDNS, and the port that the work listens on."""

    host_name: str
    port: int


class ResourceChargeAnswer(TypedDict):
    """What one fact added. It judged the reports of the lease's node in its lane after
    `after_position` up to `through_position`; `refused` is what of their rows did not
    count.
    """

    meter: Literal["cpu", "memory", "storage", "network"]
    lane: int
    after_position: int
    through_position: int
    rows: int
    measured: str
    quantity: str
    charge: Money
    refused: list[RefusedUseAnswer]
    accrued_at: str
    position: int


class ResourceChargePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ResourceChargeAnswer]


class ResourceKindAnswer(TypedDict):
    kind: str
    vendor: str
    dimensions: list[Literal["compute", "memory", "seats"]]
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    effective_from: str
    position: NotRequired[int]


class ResourceKindRequest(TypedDict):
    """A vendor's devices of a kind. Seats count in SEAT_MS and have no memory of their own."""

    kind: str
    vendor: str
    dimensions: list[Literal["compute", "memory", "seats"]]
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    effective_from: str


class ResourceKindsAnswer(TypedDict):
    """The seeded kinds and those the network registered, and models it has classed."""

    data: list[ResourceKindAnswer]
    models: list[ModelClassAnswer]
    position: int


class ResourceQuantityAnswer(TypedDict):
    """`gpu` and `gpu_memory` in parts per million of one device."""

    resource: str
    units: str


class ResourceRateForm(TypedDict):
    """floor(quantity x price / per) micro-credits; the meter's own unit."""

    meter: Literal["cpu", "memory", "storage", "network"]
    price: Money
    per: str


ResourceRowAnswer = TypedDict(
    "ResourceRowAnswer",
    {
        "lane": "int",
        "usage_position": "int",
        "seq": "int",
        "node_id": "str",
        "from": "str",
        "to": "str",
        "microseconds": "str",
        "source": 'Literal["cgroup2", "cgroup1", "proc", "other"]',
        "cpu_us": "NotRequired[str]",
        "memory_byte_s": "NotRequired[str]",
        "storage_byte_s": "NotRequired[str]",
        "received_bytes": "NotRequired[str]",
        "sent_bytes": "NotRequired[str]",
        "received_at": "str",
    },
)


class ResourceRowPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ResourceRowAnswer]


class ResourceUseAnswer(TypedDict):
    """Signed use of the leases of one group. `group` is what it was summed by."""

    cpu_us: str
    memory_byte_s: str
    storage_byte_s: str
    received_bytes: str
    sent_bytes: str
    group: str
    leases: int
    time_us: str


class ResourceUsePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ResourceUseAnswer]


class ResultLeftOutForm(TypedDict):
    """What does not come back, and why. `is_lost`: it was asked back by its name, or may be
    a file of the work; not so a link, a pipe or a device, which never come back.
    """

    path: str
    detail: str
    is_lost: NotRequired[bool]


class ResultsListedAnswer(TypedDict):
    """`missing`: the pieces that are to be sent."""

    lease_id: str
    missing: list[str]
    position: NotRequired[int]


class RevenueSharesAnswer(TypedDict):
    """`provider_ppm`: what is left for the provider's own account."""

    node_id: str
    shares: list[OwnerShareForm]
    provider_ppm: int
    position: NotRequired[int]


class RevenueSharesLeftAnswer(TypedDict):
    node_id: str
    position: NotRequired[int]


class RevenueSharesRequest(TypedDict):
    """The owners that share what the node's provider earns; the provider's own account owns
    the rest.
    """

    shares: list[OwnerShareForm]


class RewardAcceptanceRequest(TypedDict):
    """A governor's signed vote."""

    vote: VoteRequest


class RewardAdjustmentRequest(TypedDict):
    """`delta`: what the account is to be given, or (below zero) to give back."""

    account_id: str
    delta: str
    reason: str
    evidence_position: NotRequired[int | None]


class RewardClientAnswer(TypedDict):
    """What of a node's compute reward is for work that one compute client brought; without
    a `client_id`: what no client is known of.
    """

    client_id: NotRequired[str]
    reward: Money


class RewardCorrectionAnswer(TypedDict):
    """`slashed` was taken of what had not matured; `adjusted` settles with
    `adjusted_epoch`.
    """

    correction_id: str
    kind: Literal["slash", "adjustment"]
    state: Literal["proposed", "accepted"]
    epoch: int
    account_id: str
    delta: str
    reason: str
    evidence_position: NotRequired[int]
    proposed_by: str
    proposed_at: str
    accepted_by: NotRequired[str]
    accepted_at: NotRequired[str]
    slashed: NotRequired[Money]
    adjusted: NotRequired[str]
    adjusted_epoch: NotRequired[int]
    ballot: BallotAnswer
    position: NotRequired[int]


class RewardCorrectionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RewardCorrectionAnswer]


class RewardDifferenceAnswer(TypedDict):
    """What an account got, and would have got."""

    account_id: str
    was: Money
    would_be: Money
    delta: SignedMoney


class RewardRatingAnswer(TypedDict):
    """What one unit weighs, in parts per million."""

    name: str
    ppm: int


class RewardShareAnswer(TypedDict):
    """share = floor(pool x weight / all_weight); `lost` over `all_weight` is what the floor
    dropped. `paid` is the share, or the cap where that is lower.
    """

    pool: Money
    weight: str
    all_weight: str
    share: Money
    lost: str
    cap: NotRequired[Money]
    paid: Money


class RewardSlashRequest(TypedDict):
    """At most what has not matured is taken, and goes to the treasury."""

    account_id: str
    amount: Money
    reason: str
    evidence_position: NotRequired[int | None]


class RewardTermsAnswer(TypedDict):
    """How rewards are shared in an epoch, and up to what cap; an absent cap means no cap."""

    source_weights: list[RewardRatingAnswer]
    burned_per_gpu_hour: NotRequired[Money]
    class_ratings: list[RewardRatingAnswer]
    cap_multiple_ppm: NotRequired[int]
    cap_goes_to: str
    zero_weight_goes_to: str
    bonus_from_ppm: int
    bonus_range_ppm: int
    bonus_max_ppm: int
    availability_min_tier: int
    availability_tier_2_ppm: int
    availability_min_uptime_ppm: int
    availability_cap_per_gpu_hour: NotRequired[Money]
    availability_cap_per_node: NotRequired[Money]
    owner_cap: NotRequired[Money]
    release_tau: NotRequired[int]
    release_cap: Money
    min_wait_us: str
    forfeit_epochs: NotRequired[int]


class RewardWeightAnswer(TypedDict):
    """`burned`: micro-credits that cash and burned credits paid and that were burned."""

    account_id: str
    burned: str
    gpu_us: str


class SataDriveForm(TypedDict):
    """Decimal gigabytes; a drive without platters turns 0 times a minute; null: not known."""

    size_gb: int
    kind: Literal["ssd", "hdd"]
    rpm: NotRequired[int | None]


class ServerFigureAnswer(TypedDict):
    """One number of the server; `value` as text, whole where it is whole."""

    name: str
    value: str
    of: NotRequired[str]


class SettingExpectationAnswer(TypedDict):
    """What leases of other accounts got on nodes of this setting so far (K-4): how many
    ended because the node went silent, and how much of the promised time was served. Absent
    before there was any.
    """

    leases: int
    unreachable_ppm: int
    served_ppm: NotRequired[int]


class SignUpRequest(TypedDict):
    """`nonce`: 22 characters or more that you drew at random, and kept. With them, and the
    same Idempotency-Key, a lost answer can be asked for again.
    """

    nonce: str


class SignedMoney(TypedDict):
    """A movement: debits above zero, credits below."""

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: str


class SigningKeyAnswer(TypedDict):
    """`key_id`: the first 16 hex digits of the SHA-256 of the public key."""

    account_id: str
    key_id: str
    public_key: str
    added_at: str
    revoked_at: NotRequired[str]
    position: NotRequired[int]


class SigningKeyRequest(TypedDict):
    """The public half of an Ed25519 key, 32 bytes as hex; the other half never leaves you."""

    public_key: str


class SigningKeysAnswer(TypedDict):
    account_id: str
    data: list[SigningKeyAnswer]
    position: int


class SlaClassForm(TypedDict):
    name: str
    tiers: list[SlaTierForm]


class SlaTierForm(TypedDict):
    below_ppm: int
    credit_ppm: int


class SolvencyKindAnswer(TypedDict):
    """One kind of account: `held` is what the network has, `claimed` whose it is."""

    kind: str
    side: Literal["held", "claimed"]
    amount: Money


class StandingBidAnswer(TypedDict):
    """`state`: waiting for devices, holding them, paused because it was outbid or its
    renter asked, or over. `lowest_winning`: the bid to beat on devices of its class.
    """

    lease_id: str
    bid: Money
    state: Literal["waiting", "holding", "paused", "over"]
    reason: NotRequired[Literal["outbid", "renter"]]
    node_id: NotRequired[str]
    since: str
    lowest_winning: NotRequired[Money]
    position: NotRequired[int]


class StandingBidRequest(TypedDict):
    """Raise or lower the bid. A lease that has run keeps its price: another one goes on
    with its job at the new bid.
    """

    bid: Money


class StandingBidSetAnswer(TypedDict):
    """`lease_id`: the lease that has the bid now; another than before where one had run."""

    lease_id: str
    bid: Money
    restart_of: NotRequired[str]
    position: NotRequired[int]


class StatementKindAnswer(TypedDict):
    """All lines of one kind on one part. A movement above zero raises the part's balance."""

    kind: str
    part: str
    lines: int
    movement: SignedMoney


class StatementLeaseAnswer(TypedDict):
    """What one lease used and cost in the period. matched + unconfirmed + contested =
    gpu_us: what its renter signed for, what lies after the last signature, and what lies
    before it unsigned. `free_start_us`: from the moment its node took the work up until
    billing began, which is free.
    """

    lease_id: str
    gpu_us: str
    refused_us: str
    matched_gpu_us: str
    unconfirmed_gpu_us: str
    contested_gpu_us: str
    charge: Money
    accruals: int
    free_start_us: NotRequired[str]


class StatementLineAnswer(TypedDict):
    """One line: one fact's effect on one part. `position` leads to the fact and its proof."""

    position: int
    type: str
    kind: str
    part: str
    movement: SignedMoney
    balance_after: Money
    lease_id: NotRequired[str]
    volume_id: NotRequired[str]
    client_id: NotRequired[str]
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    at: str
    recorded_at: str


class StatementLineDetailAnswer(TypedDict):
    """A fact as stored, the entry it booked, the caller's lines of it, and the arithmetic.
    `body` is what the leaf's hash covers, the blind left out; the proof holds it whole.
    """

    position: int
    type: str
    version: int
    recorded_at: str
    leaf: str
    lines: list[StatementLineAnswer]
    entry: list[BookMovementAnswer]
    arithmetic: list[ArithmeticStepAnswer]
    body: dict[str, Any]


class StatementUsageAnswer(TypedDict):
    """What the account's own leases used: sums over the accruals that the filters let
    through. matched + unconfirmed + contested = gpu_us: what the renter signed for, what
    lies after the last signature, and what lies before it and was not signed for. Disputed:
    in an open dispute.
    """

    gpu_us: str
    matched_gpu_us: str
    unconfirmed_gpu_us: str
    contested_gpu_us: str
    disputed_gpu_us: str
    charge: Money
    accruals: int
    by: NotRequired[str]
    groups: list[UsageOfGroupAnswer]
    groups_left_out: bool


class StorageNodeAnswer(TypedDict):
    """The `sequence`th of its region. `charge` is up to `charged_until`; `owed` of it found
    no balance.
    """

    region_id: str
    sequence: int
    account_id: str
    provider_id: str
    storage_class: str
    per_hour: Money
    tariff_version: int
    provisioned_at: str
    ready_at: NotRequired[str]
    removed_at: NotRequired[str]
    charged_until: str
    charge: Money
    owed: Money


class StorageNodeRequest(TypedDict):
    """The class of storage. It runs always: a commitment with the cloud makes it cheaper
    there.
    """

    storage_class: str


class StorageNodeStateAnswer(TypedDict):
    region_id: str
    sequence: int
    state: Literal["none", "provisioned", "active"]
    position: NotRequired[int]


class StorageNodesAnswer(TypedDict):
    """The storage nodes a region has had, the last one first."""

    region_id: str
    storage_nodes: list[StorageNodeAnswer]
    position: int


class StoreMountAnswer(TypedDict):
    """A folder that the work mounts: `path` on the server, with its root. The work finds it
    at `at`, to be read only where its use is `input`. `user` and `password` are told to the
    node alone.
    """

    name: str
    kind: Literal["nfs", "smb"]
    address: str
    root_path: str
    path: str
    use: Literal["input", "output", "scratch"]
    at: str
    user: NotRequired[str]
    password: NotRequired[str]


class StoreMountForm(TypedDict):
    """A folder of a datastore of yours: `path` lies below its root, like /subdir2."""

    datastore_id: str
    path: NotRequired[str]
    use: Literal["input", "output", "scratch"]


class StoredReportAnswer(TypedDict):
    status: Literal["stored", "duplicate"]
    receipt: UsageReceiptAnswer


class TariffAnswer(TypedDict):
    """`in_force`: the version that a lease reserved now would keep."""

    version: int
    usage_fees: list[UsageFeeForm]
    provider_share_ppm: int
    burn_share_ppm: int
    effective_from: str
    published_at: str
    by: str
    in_force: bool
    split: NotRequired[ChargeSplitForm]
    federated: NotRequired[FederatedFeeForm]
    device_fee_per_month: NotRequired[Money]
    storage_node_per_hour: NotRequired[Money]
    meters: NotRequired[list[ResourceRateForm]]
    sla: NotRequired[list[SlaClassForm]]
    notice_seconds: NotRequired[int]
    free_start: NotRequired[FreeStartForm]
    position: NotRequired[int]


class TariffRequest(TypedDict):
    """The next version, whole: a row that is left out costs nothing under it. Without
    `free_start` all time before a program's start succeeded is free.
    """

    version: int
    usage_fees: list[UsageFeeForm]
    provider_share_ppm: int
    burn_share_ppm: NotRequired[int]
    effective_from: str
    split: NotRequired[ChargeSplitForm | None]
    federated: NotRequired[FederatedFeeForm | None]
    device_fee_per_month: NotRequired[Money | None]
    storage_node_per_hour: NotRequired[Money | None]
    meters: NotRequired[list[ResourceRateForm] | None]
    sla: NotRequired[list[SlaClassForm] | None]
    notice_seconds: NotRequired[int | None]
    free_start: NotRequired[FreeStartForm | None]


class TariffsAnswer(TypedDict):
    """Every version ever published, oldest first."""

    data: list[TariffAnswer]
    position: int


class TaskQueueAnswer(TypedDict):
    """`waiting`: tasks that no lease holds. `taken`: tasks that a lease holds for now."""

    job_id: str
    waiting: int
    taken: int
    done: int
    position: NotRequired[int]


class TimerRunAnswer(TypedDict):
    """One timer. `late`: its last success is longer ago than its alarm allows."""

    name: str
    ran_at: str
    succeeded_at: NotRequired[str]
    duration_us: NotRequired[int]
    error: NotRequired[str]
    next_at: NotRequired[str]
    late: bool


class TimerRunsAnswer(TypedDict):
    """The timers by name."""

    data: list[TimerRunAnswer]
    position: NotRequired[int]


class TokenPriceAnswer(TypedDict):
    """What the sources say now, and the last snapshot that was taken."""

    health: Literal["healthy", "too_few_sources", "deviation", "moved"]
    median_micro_usd: NotRequired[int]
    deviation_bps: NotRequired[int]
    sources: list[PriceSourceAnswer]
    window_seconds: int
    max_age_seconds: int
    max_deviation_bps: int
    min_sources: int
    held_to: NotRequired[int]
    max_move_bps: NotRequired[int]
    at: str
    last_snapshot: NotRequired[PriceSnapshotAnswer]
    position: NotRequired[int]


class TrustFindingAnswer(TypedDict):
    """A rule that does not hold: the device stays below tier `denies`. The evidence is a
    report of a usage lane, or without `lane` a fact of the market log.
    """

    rule: str
    denies: int
    detail: str
    lane: NotRequired[int]
    evidence_position: NotRequired[int]


class UnbilledLeaseAnswer(TypedDict):
    """What accruing one lease now would charge, from the reports received so far."""

    lease_id: str
    accrued_until: str
    until: str
    gpu_us: str
    charge: Money
    lane: int
    usage_position: int


class UnbilledUsageAnswer(TypedDict):
    """Used but not accrued yet. An estimate: reports that are still under way add to it.
    `charge` and `gpu_us` are of all running leases but `leases_left_out`; `leases` names
    the first of them.
    """

    charge: Money
    gpu_us: str
    leases: list[UnbilledLeaseAnswer]
    leases_left_out: int


class UnmatchedRequestAnswer(TypedDict):
    """What was asked, and what each demand left of the nodes. `eased`: the nearest single
    demand to ease. `times`: refusals for the same since it was last recorded.
    """

    account_id: str
    client_id: str
    project_id: str
    code: str
    need_sha256: str
    members: int
    gpu_count: int
    models: list[str]
    max_price_per_gpu_hour: Money
    pricing: NotRequired[str]
    fleet_position: int
    nodes: int
    dimensions: list[MatchDimensionAnswer]
    eased: NotRequired[MatchRelaxationAnswer]
    times: int
    at: str
    recorded_position: int


class UnmatchedRequestPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[UnmatchedRequestAnswer]


class UnmetDemandAnswer(TypedDict):
    """GPUs that are asked for and that no node gives: now, by requests that wait; lately,
    by those that were given up, and by those refused at once (the largest one of each
    account).
    """

    waiting_gpus: int
    given_up_gpus: int
    refused_gpus: int


class UpcomingMaturityAnswer(TypedDict):
    """Credited to holdback by the fact at this position. `amount` is before what was
    reduced.
    """

    amount: Money
    at_position: int
    posted_at: str
    matures_at: str


class UsageBreakdownAnswer(TypedDict):
    """One grouping. `hour` and `day` begin it, in UTC. By `group_id` a lease is told once
    for each group that it was counted in.
    """

    hour: NotRequired[str]
    day: NotRequired[str]
    kind: NotRequired[str]
    work: NotRequired[str]
    node_id: NotRequired[str]
    pool_id: NotRequired[str]
    client_id: NotRequired[str]
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    group_id: NotRequired[str]
    accruals: int
    gpu_us: str
    charge: Money


class UsageBreakdownPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[UsageBreakdownAnswer]


class UsageEnvelopeRequest(TypedDict):
    """One signed report as a CloudEvent. Only `data_base64` is signed (DSSE, Ed25519); the
    other fields must agree with it. `id` and `sequence` are its number, `prevhash` the hash
    before it.
    """

    specversion: Literal["1.0"]
    id: str
    source: str
    type: Literal["usage.reported.v1"]
    time: str
    dataschema: str
    sequence: str
    prevhash: str
    signature: str
    keyid: str
    data_base64: str
    datacontenttype: NotRequired[Literal["application/json"] | None]


class UsageFeeForm(TypedDict):
    gpu_class: str
    per_gpu_hour: Money


class UsageHeadAnswer(TypedDict):
    """How far the log holds the node's chain."""

    acked_seq: int
    head: str
    server_time_us: int


class UsageOfGroupAnswer(TypedDict):
    """Accrued GPU time and its charge of one client, project, end user or lease."""

    group: str
    gpu_us: str
    charge: Money
    accruals: int


class UsageReceiptAnswer(TypedDict):
    """The node's half of the stick. `flags` other than 0: stored, and earns nothing."""

    seq: int
    hash: str
    lane: int
    position: int
    lane_hash: str
    recorded_at: str
    flags: int


class UsageReceiptsAnswer(TypedDict):
    acked_seq: int
    head: str
    server_time_us: int
    results: list[StoredReportAnswer]


class UsageSummaryAnswer(TypedDict):
    """One group: sum, largest accrual and number of accruals. `hour` and `day` begin it, in
    UTC. A lease hour counts in the UTC hour in which it begins; one accrual is a lease hour
    or the last part of one.
    """

    hour: NotRequired[str]
    day: NotRequired[str]
    client_id: NotRequired[str]
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    model: NotRequired[str]
    accruals: int
    gpu_us: str
    gpu_us_max: str
    charge: Money
    charge_max: Money


class UsageSummaryPage(TypedDict):
    """A page of a list. `unbilled_estimate`, of a period that is not over and without
    filters: what running leases used and no group has yet, because each full hour is billed
    when it ends.
    """

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[UsageSummaryAnswer]
    unbilled_estimate: NotRequired[UnbilledUsageAnswer]


class UseDivisionAnswer(TypedDict):
    """How the use of a node divides among renters, or of a renter among owners of nodes:
    the part of its largest unrelated counterparty, and of all related ones.
    """

    subject_id: str
    gpu_us: str
    counterparties: int
    largest_ppm: int
    related_ppm: int
    raised: list[str]


class UseDivisionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[UseDivisionAnswer]


class UsedKnownAnswer(TypedDict):
    """For how much of the metered time each could be measured, in microseconds."""

    cpu_us: str
    memory_us: str
    storage_us: str
    network_us: str


class UtilisationAnswer(TypedDict):
    """Milliseconds of one group: leased + idle + mined + stranded + unavailable = physical.
    `mined`: no lease held a part of the device, and its provider states that the node mines
    then. `asset` is GPU_MS, or SEAT_MS for software. `pool` is empty for nodes of no pool.
    """

    hour: NotRequired[str]
    day: NotRequired[str]
    pool: NotRequired[str]
    region: NotRequired[str]
    model: NotRequired[str]
    node: NotRequired[str]
    asset: str
    physical: str
    leased: str
    idle: str
    mined: str
    stranded: str
    unavailable: str
    leased_ppm: int


class UtilisationPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[UtilisationAnswer]


class VolumeAnswer(TypedDict):
    """`leases` have it attached now. `charge` covers the time until `charged_until`, once
    for the volume. In state grace its funds have ended: it is deleted at `deletes_at`,
    unless credits come before. `reserve` is held for that time. Deleted: `nodes_left` have
    not said yet that nothing of it is left with them. Erased: every node that ever had it
    attached has.
    """

    volume_id: str
    name: str
    account_id: str
    project_id: NotRequired[str]
    region_id: str
    size_gib: int
    state: Literal["detached", "attached", "grace", "deleted", "erased"]
    leases: int
    rate: NotRequired[VolumeRateAnswer]
    tariff_version: int
    gb_seconds: int
    charge: Money
    charged_until: str
    reserve: Money
    provisioned_at: str
    deletes_at: NotRequired[str]
    deleted_at: NotRequired[str]
    deleted_because: NotRequired[Literal["owner", "funds_ended"]]
    nodes_left: NotRequired[int]
    erased_at: NotRequired[str]
    position: NotRequired[int]


class VolumeAttachRequest(TypedDict):
    """Every lease of the job that is asked for from now on mounts the volume at `path`,
    below /vol/. Leases that run already keep what they have.
    """

    job_id: str
    path: str
    read_only: NotRequired[bool]


class VolumeDetachRequest(TypedDict):
    """Leases of the job that are asked for from now on do not mount the volume."""

    job_id: str


class VolumeErasedAnswer(TypedDict):
    volume_id: str
    state: Literal["detached", "attached", "grace", "deleted", "erased"]
    position: NotRequired[int]


class VolumeMountForm(TypedDict):
    """A volume of yours, and the path below /vol/ at which every lease of the job finds it."""

    volume_id: str
    path: str
    read_only: NotRequired[bool]


class VolumePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[VolumeAnswer]


class VolumeRateAnswer(TypedDict):
    """So many GB-seconds cost `price`."""

    price: Money
    per: int


class VolumeRequest(TypedDict):
    """Disk in one region, charged from now until it is deleted. `project_id`: only jobs of
    this project mount it; absent: all of your jobs. The price of its grace of 72 hours is
    held.
    """

    name: str
    region_id: str
    size_gib: int
    project_id: NotRequired[str | None]


class VolumeShownAnswer(TypedDict):
    """A volume with the leases that have or had it, the last ones first."""

    volume_id: str
    name: str
    account_id: str
    project_id: NotRequired[str]
    region_id: str
    size_gib: int
    state: Literal["detached", "attached", "grace", "deleted", "erased"]
    leases: int
    rate: NotRequired[VolumeRateAnswer]
    tariff_version: int
    gb_seconds: int
    charge: Money
    charged_until: str
    reserve: Money
    provisioned_at: str
    deletes_at: NotRequired[str]
    deleted_at: NotRequired[str]
    deleted_because: NotRequired[Literal["owner", "funds_ended"]]
    nodes_left: NotRequired[int]
    erased_at: NotRequired[str]
    position: NotRequired[int]
    attachments: list[JobAttachmentAnswer]


class VoteRequest(TypedDict):
    """A governor's signed vote. `signature`: over the text of `tallystick vote v1`, in hex;
    of an Ed25519 key 64 bytes, of a wallet 65 bytes behind 0x. Of a passkey `passkey:`,
    then the authenticator data, the client data and the signature of an assertion, with
    dots between; its challenge is the SHA-256 of the text.
    """

    governor_id: str
    revision: int
    content_sha256: str
    governors: int
    rehearsal_sha256: NotRequired[str | None]
    signature: str


class WaitListAnswer(TypedDict):
    """A list of a region, or of a place that no region holds. `number`: yours on it."""

    list_id: str
    threshold: int
    first_user_administers: bool
    waiting: int
    reached_at: NotRequired[str]
    number: NotRequired[int]
    position: NotRequired[int]


class WaitListTermsRequest(TypedDict):
    """`threshold`: so many start the region. `first_user_administers`: the first one starts
    it and becomes its administrator.
    """

    threshold: int
    first_user_administers: NotRequired[bool]


class WaitListsAnswer(TypedDict):
    data: list[WaitListAnswer]
    position: int


class WaitingRequestAnswer(TypedDict):
    """`request_id`: of a lease or a gang. Its account is shown to that account and to
    operators only.
    """

    request_id: str
    place: int
    is_gang: bool
    demand: list[ResourceQuantityAnswer]
    account_id: NotRequired[str]
    project_id: NotRequired[str]
    waits_since: str


class WaitingRequestPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[WaitingRequestAnswer]


class WalletAnswer(TypedDict):
    """Paid from `effective_at` on: 72 hours after it was linked."""

    address: str
    effective_at: str
    linked_at: NotRequired[str]
    position: NotRequired[int]


class WalletChallengeAnswer(TypedDict):
    """Sign `message` exactly as it is (EIP-191), and send the signature with `nonce`."""

    nonce: str
    message: str
    expires_at: str
    position: NotRequired[int]


class WalletChallengeRequest(TypedDict):
    address: str


class WalletProofRequest(TypedDict):
    nonce: str
    signature: str


class WalletsAnswer(TypedDict):
    """In the order of linking; `paid` is the one that is paid now."""

    data: list[WalletAnswer]
    paid: NotRequired[str]
    position: int


class WashSignalsAnswer(TypedDict):
    """`raised` names the signals that are high; absent is what nothing can be divided by."""

    payout_multiple_ppm: NotRequired[int]
    concentration_ppm: NotRequired[int]
    related_ppm: NotRequired[int]
    raised: list[str]


class WebhookAnswer(TypedDict):
    """`secret` is there only in the answer that makes it; sent again, for 24 hours."""

    endpoint_id: str
    account_id: str
    url: str
    types: list[str]
    enabled: bool
    disabled_reason: NotRequired[Literal["owner", "gone", "failed"]]
    added_at: str
    secret: NotRequired[str]
    position: NotRequired[int]


class WebhookDeliveryAnswer(TypedDict):
    """The delivery of one fact; `answer`: the last HTTP status of the endpoint."""

    webhook_id: str
    outcome: Literal["waiting", "delivered", "failed"]
    attempts: int
    answer: NotRequired[int]
    error: NotRequired[str]
    first_at: str
    last_at: str
    next_at: NotRequired[str]
    position: int


class WebhookDeliveryPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[WebhookDeliveryAnswer]


class WebhookPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[WebhookAnswer]


class WebhookReplayAnswer(TypedDict):
    """`count`: the number of facts that are delivered again, in order, before anything new."""

    endpoint_id: str
    count: int


class WebhookReplayRequest(TypedDict):
    """Facts whose deliveries are repeated, delivered or given up: [from_position,
    to_position].
    """

    from_position: int
    to_position: int


class WebhookRequest(TypedDict):
    """`types`: prefixes of fact types, such as `lease.` or `payment.`; none: all of them."""

    url: str
    types: NotRequired[list[str]]


class WebhookTestAnswer(TypedDict):
    """The endpoint's answer to an event of type `webhook.test`."""

    endpoint_id: str
    delivered: bool
    answer: NotRequired[int]
    error: NotRequired[str]


class WhereNextAnswer(TypedDict):
    """`demand`: of requests that name no region. Places with the most people first."""

    regions: list[WhereRegionAnswer]
    places: list[WherePlaceAnswer]
    demand: UnmetDemandAnswer
    position: int


class WherePlaceAnswer(TypedDict):
    """A place that no region holds. `place`: ISO 3166."""

    place: str
    waiting_people: int
    threshold: int
    reached: bool


class WhereRegionAnswer(TypedDict):
    """`leased_ppm`: of what its devices could have sold in the last seven days; absent:
    nothing was booked.
    """

    region_id: str
    name: str
    phase: Literal["waitlisted", "opening", "open", "draining", "closed"]
    setting: Literal["edge", "datacenter"]
    workers: int
    workers_max: NotRequired[int]
    leased_ppm: NotRequired[int]
    waiting_people: int
    threshold: NotRequired[int]
    demand: UnmetDemandAnswer
    latitude_e6: NotRequired[int]
    longitude_e6: NotRequired[int]


class WorkAcknowledgementRequest(TypedDict):
    """`workload_sha256` as the node computed it from the work it was told; `executor` names
    the program that has it, and stays the same when that program starts again.
    """

    command: Literal["start", "stop"]
    workload_sha256: str
    executor: str
    runner: Literal["process", "trusted", "docker", "other"]


class WorkEndRequest(TypedDict):
    """`exit_code` of a process that a signal ended: 128 and its number. `limited`: a limit
    of the lease ended it. `lost`: the node no longer has it, because it was started anew.
    `not_started`: the node could not begin it after it had said `ready`; nothing of the
    lease is charged.
    """

    executor: str
    outcome: Literal["exited", "limited", "lost", "not_started"]
    exit_code: NotRequired[int | None]


class WorkHealthRequest(TypedDict):
    """How the work of a lease is, as its executor finds it: an endpoint that answers is
    well.
    """

    well: bool
    detail: NotRequired[str]


class WorkLogAnswer(TypedDict):
    """Pieces from `from_seq` on. `ended`: nothing more will come."""

    lease_id: str
    next_seq: int
    bytes: int
    left_out: int
    position: NotRequired[int]
    data: list[WorkLogPieceAnswer]
    ended: bool
    exit_code: NotRequired[int]


class WorkLogHeadAnswer(TypedDict):
    """`next_seq`: what comes next; of a piece that left a gap nothing was kept."""

    lease_id: str
    next_seq: int
    bytes: int
    left_out: int
    position: NotRequired[int]


class WorkLogPieceAnswer(TypedDict):
    seq: int
    stream: Literal["stdout", "stderr", "note"]
    at: str
    body: str


class WorkLogPieceRequest(TypedDict):
    """`note`: said by the executor itself, not by the work."""

    stream: Literal["stdout", "stderr", "note"]
    body: str


class WorkLogPiecesRequest(TypedDict):
    """Pieces numbered from `seq` on; known numbers are passed over. `left_out`: bytes that
    were printed and that the executor did not keep.
    """

    seq: int
    left_out: NotRequired[int]
    data: list[WorkLogPieceRequest]


class WorkStateAnswer(TypedDict):
    """The work of a lease as far as its node has told. `free_start_us`: billing begins at
    most so long after the work was taken up, and in a gang with all of it; without it not
    before the program's start succeeded. `start_us`: how long the start took before it was
    billed; all of it is free.
    """

    lease_id: str
    state: Literal[
        "requested",
        "quoted",
        "reserved",
        "gang_waiting",
        "active",
        "paused",
        "degraded",
        "reclaiming",
        "closing",
        "settled",
        "disputed",
        "resolved",
        "archived",
    ]
    acknowledged_at: NotRequired[str]
    free_start_us: NotRequired[int]
    start_us: NotRequired[int]
    ended_at: NotRequired[str]
    exit_code: NotRequired[int]
    stopped_at: NotRequired[str]
    position: NotRequired[int]


class WorkToStopAnswer(TypedDict):
    """A lease that is over while its work may still run: stop it, then acknowledge the
    stop.
    """

    lease_id: str
    workload_sha256: str
    closed_at: str
    close_code: int


class WorkspaceContentsForm(TypedDict):
    """What the work finds in its folder. `environment`: variables and their values, which
    are no secrets. `secrets`: names of variables whose values come sealed, for each lease.
    `results`: paths that come back when the work has ended. `salt`: random, so that the
    digest tells nothing.
    """

    salt: str
    files: NotRequired[list[WorkspaceFileForm]]
    environment: NotRequired[dict[str, str]]
    secrets: NotRequired[list[str]]
    results: NotRequired[list[str]]


class WorkspaceFileForm(TypedDict):
    """A regular file, in pieces of 512 KiB: `sha256` of each, in order."""

    path: str
    is_program: NotRequired[bool]
    size: int
    sha256: list[str]


class WorkspaceKeptAnswer(TypedDict):
    """`missing`: the pieces that are to be sent before work may name the workspace."""

    workspace_sha256: str
    bytes: int
    missing: list[str]
    position: NotRequired[int]


class WorkspacePieceAnswer(TypedDict):
    sha256: str
    body: str


class WorkspacePiecesAnswer(TypedDict):
    """As many of the wanted pieces as one answer holds; those left out are to be asked for
    again. `unknown`: pieces that are not there.
    """

    data: list[WorkspacePieceAnswer]
    unknown: list[str]
    position: NotRequired[int]


class WorkspacePiecesRequest(TypedDict):
    """Pieces of workspaces of yours, base64, of which the server named the hashes as
    missing.
    """

    data: list[str]
