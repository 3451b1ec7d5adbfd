"""The typed client of the REST API. Written by `python -m api.openapi`: do not edit.

Every method is one operation of docs/reference/openapi.json. Refusals are raised as `ApiProblem`;
switch on its `code`. Recording calls send an Idempotency-Key, a fresh one unless you give your own:
give your own to ask again for a lost answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 30


class ApiProblem(Exception):
    """The server's answer is a problem document."""

    def __init__(self, document: Problem, headers: Mapping[str, str]) -> None:
        super().__init__(document.get("code"), document.get("detail"))
        self.document = document
        self.code = document["code"]
        self.status = document["status"]
        self.is_retryable = document["retryable"]
        self.retry_after_seconds = int(headers.get("Retry-After", "0"))


class _Calls:
    """How a call is made; the operations are below."""

    def __init__(
        self, url: str, key: str | None = None, *, http: httpx.Client | None = None
    ) -> None:
        self._http = http or httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.position = 0

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return cast("Client", self)

    def __exit__(self, *_: object) -> None:
        self.close()

    def download(self, path: str) -> Iterator[bytes]:
        """The file at an address of this API, a piece at a time."""
        with self._http.stream("GET", path, headers=self._headers, timeout=None) as response:
            if response.status_code >= 400:
                response.read()
                raise ApiProblem(_problem(response), response.headers)
            yield from response.iter_bytes()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        records: bool = False,
        if_match: str | None = None,
        media_type: str | None = None,
    ) -> Any:
        headers = dict(self._headers)
        if media_type is not None:
            headers["Content-Type"] = media_type
        if if_match is not None:
            headers["If-Match"] = if_match
        if records:
            headers["Idempotency-Key"] = idempotency_key or secrets.token_hex(16)
        elif method == "GET" and self.position:
            # Read your own writes, whichever process answers.
            headers["Tallystick-Min-Position"] = str(self.position)
        asked = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        response = self._http.request(method, path, params=asked, json=body, headers=headers)
        if response.status_code >= 400:
            raise ApiProblem(_problem(response), response.headers)
        self.position = max(self.position, int(response.headers.get("Tallystick-Position", "0")))
        answered = response.headers.get("content-type", "").partition(";")[0]
        if answered == "application/json":
            return response.json()
        return response.text if answered == "text/plain" else response.content


def _at(path: str, **names: object) -> str:
    return path.format(**{name: quote(str(value), safe="") for name, value in names.items()})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(response: httpx.Response) -> Problem:
    """The problem document; something like one where a proxy answered."""
    try:
        document = response.json()
    except ValueError:
        document = None
    if isinstance(document, dict) and "code" in document:
        return cast("Problem", document)
    return {
        "type": "/problems/http_error",
        "title": "Not an answer of the API",
        "status": response.status_code,
        "code": "http_error",
        "retryable": False,
        "instance": str(response.url),
        "request_id": "",
    }


class Accelerators(TypedDict):
    """Devices of one model on nodes that may be leased. `share_free_ppm`: of all of them."""

    vendor: str
    model: str
    gpu_class: NotRequired[str]
    devices: int
    whole_free: int
    share_free_ppm: str
    memory_mib: int


class Acceptance(TypedDict):
    """The second person's yes: to the `opening`, to one `milestone`, or to the `clawback`."""

    what: Literal["opening", "milestone", "clawback"]
    milestone_id: NotRequired[str | None]


class Acceptor(TypedDict):
    """`reported_at`: when the node's last signed report was stored; work of a node that is
    silent is silent, whatever its executor says.
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
    substrate: NotRequired[list[str]]
    reported_at: NotRequired[str]


class Account(TypedDict):
    account_id: str
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: str
    closed_at: NotRequired[str]
    position: NotRequired[int]


class AccountClosed(TypedDict):
    """Closing twice is closing once: the second answer tells when it was."""

    account_id: str
    closed_at: str
    position: NotRequired[int]


class AccountOpened(TypedDict):
    account_id: str
    kind: Literal["operator", "party", "client", "auditor"]
    opened_at: str
    closed_at: NotRequired[str]
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
            "governance",
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
    data: list[Account]


AccountStatement = TypedDict(
    "AccountStatement",
    {
        "account_id": "str",
        "from": "NotRequired[str]",
        "to": "NotRequired[str]",
        "as_of": "NotRequired[str]",
        "opening_position": "int",
        "closing_position": "int",
        "opening": "list[Part]",
        "closing": "list[Part]",
        "kinds": "list[Kind]",
        "lines": "list[StatementLine]",
        "has_more": "bool",
        "next_cursor": "NotRequired[str]",
        "usage": "NotRequired[StatementUsage]",
        "unbilled_estimate": "NotRequired[Unbilled]",
        "position": "int",
    },
)


class Acknowledgement(TypedDict):
    """`workload_sha256` as the node computed it from the work it was told; `executor` names
    the program that has it, and stays the same when that program starts again.
    """

    command: Literal["start", "stop"]
    workload_sha256: str
    executor: str
    runner: Literal["process", "trusted", "docker", "other"]


class Adjustment(TypedDict):
    """`returned` went back to who had paid; of that, `recovered` came from who had been
    paid. `charge_new`: what usage that came late costs.
    """

    adjustment_id: str
    corrects_position: int
    lease_id: str
    account_id: str
    provider_account_id: str
    reason: Literal["late_usage", "dispute", "sla", "goodwill"]
    cause: str
    returned: Money
    recovered: Money
    gpu_us_new: NotRequired[str]
    charge_new: NotRequired[Money]
    lines: list[BookLine]
    booked_at: str
    position: NotRequired[int]


class AdjustmentPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Adjustment]


class Admission(TypedDict):
    """`waive`: rules of hardware that this node need not meet; the operator says so. Left
    out: what was waived stays waived.
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


class Answer(TypedDict):
    """A statement, evidence, or both."""

    statement: NotRequired[str | None]
    evidence: NotRequired[list[EvidenceAsked]]


class ApiKey(TypedDict):
    """`key` is there only in the answer that makes it."""

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
            "governance",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    expires_at: NotRequired[str]
    revoked_at: NotRequired[str]
    key: NotRequired[str]
    position: NotRequired[int]


class ApiKeys(TypedDict):
    data: list[ApiKey]
    position: int


class Assignment(TypedDict):
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


class Assignments(TypedDict):
    """`data`: leases that are running or have not been reported to their end. `pending` is
    to be started, `stopping` to be stopped.
    """

    data: list[Assignment]
    pending: list[Pending]
    stopping: list[Stop]
    position: int


class Attestation(TypedDict):
    node_id: str
    device_id: str
    passed: bool
    detail: str
    position: NotRequired[int]


class AttestationAsked(TypedDict):
    """Evidence in base64, as the plug-in of this name reads it."""

    server_nonce: str
    plugin: str
    evidence: str


class Attribute(TypedDict):
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


class AttributeAsked(TypedDict):
    """`value` absent: any. `signers`: one of these signed it; absent: whoever."""

    name: str
    value: NotRequired[str | None]
    signers: NotRequired[list[str] | None]


class AttributePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Attribute]


class AttributeRevoked(TypedDict):
    statement_id: str
    revoked: bool
    position: NotRequired[int]


class Auction(TypedDict):
    """A request that takes bids until `closes_at`, or what came of it."""

    lease_id: str
    state: Literal["open", "awarded", "ended"]
    pricing: str
    gpu_count: int
    share_ppm: int
    mem_ppm: int
    models: list[str]
    max_price_per_gpu_hour: Money
    term_seconds: NotRequired[int]
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
    data: list[Auction]


class AutoTopUp(TypedDict):
    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: str


class AutoTopUpAsked(TypedDict):
    """Pay `amount` when less than `threshold` is spendable, with what `payment_id` saved,
    and never more than `monthly_max` in a UTC month.
    """

    threshold: Money
    amount: Money
    monthly_max: Money
    payment_id: str


class Balance(TypedDict):
    """One book account of the party, on its normal side; `part` is the last part of its
    name.
    """

    name: str
    part: str
    balance: Money


class BalanceForecast(TypedDict):
    """What can be spent in one way of paying, and until when it would last. As if each
    running lease that is paid this way went on after its funds end and drew on the balance
    at its own rate, to its term. Exact to the second; absent: it lasts for ever.
    """

    settlement: Literal["cash", "burn"]
    spendable: Money
    charge_per_hour: Money
    leases: int
    lasts_until: NotRequired[str]


class Balances(TypedDict):
    """`recorded_by`: the time asked for with `as_of`."""

    account_id: str
    data: list[Balance]
    position: int
    as_of: NotRequired[str]


class BankConfirmation(TypedDict):
    """`reference`: of the line on the bank's statement. `amount` absent: what was asked
    for.
    """

    reference: str
    amount: NotRequired[Money | None]


class BankReversal(TypedDict):
    amount: Money
    reference: str
    reason: str


class Because(TypedDict):
    reason: str


class Bid(TypedDict):
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


class BidAccepted(TypedDict):
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


class BidPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Bid]


class BidWithdrawn(TypedDict):
    bid_id: str
    lease_id: str
    returned: Money
    position: NotRequired[int]


class BillingDetails(TypedDict):
    account_id: str
    name: NotRequired[str]
    address: list[str]
    country: NotRequired[str]
    tax_id: NotRequired[str]
    position: int


class BookLine(TypedDict):
    account: str
    movement: SignedMoney


class Breakdown(TypedDict):
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


class BreakdownPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Breakdown]


class Breaker(TypedDict):
    """`aggregate` counts against the limit now, and fades within a window."""

    breaker: Literal["mint", "payout", "cash_out"]
    asset: Literal["TOKEN", "CREDIT"]
    limit: NotRequired[str]
    window_seconds: int
    aggregate: str
    waiting: list[HeldUp]
    position: NotRequired[int]


class Breakers(TypedDict):
    breakers: list[Breaker]
    position: NotRequired[int]


class Budget(TypedDict):
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
    data: list[Budget]


class Candidate(TypedDict):
    """`served_gpu_us`: this epoch; ties go to who served least. `score_ppm` is the sum of
    weight x factor.
    """

    node_id: str
    offer_id: str
    price_per_gpu_hour: Money
    stranded_ppm: int
    served_gpu_us: str
    own_node: NotRequired[bool]
    down_ranked: NotRequired[bool]
    score_ppm: NotRequired[int]
    factors_ppm: NotRequired[Factors]


class CashOut(TypedDict):
    """requested -> started -> sent -> paid; or failed, or cancelled. `asked_at`: of the
    processor. `returned` is what came back after it was paid.
    """

    cash_out_id: str
    account_id: str
    amount: Money
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


class CashOutPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[CashOut]


class CashOutState(TypedDict):
    cash_out_id: str
    state: Literal["requested", "started", "sent", "paid", "failed", "cancelled"]
    amount: Money
    position: NotRequired[int]


class Challenge(TypedDict):
    """Sign `message` exactly as it is (EIP-191), and send the signature with `nonce`."""

    nonce: str
    message: str
    expires_at: str
    position: NotRequired[int]


class ChallengeAsked(TypedDict):
    address: str


class CheckIn(TypedDict):
    """A machine of the renter's that uses the lease. `well`: it reaches the node and goes
    on.
    """

    machine: str
    arch: NotRequired[str | None]
    os: NotRequired[str | None]
    kernel: NotRequired[str | None]
    well: NotRequired[bool]
    detail: NotRequired[str]


class Claim(TypedDict):
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


class ClaimPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Claim]


class Clawback(TypedDict):
    scope: Literal["unassigned", "unearned"]
    proposed_by: str


class ClientKey(TypedDict):
    """A key of an instance; the key itself is there only in the answer that makes it."""

    key_id: str
    instance_id: str
    bound_at: str
    revoked_at: NotRequired[str]
    key: NotRequired[str]
    position: NotRequired[int]


class ClientPolicy(TypedDict):
    """`min_reputation_ppm` absent: no floor."""

    min_reputation_ppm: NotRequired[int | None]


class ClientQuota(TypedDict):
    """`pool_id` absent: everywhere. `gpu_ppm_max` absent: counted, and not limited."""

    pool_id: NotRequired[str]
    gpu_ppm_max: NotRequired[int]
    used_ppm: NotRequired[int]
    position: NotRequired[int]


class Closing(TypedDict):
    """`code` absent: the renter's 1 (or 101 before the start), the provider's 10002, the
    operator's 20002. `evidence_sha256`: of what the party can show for it.
    """

    code: NotRequired[int | None]
    evidence_sha256: NotRequired[str | None]


class ComputeClient(TypedDict):
    client_id: str
    min_reputation_ppm: NotRequired[int]
    suspended: bool
    registered_at: NotRequired[str]
    keys: NotRequired[list[ClientKey]]
    quotas: NotRequired[list[ClientQuota]]
    position: NotRequired[int]


class ComputeClientPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ComputeClient]


class ConsumedReport(TypedDict):
    """A signed report that the accrual read, and what its rows of this lease came to.
    `hash` is what the next report of the node names as `prev`; `leaf` stands in the lane's
    tree.
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
    ppm_us: str
    refused_us: str


class ConsumedReportPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ConsumedReport]


class Correction(TypedDict):
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
    position: NotRequired[int]


class CorrectionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Correction]


class Cost(TypedDict):
    """A job with all that is part of it: `charge` is the sum over their leases, as accrued."""

    job_id: str
    leases: int
    open_leases: int
    gpu_us: str
    charge: Money
    jobs: list[JobCost]
    next_run_at: NotRequired[str]
    position: NotRequired[int]


class Counterparty(TypedDict):
    counterparty_id: str
    verdict: Literal["allow", "deny", "none"]
    since: str
    position: NotRequired[int]


class CounterpartyAsked(TypedDict):
    """`deny`: never deal with it. `allow`: deal with those that are allowed alone. `none`:
    off the list.
    """

    counterparty_id: str
    verdict: Literal["allow", "deny", "none"]


class CounterpartyPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Counterparty]


class Countersignature(TypedDict):
    """`signature` (hex) is over these bytes: `tallystick/countersign/v1`, the lease id,
    `gpu_us N` and `until_us N`, joined by single newlines. `gpu_us` counts from the
    opening.
    """

    key_id: str
    gpu_us: str
    until: str
    signature: str


class Countersigned(TypedDict):
    lease_id: str
    account_id: str
    key_id: str
    gpu_us: str
    until: str
    signature: str
    signed_at: str
    position: NotRequired[int]


class CreditedLine(TypedDict):
    """A line of the invoice, counted from 1, and what comes off it."""

    line: int
    amount: Money


class Decision(TypedDict):
    """Who was next, by which rule."""

    pool_id: str
    chosen: str
    rule: str
    policy_version: int
    fleet_position: int
    waiting: int
    decided_at: str
    position: int


class DecisionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Decision]


class Delivery(TypedDict):
    """How the telling of one fact went; `answer`: the last HTTP status of the endpoint."""

    webhook_id: str
    outcome: Literal["waiting", "delivered", "failed"]
    attempts: int
    answer: NotRequired[int]
    error: NotRequired[str]
    first_at: str
    last_at: str
    next_at: NotRequired[str]
    position: int


class DeliveryPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Delivery]


class Demands(TypedDict):
    """What a node must be and have; every field is one dimension of the match, absent:
    anything. `memory_mib`: what the lease gets on each device. `isolation`: this level or a
    stronger one. `regions`: only there; `near_region` only ranks. `accept_provisional`:
    nodes without a reputation yet; absent: yes, unless `min_reputation_ppm` is given. Your
    own nodes are exempt from reputation. `network_class`: this one or a better one.
    `substrate`: what the node runs on, like bare_metal, esxi or kubernetes. `rank`:
    lowest_cost, or best_score with `weights`.
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
    attributes: NotRequired[list[AttributeAsked] | None]
    pool_id: NotRequired[str | None]
    reclaim_window_seconds: NotRequired[int | None]
    interruptible: NotRequired[bool | None]
    rank: NotRequired[Literal["lowest_cost", "best_score"] | None]
    weights: NotRequired[WeightsAsked | None]
    min_kernel: NotRequired[str | None]
    network_class: NotRequired[Literal["internet", "local", "switched"] | None]
    substrate: NotRequired[str | None]


class Deposit(TypedDict):
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
    data: list[Deposit]


class Device(TypedDict):
    """`gpu_class` absent: the model is listed and not priced. Free shares are parts per
    million. `memory` unified: it is the host's, not a second one beside it. `mode`: how its
    holders share it now; absent: nobody holds it, and the next lease decides. `partition`:
    of a model that MIG can cut, what is still possible beside the instances held;
    `stranded_ppm`: compute that nobody can hold as the device is partitioned now.
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
    partition: NotRequired[Partition]
    registered_at: str
    holdings: NotRequired[list[Holding]]
    position: NotRequired[int]


class DeviceFee(TypedDict):
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
    data: list[DeviceFee]


class DeviceForm(TypedDict):
    """One accelerator as its node describes it; null: not known."""

    device_id: str
    vendor: str
    model: str
    memory_mib: int
    connection: NotRequired[Literal["pcie", "sxm"]]
    pcie_gen: NotRequired[int | None]
    pcie_lanes: NotRequired[int | None]
    kind: NotRequired[str | None]
    memory: NotRequired[Literal["unified"] | None]


class DevicePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Device]


class DeviceTime(TypedDict):
    """One device's attested time. `reason` says why it does not count; absent when it does."""

    hardware_class: str
    tier: int
    attested_us: str
    promised_us: str
    rating_ppm: int
    reason: NotRequired[str]


class DeviceTrust(TypedDict):
    """One device in the epoch; `simulated`: its driver says so itself."""

    device_id: str
    tier: int
    simulated: bool
    rows: int
    available_us: int
    energy_mj: int
    findings: list[Finding]


class Difference(TypedDict):
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


class DifferenceNote(TypedDict):
    note: str


class DifferencePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Difference]


class DifferenceSettled(TypedDict):
    difference_id: str
    position: NotRequired[int]


class Dimension(TypedDict):
    """One demand, in the order of asking: what it left of the nodes before it, and the best
    that those had to offer.
    """

    dimension: str
    required: str
    best_offered: NotRequired[str]
    nodes_left: int
    nodes_refused: int


class Dispute(TypedDict):
    """`reserved` waits in `dispute:{id}` until somebody rules, at the latest at
    `expires_at`.
    """

    dispute_id: str
    lease_id: str
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


class DisputePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Dispute]


class DisputeStatement(TypedDict):
    """What one side put in. `text` absent though `sha256` is there: it was erased."""

    side: Literal["renter", "provider"] | Literal["arbiter"]
    sha256: NotRequired[str]
    text: NotRequired[str]
    evidence: list[Evidence]
    by: str
    at: str
    position: int


class DisputeWhole(TypedDict):
    """With every line and everything that was said."""

    dispute_id: str
    lease_id: str
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
    lines: list[DisputedLine]
    statements: list[DisputeStatement]


class DisputedLine(TypedDict):
    position: int
    charge: Money
    claimed: Money
    gpu_us: str
    upheld: NotRequired[Money]
    adjustment_id: NotRequired[str]


class Divided(TypedDict):
    """How the use of a node divides among renters, or of a renter among owners of nodes:
    the part of its largest unrelated counterparty, and of all related ones.
    """

    subject_id: str
    gpu_us: str
    counterparties: int
    largest_ppm: int
    related_ppm: int
    raised: list[str]


class DividedPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Divided]


class Drain(TypedDict):
    """Without `keep_leases` every running lease is reclaimed, within the window it was
    quoted.
    """

    keep_leases: NotRequired[bool]


class Drawn(TypedDict):
    """Which credits of the escrow paid."""

    source: str
    amount: Money
    account_id: NotRequired[str]
    purpose: NotRequired[Literal["federated"]]


class Earning(TypedDict):
    """fee + provider + client + platform + burn = charge. `provider` is the provider's
    part; `burn` is retired for it and paid in TOKEN when the epoch is sealed. `earned` is
    what this account got: of its own leases, or as an owner of the node or as the client
    that brought the job, whose rows hold nothing else. A lease hour counts in the UTC
    `hour` in which it begins.
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


class EarningExplained(TypedDict):
    """One accrual, step by step: terms locked at the opening, totals, and who got what.
    Amounts are computed on the lease's cumulative totals and booked as differences.
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
    steps: list[Step]
    entry: list[Moved]


class EarningPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Earning]


class EdgeDevice(TypedDict):
    """Charged for every UTC day from `first_day` to `last_day`, both included."""

    device_id: str
    account_id: str
    region_id: str
    model: Literal[
        "jetson-agx-xavier",
        "jetson-xavier-nx",
        "jetson-agx-orin",
        "jetson-orin-nx",
        "jetson-orin-nano",
    ]
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
    data: list[EdgeDevice]


class EdgeDeviceRemoved(TypedDict):
    device_id: str
    last_day: str
    position: NotRequired[int]


class Epoch(TypedDict):
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
    unissued: NotRequired[Money]
    recyclable: NotRequired[Money]
    release: NotRequired[Money]
    returned: NotRequired[Money]
    returned_release: NotRequired[Money]
    availability_carry_before: NotRequired[Money]
    availability_carry: NotRequired[Money]
    compute_weight: NotRequired[str]
    availability_weight: NotRequired[str]
    minted: NotRequired[Money]
    mint_tx_hash: NotRequired[str]
    position: NotRequired[int]


class EpochExplanation(TypedDict):
    """The way from GPU-seconds to tokens; `paid` is before the cap of an owner, if there is
    one.
    """

    epoch: int
    node_id: str
    account_id: str
    cut_position: int
    policy_version: int
    compute_base: str
    file_sha256: str
    uses: list[Use]
    score_ppm: NotRequired[int]
    bonus_ppm: int
    burned_tokens: str
    compute: Share
    devices: list[DeviceTime]
    availability: Share
    owner_cap: NotRequired[Money]
    paid: Money
    reasons: list[str]
    signals: Signals
    position: int


class EpochPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Epoch]


class Escrow(TypedDict):
    """`funds_end_at`: the second at which every lease that runs on it ends; absent: none
    runs.
    """

    job_id: str
    account_id: str
    put_in: Money
    held: Money
    funds_end_at: NotRequired[str]
    deposits: list[EscrowDeposit]
    leases: list[EscrowLease]
    position: NotRequired[int]


class EscrowDeposit(TypedDict):
    """What is left of one deposit from one source, in the order in which they are drained."""

    deposit: int
    source: str
    account_id: str
    held: Money


class EscrowFunding(TypedDict):
    amount: Money


class EscrowLease(TypedDict):
    """A lease that draws on it, or still may. `gpu_ppm`: its devices' shares together."""

    lease_id: str
    phase: Literal["reserved", "running", "closed"]
    gpu_ppm: int
    price_per_gpu_hour: Money
    charged: Money
    opened_at: NotRequired[str]
    closed_at: NotRequired[str]


class Event(TypedDict):
    """One fact as stored. `body` is what the leaf's hash covers, the blind left out."""

    position: int
    type: str
    version: int
    recorded_at: str
    leaf: str
    body: dict[str, Any]


class EventPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Event]


class Evidence(TypedDict):
    """`signed`: the server found a valid signature over it, and that it is about the lease."""

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: NotRequired[int]
    position: NotRequired[int]
    sha256: NotRequired[str]
    signed: bool


class EvidenceAsked(TypedDict):
    """`usage_report`: lane and position in the usage log, of this lease. `market_fact`: a
    position of the market log, about this lease. `statement`: the SHA-256 of anything else.
    """

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: NotRequired[int | None]
    position: NotRequired[int | None]
    sha256: NotRequired[str | None]


class ExecutorKey(TypedDict):
    """`executor_key` is shown once, to whoever asked; the one before it ends now."""

    node_id: str
    executor_key: NotRequired[str]
    position: NotRequired[int]


class Expected(TypedDict):
    """What leases of others got on nodes of this setting so far (K-4): how many ended
    because the node went silent, and how much of the promised time was served. Absent
    before there was any.
    """

    leases: int
    unreachable_ppm: int
    served_ppm: NotRequired[int]


class Explanation(TypedDict):
    """`matches`: the recorded decisions. `now`: of an open job without one, what it would
    get at this moment, and if nothing, which demand to ease.
    """

    job_id: str
    matches: list[Match]
    now: NotRequired[JobQuote]
    position: int


class Extension(TypedDict):
    """How much longer, in seconds; all of it is held at once, at the locked price."""

    seconds: int


class Factors(TypedDict):
    """Each in ppm; the formulas are on the page about matching."""

    spec_fit: int
    reputation: int
    locality: int
    free_peers: int
    storage: int
    price: int


class FederatedRow(TypedDict):
    inference_per_hour: Money
    training_per_hour: Money
    unit: Literal["worker", "job"]


class FieldError(TypedDict):
    """One broken rule: where, and which."""

    pointer: str
    detail: str


class Finding(TypedDict):
    """A rule that does not hold: the device stays below tier `denies`. The evidence is a
    report of a usage lane, or without `lane` a fact of the market log.
    """

    rule: str
    denies: int
    detail: str
    lane: NotRequired[int]
    evidence_position: NotRequired[int]


class Flagged(TypedDict):
    """A stored report that earns nothing, and the rule it broke."""

    seq: int
    lane: int
    usage_position: int
    flags: int
    rule: str
    detail: str
    claimed_us: NotRequired[int]
    recorded_at: str


class Forecast(TypedDict):
    """As things stand now: what is deposited, opened or closed later is not foreseen."""

    account_id: str
    at: str
    leases: list[LeaseForecast]
    leases_left_out: int
    balances: list[BalanceForecast]
    position: NotRequired[int]


class Forgone(TypedDict):
    account_id: str
    position: NotRequired[int]


class Fragmentation(TypedDict):
    """What is free now, in ppm of a device. `fragmented_ppm`: which part of that is on
    devices somebody holds a part of, so that it cannot be sold whole. `room_N`: how many
    requests for N whole devices of one node fit side by side.
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


class Fragmentations(TypedDict):
    data: list[Fragmentation]
    position: int


class FundedAccount(TypedDict):
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
    data: list[FundedAccount]


class Funding(TypedDict):
    """What an account may spend now: `sources` one after the other, then the payer's."""

    account_id: str
    sources: list[Source]
    payer: NotRequired[Payer]
    position: int


class Funds(TypedDict):
    """`below`: thresholds above the balance when it was last looked at. `auto_top_up`
    absent: off, and `stopped_reason` says why if it was on before.
    """

    account_id: str
    warnings: list[Money]
    below: list[Money]
    auto_top_up: NotRequired[AutoTopUp]
    stopped_reason: NotRequired[str]
    open_payment_id: NotRequired[str]
    failures: int
    retry_at: NotRequired[str]
    position: NotRequired[int]


class Gang(TypedDict):
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
    data: list[Gang]


class Goodwill(TypedDict):
    """Part of a charge, given back at the network's own cost."""

    corrects_position: int
    amount: Money


class Grant(TypedDict):
    """locked + unlocked + unassigned + clawed_back = total, once it is open. `unassigned`
    has no milestone. `clawback`: one that waits for its second person.
    """

    grant_id: str
    account_id: str
    state: Literal["proposed", "open", "ended"]
    total: Money
    locked: Money
    unlocked: Money
    unassigned: Money
    clawed_back: Money
    milestones: list[Milestone]
    clawback: NotRequired[Clawback]
    proposed_by: str
    proposed_at: str
    position: NotRequired[int]


class GrantPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Grant]


class Group(TypedDict):
    """`used_ppm`: what its leases hold now."""

    group_id: str
    account_id: str
    pool_id: NotRequired[str]
    parent_id: NotRequired[str]
    gpu_ppm_max: NotRequired[int]
    used_ppm: int
    created_at: str
    members: NotRequired[list[GroupMember]]
    position: NotRequired[int]


class GroupMember(TypedDict):
    kind: Literal["project", "member", "account"]
    target: str
    since: str


class GroupMemberAdded(TypedDict):
    group_id: str
    kind: Literal["project", "member", "account"]
    target: str
    position: NotRequired[int]


class GroupPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Group]


class GroupQuota(TypedDict):
    """`gpu_ppm_max` absent: no limit any more. Lowered: what runs goes on."""

    gpu_ppm_max: NotRequired[int | None]


class Half(TypedDict):
    """`health`: well or unwell, as it says; silent, when nothing was heard for three
    minutes while the lease runs; unknown, when nothing was ever said. `since`: since when
    it says so.
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


class HardwareRules(TypedDict):
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


class Heard(TypedDict):
    lease_id: str
    half: Literal["initiator", "acceptor"]
    well: bool
    position: NotRequired[int]


class HeldUp(TypedDict):
    """What does not pass yet: `aggregate` and `amount` were more than the limit."""

    ref: str
    amount: str
    aggregate: str
    reason: str
    since: str


class Hold(TypedDict):
    hold_id: str
    reason: str
    by: str
    held_at: str


class Holding(TypedDict):
    """A MIG instance begins at memory slice `mig_start`."""

    lease_id: str
    share_ppm: int
    mem_ppm: int
    mode: Literal["whole", "mig", "mps", "time_slice", "memory"]
    mig_profile: NotRequired[str]
    mig_start: NotRequired[int]
    since: str


class Holds(TypedDict):
    """The holds that are left."""

    account_id: str
    hold_ids: list[str]
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


class Infra(TypedDict):
    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money


class InfraTerms(TypedDict):
    """Credits per UTC day: `base` in any case, and for each node with the role; together at
    most `most`. What a day cannot pay waits as arrears, up to `arrears_max`.
    """

    base: Money
    control: Money
    ingress: Money
    most: Money
    arrears_max: Money


class Ingested(TypedDict):
    acked_seq: int
    head: str
    server_time_us: int
    results: list[Stored]


class IngressLoad(TypedDict):
    """`leases`: those that hold something of its workers now. `served_gpu_us`: in this
    epoch.
    """

    node_id: str
    workers: int
    leases: int
    served_gpu_us: str


class IngressLoads(TypedDict):
    region_id: str
    data: list[IngressLoad]
    position: int


class Input(TypedDict):
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


class Inventory(TypedDict):
    devices: list[DeviceForm]
    host: HostForm
    hardware: NotRequired[HardwareForm]
    reported_at: NotRequired[str]


class Invoice(TypedDict):
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
    lines: list[InvoiceLine]
    taxes: list[Tax]
    first_position: NotRequired[int]
    last_position: NotRequired[int]
    cause: NotRequired[str]
    reason: NotRequired[str]
    credit_notes: list[str]
    canonical: str
    position: int


class InvoiceLine(TypedDict):
    """`quantity` in `unit`; `credited` is what credit notes took off since."""

    what: str
    detail: NotRequired[str]
    quantity: NotRequired[str]
    unit: NotRequired[str]
    amount: Money
    credited: NotRequired[Money]


class InvoiceSummary(TypedDict):
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
    data: list[InvoiceSummary]


class Issued(TypedDict):
    """What was issued; it is read at its address."""

    account_id: str
    written_number: str
    total: Money
    document_sha256: str
    position: NotRequired[int]


class Job(TypedDict):
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
    constraints: NotRequired[Demands]
    work: NotRequired[Literal["inference", "training"]]
    references: NotRequired[list[ReferenceAsked]]
    plan: NotRequired[PlanAsked]
    parent_job_id: NotRequired[str]
    instance_id: NotRequired[str]
    state: Literal["open", "cancelled", "completed", "failed"]
    submitted_at: str
    ended_at: NotRequired[str]
    position: NotRequired[int]


class JobCancelled(TypedDict):
    job_id: str
    state: Literal["open", "cancelled", "completed", "failed"]
    position: NotRequired[int]


class JobCost(TypedDict):
    """What the leases of one job came to; each lease is in exactly one job."""

    job_id: str
    parent_job_id: NotRequired[str]
    kind: str
    state: str
    leases: int
    open_leases: int
    gpu_us: str
    charge: Money


class JobPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Job]


class JobPart(TypedDict):
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
    data: list[JobPart]


class JobQuote(TypedDict):
    """What a request would get now; nothing is recorded and nothing is held. `impossible`
    names the demand that no registered node could ever meet.
    """

    rule: str
    fleet_position: int
    nodes: int
    considered: int
    offered: NotRequired[Offered]
    runner_up: NotRequired[str]
    deciding: NotRequired[str]
    candidates: list[Candidate]
    dimensions: list[Dimension]
    relaxations: list[Relaxation]
    impossible: NotRequired[str]
    position: int


class JobQuoteAsked(TypedDict):
    """A job of yours, or a new one that is not submitted. `term_seconds`: a fixed term;
    else what an hour costs, or `funds`, is what the balance must hold.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[NewJob | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]


class JobScaled(TypedDict):
    """`closing`: leases that end with this, billed up to now. Those to be added follow."""

    job_id: str
    members: int
    closing: list[str]
    position: NotRequired[int]


class Join(TypedDict):
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


class JoinCode(TypedDict):
    """Type `code` at the machine within ten minutes; it works once."""

    region_id: str
    expires_at: str
    code: NotRequired[str]
    position: NotRequired[int]


class JoinCodeAsked(TypedDict):
    region_id: str


class Joined(TypedDict):
    """`node_key` is shown to the node that holds the code and the key, and kept nowhere."""

    node_id: str
    provider_id: str
    region_id: str
    fingerprint: str
    node_key: NotRequired[str]
    position: NotRequired[int]


class KeyConfirmation(TypedDict):
    """The key id that the machine shows."""

    key_id: str


class KeyRevocation(TypedDict):
    """The key that the node signs with: the node is heard no more. A key that another one
    replaced: what it signed and is not stored yet is not taken, and the node goes on.
    """

    key_id: str


class KeyRotation(TypedDict):
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


class Kind(TypedDict):
    """All lines of one kind on one part. A movement above zero raises the part's balance."""

    kind: str
    part: str
    lines: int
    movement: SignedMoney


class Late(TypedDict):
    """A settled lease whose late reports shall count."""

    lease_id: str


class Lease(TypedDict):
    """A lease as far as it has come. `charge` and `gpu_us` are what has been accrued so
    far.
    """

    lease_id: str
    job_id: str
    account_id: str
    client_id: str
    project_id: str
    end_user_ref: str
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
    part: NotRequired[int]
    attempt: NotRequired[int]
    run_due_at: NotRequired[str]
    overflow: NotRequired[bool]
    restarted_as: NotRequired[str]
    charge: Money
    gpu_us: str
    hours_accrued: int
    version: int
    position: NotRequired[int]


class LeaseCharge(TypedDict):
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
    owners: NotRequired[list[Owner]]
    federated: NotRequired[Money]
    drawn: list[Drawn]
    cumulative_charge: Money
    position: int


class LeaseChargePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseCharge]


class LeaseClosed(TypedDict):
    """Closing twice is closing once: the second answer tells how the first one ended."""

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


class LeaseFact(TypedDict):
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
    data: list[LeaseFact]


class LeaseForecast(TypedDict):
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


class LeaseHealth(TypedDict):
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
    initiator: Half
    acceptor: Acceptor
    position: NotRequired[int]


class LeaseHour(TypedDict):
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
    data: list[LeaseHour]


class LeaseLine(TypedDict):
    """What one lease used and cost in the period. matched + unconfirmed + contested =
    gpu_us: what its renter signed for, what lies after the last signature, and what lies
    before it unsigned.
    """

    lease_id: str
    gpu_us: str
    refused_us: str
    matched_gpu_us: str
    unconfirmed_gpu_us: str
    contested_gpu_us: str
    charge: Money
    accruals: int


class LeaseOpened(TypedDict):
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
    data: list[Lease]


class LeaseQuote(TypedDict):
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


class LeaseStep(TypedDict):
    """One fact: what it was, who caused it and why, which state it led to, and its money.
    `by_timer`: the server's own timer. `fault`: the party that the code names.
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
    money: list[StepLine]


class LeaseStepPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[LeaseStep]


class LeaseTurn(TypedDict):
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


class LeaseWork(TypedDict):
    """`credentials` are sealed to the key the renter named: base64 of a libsodium sealed
    box.
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
    ended_at: NotRequired[str]
    exit_code: NotRequired[int]
    stopped_at: NotRequired[str]
    position: NotRequired[int]
    executor: NotRequired[str]
    runner: NotRequired[Literal["process", "trusted", "docker", "other"]]
    workload_sha256: NotRequired[str]
    outcome: NotRequired[Literal["exited", "limited", "lost"]]
    endpoint: NotRequired[str]
    credentials: NotRequired[str]


class Libraries(TypedDict):
    data: list[Library]
    position: int


class Library(TypedDict):
    driver: str
    sha256: str
    known: bool
    position: NotRequired[int]


class LibraryAsked(TypedDict):
    """The file `libnvidia-ml.so` of a driver version, by its SHA-256."""

    driver: str
    sha256: str


Licence = TypedDict(
    "Licence",
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
    data: list[Licence]


class LicenceRevoked(TypedDict):
    licence_id: str
    revoked: bool
    position: NotRequired[int]


class Lifetime(TypedDict):
    """Ever credited, ever matured (what the next leaf holds), ever claimed on chain."""

    account_id: str
    credited: Money
    matured: Money
    claimed: Money
    position: NotRequired[int]


class Line(TypedDict):
    """One account's part of one posting: debits above zero, credits below."""

    name: str
    movement: SignedMoney
    balance_after: Money
    type: str
    lease_id: NotRequired[str]
    at: str
    recorded_at: str
    position: int


class LineAsked(TypedDict):
    """A charge of the lease, by its market position; `claimed` absent: the whole of it."""

    position: int
    claimed: NotRequired[Money | None]


class LineDetail(TypedDict):
    """A fact as stored, the entry it booked, the caller's lines of it, and the arithmetic.
    `body` is what the leaf's hash covers, the blind left out; the proof holds it whole.
    """

    position: int
    type: str
    version: int
    recorded_at: str
    leaf: str
    lines: list[StatementLine]
    entry: list[Moved]
    arithmetic: list[Step]
    body: dict[str, Any]


class LinePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Line]


class Lint(TypedDict):
    passes: bool
    errors: int
    warnings: int
    document_sha256: str
    findings_sha256: str


class LintFinding(TypedDict):
    rule: str
    severity: Literal["error", "warning"]
    field: str
    message: str


class LiveLease(TypedDict):
    """What accruing one lease now would charge, from the reports received so far."""

    lease_id: str
    accrued_until: str
    until: str
    gpu_us: str
    charge: Money
    lane: int
    usage_position: int


class Log(TypedDict):
    """Pieces from `from_seq` on. `ended`: nothing more will come."""

    lease_id: str
    next_seq: int
    bytes: int
    left_out: int
    position: NotRequired[int]
    data: list[LogPiece]
    ended: bool
    exit_code: NotRequired[int]


class LogHead(TypedDict):
    """`next_seq`: what comes next; of a piece that left a gap nothing was kept."""

    lease_id: str
    next_seq: int
    bytes: int
    left_out: int
    position: NotRequired[int]


class LogKey(TypedDict):
    """`name+key id+key`, as C2SP writes it."""

    verifier_key: str
    position: NotRequired[int]


class LogPiece(TypedDict):
    seq: int
    stream: Literal["stdout", "stderr", "note"]
    at: str
    body: str


class LookedAt(TypedDict):
    """`fits`: there was room for it. `delays_first`: it would have taken what the earliest
    request, which had waited for the pool's patience, could use.
    """

    request_id: str
    queue: str
    place: int
    is_gang: bool
    demand: list[Quantity]
    fits: bool
    delays_first: bool
    waits_since: str


Maintenance = TypedDict(
    "Maintenance",
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


class MaintenancePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Maintenance]


class MarketPrice(TypedDict):
    """The standing bids that hold devices of a class: how many leases, the lowest and the
    highest. A bid above `lowest` displaces it.
    """

    gpu_class: Literal["development", "professional", "datacenter"]
    holding: int
    lowest: Money
    highest: Money


class MarketPrices(TypedDict):
    data: list[MarketPrice]
    position: int


class Match(TypedDict):
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
    weights: NotRequired[WeightsAsked]
    candidates: list[Candidate]
    dimensions: NotRequired[list[Dimension]]
    recomputed: bool
    differences: list[str]
    decided_at: str


class Maturity(TypedDict):
    """held_back -> payable -> earned. `matured`, `reduced`, `swept` are lifetime totals.
    `upcoming`: what matures next, in order, at most 50. `holds`: why no cash-out leaves
    now.
    """

    account_id: str
    held_back: Money
    payable: Money
    earned: Money
    matured: Money
    reduced: Money
    swept: Money
    upcoming: list[Upcoming]
    holds: list[Hold]
    position: NotRequired[int]


class Member(TypedDict):
    member_id: str
    role: Literal["owner", "admin", "billing", "member", "viewer"]
    added_at: NotRequired[str]
    removed_at: NotRequired[str]
    position: NotRequired[int]


class MemberRemoved(TypedDict):
    member_id: str
    position: NotRequired[int]


class Members(TypedDict):
    data: list[Member]
    position: int


MeterData = TypedDict(
    "MeterData",
    {
        "meter": "str",
        "quantity": "str",
        "unit": "str",
        "from": "str",
        "to": "str",
        "route": "NotRequired[str | None]",
        "dataset": "NotRequired[str | None]",
    },
)


class MeterEvent(TypedDict):
    """CloudEvents 1.0; `subject` is the lease. Ids derive from what was measured, never at
    random: an event that is sent again must carry its id again.
    """

    specversion: Literal["1.0"]
    id: str
    source: str
    type: Literal["tallystick.usage.metered.v1"]
    subject: str
    time: str
    datacontenttype: NotRequired[Literal["application/json"] | None]
    data: MeterData


class MeterRow(TypedDict):
    """floor(quantity x price / per) micro-credits; the meter's own unit."""

    meter: Literal["cpu", "memory", "storage", "network"]
    price: Money
    per: str


MeteredEvent = TypedDict(
    "MeteredEvent",
    {
        "position": "int",
        "account_id": "str",
        "lease_id": "str",
        "meter": 'Literal["cpu", "memory", "storage", "network"]',
        "quantity": "str",
        "from": "str",
        "to": "str",
        "route": "NotRequired[str]",
        "dataset": "NotRequired[str]",
        "state": 'Literal["accepted", "matched", "priced", "posted"]',
        "reason": "NotRequired[str]",
        "refused": "NotRequired[str]",
        "accrued_position": "NotRequired[int]",
        "event": "str",
        "leaf": "str",
        "received_at": "str",
    },
)


class MeteredEventPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[MeteredEvent]


class Milestone(TypedDict):
    milestone_id: str
    share_ppm: int
    amount: Money
    state: Literal["locked", "proposed", "accepted"]
    proposed_by: NotRequired[str]


class MilestoneAsked(TypedDict):
    """A milestone and its share of the total, in parts per million."""

    milestone_id: str
    share_ppm: int


class MilestoneDone(TypedDict):
    """`evidence`: where it can be seen that the work is done."""

    milestone_id: str
    evidence: str


class ModelClass(TypedDict):
    model: str
    gpu_class: str
    effective_from: str
    position: NotRequired[int]


class Module(TypedDict):
    """`kind`: posted (at once), auction (after bids), standing (a lasting bid), term
    (months).
    """

    pricing: str
    kind: Literal["posted", "auction", "standing", "term"]
    meaning: str


class Modules(TypedDict):
    data: list[Module]
    position: int


class Money(TypedDict):
    """Units of one asset: micro-credits, 10^-8 TOKEN, GPU- or seat-milliseconds."""

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: str


class MoneyOutTerms(TypedDict):
    """`window_seconds`: how long what is posted now waits until it matures."""

    window_seconds: int
    windows: list[Window]
    minimum: Money
    position: NotRequired[int]


class Moved(TypedDict):
    """One account's part of the entry: debits above zero, credits below; an entry sums to
    zero.
    """

    name: str
    movement: SignedMoney


class NewAccount(TypedDict):
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
                "governance",
                "audit:read",
                "meter",
                "oracle:write",
            ]
        ]
        | None
    ]


class NewAdjustment(TypedDict):
    """`delta`: what the account is to be given, or (below zero) to give back."""

    account_id: str
    delta: str
    reason: str
    evidence_position: NotRequired[int | None]


class NewApiKey(TypedDict):
    """`member_id` absent: in the name of the caller."""

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
            "governance",
            "audit:read",
            "meter",
            "oracle:write",
        ]
    ]
    member_id: NotRequired[str | None]
    expires_at: NotRequired[str | None]


class NewAttribute(TypedDict):
    """`signature` (hex, Ed25519) is over five lines joined by newlines:
    `tallystick/attribute/v1`, `subject ID`, `NAME VALUE`, `stated_at_us N`, and
    `expires_at_us N` or `expires_at_us never`. The key is one of the signer's signing keys.
    Whoever has the statement may hand it in.
    """

    subject_id: str
    name: str
    value: str
    signer_account_id: str
    key_id: str
    signature: str
    stated_at: str
    expires_at: NotRequired[str | None]


class NewBid(TypedDict):
    """With which offer of yours, at which price. `device_ids` absent: free ones of its
    node. `expires_at` absent: it stands until the auction is over.
    """

    offer_id: str
    price_per_gpu_hour: Money
    device_ids: NotRequired[list[str] | None]
    expires_at: NotRequired[str | None]


class NewBillingDetails(TypedDict):
    """What stands on invoices beside the account's id. A `tax_id` says that it is a
    business.
    """

    name: str
    address: list[str]
    country: NotRequired[str | None]
    tax_id: NotRequired[str | None]


class NewBudget(TypedDict):
    """`target`: a project, or the 8 characters of an API key. `monthly` absent: no cap any
    more.
    """

    scope: Literal["project", "key"]
    target: str
    monthly: NotRequired[Money | None]


class NewCashOut(TypedDict):
    """`amount` in whole cents (10,000 micro-credits); absent: everything earned."""

    amount: NotRequired[Money | None]


class NewClawback(TypedDict):
    """`unassigned`: what has no milestone. `unearned`: all that is not unlocked; the grant
    ends.
    """

    scope: Literal["unassigned", "unearned"]
    reason: str


class NewClient(TypedDict):
    """An account of the kind `client`. `min_reputation_ppm`: no node below it runs its
    jobs.
    """

    client_id: str
    min_reputation_ppm: NotRequired[int | None]


class NewClientKey(TypedDict):
    """A key with the scope `client`, for one instance."""

    expires_at: NotRequired[str | None]


class NewClientQuota(TypedDict):
    """`pool_id` absent: of everything it leases. `gpu_ppm_max` absent: no limit any more."""

    pool_id: NotRequired[str | None]
    gpu_ppm_max: NotRequired[int | None]


class NewCreditNote(TypedDict):
    """`cause`: what gave the money back, a reference of yours; one credit note for each."""

    lines: list[CreditedLine]
    cause: str
    reason: str


class NewDeposit(TypedDict):
    """Money that arrived outside. `reference` is the payment's own number: it counts once."""

    source: Literal["cash", "card"]
    amount: Money
    reference: str


class NewDispute(TypedDict):
    """Charges of one lease that should not have been charged. `claim` can be erased later."""

    lease_id: str
    lines: list[LineAsked]
    claim_code: Literal[
        "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
    ]
    claim: NotRequired[str | None]
    evidence: NotRequired[list[EvidenceAsked]]


class NewEdgeDevice(TypedDict):
    """Each add is a new device, also of the same machine, and is charged from today on."""

    region_id: str
    model: Literal[
        "jetson-agx-xavier",
        "jetson-xavier-nx",
        "jetson-agx-orin",
        "jetson-orin-nx",
        "jetson-orin-nano",
    ]


class NewFundedAccount(TypedDict):
    """`monthly_cap` absent: as much as you have. Given again, it is set anew."""

    funded_account_id: str
    monthly_cap: NotRequired[Money | None]


class NewGang(TypedDict):
    """`members` leases of a job of yours, or of a new one; each is one node's devices as
    the job says. `min_members`: fewer do not start; the others may join later (default:
    all). `funds`: of each member. `timeout_seconds`: from the reservation until the last
    one has to be ready, by default the pool's, or ten minutes. A job that names a pool with
    a queue may wait for its turn.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[NewJob | None]
    members: int
    min_members: NotRequired[int | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    timeout_seconds: NotRequired[int | None]


class NewGrant(TypedDict):
    """What the shares leave of the total has no milestone: it is told, and can only go
    back.
    """

    account_id: str
    total: Money
    milestones: list[MilestoneAsked]


class NewGroup(TypedDict):
    """Of projects and members of your account, or with `pool_id` of accounts in a pool of
    yours. `parent_id`: what it holds counts there too. `gpu_ppm_max` absent: counted, and
    not limited.
    """

    pool_id: NotRequired[str | None]
    parent_id: NotRequired[str | None]
    gpu_ppm_max: NotRequired[int | None]


class NewGroupMember(TypedDict):
    """A project or a member of your account, or in a group of a pool an account."""

    kind: Literal["project", "member", "account"]
    target: str


class NewHold(TypedDict):
    reason: str


class NewInvoice(TypedDict):
    """Issue one month's invoice now; the monthly job does it for everybody."""

    period: str
    kind: NotRequired[Literal["charges", "earnings"]]


class NewJob(TypedDict):
    """An image or a command, and what it needs: `share_ppm` on each of `gpu_count` devices.
    `env_refs` name secrets and never hold one. `models` empty: any model. `federated`: the
    accounts in `participants` may lease for it in projects of theirs, and pay the usage;
    the federated fee of the tariff is yours. `sla_class`: an availability that the tariff
    promises. `auto_restart`: a lease of it whose funds ended is opened anew when the
    balance funds an hour. `constraints`: what else its nodes must be and have; of a
    `mig_profile` the shares are the profile's. `work`: what it does; of a federated job it
    settles the fee, and an endpoint is inference. `plan`: which leases are opened for it.
    `parent_job_id`: a job of yours that it is a part of; their costs add up.
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
    constraints: NotRequired[Demands | None]
    work: NotRequired[Literal["inference", "training"] | None]
    references: NotRequired[list[ReferenceAsked]]
    plan: NotRequired[PlanAsked | None]
    parent_job_id: NotRequired[str | None]


class NewLease(TypedDict):
    """A job of yours, or a new one. `term_seconds`: a fixed term, paid for in full
    beforehand; else the lease runs until it is closed or `funds` end (default: one hour's
    price). `settlement` absent: whatever the account has credits for. `refill`: an
    open-ended lease is topped up from the balance, an hour at a time, before its funds end.
    `project_id`: the project of yours that takes part in somebody's federated job; absent:
    the job's. `encryption_key`: an X25519 key of yours, hex; what the node tells to reach
    the work is sealed to it. `remoting_session_id` and `split_label` name a session of a
    layer that forwards calls to the devices, and the part of the program it forwards; they
    cost nothing. `pricing` absent: at the offer's price, or as the job's pool prices.
    """

    job_id: NotRequired[str | None]
    job: NotRequired[NewJob | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    refill: NotRequired[bool]
    project_id: NotRequired[str | None]
    encryption_key: NotRequired[str | None]
    remoting_session_id: NotRequired[str | None]
    split_label: NotRequired[str | None]
    pricing: NotRequired[Pricing | None]


NewLicence = TypedDict(
    "NewLicence",
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


class NewLimit(TypedDict):
    """`limit`: units that may pass in a window; absent: no limit."""

    limit: NotRequired[str | None]
    window_seconds: int
    reason: str


class NewLogPiece(TypedDict):
    """`note`: said by the executor itself, not by the work."""

    stream: Literal["stdout", "stderr", "note"]
    body: str


class NewLogPieces(TypedDict):
    """Pieces numbered from `seq` on; known numbers are passed over. `left_out`: bytes that
    were printed and that the executor did not keep.
    """

    seq: int
    left_out: NotRequired[int]
    data: list[NewLogPiece]


NewMaintenance = TypedDict(
    "NewMaintenance",
    {
        "kind": 'Literal["planned", "emergency", "security", "network", "capacity"]',
        "from": "str",
        "until": "str",
        "keep_leases": "NotRequired[bool]",
    },
)


class NewMember(TypedDict):
    """`member_id` absent: a new one."""

    role: Literal["owner", "admin", "billing", "member", "viewer"]
    member_id: NotRequired[str | None]


class NewMinimum(TypedDict):
    minimum: Money


class NewModelClass(TypedDict):
    """Models with these words in their name pay this class's fee: a row of the tariff."""

    model: str
    gpu_class: str
    effective_from: str


class NewObservation(TypedDict):
    """`published_at`: the source's own time; `observed_at`: when it was seen, or now."""

    source: str
    price_micro_usd: int
    published_at: str
    observed_at: NotRequired[str | None]


class NewOffer(TypedDict):
    """All devices of one node. `settlement`: cash is shared, burn is retired and paid in
    TOKEN.
    """

    provider_id: str
    node_id: str
    price_per_gpu_hour: Money
    settlement: NotRequired[Literal["cash", "burn"]]
    fractions: NotRequired[bool]
    available_until: NotRequired[str | None]
    terms: NotRequired[Promises | None]


class NewPayment(TypedDict):
    """`save_method`: keep the card with the processor, for auto top-up."""

    method: Literal["card", "bank"]
    amount: Money
    save_method: NotRequired[bool]


class NewPaymentMode(TypedDict):
    """`billing_account_id` absent: the account itself. `destination` absent: as it is."""

    mode: Literal["credits", "cash"]
    billing_account_id: NotRequired[str | None]
    destination: NotRequired[str | None]


class NewPool(TypedDict):
    """`controller_address`: of a contract that answers for the pool, if there is one."""

    name: str
    policy: NotRequired[PoolPolicyForm]
    controller_address: NotRequired[str | None]


class NewPoolNode(TypedDict):
    """A node of yours."""

    node_id: str


class NewPriceList(TypedDict):
    """What is absent is not offered: without a floor no interruptible leases, without a
    line no reserved term of so many months.
    """

    interruptible_floor: NotRequired[Money | None]
    reserved: NotRequired[list[NewReservedLine]]


class NewPromotion(TypedDict):
    """`amount` is taken from the cash of the operator's own account: the fund is paid for."""

    program: str
    amount: Money


class NewPromotionGrant(TypedDict):
    """More for an account of the same program has the same terms. `expires_at` absent:
    never.
    """

    account_id: str
    amount: Money
    priority: NotRequired[int]
    expires_at: NotRequired[str | None]


class NewProposal(TypedDict):
    """`document`: what `tallystick policy lint` reads, as JSON."""

    document: dict[str, Any]


class NewProvider(TypedDict):
    kind: Literal["physical", "gcp"]


class NewQuote(TypedDict):
    """As for a lease; `valid_seconds`: how long the price is promised."""

    job_id: NotRequired[str | None]
    job: NotRequired[NewJob | None]
    term_seconds: NotRequired[int | None]
    funds: NotRequired[Money | None]
    settlement: NotRequired[Literal["cash", "burn"] | None]
    refill: NotRequired[bool]
    project_id: NotRequired[str | None]
    encryption_key: NotRequired[str | None]
    remoting_session_id: NotRequired[str | None]
    split_label: NotRequired[str | None]
    pricing: NotRequired[Pricing | None]
    valid_seconds: NotRequired[int]


class NewRefund(TypedDict):
    amount: Money


class NewRegion(TypedDict):
    """The storage mode never changes: another mode needs a new region."""

    provider_id: str
    name: str
    storage_mode: Literal["local", "central"]
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless"]
    allow_public_jobs: bool


class NewRegionTerms(TypedDict):
    """`version` is one more than the last one's. With `shared` false every owner keeps what
    its node earns from that day on. Time below the tier is not paid for.
    """

    version: int
    effective_from: str
    shared: bool
    participation_ppm: int
    availability_min_tier: NotRequired[int]
    infra: InfraTerms


class NewReservedLine(TypedDict):
    """The price of so many months, and how much of what is unused an early end gives back."""

    months: Literal[1, 3, 6]
    price_per_gpu_hour: Money
    refund_ppm: int


class NewResourceKind(TypedDict):
    """A vendor's devices of a kind. Seats count in SEAT_MS and have no memory of their own."""

    kind: str
    vendor: str
    dimensions: list[Literal["compute", "memory", "seats"]]
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    effective_from: str


class NewRevenueShares(TypedDict):
    """Who shares what the node's provider earns; the provider's own account owns the rest."""

    shares: list[OwnerShareRow]


class NewRole(TypedDict):
    """`ingress_node_id`: the ingress of the same region a worker is reached through."""

    role: Literal["worker", "ingress", "control"]
    ingress_node_id: NotRequired[str | None]


class NewSigningKey(TypedDict):
    """The public half of an Ed25519 key, 32 bytes as hex; the other half never leaves you."""

    public_key: str


class NewSlash(TypedDict):
    """At most what has not matured is taken, and goes to the treasury."""

    account_id: str
    amount: Money
    reason: str
    evidence_position: NotRequired[int | None]


class NewSnapshot(TypedDict):
    """No fields: `{}`."""


class NewSources(TypedDict):
    """All sources that count from now on; of one that is not among them nothing is kept."""

    sources: list[str]


class NewStandingBid(TypedDict):
    """Raise or lower the bid. A lease that has run keeps its price: another one goes on
    with its job at the new bid.
    """

    bid: Money


class NewStorageNode(TypedDict):
    """The class of storage. It runs always: a commitment with the cloud makes it cheaper
    there.
    """

    storage_class: str


class NewTariff(TypedDict):
    """The next version, whole: a row that is left out costs nothing under it."""

    version: int
    usage_fees: list[UsageFeeRow]
    provider_share_ppm: int
    burn_share_ppm: NotRequired[int]
    effective_from: str
    split: NotRequired[SplitRow | None]
    federated: NotRequired[FederatedRow | None]
    device_fee_per_month: NotRequired[Money | None]
    storage_node_per_hour: NotRequired[Money | None]
    meters: NotRequired[list[MeterRow] | None]
    sla: NotRequired[list[SlaRow] | None]
    notice_seconds: NotRequired[int | None]


class NewTask(TypedDict):
    """`payload`: what to do, or where it is described. No secrets."""

    task_id: str
    payload: NotRequired[str]


class NewTasks(TypedDict):
    """Tasks whose ids are known already are left out."""

    tasks: list[NewTask]


class NewWebhook(TypedDict):
    """`types`: prefixes of fact types, such as `lease.` or `payment.`; none: all of them."""

    url: str
    types: NotRequired[list[str]]


class NewWindow(TypedDict):
    """`version` is one more than the last. What was posted before keeps its window."""

    version: int
    window_seconds: int
    effective_from: str


class NoFields(TypedDict):
    """No fields: `{}`."""


class Node(TypedDict):
    """`agent`: version of its reporter, as it last told. `revoked`: its owner took its key
    back, and it is heard no more.
    """

    node_id: str
    phase: Literal["joining", "confirmed", "maintenance", "active", "draining", "retired"]
    quarantined: bool
    verdict: NotRequired[Verdict]
    position: NotRequired[int]
    revoked: NotRequired[bool]
    provider_id: str
    account_id: str
    region_id: str
    agent: str
    key_id: str
    fingerprint: str
    joined_at: str
    phase_at: str
    specs: NotRequired[Inventory]


class NodeHour(TypedDict):
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
    data: list[NodeHour]


class NodeKey(TypedDict):
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


class NodeKeyRotated(TypedDict):
    """`node_key` replaces the one that came with the previous key, which is good no longer.
    Shown to whoever signs with the new key, and kept nowhere.
    """

    node_id: str
    key_id: str
    from_seq: int
    node_key: NotRequired[str]
    position: NotRequired[int]


class NodeKeys(TypedDict):
    """Every key of a node."""

    node_id: str
    data: list[NodeKey]
    position: NotRequired[int]


class NodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Node]


class NodeShare(TypedDict):
    """Why a node got what. `available_gpu_us`: attested at the tier of the terms;
    `below_tier_gpu_us`: attested, and not paid for; `revenue`: gathered of what it earned.
    """

    node_id: str
    available_gpu_us: str
    below_tier_gpu_us: str
    revenue: Money
    participation: Money
    usage: Money
    parts: list[SharePart]


class NodeSharePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[NodeShare]


class NodeState(TypedDict):
    node_id: str
    phase: Literal["joining", "confirmed", "maintenance", "active", "draining", "retired"]
    quarantined: bool
    verdict: NotRequired[Verdict]
    position: NotRequired[int]


class NodeToday(TypedDict):
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


class NodeTrust(TypedDict):
    """Without `epoch` there is none yet, and all that was reported counts."""

    node_id: str
    epoch: NotRequired[int]
    start: NotRequired[str]
    end: NotRequired[str]
    devices: list[DeviceTrust]
    position: int


class NodeUsage(TypedDict):
    """Counts of what was stored; flagged reports after the report `after_seq`, at most 100,
    and refused time after `after_position`, of at most 50 accruals.
    """

    node_id: str
    lane: int
    reports: int
    reports_flagged: int
    last_seq: int
    last_recorded_at: NotRequired[str]
    flagged: list[Flagged]
    refused: list[RefusedTime]
    position: int


class NodeWeight(TypedDict):
    """What strangers used of a node, by the funding source that paid; the policy weighs
    sources.
    """

    node_id: str
    account_id: str
    source: str
    burned: str
    gpu_us: str


class Nonce(TypedDict):
    """Sign `nonce` within ten minutes: it covers the node's reports up to `acked_seq`."""

    node_id: str
    device_id: str
    server_nonce: str
    acked_seq: int
    head: str
    nonce: str
    expires_at: str
    position: NotRequired[int]


class Nothing(TypedDict):
    """No fields: `{}`."""


class Observation(TypedDict):
    """The newest price of the source; it may be another one than was sent."""

    source: str
    price_micro_usd: int
    published_at: str
    observed_at: str
    position: NotRequired[int]


class Offer(TypedDict):
    """`devices_free` counts priced devices that nobody holds any of; `memory_mib` is what
    the smallest of its devices has.
    """

    offer_id: str
    provider_id: str
    node_id: str
    region_id: NotRequired[str]
    price_per_gpu_hour: Money
    settlement: Literal["cash", "burn"]
    fractions: bool
    available_until: NotRequired[str]
    terms: NotRequired[Promises]
    withdrawn_at: NotRequired[str]
    models: NotRequired[list[str]]
    gpu_classes: NotRequired[list[str]]
    devices_free: NotRequired[int]
    supply: NotRequired[OfferSupply]
    memory_mib: NotRequired[int]
    published_at: str
    position: NotRequired[int]


class OfferPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Offer]


class OfferSupply(TypedDict):
    """`expect`: what strangers' leases got in this setting so far, absent where nothing was
    measured. `reputation_ppm` of the node, a mere start while `provisional`. `performance`:
    what is known of its speed, and who says it.
    """

    setting: Literal["edge", "datacenter"]
    expect: Setting
    security_tier: int
    refused_workloads: list[str]
    kinds: list[str]
    reputation_ppm: int
    provisional: bool
    statements: list[Said]
    next_maintenance_from: NotRequired[str]
    next_maintenance_until: NotRequired[str]
    performance: NotRequired[list[Performance]]


class OfferWithdrawn(TypedDict):
    offer_id: str
    withdrawn: bool
    position: NotRequired[int]


class Offered(TypedDict):
    """Where a lease would go now. An `edge` node stands in a home or an office: expect
    lower performance and that it goes offline more often than one in a `datacenter`.
    `performance`: what is known of this machine's speed, each with who says it.
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
    expected: NotRequired[Expected]
    performance: list[Performance]


class Owner(TypedDict):
    """One owner's part of what the provider earned."""

    account_id: str
    amount: Money


class OwnerShareRow(TypedDict):
    account_id: str
    share_ppm: int


class Part(TypedDict):
    """What the account has of one sort; of `owed`, what it owes."""

    part: str
    balance: Money


class Parties(TypedDict):
    """How many closed leases ended through whose fault; the network's and a client's cost
    nobody else anything.
    """

    none: int
    renter: int
    provider: int
    network: int
    client: int


class Partition(TypedDict):
    """How a GPU is cut, and what fits beside that."""

    model: str
    compute_slices: int
    memory_slices: int
    stranded_compute_slices: int
    possible: list[Placement]


class Payer(TypedDict):
    """Who pays what the account's own balances do not, and how much of that there is now."""

    payer_account_id: str
    since: str
    monthly_cap: NotRequired[Money]
    available: Money


class Payment(TypedDict):
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
    takings: NotRequired[list[Taking]]
    position: NotRequired[int]


class PaymentEvent(TypedDict):
    """`recorded`: whether it told anything that was not known."""

    recorded: bool
    position: NotRequired[int]


class PaymentMode(TypedDict):
    """Swept every UTC day: as credits to the billing account, or as cash to the
    destination.
    """

    account_id: str
    mode: Literal["credits", "cash"]
    billing_account_id: str
    destination: NotRequired[str]
    destination_from: NotRequired[str]
    position: NotRequired[int]


class PaymentPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Payment]


class Pending(TypedDict):
    """A lease that waits for the node to say that its work runs. `executor` has
    acknowledged it. `memory_mib`: its part of the memory of the smallest of its devices.
    Credentials are sealed to `encryption_key`.
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
    work: Work
    memory_mib: NotRequired[int]
    encryption_key: NotRequired[str]
    executor: NotRequired[str]


class Performance(TypedDict):
    """`source`: who says it. The `registry` of hardware classes, the `inventory` of the
    node, the `offer` of the provider, `reports` signed by the node over seven days, or a
    third party's `statement`. `throttled_ppm`: how much of the time in which it could be
    told power or heat held a clock down.
    """

    name: str
    value: str
    source: Literal["registry", "inventory", "offer", "reports", "statement"]
    signer_account_id: NotRequired[str]


class Placement(TypedDict):
    """An instance that could be placed: a lease of the profile begins at the first start
    listed.
    """

    mig_profile: str
    starts: list[int]


class PlanAsked(TypedDict):
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


class Policy(TypedDict):
    """`in_force`: the newest epoch was opened under it. `proposal`: absent of the first
    version, which an operator published. Without `rewards` nobody is paid for being
    available.
    """

    version: int
    effective_from_epoch: int
    in_force: bool
    epoch_length_seconds: int
    hard_cap: Money
    segments: list[Segment]
    compute_ppm: int
    availability_ppm: int
    treasury_ppm: int
    compute_base: str
    holdback_epochs: int
    rewards: NotRequired[RewardTerms]
    approvals: int
    notice_epochs: int
    proposal: NotRequired[int]
    published_at: str
    published_position: int
    by: str
    position: NotRequired[int]


class PolicyPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Policy]


class Pool(TypedDict):
    """`accelerators`: absent in lists."""

    pool_id: str
    account_id: str
    name: str
    version: int
    policy: PoolPolicyForm
    controller_address: NotRequired[str]
    nodes: int
    waiting: int
    accelerators: NotRequired[list[Accelerators]]
    created_at: str
    position: NotRequired[int]


class PoolMade(TypedDict):
    pool_id: str
    account_id: str
    name: str
    version: int
    policy: PoolPolicyForm
    controller_address: NotRequired[str]
    created_at: str
    position: NotRequired[int]


class PoolNode(TypedDict):
    """`free`: devices that nobody holds any of."""

    node_id: str
    provider_id: str
    region_id: str
    phase: str
    vendors: list[str]
    models: list[str]
    devices: int
    free: int
    added_at: str


class PoolNodeMade(TypedDict):
    pool_id: str
    node_id: str
    is_in: bool
    position: NotRequired[int]


class PoolNodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[PoolNode]


class PoolPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Pool]


class PoolPolicy(TypedDict):
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
    """A queue of the fair-share tree. `deserved_ppm`: GPUs it is owed before anybody is
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


class Preview(TypedDict):
    """The weights an epoch's compute pool will be split by, as far as the log has been
    read. `nodes`: the largest, at most 1000 lines.
    """

    epoch: int
    is_final: bool
    weights: list[Weight]
    nodes: list[NodeWeight]
    position: int


class Price(TypedDict):
    """What the sources say now, and the last snapshot that was taken."""

    health: Literal["healthy", "too_few_sources", "deviation"]
    median_micro_usd: NotRequired[int]
    deviation_bps: NotRequired[int]
    sources: list[PriceSource]
    window_seconds: int
    max_age_seconds: int
    max_deviation_bps: int
    min_sources: int
    at: str
    last_snapshot: NotRequired[Snapshot]
    position: NotRequired[int]


class PriceList(TypedDict):
    offer_id: str
    provider_id: str
    interruptible_floor: NotRequired[Money]
    reserved: list[ReservedLine]
    set_at: str
    position: NotRequired[int]


class PriceSource(TypedDict):
    """A source: its average over the window while it is fresh, and its newest price."""

    source: str
    stale: bool
    twap_micro_usd: NotRequired[int]
    price_micro_usd: NotRequired[int]
    published_at: NotRequired[str]
    observed_at: NotRequired[str]


class Pricing(TypedDict):
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


class ProcessorEvent(TypedDict):
    """Whatever the processor sends: its bytes are checked against its signature, then read."""


class Progress(TypedDict):
    """How far the log holds the node's chain."""

    acked_seq: int
    head: str
    server_time_us: int


class Project(TypedDict):
    project_id: str
    overflow: Literal["refuse", "rent"]
    position: NotRequired[int]


class ProjectPolicy(TypedDict):
    """What happens when a quota that a project counts in is full: its next lease is
    refused, or rented elsewhere and not counted.
    """

    project_id: str
    overflow: Literal["refuse", "rent"]


class Projects(TypedDict):
    """Projects that have a policy; all others are refused."""

    data: list[Project]
    position: int


class Promises(TypedDict):
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


class Promotion(TypedDict):
    """`left`: what the fund can still grant."""

    program: str
    sponsor_account_id: str
    opened: Money
    granted: Money
    left: Money
    opened_at: str
    closed_at: NotRequired[str]
    position: NotRequired[int]


class PromotionClosed(TypedDict):
    program: str
    sponsor_account_id: str
    position: NotRequired[int]


class PromotionGrant(TypedDict):
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
    data: list[PromotionGrant]


class PromotionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Promotion]


class Proof(TypedDict):
    """What `claim(account, total, proof)` of the distributor takes."""

    epoch: int
    root: str
    account: str
    total: Money
    proof: list[str]
    position: NotRequired[int]


class Proposal(TypedDict):
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
    ]
    revision: int
    changes: int
    proposed_by: str
    proposed_at: str
    approved_by: list[str]
    rejected_by: list[str]
    lint: Lint
    policy_version: NotRequired[int]
    effective_from_epoch: NotRequired[int]
    history: list[ProposalStep]
    position: NotRequired[int]


class ProposalPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Proposal]


class ProposalStep(TypedDict):
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
    ]
    by: str
    at: str
    note: NotRequired[str]


class Provider(TypedDict):
    provider_id: str
    account_id: str
    kind: Literal["physical", "gcp"]
    registered_at: NotRequired[str]
    position: NotRequired[int]


class ProviderPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Provider]


class Quantity(TypedDict):
    """`gpu` and `gpu_memory` in parts per million of one device."""

    resource: str
    units: str


class Queue(TypedDict):
    """`waiting`: nobody has them. `taken`: somebody does, for now."""

    job_id: str
    waiting: int
    taken: int
    done: int
    position: NotRequired[int]


class QueueHolding(TypedDict):
    queue: str
    held: list[Quantity]
    used_gpu_us: str


class QuoteAcceptance(TypedDict):
    """Which quote is taken."""

    quote_id: str


class Rated(TypedDict):
    """What one unit weighs, in parts per million."""

    name: str
    ppm: int


class Readiness(TypedDict):
    """Where the renter reaches the work, if anywhere. `credentials`: base64 of a libsodium
    sealed box for the key that the renter named; only the renter can open it.
    """

    endpoint: NotRequired[str | None]
    credentials: NotRequired[str | None]


class Ready(TypedDict):
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


class Receipt(TypedDict):
    """The node's half of the stick. `flags` other than 0: stored, and earns nothing."""

    seq: int
    hash: str
    lane: int
    position: int
    lane_hash: str
    recorded_at: str
    flags: int


class Reclaim(TypedDict):
    """Why, by a provider's code: 10000 unstable, 10001 decommission, 10002 unspecified."""

    code: NotRequired[int]


class ReferenceAsked(TypedDict):
    """Something the job uses that is kept elsewhere: the name of a key in a secret store,
    or the address of a checkpoint or a data set, without user, password and query. Never a
    secret.
    """

    kind: Literal["third_party_key", "checkpoint", "dataset"]
    name: str


class Refund(TypedDict):
    refund_id: str
    payment: Payment
    position: NotRequired[int]


class RefundConfirmation(TypedDict):
    reference: str


class RefusedRow(TypedDict):
    """A row of a stored report: the stretch of server time it tells of, and what of it was
    refused.
    """

    device_id: str
    usage_position: int
    rule: str
    start: str
    end: str
    microseconds: str


class RefusedTime(TypedDict):
    """Reported time of a lease hour that earned nothing, the rule it broke, and the rows it
    is of (the first 200 of an accrual).
    """

    lease_id: str
    hour_index: int
    until: str
    rule: str
    microseconds: str
    rows: list[RefusedRow]
    position: int


class Region(TypedDict):
    region_id: str
    provider_id: str
    name: str
    storage_mode: Literal["local", "central"]
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless"]
    allow_public_jobs: bool
    refused_workloads: NotRequired[list[str]]
    down_ranked_workloads: NotRequired[list[str]]
    security_tier: NotRequired[int]
    hardware_rules: NotRequired[list[str]]
    opened_at: NotRequired[str]
    position: NotRequired[int]


class RegionDay(TypedDict):
    """gathered + carry_before = infra + participation + usage + carry. `forgone`: cost of
    control and ingress above the arrears that the terms allow, which nobody pays.
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
    nodes: int
    shared_at: str
    position: int


class RegionDayPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RegionDay]


class RegionNode(TypedDict):
    node_id: str
    phase: Literal["joining", "confirmed", "maintenance", "active", "draining", "retired"]
    quarantined: bool


class RegionNodePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[RegionNode]


class RegionPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Region]


class RegionPolicy(TypedDict):
    """What is left out stays as it is. Edge regions start with `ip_lease` refused and
    `large_storage` ranked down; `security_tier`: what the region promises, 0 is nothing.
    """

    allow_public_jobs: bool
    refused_workloads: NotRequired[list[str] | None]
    down_ranked_workloads: NotRequired[list[str] | None]
    security_tier: NotRequired[int | None]


class RegionTerms(TypedDict):
    """Every version, oldest first; without any the region shares nothing."""

    region_id: str
    notice_days: int
    versions: list[TermsVersion]
    position: NotRequired[int]


class Rehearsal(TypedDict):
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
    largest_difference: NotRequired[RewardDifference]
    was: RehearsalTotals
    would_be: RehearsalTotals
    winners: list[RewardDifference]
    losers: list[RewardDifference]
    by_epoch: list[RehearsedEpoch]
    kept_emission_plan: list[int]
    not_reproduced: list[int]
    stopped: NotRequired[str]
    position: NotRequired[int]


class RehearsalAsked(TypedDict):
    """`document`: a proposal with `terms` as JSON, or a policy like that of an epoch file.
    Epochs before `from_epoch` keep their policy. `limit`: so many winners, and losers, are
    named.
    """

    document: dict[str, Any]
    from_epoch: NotRequired[int]
    limit: NotRequired[int]


class RehearsalTotals(TypedDict):
    """The last three are what nobody got, by reason; it was carried on or returned."""

    rewards: Money
    minted: Money
    emission: Money
    release: Money
    returned: Money
    treasury: Money
    rounding: Money
    zero_weight: Money
    cap: Money


class RehearsedEpoch(TypedDict):
    """`broken`: what does not hold of it; empty unless there is a bug."""

    epoch: int
    accounts: int
    accounts_changed: int
    largest_difference: NotRequired[RewardDifference]
    was: RehearsalTotals
    would_be: RehearsalTotals
    broken: list[str]


class Rejected(TypedDict):
    """Which event of the request, the rule it breaks, and where."""

    index: int
    code: Literal[
        "invalid",
        "gpu_time_refused",
        "meter_unknown",
        "unit_wrong",
        "window_empty",
        "quantity_out_of_range",
        "id_reused",
        "window_overlaps",
        "time_out_of_range",
    ]
    detail: str


class Relaxation(TypedDict):
    """Easing this one field of the request gives a match on so many nodes. Nearest first:
    `distance_ppm` is how far a number moves, in parts per million of it; words count as a
    whole.
    """

    field: str
    required: str
    offered: str
    nodes: int
    distance_ppm: int


class Release(TypedDict):
    """`hold_id` absent: the operator's own."""

    hold_id: NotRequired[str]


class Replay(TypedDict):
    """Facts that were told or given up: tell them again, [from_position, to_position]."""

    from_position: int
    to_position: int


class Replayed(TypedDict):
    """`count`: so many are told again, in order, before anything new."""

    endpoint_id: str
    count: int


class Reputation(TypedDict):
    """`good` of `total` leases that count. `score_ppm`: the weighted lower bounds of all
    inputs on `day`, with evidence halved every 30 days; provisional below ten leases.
    `client_id`: what came through one client, which starts from everybody else's
    experience. The same facts give the same answer: `as_of_position` and `day` are all it
    depends on.
    """

    kind: Literal["node", "provider", "renter"]
    subject_id: str
    client_id: NotRequired[str]
    good: int
    total: int
    completion_ppm: NotRequired[int]
    score_ppm: int
    provisional: bool
    inputs: list[Input]
    standing: NotRequired[Standing]
    closed_by_fault: Parties
    as_of_position: int
    day: str
    position: int


class Reserve(TypedDict):
    """`funded`: set aside so far."""

    amount: Money
    funded: Money
    position: NotRequired[int]


class ReserveAsked(TypedDict):
    amount: Money


class ReservedLine(TypedDict):
    months: int
    price_per_gpu_hour: Money
    refund_ppm: int


class Reshaped(TypedDict):
    """`closed`: leases that ended with code 10005, at no charge from then on."""

    device_id: str
    node_id: str
    closed: list[str]
    reshaped_at: str
    position: NotRequired[int]


class Reshaping(TypedDict):
    """The leases whose part of the device is not there any more."""

    lease_ids: list[str]


class Resource(TypedDict):
    """One meter of a lease: all that counts, its price, and where the charge went. `charge`
    is floor(quantity x price / per); `price` absent: it costs nothing. `owed` is the part
    that no balance was there for when it was charged.
    """

    lease_id: str
    node_id: str
    meter: Literal["cpu", "memory", "storage", "network"]
    unit: str
    quantity: str
    price: NotRequired[Money]
    per: NotRequired[str]
    tariff_version: int
    charge: Money
    provider: Money
    platform: Money
    burn: Money
    owed: Money
    events: int
    events_through: int
    events_chain: str
    released_at: NotRequired[str]
    accrued_at: str
    accrued_position: int


class ResourceCharge(TypedDict):
    """What one fact added. It judged the events after `events_after` up to
    `events_through`: `events_chain` commits to their bytes, `log_chain` to the whole meter
    log at `log_position`.
    """

    meter: Literal["cpu", "memory", "storage", "network"]
    quantity: str
    charge: Money
    owed: Money
    events: int
    events_after: int
    events_through: int
    events_chain: str
    log_position: int
    log_chain: str
    accrued_at: str
    position: int


class ResourceChargePage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[ResourceCharge]


class ResourceKind(TypedDict):
    kind: str
    vendor: str
    dimensions: list[Literal["compute", "memory", "seats"]]
    memory: Literal["dedicated", "unified", "none"]
    divisible: bool
    capacity_asset: Literal["GPU_MS", "SEAT_MS"]
    effective_from: str
    position: NotRequired[int]


class ResourceKinds(TypedDict):
    """The seeded kinds and those the network registered, and models it has classed."""

    data: list[ResourceKind]
    models: list[ModelClass]
    position: int


class Resources(TypedDict):
    lease_id: str
    resources: list[Resource]
    position: int


class Restart(TypedDict):
    """No fields: `{}`."""


class Restarted(TypedDict):
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


class RevenueShares(TypedDict):
    """`provider_ppm`: what is left for the provider's own account."""

    node_id: str
    shares: list[OwnerShareRow]
    provider_ppm: int
    position: NotRequired[int]


class ReviewOpening(TypedDict):
    """`stage`: in the words of whoever reviews."""

    stage: str


class Reward(TypedDict):
    account_id: str
    chunk: int
    credited: Money
    matured: Money
    slashed: NotRequired[Money]


class RewardDifference(TypedDict):
    """What an account got, and would have got."""

    account_id: str
    was: Money
    would_be: Money
    delta: SignedMoney


class RewardPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Reward]


class RewardTerms(TypedDict):
    """Who shares in an epoch, and up to what bound; a cap that is absent is none."""

    source_weights: list[Rated]
    class_ratings: list[Rated]
    cap_multiple_ppm: NotRequired[int]
    cap_goes_to: str
    zero_weight_goes_to: str
    bonus_from_ppm: int
    bonus_range_ppm: int
    bonus_max_ppm: int
    availability_min_tier: int
    availability_min_uptime_ppm: int
    availability_cap_per_gpu_hour: NotRequired[Money]
    availability_cap_per_node: NotRequired[Money]
    owner_cap: NotRequired[Money]
    release_tau: NotRequired[int]
    release_cap: Money
    min_wait_us: str
    forfeit_epochs: NotRequired[int]


class Role(TypedDict):
    node_id: str
    role: Literal["worker", "ingress", "control"]
    ingress_node_id: NotRequired[str]
    position: NotRequired[int]


class Root(TypedDict):
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


class RootPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Root]


class Rotation(TypedDict):
    """`expires_at` of the new key."""

    expires_at: NotRequired[str | None]


class Ruling(TypedDict):
    """`upheld_ppm` for a split only: the renter's part; remainders are the provider's."""

    outcome: Literal["upheld", "rejected", "split"]
    upheld_ppm: NotRequired[int | None]
    reason: NotRequired[str | None]


class Said(TypedDict):
    """A statement that counts now; `/v1/attributes` has its signature."""

    name: str
    value: str
    signer_account_id: str


class SataDriveForm(TypedDict):
    """Decimal gigabytes; a drive without platters turns 0 times a minute; null: not known."""

    size_gb: int
    kind: Literal["ssd", "hdd"]
    rpm: NotRequired[int | None]


class Scale(TypedDict):
    """Within `min_members` and `max_members` of the job's plan."""

    members: int


class Scheduling(TypedDict):
    """Without an epoch: the earliest that notice and document allow."""

    effective_from_epoch: NotRequired[int | None]


class Segment(TypedDict):
    start_epoch: int
    n_epochs: int
    total: Money


class Sent(TypedDict):
    """What became of the events: stored, known already, and refused one by one."""

    accepted: int
    duplicate: int
    rejected: list[Rejected]


class Setting(TypedDict):
    """What strangers' leases got on nodes of this setting so far. `availability_ppm`:
    served of the time promised, over settled leases. `offline_ppm`: leases that ended
    because their node was silent for too long, of all that closed.
    """

    setting: Literal["edge", "datacenter"]
    leases: int
    availability_ppm: NotRequired[int]
    offline_ppm: NotRequired[int]


class Settings(TypedDict):
    data: list[Setting]
    position: int


class Share(TypedDict):
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


class SharePart(TypedDict):
    """`book`: where it waits because the account was closed."""

    account_id: str
    amount: Money
    book: NotRequired[str]


class Signals(TypedDict):
    """`raised` names the signals that are high; absent is what nothing can be divided by."""

    payout_multiple_ppm: NotRequired[int]
    concentration_ppm: NotRequired[int]
    related_ppm: NotRequired[int]
    raised: list[str]


class SignedMoney(TypedDict):
    """A movement: debits above zero, credits below."""

    asset: Literal["CREDIT", "TOKEN", "GPU_MS", "SEAT_MS"]
    units: str


class SigningKey(TypedDict):
    """`key_id`: the first 16 hex digits of the SHA-256 of the public key."""

    account_id: str
    key_id: str
    public_key: str
    added_at: str
    revoked_at: NotRequired[str]
    position: NotRequired[int]


class SigningKeys(TypedDict):
    account_id: str
    data: list[SigningKey]
    position: int


class SlaRow(TypedDict):
    name: str
    tiers: list[SlaTierRow]


class SlaTierRow(TypedDict):
    below_ppm: int
    credit_ppm: int


class Snapshot(TypedDict):
    """What the sources said when a price was needed; burns refer to `snapshot`."""

    health: Literal["healthy", "too_few_sources", "deviation"]
    median_micro_usd: NotRequired[int]
    deviation_bps: NotRequired[int]
    sources: list[PriceSource]
    window_seconds: int
    max_age_seconds: int
    max_deviation_bps: int
    min_sources: int
    at: str
    snapshot: int
    by: str
    position: NotRequired[int]


class SnapshotPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Snapshot]


class Source(TypedDict):
    """One balance, in spend order. `expires_at` of a grant: what is unspent then is lost."""

    source: str
    available: Money
    priority: NotRequired[int]
    expires_at: NotRequired[str]


class Sources(TypedDict):
    sources: list[str]
    position: NotRequired[int]


class Specs(TypedDict):
    """`agent`: version of the reporter that tells this; left out, as it was."""

    devices: list[DeviceForm]
    host: HostForm
    hardware: NotRequired[HardwareForm | None]
    agent: NotRequired[str | None]


class SplitRow(TypedDict):
    """What remains after the usage fee, peeled in this order; `residual` gets the rest."""

    shares: list[SplitShareRow]
    residual: Literal["provider", "client", "platform", "burn"]


class SplitShareRow(TypedDict):
    bucket: Literal["provider", "client", "platform", "burn"]
    share_ppm: int


class Standing(TypedDict):
    """Tier (0: none) and what every tier demands, of nodes and owners. `bonus_ppm`, of a
    node: what its compute weight is multiplied with under the policy of the newest epoch,
    by the lesser of its own and its owner's score.
    """

    tier: int
    age_days: int
    uptime_ppm: NotRequired[int]
    owner_score_ppm: NotRequired[int]
    bonus_ppm: NotRequired[int]
    tiers: list[Tier]


class StandingBid(TypedDict):
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


class StandingBidSet(TypedDict):
    """`lease_id`: the lease that has the bid now; another than before where one had run."""

    lease_id: str
    bid: Money
    restart_of: NotRequired[str]
    position: NotRequired[int]


Statement = TypedDict(
    "Statement",
    {
        "account_id": "str",
        "period": "str",
        "from": "str",
        "to": "str",
        "opening_position": "int",
        "closing_position": "int",
        "opening": "list[Balance]",
        "closing": "list[Balance]",
        "leases": "list[LeaseLine]",
        "has_more": "bool",
        "next_cursor": "NotRequired[str]",
        "charge": "Money",
        "gpu_us": "str",
        "is_final": "bool",
        "position": "int",
    },
)


class StatementLine(TypedDict):
    """One line: one fact's effect on one part. `position` leads to the fact and its proof."""

    position: int
    type: str
    kind: str
    part: str
    movement: SignedMoney
    balance_after: Money
    lease_id: NotRequired[str]
    client_id: NotRequired[str]
    project_id: NotRequired[str]
    end_user_ref: NotRequired[str]
    at: str
    recorded_at: str


class StatementUsage(TypedDict):
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
    groups: list[UsageOfGroup]
    groups_left_out: bool


class Step(TypedDict):
    """One quantity of the arithmetic: its formula, the numbers in it, its total before and
    after. `new` = `after` - `before` is what this accrual added.
    """

    name: str
    formula: str
    given: dict[str, str]
    before: str
    after: str
    new: str


class StepLine(TypedDict):
    """One line of the books: debits are positive. Of accounts that are others' the name is
    `*`.
    """

    account: str
    asset: str
    units: str


class Stick(TypedDict):
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
    signatures: list[Countersigned]
    position: int


class Stop(TypedDict):
    """A lease that is over while its work may still run: stop it, then acknowledge the
    stop.
    """

    lease_id: str
    workload_sha256: str
    closed_at: str
    close_code: int


class StorageNode(TypedDict):
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


class StorageNodeState(TypedDict):
    region_id: str
    sequence: int
    state: Literal["none", "provisioned", "ready"]
    position: NotRequired[int]


class StorageNodes(TypedDict):
    """The storage nodes a region has had, the last one first."""

    region_id: str
    storage_nodes: list[StorageNode]
    position: int


class StorageReleased(TypedDict):
    lease_id: str
    released_at: str
    position: NotRequired[int]


class Stored(TypedDict):
    status: Literal["stored", "duplicate"]
    receipt: Receipt


class Taking(TypedDict):
    """Money of a payment that went back, or is going: a reversal or a refund."""

    id: str
    kind: Literal["reversal", "refund"]
    state: Literal["reversed", "reinstated", "refunding", "refunded", "refund_failed"]
    amount: Money
    reason: NotRequired[str]
    at: str


class Tariff(TypedDict):
    """`in_force`: the version that a lease reserved now would keep."""

    version: int
    usage_fees: list[UsageFeeRow]
    provider_share_ppm: int
    burn_share_ppm: int
    effective_from: str
    published_at: str
    by: str
    in_force: bool
    split: NotRequired[SplitRow]
    federated: NotRequired[FederatedRow]
    device_fee_per_month: NotRequired[Money]
    storage_node_per_hour: NotRequired[Money]
    meters: NotRequired[list[MeterRow]]
    sla: NotRequired[list[SlaRow]]
    notice_seconds: NotRequired[int]
    position: NotRequired[int]


class Tariffs(TypedDict):
    """Every version ever published, oldest first."""

    data: list[Tariff]
    position: int


class Task(TypedDict):
    """No `task_id`: there is nothing to do now. `delivery` above 1: somebody had it before."""

    task_id: NotRequired[str]
    payload: NotRequired[str]
    delivery: NotRequired[int]
    held_until: NotRequired[str]
    position: NotRequired[int]


class TaskAsked(TypedDict):
    """For how long the task is held; then another lease may take it."""

    hold_seconds: NotRequired[int]


class TaskDone(TypedDict):
    task_id: str
    position: NotRequired[int]


class Tax(TypedDict):
    """Part of the total: prices include tax. `remainder` is what the floor left out."""

    name: str
    rate_ppm: int
    net: Money
    tax: Money
    remainder: str


class Terms(TypedDict):
    """Version 0: what holds until something is published."""

    version: int
    minimum: Money
    chargeback_window_days: int
    effective_from: str
    position: NotRequired[int]


class TermsAsked(TypedDict):
    """The next version. A payment keeps the terms it was started under."""

    version: int
    minimum: Money
    chargeback_window_days: int
    effective_from: str


class TermsVersion(TypedDict):
    version: int
    effective_from: str
    shared: bool
    participation_ppm: int
    availability_min_tier: int
    infra: Infra
    set_at: str


class Tested(TypedDict):
    """What the endpoint said to an event of type `webhook.test`."""

    endpoint_id: str
    delivered: bool
    answer: NotRequired[int]
    error: NotRequired[str]


class Tier(TypedDict):
    """What a tier demands, and which of it is missing."""

    tier: int
    leases: int
    age_days: int
    completion_ppm: int
    uptime_ppm: int
    score_ppm: int
    missing: list[Literal["leases", "age_days", "completion_ppm", "uptime_ppm", "score_ppm"]]


class TopUp(TypedDict):
    """`federated`: into what pays the federated fee, which is the job creator's."""

    amount: Money
    federated: NotRequired[bool]


class ToppedUp(TypedDict):
    """`funds_end_at`: absent while the lease waits for its node."""

    lease_id: str
    deposited: Money
    funds_end_at: NotRequired[str]
    position: NotRequired[int]


class Transfer(TypedDict):
    """Bytes that counted over one route, of one dataset; absent where events named none."""

    route: NotRequired[str]
    dataset: NotRequired[str]
    bytes: str
    events: int


class Transfers(TypedDict):
    lease_id: str
    bytes: str
    transfers: list[Transfer]
    position: int


class Turned(TypedDict):
    """No fields: `{}`."""


class Unbilled(TypedDict):
    """Used but not accrued yet. An estimate: reports that are still under way add to it."""

    charge: Money
    leases: list[LiveLease]
    leases_left_out: int


class Upcoming(TypedDict):
    """Credited to holdback by the fact at this position. `amount` is before what was
    reduced.
    """

    amount: Money
    at_position: int
    posted_at: str
    matures_at: str


class UsageEnvelope(TypedDict):
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


class UsageFeeRow(TypedDict):
    gpu_class: str
    per_gpu_hour: Money


class UsageOfGroup(TypedDict):
    """Accrued GPU time and its charge of one client, project, end user or lease."""

    group: str
    gpu_us: str
    charge: Money
    accruals: int


class Use(TypedDict):
    """What one funding source paid for. `weight_ppm`: what the policy lets it weigh."""

    source: str
    burned: str
    gpu_us: str
    weight_ppm: int


class Used(TypedDict):
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


class UsedPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Used]


class Utilisation(TypedDict):
    """Milliseconds of one group: leased + idle + stranded + unavailable = physical. `asset`
    is GPU_MS, or SEAT_MS for software. `pool` is empty for nodes of no pool.
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
    stranded: str
    unavailable: str
    leased_ppm: int


class UtilisationPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Utilisation]


class Verdict(TypedDict):
    """What the rules of hardware say of the node in its region (C-11 to C-18): every rule
    that does not hold, in their order, those among them that are `waived`, and the two
    verdicts that follow from the others. Only nodes that are sellable run jobs of other
    accounts.
    """

    joinable: bool
    sellable: bool
    failing: list[str]
    waived: list[str]


class Waiting(TypedDict):
    """`request_id`: of a lease or a gang. Whose it is tell only its own account and
    operators.
    """

    request_id: str
    place: int
    is_gang: bool
    demand: list[Quantity]
    account_id: NotRequired[str]
    project_id: NotRequired[str]
    waits_since: str


class WaitingPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Waiting]


class Wallet(TypedDict):
    """Paid from `effective_at` on: the first wallet at once, a changed one after 72 hours."""

    address: str
    effective_at: str
    linked_at: NotRequired[str]
    position: NotRequired[int]


class WalletProof(TypedDict):
    nonce: str
    signature: str


class Wallets(TypedDict):
    """In the order of linking; `paid` is the one that is paid now."""

    data: list[Wallet]
    paid: NotRequired[str]
    position: int


class WarningsAsked(TypedDict):
    """Highest first; none: no warnings."""

    thresholds: list[Money]


class Webhook(TypedDict):
    """`secret` is there only in the answer that makes it, also when that is asked for
    again.
    """

    endpoint_id: str
    account_id: str
    url: str
    types: list[str]
    enabled: bool
    disabled_reason: NotRequired[Literal["owner", "gone", "failed"]]
    added_at: str
    secret: NotRequired[str]
    position: NotRequired[int]


class WebhookPage(TypedDict):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: NotRequired[str]
    position: int
    data: list[Webhook]


class Weight(TypedDict):
    """`burned`: micro-credits that cash and burned credits paid and that were burned."""

    account_id: str
    burned: str
    gpu_us: str


class WeightsAsked(TypedDict):
    """In ppm; together exactly 1,000,000."""

    spec_fit: NotRequired[int]
    reputation: NotRequired[int]
    locality: NotRequired[int]
    free_peers: NotRequired[int]
    storage: NotRequired[int]
    price: NotRequired[int]


class WholeDecision(TypedDict):
    """All that a decision looked at, and whether its rule gives the same answer now."""

    pool_id: str
    chosen: str
    rule: str
    policy_version: int
    policy: PoolPolicyForm
    fleet_position: int
    capacity: list[Quantity]
    held: list[QueueHolding]
    waiting: list[LookedAt]
    window_gpu_us: str
    decided_at: str
    recomputed: NotRequired[str]
    holds: bool
    position: int


class WholeProposal(TypedDict):
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
    ]
    revision: int
    changes: int
    proposed_by: str
    proposed_at: str
    approved_by: list[str]
    rejected_by: list[str]
    lint: Lint
    policy_version: NotRequired[int]
    effective_from_epoch: NotRequired[int]
    history: list[ProposalStep]
    position: NotRequired[int]
    document: dict[str, Any]
    findings: list[LintFinding]


class WhyFailed(TypedDict):
    reason: str


class Window(TypedDict):
    version: int
    window_seconds: int
    effective_from: str
    set_at: str
    by: str


class Work(TypedDict):
    """What the executor runs; `workload_sha256` covers all of it but the kind. `references`
    name keys, checkpoints and datasets, and hold no secret.
    """

    kind: str
    image: NotRequired[str]
    command: list[str]
    env_refs: list[str]
    references: NotRequired[list[ReferenceAsked]]
    workload_sha256: str


class WorkEnd(TypedDict):
    """`exit_code` of a process that a signal ended: 128 and its number. `limited`: a limit
    of the lease ended it. `lost`: the node no longer has it, because it was started anew.
    """

    executor: str
    outcome: Literal["exited", "limited", "lost"]
    exit_code: NotRequired[int | None]


class WorkHealth(TypedDict):
    """How the work of a lease is, as its executor finds it: an endpoint that answers is
    well.
    """

    well: bool
    detail: NotRequired[str]


class WorkState(TypedDict):
    """The work of a lease as far as its node has told."""

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
    ended_at: NotRequired[str]
    exit_code: NotRequired[int]
    stopped_at: NotRequired[str]
    position: NotRequired[int]


class WriteOff(TypedDict):
    account_id: str
    amount: Money
    position: NotRequired[int]


class WriteOffAsked(TypedDict):
    amount: Money
    reason: str


class Client(_Calls):
    """Every operation of the API."""

    def export_focus_csv(
        self,
        account_id: str,
        period: str,
    ) -> bytes:
        """Charges of a month in the columns of FOCUS 1.2, as CSV."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}.csv",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    def export_focus_parquet(
        self,
        account_id: str,
        period: str,
    ) -> bytes:
        """Charges of a month in the columns of FOCUS 1.2, as Parquet."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}.parquet",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    def export_journal(
        self,
        account_id: str,
        period: str,
    ) -> bytes:
        """The account's own books of a month as an hledger journal; the rest is
        Equity:Elsewhere.
        """
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}.journal",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    def export_lines_csv(
        self,
        account_id: str,
        period: str,
    ) -> bytes:
        """Every movement on the account's books in a month, as plain CSV."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}/lines.csv",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    def export_lines_json(
        self,
        account_id: str,
        period: str,
    ) -> bytes:
        """Every movement on the account's books in a month, one JSON object a line."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}/lines.jsonl",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    def list_invoices(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> InvoiceSummaryPage:
        """Invoices and credit notes of an account, in the order in which they were issued."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/invoices", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("InvoiceSummaryPage", found)

    def issue_invoice(
        self,
        account_id: str,
        body: NewInvoice,
        *,
        idempotency_key: str | None = None,
    ) -> Issued:
        """Issue the invoice of a closed month; once for each account, month and kind."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/invoices", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Issued", found)

    def read_invoice_html(
        self,
        account_id: str,
        written_number: str,
    ) -> bytes:
        """One document as a page for people, complete in itself."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/invoices/{written_number}.html",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("bytes", found)

    def read_invoice_pdf(
        self,
        account_id: str,
        written_number: str,
    ) -> bytes:
        """One document as PDF; the same document gives the same bytes."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/invoices/{written_number}.pdf",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("bytes", found)

    def read_invoice(
        self,
        account_id: str,
        written_number: str,
    ) -> Invoice:
        """One invoice or credit note, with the text that was hashed."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/invoices/{written_number}",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("Invoice", found)

    def issue_credit_note(
        self,
        account_id: str,
        written_number: str,
        body: NewCreditNote,
        *,
        idempotency_key: str | None = None,
    ) -> Issued:
        """Take something off lines of an invoice, with a credit note of its own number."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/invoices/{written_number}/credit",
                account_id=account_id,
                written_number=written_number,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Issued", found)

    def read_billing_details(
        self,
        account_id: str,
    ) -> BillingDetails:
        """What stands on the account's invoices beside its id."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/billing-details", account_id=account_id),
        )
        return cast("BillingDetails", found)

    def set_billing_details(
        self,
        account_id: str,
        body: NewBillingDetails,
    ) -> BillingDetails:
        """Say what stands on invoices; replaces what was said before, and is in no log."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/billing-details", account_id=account_id),
            body=body,
        )
        return cast("BillingDetails", found)

    def erase_billing_details(
        self,
        account_id: str,
    ) -> BillingDetails:
        """Forget name and address: invoices show the account's id alone from then on."""
        found = self._call(
            "DELETE",
            _at("/v1/accounts/{account_id}/billing-details", account_id=account_id),
        )
        return cast("BillingDetails", found)

    def create_account(
        self,
        body: NewAccount,
        *,
        idempotency_key: str | None = None,
    ) -> AccountOpened:
        """Open an account with its first owner and a first API key, shown once."""
        found = self._call(
            "POST",
            "/v1/accounts",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("AccountOpened", found)

    def list_accounts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AccountPage:
        """Accounts in order of opening: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/accounts",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("AccountPage", found)

    def read_account(
        self,
        account_id: str,
    ) -> Account:
        """Read an account."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}", account_id=account_id),
        )
        return cast("Account", found)

    def close_account(
        self,
        account_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> AccountClosed:
        """Close an account whose leases are settled, nodes retired and books empty."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/close", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("AccountClosed", found)

    def list_members(
        self,
        account_id: str,
    ) -> Members:
        """Present and former members of an account."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/members", account_id=account_id),
        )
        return cast("Members", found)

    def add_member(
        self,
        account_id: str,
        body: NewMember,
        *,
        idempotency_key: str | None = None,
    ) -> Member:
        """Add a member with a role."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/members", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Member", found)

    def remove_member(
        self,
        account_id: str,
        member_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> MemberRemoved:
        """Remove a member; every key in their name ends at once."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/members/{member_id}/remove",
                account_id=account_id,
                member_id=member_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("MemberRemoved", found)

    def list_api_keys(
        self,
        account_id: str,
    ) -> ApiKeys:
        """The keys of an account, revoked ones too. The keys themselves are kept nowhere."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/api-keys", account_id=account_id),
        )
        return cast("ApiKeys", found)

    def create_api_key(
        self,
        account_id: str,
        body: NewApiKey,
        *,
        idempotency_key: str | None = None,
    ) -> ApiKey:
        """Issue an API key, shown once."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/api-keys", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ApiKey", found)

    def rotate_api_key(
        self,
        account_id: str,
        key_id: str,
        body: Rotation,
        *,
        idempotency_key: str | None = None,
    ) -> ApiKey:
        """Issue a successor, shown once; the old key stays valid for 24 hours beside it."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/api-keys/{key_id}/rotate",
                account_id=account_id,
                key_id=key_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ApiKey", found)

    def delete_api_key(
        self,
        account_id: str,
        key_id: str,
    ) -> ApiKey:
        """Revoke a key at once. Twice is once."""
        found = self._call(
            "DELETE",
            _at(
                "/v1/accounts/{account_id}/api-keys/{key_id}", account_id=account_id, key_id=key_id
            ),
        )
        return cast("ApiKey", found)

    def create_wallet_challenge(
        self,
        account_id: str,
        body: ChallengeAsked,
    ) -> Challenge:
        """A text (EIP-4361) for the wallet to sign, good for ten minutes and for one use."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/wallets/challenge", account_id=account_id),
            body=body,
        )
        return cast("Challenge", found)

    def link_wallet(
        self,
        account_id: str,
        body: WalletProof,
        *,
        idempotency_key: str | None = None,
    ) -> Wallet:
        """Link the wallet that signed the challenge; rewards are paid to it."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/wallets", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Wallet", found)

    def list_wallets(
        self,
        account_id: str,
    ) -> Wallets:
        """The wallets of an account, and which one is paid now."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/wallets", account_id=account_id),
        )
        return cast("Wallets", found)

    def create_deposit(
        self,
        account_id: str,
        body: NewDeposit,
        *,
        idempotency_key: str | None = None,
    ) -> Deposit:
        """Confirm money that arrived, once per payment."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/deposits", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Deposit", found)

    def list_deposits(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DepositPage:
        """Confirmed deposits, and credits bought by burning tokens, in order."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/deposits", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("DepositPage", found)

    def register_provider(
        self,
        body: NewProvider,
        *,
        idempotency_key: str | None = None,
    ) -> Provider:
        """Register a provider of the caller's account."""
        found = self._call(
            "POST",
            "/v1/providers",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Provider", found)

    def list_providers(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ProviderPage:
        """Providers in order of registration: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/providers",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("ProviderPage", found)

    def read_provider(
        self,
        provider_id: str,
    ) -> Provider:
        """Read a provider."""
        found = self._call(
            "GET",
            _at("/v1/providers/{provider_id}", provider_id=provider_id),
        )
        return cast("Provider", found)

    def open_region(
        self,
        body: NewRegion,
        *,
        idempotency_key: str | None = None,
    ) -> Region:
        """Open a region of one of the caller's providers."""
        found = self._call(
            "POST",
            "/v1/regions",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Region", found)

    def list_regions(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RegionPage:
        """Regions in order of opening: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/regions",
            query={"provider_id": provider_id, "limit": limit, "cursor": cursor},
        )
        return cast("RegionPage", found)

    def read_region(
        self,
        region_id: str,
    ) -> Region:
        """Read a region."""
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}", region_id=region_id),
        )
        return cast("Region", found)

    def set_region_policy(
        self,
        region_id: str,
        body: RegionPolicy,
        *,
        idempotency_key: str | None = None,
    ) -> Region:
        """Say whose jobs may run in a region, what it refuses or ranks down, and how safe
        it is.
        """
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/policy", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Region", found)

    def set_region_hardware(
        self,
        region_id: str,
        body: HardwareRules,
        *,
        idempotency_key: str | None = None,
    ) -> Region:
        """Say which rules of hardware a region insists on (C-11 to C-18). Nodes that are
        there are.
        """
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/hardware-rules", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Region", found)

    def list_region_nodes(
        self,
        region_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RegionNodePage:
        """The nodes of a region in order of joining."""
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/nodes", region_id=region_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("RegionNodePage", found)

    def set_region_terms(
        self,
        region_id: str,
        body: NewRegionTerms,
        *,
        idempotency_key: str | None = None,
    ) -> RegionTerms:
        """Say how a region shares what its nodes earn, a whole notice ahead."""
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/terms", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("RegionTerms", found)

    def read_region_terms(
        self,
        region_id: str,
    ) -> RegionTerms:
        """How a region shares what its nodes earn: known to everybody who might bring a
        node.
        """
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/terms", region_id=region_id),
        )
        return cast("RegionTerms", found)

    def list_region_days(
        self,
        region_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RegionDayPage:
        """Days that a region has shared out, the newest first: for its provider, and for
        whoever got a.
        """
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/shares", region_id=region_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("RegionDayPage", found)

    def list_region_shares(
        self,
        region_id: str,
        date: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> NodeSharePage:
        """What every node got of a day and why; of others' regions those that paid you."""
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/shares/{date}", region_id=region_id, date=date),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("NodeSharePage", found)

    def create_join_code(
        self,
        body: JoinCodeAsked,
        *,
        idempotency_key: str | None = None,
    ) -> JoinCode:
        """A code that lets one machine join a region, good for ten minutes."""
        found = self._call(
            "POST",
            "/v1/nodes/join-codes",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("JoinCode", found)

    def confirm_node(
        self,
        node_id: str,
        body: KeyConfirmation,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """The owner has compared the key with what the machine shows."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/confirm", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def admit_node(
        self,
        node_id: str,
        body: Admission,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """Let a confirmed node in: the operator does, or its owner in a permissionless
        region. A node.
        """
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/admit", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def activate_node(
        self,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """Take new leases from now on."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/activate", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def start_maintenance(
        self,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """Take no new leases from now on; running ones go on."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/maintenance", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def retire_node(
        self,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """The node leaves for good, with its devices."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/retire", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def report_specs(
        self,
        node_id: str,
        body: Specs,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """A new inventory, by the node itself; added devices come in when it is admitted
        again.
        """
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/specs", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def list_nodes(
        self,
        *,
        provider_id: str | None = None,
        region_id: str | None = None,
        account_id: str | None = None,
        phase: Literal["joining", "confirmed", "maintenance", "active", "draining", "retired"]
        | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> NodePage:
        """Nodes in order of joining: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/nodes",
            query={
                "provider_id": provider_id,
                "region_id": region_id,
                "account_id": account_id,
                "phase": phase,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("NodePage", found)

    def read_node(
        self,
        node_id: str,
    ) -> Node:
        """Read a node."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}", node_id=node_id),
        )
        return cast("Node", found)

    def list_node_keys(
        self,
        node_id: str,
    ) -> NodeKeys:
        """The public keys a node signs its reports with: anybody may check them."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/keys", node_id=node_id),
        )
        return cast("NodeKeys", found)

    def set_revenue_shares(
        self,
        node_id: str,
        body: NewRevenueShares,
        *,
        idempotency_key: str | None = None,
    ) -> RevenueShares:
        """Split what a node earns among its owners, for leases reserved from now on."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/revenue-shares", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("RevenueShares", found)

    def read_revenue_shares(
        self,
        node_id: str,
    ) -> RevenueShares:
        """Who shares what the node's provider earns."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/revenue-shares", node_id=node_id),
        )
        return cast("RevenueShares", found)

    def list_assignments(
        self,
        node_id: str,
    ) -> Assignments:
        """The leases of a node: which lease works on which device from when to when."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/assignments", node_id=node_id),
        )
        return cast("Assignments", found)

    def start_lease(
        self,
        node_id: str,
        lease_id: str,
        body: Readiness,
        *,
        idempotency_key: str | None = None,
    ) -> Ready:
        """The work runs: billing starts now, at the price that is locked here."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/ready",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Ready", found)

    def read_usage_head(
        self,
        node_id: str,
    ) -> Progress:
        """How far the log holds this node's chain: what a reporter asks at every start."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/usage/head", node_id=node_id),
        )
        return cast("Progress", found)

    def read_node_usage(
        self,
        node_id: str,
        *,
        after_seq: int | None = None,
        after_position: int | None = None,
    ) -> NodeUsage:
        """What of a node's usage was stored, and what of it earns nothing, by which rule."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/usage", node_id=node_id),
            query={"after_seq": after_seq, "after_position": after_position},
        )
        return cast("NodeUsage", found)

    def list_node_hours(
        self,
        node_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> NodeHourPage:
        """What a node reported, by UTC hour; hours that begin in [from, to)."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/usage/hours", node_id=node_id),
            query={"from": from_, "to": to, "limit": limit, "cursor": cursor},
        )
        return cast("NodeHourPage", found)

    def rotate_node_key(
        self,
        node_id: str,
        body: KeyRotation,
        *,
        idempotency_key: str | None = None,
    ) -> NodeKeyRotated:
        """Sign with another key from a report on; by the node itself, with both keys."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/keys/rotate", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeKeyRotated", found)

    def revoke_node_key(
        self,
        node_id: str,
        body: KeyRevocation,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """Take a lost or stolen key back. The present one: nothing the node signs or asks
        is taken from.
        """
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/keys/revoke", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def list_devices(
        self,
        *,
        node_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DevicePage:
        """Devices in order of registration: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/devices",
            query={"node_id": node_id, "limit": limit, "cursor": cursor},
        )
        return cast("DevicePage", found)

    def read_device(
        self,
        device_id: str,
    ) -> Device:
        """Read a device, and which leases hold how much of it."""
        found = self._call(
            "GET",
            _at("/v1/devices/{device_id}", device_id=device_id),
        )
        return cast("Device", found)

    def reshape_device(
        self,
        device_id: str,
        body: Reshaping,
        *,
        idempotency_key: str | None = None,
    ) -> Reshaped:
        """The device was partitioned anew: end the leases whose part is gone, by the
        provider's fault.
        """
        found = self._call(
            "POST",
            _at("/v1/devices/{device_id}/reshape", device_id=device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Reshaped", found)

    def list_resource_kinds(
        self,
    ) -> ResourceKinds:
        """Every kind of resource that can be rented, by kind and vendor."""
        found = self._call(
            "GET",
            "/v1/resource-kinds",
        )
        return cast("ResourceKinds", found)

    def register_resource_kind(
        self,
        body: NewResourceKind,
        *,
        idempotency_key: str | None = None,
    ) -> ResourceKind:
        """Make a vendor's devices of a kind known, from a date on."""
        found = self._call(
            "POST",
            "/v1/resource-kinds",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ResourceKind", found)

    def register_model_class(
        self,
        body: NewModelClass,
        *,
        idempotency_key: str | None = None,
    ) -> ModelClass:
        """Put a model into a class, from a date on: what it pays is the tariff's row of
        that class.
        """
        found = self._call(
            "POST",
            "/v1/resource-kinds/models",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ModelClass", found)

    def grant_licence(
        self,
        body: NewLicence,
        *,
        idempotency_key: str | None = None,
    ) -> Licence:
        """Record a licence that one of your providers holds: its nodes may list the seats."""
        found = self._call(
            "POST",
            "/v1/licences",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Licence", found)

    def list_licences(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> LicencePage:
        """Licences in the order of their grant: your own, or all for operators and
        auditors.
        """
        found = self._call(
            "GET",
            "/v1/licences",
            query={"provider_id": provider_id, "limit": limit, "cursor": cursor},
        )
        return cast("LicencePage", found)

    def revoke_licence(
        self,
        licence_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> LicenceRevoked:
        """Let its seats come into no more nodes; leases that hold some run to their end."""
        found = self._call(
            "POST",
            _at("/v1/licences/{licence_id}/revoke", licence_id=licence_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LicenceRevoked", found)

    def schedule_maintenance(
        self,
        node_id: str,
        body: NewMaintenance,
        *,
        idempotency_key: str | None = None,
    ) -> Maintenance:
        """Tell ahead when a node will be worked on: no lease is reserved over that time."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/maintenances", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Maintenance", found)

    def list_maintenances(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MaintenancePage:
        """What was announced for a node, in that order; renters may look before they rent."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/maintenances", node_id=node_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("MaintenancePage", found)

    def cancel_maintenance(
        self,
        node_id: str,
        maintenance_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Maintenance:
        """Call a maintenance off, or end one that runs."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/maintenances/{maintenance_id}/cancel",
                node_id=node_id,
                maintenance_id=maintenance_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Maintenance", found)

    def drain_node(
        self,
        node_id: str,
        body: Drain,
        *,
        idempotency_key: str | None = None,
    ) -> NodeState:
        """Let a node run empty: no new leases until it is activated again."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/drain", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("NodeState", found)

    def set_node_role(
        self,
        node_id: str,
        body: NewRole,
        *,
        idempotency_key: str | None = None,
    ) -> Role:
        """Say what a node is for: work, letting traffic in, or control."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/role", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Role", found)

    def read_ingress_load(
        self,
        region_id: str,
    ) -> IngressLoads:
        """How much work goes through each ingress node of a region."""
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/ingress", region_id=region_id),
        )
        return cast("IngressLoads", found)

    def create_attestation_nonce(
        self,
        node_id: str,
        device_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Nonce:
        """What a device is to sign, bound to how far the node's chain has come."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/devices/{device_id}/attestation-nonce",
                node_id=node_id,
                device_id=device_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Nonce", found)

    def create_attestation(
        self,
        node_id: str,
        device_id: str,
        body: AttestationAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Attestation:
        """Evidence for a nonce that was issued; the verdict counts for the epoch it falls
        into.
        """
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/devices/{device_id}/attestation",
                node_id=node_id,
                device_id=device_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Attestation", found)

    def add_attribute(
        self,
        body: NewAttribute,
        *,
        idempotency_key: str | None = None,
    ) -> Attribute:
        """Record what a third party has signed about a node or a provider."""
        found = self._call(
            "POST",
            "/v1/attributes",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Attribute", found)

    def list_attributes(
        self,
        *,
        subject_id: str | None = None,
        name: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AttributePage:
        """Statements in the order in which they came; `account_id` is the signer's. With
        the public.
        """
        found = self._call(
            "GET",
            "/v1/attributes",
            query={
                "subject_id": subject_id,
                "name": name,
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("AttributePage", found)

    def revoke_attribute(
        self,
        statement_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> AttributeRevoked:
        """Take back what your account has signed."""
        found = self._call(
            "POST",
            _at("/v1/attributes/{statement_id}/revoke", statement_id=statement_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("AttributeRevoked", found)

    def read_node_reputation(
        self,
        node_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Reputation:
        """What a node and its devices are known by; `as_of_position` gives what was known
        there.
        """
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/reputation", node_id=node_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Reputation", found)

    def read_provider_reputation(
        self,
        provider_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Reputation:
        """What all nodes of a provider are known by: a second node hides nothing."""
        found = self._call(
            "GET",
            _at("/v1/providers/{provider_id}/reputation", provider_id=provider_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Reputation", found)

    def read_renter_reputation(
        self,
        account_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Reputation:
        """What a renter is known by: the renter sees it, and whoever has rented to it."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/renter-reputation", account_id=account_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Reputation", found)

    def list_settings(
        self,
    ) -> Settings:
        """What to expect of edge and of datacenter nodes, in numbers where there are any
        (K-4).
        """
        found = self._call(
            "GET",
            "/v1/settings",
        )
        return cast("Settings", found)

    def publish_offer(
        self,
        body: NewOffer,
        *,
        idempotency_key: str | None = None,
    ) -> Offer:
        """Offer a node at a price, not below the usage fee of its class."""
        found = self._call(
            "POST",
            "/v1/offers",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Offer", found)

    def search_offers(
        self,
        *,
        model: str | None = None,
        gpu_class: str | None = None,
        price_max: int | None = None,
        account_id: str | None = None,
        node_id: str | None = None,
        setting: Literal["edge", "datacenter"] | None = None,
        kind: str | None = None,
        gpu_count: int | None = None,
        vendor: str | None = None,
        memory_mib: int | None = None,
        mode: Literal["whole", "mig", "mps", "time_slice", "memory"] | None = None,
        isolation: Literal["process", "container", "vm", "machine"] | None = None,
        capability: str | None = None,
        cpu_cores: int | None = None,
        ram_mib: int | None = None,
        storage_gib: int | None = None,
        network_mbps: int | None = None,
        arch: str | None = None,
        os: str | None = None,
        min_kernel: str | None = None,
        network_class: Literal["internet", "local", "switched"] | None = None,
        substrate: str | None = None,
        workload_class: str | None = None,
        security_tier: int | None = None,
        min_reputation_ppm: int | None = None,
        region_id: str | None = None,
        pool_id: str | None = None,
        sla_class: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> OfferPage:
        """Open offers that meet every demand, cheapest first, with what is known of each
        machine.
        """
        found = self._call(
            "GET",
            "/v1/offers",
            query={
                "model": model,
                "gpu_class": gpu_class,
                "price_max": price_max,
                "account_id": account_id,
                "node_id": node_id,
                "setting": setting,
                "kind": kind,
                "gpu_count": gpu_count,
                "vendor": vendor,
                "memory_mib": memory_mib,
                "mode": mode,
                "isolation": isolation,
                "capability": capability,
                "cpu_cores": cpu_cores,
                "ram_mib": ram_mib,
                "storage_gib": storage_gib,
                "network_mbps": network_mbps,
                "arch": arch,
                "os": os,
                "min_kernel": min_kernel,
                "network_class": network_class,
                "substrate": substrate,
                "workload_class": workload_class,
                "security_tier": security_tier,
                "min_reputation_ppm": min_reputation_ppm,
                "region_id": region_id,
                "pool_id": pool_id,
                "sla_class": sla_class,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("OfferPage", found)

    def read_offer(
        self,
        offer_id: str,
    ) -> Offer:
        """Read an offer, with what is known of its machine."""
        found = self._call(
            "GET",
            _at("/v1/offers/{offer_id}", offer_id=offer_id),
        )
        return cast("Offer", found)

    def withdraw_offer(
        self,
        offer_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> OfferWithdrawn:
        """Take an offer back; leases opened from it keep their price."""
        found = self._call(
            "POST",
            _at("/v1/offers/{offer_id}/withdraw", offer_id=offer_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("OfferWithdrawn", found)

    def read_price(
        self,
    ) -> Price:
        """The price of a TOKEN now: each source, the median, or why there is none."""
        found = self._call(
            "GET",
            "/v1/oracle",
        )
        return cast("Price", found)

    def set_price_sources(
        self,
        body: NewSources,
        *,
        idempotency_key: str | None = None,
    ) -> Sources:
        """Say whose prices count."""
        found = self._call(
            "POST",
            "/v1/oracle/sources",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Sources", found)

    def report_price(
        self,
        body: NewObservation,
        *,
        idempotency_key: str | None = None,
    ) -> Observation:
        """Record a price that a source published; the same once more changes nothing."""
        found = self._call(
            "POST",
            "/v1/oracle/observations",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Observation", found)

    def list_price_snapshots(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SnapshotPage:
        """Every snapshot in order: what all sources said when a burn or a seal needed a
        price.
        """
        found = self._call(
            "GET",
            "/v1/oracle/snapshots",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("SnapshotPage", found)

    def take_price_snapshot(
        self,
        body: NewSnapshot,
        *,
        idempotency_key: str | None = None,
    ) -> Snapshot:
        """Record what the sources say now, usable or not."""
        found = self._call(
            "POST",
            "/v1/oracle/snapshots",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Snapshot", found)

    def rehearse_policy(
        self,
        body: RehearsalAsked,
    ) -> Rehearsal:
        """Settle all past epochs once more under a proposal, and compare to the unit."""
        found = self._call(
            "POST",
            "/v1/policies/dry-run",
            body=body,
        )
        return cast("Rehearsal", found)

    def open_dispute(
        self,
        body: NewDispute,
        *,
        idempotency_key: str | None = None,
    ) -> Dispute:
        """Contest charges of a lease. Inside their window the provider's part is held
        meanwhile.
        """
        found = self._call(
            "POST",
            "/v1/disputes",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Dispute", found)

    def list_disputes(
        self,
        *,
        lease_id: str | None = None,
        state: Literal["open", "resolved"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DisputePage:
        """Disputes of which you are a party; all of them for governance and auditors."""
        found = self._call(
            "GET",
            "/v1/disputes",
            query={"lease_id": lease_id, "state": state, "limit": limit, "cursor": cursor},
        )
        return cast("DisputePage", found)

    def read_dispute(
        self,
        dispute_id: str,
    ) -> DisputeWhole:
        """A dispute with its lines, its evidence and what was said."""
        found = self._call(
            "GET",
            _at("/v1/disputes/{dispute_id}", dispute_id=dispute_id),
        )
        return cast("DisputeWhole", found)

    def answer_dispute(
        self,
        dispute_id: str,
        body: Answer,
        *,
        idempotency_key: str | None = None,
    ) -> Dispute:
        """Add a statement or evidence, as either side, as long as nobody has ruled."""
        found = self._call(
            "POST",
            _at("/v1/disputes/{dispute_id}/answer", dispute_id=dispute_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Dispute", found)

    def rule_dispute(
        self,
        dispute_id: str,
        body: Ruling,
        *,
        idempotency_key: str | None = None,
    ) -> Dispute:
        """Rule, as somebody who is neither party: the last word, booked as adjustments."""
        found = self._call(
            "POST",
            _at("/v1/disputes/{dispute_id}/rule", dispute_id=dispute_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Dispute", found)

    def create_adjustment(
        self,
        body: Goodwill,
        *,
        idempotency_key: str | None = None,
    ) -> Adjustment:
        """Give a renter part of a charge back, out of the network's revenue (operator)."""
        found = self._call(
            "POST",
            "/v1/adjustments",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Adjustment", found)

    def list_adjustments(
        self,
        *,
        lease_id: str | None = None,
        corrects_position: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AdjustmentPage:
        """Corrections of charges you paid or were paid, in the order of their booking."""
        found = self._call(
            "GET",
            "/v1/adjustments",
            query={
                "lease_id": lease_id,
                "corrects_position": corrects_position,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("AdjustmentPage", found)

    def create_late_usage_adjustment(
        self,
        body: Late,
        *,
        idempotency_key: str | None = None,
    ) -> Adjustment:
        """Charge signed usage that was reported after the lease was settled (operator)."""
        found = self._call(
            "POST",
            "/v1/adjustments/late-usage",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Adjustment", found)

    def read_adjustment(
        self,
        adjustment_id: str,
    ) -> Adjustment:
        """One correction and every account it moved."""
        found = self._call(
            "GET",
            _at("/v1/adjustments/{adjustment_id}", adjustment_id=adjustment_id),
        )
        return cast("Adjustment", found)

    def submit_job(
        self,
        body: NewJob,
        *,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit a job; leases are opened for it."""
        found = self._call(
            "POST",
            "/v1/jobs",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Job", found)

    def list_jobs(
        self,
        *,
        state: Literal["open", "cancelled", "completed", "failed"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobPage:
        """Jobs in order of submission: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/jobs",
            query={"state": state, "limit": limit, "cursor": cursor},
        )
        return cast("JobPage", found)

    def read_job(
        self,
        job_id: str,
    ) -> Job:
        """Read a job."""
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}", job_id=job_id),
        )
        return cast("Job", found)

    def cancel_job(
        self,
        job_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> JobCancelled:
        """No new leases for a job; those it has are closed one by one."""
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/cancel", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("JobCancelled", found)

    def explain_job(
        self,
        job_id: str,
    ) -> Explanation:
        """Why the leases of a job are where they are; for a job without one, what stands in
        its way.
        """
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}/explain", job_id=job_id),
        )
        return cast("Explanation", found)

    def quote_job(
        self,
        body: JobQuoteAsked,
    ) -> JobQuote:
        """Which node a job would get now, why that one, and if none, what to ease."""
        found = self._call(
            "POST",
            "/v1/quotes",
            body=body,
        )
        return cast("JobQuote", found)

    def stream_lease_events(
        self,
        *,
        lease_id: str | None = None,
        after: int | None = None,
        seconds: int | None = None,
    ) -> bytes:
        """What happens to your leases, as it happens (server-sent events)."""
        found = self._call(
            "GET",
            "/v1/lease-events",
            query={"lease_id": lease_id, "after": after, "seconds": seconds},
        )
        return cast("bytes", found)

    def report_renter_health(
        self,
        lease_id: str,
        body: CheckIn,
    ) -> Heard:
        """The renter's half says how it is; said again, the last word counts."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/check-in", lease_id=lease_id),
            body=body,
        )
        return cast("Heard", found)

    def report_work_health(
        self,
        node_id: str,
        lease_id: str,
        body: WorkHealth,
    ) -> Heard:
        """The node's half says how the work is."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/health",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
        )
        return cast("Heard", found)

    def read_lease_health(
        self,
        lease_id: str,
    ) -> LeaseHealth:
        """How both halves of a lease are, each with its machine, its kernel and when it was
        heard.
        """
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/health", lease_id=lease_id),
        )
        return cast("LeaseHealth", found)

    def pause_lease(
        self,
        lease_id: str,
        body: Turned,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseTurn:
        """Stop the compute of an interruptible lease: it costs nothing until it goes on."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/pause", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseTurn", found)

    def resume_lease(
        self,
        lease_id: str,
        body: Turned,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseTurn:
        """Hold the same devices again, if they are free, and go on."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/resume", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseTurn", found)

    def extend_lease(
        self,
        lease_id: str,
        body: Extension,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseTurn:
        """A later end of a fixed term. An open-ended lease is topped up instead."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/extend", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseTurn", found)

    def reclaim_lease(
        self,
        lease_id: str,
        body: Reclaim,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseTurn:
        """Ask for the devices back: the window that was quoted begins, at the full rate."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/reclaim", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseTurn", found)

    def cancel_reclaim(
        self,
        lease_id: str,
        body: Turned,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseTurn:
        """Leave the devices with the renter after all."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/reclaim/cancel", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseTurn", found)

    def quote_lease(
        self,
        body: NewQuote,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseQuote:
        """A request for a lease, with a price that is promised for a while: accept it in
        time.
        """
        found = self._call(
            "POST",
            "/v1/lease-quotes",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseQuote", found)

    def accept_quote(
        self,
        lease_id: str,
        body: QuoteAcceptance,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseOpened:
        """Take a quote before it expires: the devices are reserved at its price, the money
        is held.
        """
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/accept", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseOpened", found)

    def list_lease_steps(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> LeaseStepPage:
        """The life of a lease, from its request to its archive: each fact with cause and
        money.
        """
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/events", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("LeaseStepPage", found)

    def open_lease(
        self,
        body: NewLease,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseOpened:
        """Find the cheapest node that fits and reserve it, with the money held for it; or
        ask for bids,.
        """
        found = self._call(
            "POST",
            "/v1/leases",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseOpened", found)

    def list_leases(
        self,
        *,
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
        | None = None,
        job_id: str | None = None,
        node_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> LeasePage:
        """Leases in order of request, as renter or as provider; all for operators and
        auditors.
        """
        found = self._call(
            "GET",
            "/v1/leases",
            query={
                "state": state,
                "job_id": job_id,
                "node_id": node_id,
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("LeasePage", found)

    def close_lease(
        self,
        lease_id: str,
        body: Closing,
        *,
        idempotency_key: str | None = None,
    ) -> LeaseClosed:
        """End a lease; what the escrow can no longer need goes back at once."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/close", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("LeaseClosed", found)

    def fund_lease(
        self,
        lease_id: str,
        body: TopUp,
        *,
        idempotency_key: str | None = None,
    ) -> ToppedUp:
        """Put credits of yours into the escrow of a lease: yours, or another account's you
        pay for.
        """
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/top-up", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ToppedUp", found)

    def read_lease(
        self,
        lease_id: str,
        *,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Lease:
        """Read a lease, now or as of a position or a time."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}", lease_id=lease_id),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Lease", found)

    def list_lease_usage(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> LeaseHourPage:
        """GPU time of a lease, hour by hour, and time that earned nothing."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/usage", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("LeaseHourPage", found)

    def list_lease_charges(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> LeaseChargePage:
        """What a lease cost, accrual by accrual, and where each unit went."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/charges", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("LeaseChargePage", found)

    def list_lease_history(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> LeaseFactPage:
        """Every fact of a lease, and the state after it."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/history", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("LeaseFactPage", found)

    def open_gang(
        self,
        body: NewGang,
        *,
        idempotency_key: str | None = None,
    ) -> Gang:
        """Reserve every member in one append, or none."""
        found = self._call(
            "POST",
            "/v1/gangs",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Gang", found)

    def list_gangs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> GangPage:
        """Gangs in order of request: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/gangs",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("GangPage", found)

    def cancel_gang(
        self,
        gang_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Gang:
        """End a gang before it has opened, at no charge. An open one is closed lease by
        lease.
        """
        found = self._call(
            "POST",
            _at("/v1/gangs/{gang_id}/cancel", gang_id=gang_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Gang", found)

    def read_gang(
        self,
        gang_id: str,
    ) -> Gang:
        """Read a gang: its members, who is ready, or its place in the queue."""
        found = self._call(
            "GET",
            _at("/v1/gangs/{gang_id}", gang_id=gang_id),
        )
        return cast("Gang", found)

    def create_pool(
        self,
        body: NewPool,
        *,
        idempotency_key: str | None = None,
    ) -> PoolMade:
        """Create a pool of your own: nodes come in one by one, by whoever provides them."""
        found = self._call(
            "POST",
            "/v1/pools",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PoolMade", found)

    def list_pools(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PoolPage:
        """Pools in order of creation."""
        found = self._call(
            "GET",
            "/v1/pools",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("PoolPage", found)

    def set_pool_policy(
        self,
        pool_id: str,
        body: PoolPolicyForm,
        *,
        idempotency_key: str | None = None,
    ) -> PoolPolicy:
        """Set the whole policy of a pool; what is left out is its default. Leases keep
        running.
        """
        found = self._call(
            "POST",
            _at("/v1/pools/{pool_id}/policy", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PoolPolicy", found)

    def add_pool_node(
        self,
        pool_id: str,
        body: NewPoolNode,
        *,
        idempotency_key: str | None = None,
    ) -> PoolNodeMade:
        """Put a node of yours into a pool. A node is in one pool at most."""
        found = self._call(
            "POST",
            _at("/v1/pools/{pool_id}/nodes", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PoolNodeMade", found)

    def list_pool_nodes(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PoolNodePage:
        """Nodes of a pool in the order in which they were added."""
        found = self._call(
            "GET",
            _at("/v1/pools/{pool_id}/nodes", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("PoolNodePage", found)

    def remove_pool_node(
        self,
        pool_id: str,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> PoolNodeMade:
        """Take a node out: its provider may, and the pool's owner. Leases that run there go
        on.
        """
        found = self._call(
            "POST",
            _at("/v1/pools/{pool_id}/nodes/{node_id}/remove", pool_id=pool_id, node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PoolNodeMade", found)

    def read_pool(
        self,
        pool_id: str,
    ) -> Pool:
        """Read a pool: its policy, and what accelerators of which kind it has."""
        found = self._call(
            "GET",
            _at("/v1/pools/{pool_id}", pool_id=pool_id),
        )
        return cast("Pool", found)

    def list_pool_queue(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> WaitingPage:
        """Who waits for a pool, first come first. Others' names are left out."""
        found = self._call(
            "GET",
            _at("/v1/pools/{pool_id}/queue", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("WaitingPage", found)

    def list_pool_decisions(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DecisionPage:
        """Decisions of a pool's scheduler, in order."""
        found = self._call(
            "GET",
            _at("/v1/pools/{pool_id}/decisions", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("DecisionPage", found)

    def read_pool_decision(
        self,
        pool_id: str,
        at_position: int,
    ) -> WholeDecision:
        """All that one decision looked at, made again from it. For the pool's owner and
        operators.
        """
        found = self._call(
            "GET",
            _at(
                "/v1/pools/{pool_id}/decisions/{at_position}",
                pool_id=pool_id,
                at_position=at_position,
            ),
        )
        return cast("WholeDecision", found)

    def list_auctions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AuctionPage:
        """Requests that take bids now, in the order in which they came."""
        found = self._call(
            "GET",
            "/v1/auctions",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("AuctionPage", found)

    def read_auction(
        self,
        lease_id: str,
    ) -> Auction:
        """Read the auction of a request. What is asked for is public to every bidder."""
        found = self._call(
            "GET",
            _at("/v1/auctions/{lease_id}", lease_id=lease_id),
        )
        return cast("Auction", found)

    def submit_bid(
        self,
        lease_id: str,
        body: NewBid,
        *,
        idempotency_key: str | None = None,
    ) -> Bid:
        """Bid for a request with an offer of yours; the deposit is held until somebody has
        won.
        """
        found = self._call(
            "POST",
            _at("/v1/auctions/{lease_id}/bids", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Bid", found)

    def list_auction_bids(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> BidPage:
        """Bids of a request: all for its renter and for operators, your own for a bidder.
        Of a sealed.
        """
        found = self._call(
            "GET",
            _at("/v1/auctions/{lease_id}/bids", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("BidPage", found)

    def list_bids(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> BidPage:
        """Your bids and what became of their deposits, in order."""
        found = self._call(
            "GET",
            "/v1/bids",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("BidPage", found)

    def withdraw_bid(
        self,
        lease_id: str,
        bid_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> BidWithdrawn:
        """Take a bid back while nobody has won; its deposit comes back with it."""
        found = self._call(
            "POST",
            _at("/v1/auctions/{lease_id}/bids/{bid_id}/withdraw", lease_id=lease_id, bid_id=bid_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("BidWithdrawn", found)

    def accept_bid(
        self,
        lease_id: str,
        bid_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> BidAccepted:
        """Choose a bid of a request whose `pick` is the renter's: it is reserved at its
        price.
        """
        found = self._call(
            "POST",
            _at("/v1/auctions/{lease_id}/bids/{bid_id}/accept", lease_id=lease_id, bid_id=bid_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("BidAccepted", found)

    def set_standing_bid(
        self,
        lease_id: str,
        body: NewStandingBid,
        *,
        idempotency_key: str | None = None,
    ) -> StandingBidSet:
        """Raise or lower the standing bid of an interruptible lease."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/bid", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("StandingBidSet", found)

    def read_standing_bid(
        self,
        lease_id: str,
    ) -> StandingBid:
        """The standing bid of an interruptible lease, and the one to beat."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/bid", lease_id=lease_id),
        )
        return cast("StandingBid", found)

    def list_pricing_modules(
        self,
    ) -> Modules:
        """Every pricing module of this installation, plug-ins too, with its version."""
        found = self._call(
            "GET",
            "/v1/pricing-modules",
        )
        return cast("Modules", found)

    def read_market_prices(
        self,
        *,
        pool_id: str | None = None,
    ) -> MarketPrices:
        """What the winning standing bids pay now, by class of accelerator: everywhere, or
        in a pool.
        """
        found = self._call(
            "GET",
            "/v1/market-prices",
            query={"pool_id": pool_id},
        )
        return cast("MarketPrices", found)

    def set_offer_prices(
        self,
        offer_id: str,
        body: NewPriceList,
        *,
        idempotency_key: str | None = None,
    ) -> PriceList:
        """Say at which floor interruptible leases, and at which prices whole months are
        let.
        """
        found = self._call(
            "POST",
            _at("/v1/offers/{offer_id}/prices", offer_id=offer_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PriceList", found)

    def read_offer_prices(
        self,
        offer_id: str,
    ) -> PriceList:
        """The price list of an offer, where its provider has set one."""
        found = self._call(
            "GET",
            _at("/v1/offers/{offer_id}/prices", offer_id=offer_id),
        )
        return cast("PriceList", found)

    def read_balances(
        self,
        account_id: str,
        *,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Balances:
        """Balances of an account: now from the books, or as of a position or a time."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/balances", account_id=account_id),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Balances", found)

    def list_journal(
        self,
        account_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> LinePage:
        """Every movement on the account's books in order; recorded in [from, to)."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/journal", account_id=account_id),
            query={
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("LinePage", found)

    def read_statement(
        self,
        account_id: str,
        period: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Statement:
        """The statement of one month: balances before and after, and what was charged."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/{period}",
                account_id=account_id,
                period=period,
            ),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("Statement", found)

    def read_account_statement(
        self,
        account_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        kind: str | None = None,
        by: Literal["client_id", "project_id", "end_user_ref", "lease_id"] | None = None,
        client_id: str | None = None,
        project_id: str | None = None,
        end_user_ref: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> AccountStatement:
        """A statement of any period, accrued as of now or as of any moment."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/statements", account_id=account_id),
            query={
                "from": from_,
                "to": to,
                "kind": kind,
                "by": by,
                "client_id": client_id,
                "project_id": project_id,
                "end_user_ref": end_user_ref,
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("AccountStatement", found)

    def read_statement_line(
        self,
        account_id: str,
        position: int,
    ) -> LineDetail:
        """The fact behind a line, what it booked, and how its amounts came about."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/lines/{position}",
                account_id=account_id,
                position=position,
            ),
        )
        return cast("LineDetail", found)

    def read_statement_line_proof(
        self,
        account_id: str,
        position: int,
    ) -> str:
        """The proof of a line's fact under the last signed head, as a `.tlog-proof` file."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/lines/{position}/proof",
                account_id=account_id,
                position=position,
            ),
        )
        return cast("str", found)

    def list_statement_line_reports(
        self,
        account_id: str,
        position: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ConsumedReportPage:
        """The signed reports that an accrual read, and what each was worth. Their sum is
        the line.
        """
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/lines/{position}/reports",
                account_id=account_id,
                position=position,
            ),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("ConsumedReportPage", found)

    def read_statement_line_report_proof(
        self,
        account_id: str,
        position: int,
        usage_position: int,
    ) -> str:
        """One report's signed bytes and its proof under the first pin that covers it."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/statements/lines/{position}/reports/{usage_position}/proof",
                account_id=account_id,
                position=position,
                usage_position=usage_position,
            ),
        )
        return cast("str", found)

    def list_earnings(
        self,
        *,
        by: str | None = None,
        node_id: str | None = None,
        lease_id: str | None = None,
        epoch: int | None = None,
        account_id: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EarningPage:
        """Sums of what was earned: your own, or everybody's for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/earnings",
            query={
                "by": by,
                "node_id": node_id,
                "lease_id": lease_id,
                "epoch": epoch,
                "account_id": account_id,
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("EarningPage", found)

    def read_node_today(
        self,
        node_id: str,
    ) -> NodeToday:
        """What a node has earned since midnight UTC; asked by the node itself, for its
        owner's eyes.
        """
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/earnings/today", node_id=node_id),
        )
        return cast("NodeToday", found)

    def explain_earning(
        self,
        position: int,
    ) -> EarningExplained:
        """How one accrual was shared: the arithmetic with every number, and the entry it
        booked.
        """
        found = self._call(
            "GET",
            _at("/v1/earnings/explain/{position}", position=position),
        )
        return cast("EarningExplained", found)

    def list_epochs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EpochPage:
        """Epochs in order."""
        found = self._call(
            "GET",
            "/v1/epochs",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("EpochPage", found)

    def preview_epoch(
        self,
        *,
        epoch: int | None = None,
    ) -> Preview:
        """The weights of the open epoch, or of the one named."""
        found = self._call(
            "GET",
            "/v1/epochs/preview",
            query={"epoch": epoch},
        )
        return cast("Preview", found)

    def read_epoch(
        self,
        epoch: int,
    ) -> Epoch:
        """Read an epoch."""
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}", epoch=epoch),
        )
        return cast("Epoch", found)

    def list_epoch_rewards(
        self,
        epoch: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RewardPage:
        """What a sealed epoch credited, by account."""
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}/rewards", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("RewardPage", found)

    def read_payout_file(
        self,
        epoch: int,
    ) -> dict[str, Any]:
        """The file the payout of an epoch is proposed and claimed from, byte for byte."""
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}/payout.json", epoch=epoch),
        )
        return cast("dict[str, Any]", found)

    def explain_epoch(
        self,
        epoch: int,
        node_id: str,
    ) -> EpochExplanation:
        """Why a node got what it got in a sealed epoch; zero says why, too."""
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}/explain/{node_id}", epoch=epoch, node_id=node_id),
        )
        return cast("EpochExplanation", found)

    def list_wash_signals(
        self,
        epoch: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DividedPage:
        """How much of each node's use in an epoch came from one renter, or from related
        ones.
        """
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}/signals", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("DividedPage", found)

    def list_renter_signals(
        self,
        epoch: int,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DividedPage:
        """How much of each renter's use in an epoch went to one owner of nodes, or to
        related ones.
        """
        found = self._call(
            "GET",
            _at("/v1/epochs/{epoch}/renter-signals", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("DividedPage", found)

    def fund_escrow(
        self,
        job_id: str,
        body: EscrowFunding,
        *,
        idempotency_key: str | None = None,
    ) -> Escrow:
        """Put credits into the escrow of a job. Its leases that name no term and no funds
        of their own.
        """
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/escrow", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Escrow", found)

    def read_escrow(
        self,
        job_id: str,
    ) -> Escrow:
        """What the escrow of a job holds, who put it there, who draws on it and until when
        it lasts.
        """
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}/escrow", job_id=job_id),
        )
        return cast("Escrow", found)

    def withdraw_escrow(
        self,
        job_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Escrow:
        """Have back what the escrow of a job holds, once none of its leases is unsettled."""
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/escrow/withdraw", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Escrow", found)

    def list_payouts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RootPage:
        """Payout roots in the order they were built, and how far each has come."""
        found = self._call(
            "GET",
            "/v1/payouts",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("RootPage", found)

    def list_claims(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ClaimPage:
        """Confirmed claims: your own, or everybody's for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/payouts/claims",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("ClaimPage", found)

    def read_rewards(
        self,
        account_id: str,
    ) -> Lifetime:
        """Lifetime totals of an account: credited, matured and claimed TOKEN."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/rewards", account_id=account_id),
        )
        return cast("Lifetime", found)

    def read_payout_proof(
        self,
        epoch: int,
        *,
        address: str,
    ) -> Proof:
        """The Merkle proof of a wallet's total under the root of an epoch."""
        found = self._call(
            "GET",
            _at("/v1/payouts/{epoch}/proof", epoch=epoch),
            query={"address": address},
        )
        return cast("Proof", found)

    def list_tariffs(
        self,
    ) -> Tariffs:
        """Every version of the tariff, oldest first."""
        found = self._call(
            "GET",
            "/v1/tariffs",
        )
        return cast("Tariffs", found)

    def publish_tariff(
        self,
        body: NewTariff,
        *,
        idempotency_key: str | None = None,
    ) -> Tariff:
        """Publish the next version; leases that are reserved already keep theirs."""
        found = self._call(
            "POST",
            "/v1/tariffs",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Tariff", found)

    def propose_policy(
        self,
        body: NewProposal,
        *,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Propose a policy, or anything else that others shall say yes to; its lint is
        recorded.
        """
        found = self._call(
            "POST",
            "/v1/policies/proposals",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def list_policy_proposals(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ProposalPage:
        """Proposals in the order in which they were made."""
        found = self._call(
            "GET",
            "/v1/policies/proposals",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("ProposalPage", found)

    def revise_policy_proposal(
        self,
        proposal_number: int,
        body: NewProposal,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Propose another document under the same number; votes on the one before end."""
        found = self._call(
            "POST",
            _at("/v1/policies/proposals/{proposal_number}/revise", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def open_policy_review(
        self,
        proposal_number: int,
        body: ReviewOpening,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Say that a proposal is being reviewed, also one that fails the lint."""
        found = self._call(
            "POST",
            _at("/v1/policies/proposals/{proposal_number}/review", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def approve_policy_proposal(
        self,
        proposal_number: int,
        body: Nothing,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Say yes to a proposal of somebody else."""
        found = self._call(
            "POST",
            _at(
                "/v1/policies/proposals/{proposal_number}/approve", proposal_number=proposal_number
            ),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def reject_policy_proposal(
        self,
        proposal_number: int,
        body: Because,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Say no to a proposal of somebody else."""
        found = self._call(
            "POST",
            _at("/v1/policies/proposals/{proposal_number}/reject", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def withdraw_policy_proposal(
        self,
        proposal_number: int,
        body: Because,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Take back what one has proposed, as long as it is not scheduled."""
        found = self._call(
            "POST",
            _at(
                "/v1/policies/proposals/{proposal_number}/withdraw", proposal_number=proposal_number
            ),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def schedule_policy_proposal(
        self,
        proposal_number: int,
        body: Scheduling,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> Proposal:
        """Publish an approved proposal as the next version, for an epoch far enough ahead."""
        found = self._call(
            "POST",
            _at(
                "/v1/policies/proposals/{proposal_number}/schedule", proposal_number=proposal_number
            ),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Proposal", found)

    def read_policy_proposal(
        self,
        proposal_number: int,
    ) -> WholeProposal:
        """One proposal: its document, the lint's findings, who said what and when."""
        found = self._call(
            "GET",
            _at("/v1/policies/proposals/{proposal_number}", proposal_number=proposal_number),
        )
        return cast("WholeProposal", found)

    def list_policies(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> PolicyPage:
        """Every version of the policy, oldest first, as known now or at a moment of the
        past.
        """
        found = self._call(
            "GET",
            "/v1/policies",
            query={
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("PolicyPage", found)

    def read_policy(
        self,
        policy_version: int,
        *,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> Policy:
        """One version of the policy."""
        found = self._call(
            "GET",
            _at("/v1/policies/{policy_version}", policy_version=policy_version),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("Policy", found)

    def read_node_trust(
        self,
        node_id: str,
        *,
        epoch: int | None = None,
    ) -> NodeTrust:
        """The tier of each device of a node in an epoch, the newest if none is named."""
        found = self._call(
            "GET",
            _at("/v1/nodes/{node_id}/trust", node_id=node_id),
            query={"epoch": epoch},
        )
        return cast("NodeTrust", found)

    def list_driver_libraries(
        self,
    ) -> Libraries:
        """The driver libraries that the operator vouches for; a device under another fails
        tier 2.
        """
        found = self._call(
            "GET",
            "/v1/trust/libraries",
        )
        return cast("Libraries", found)

    def add_driver_library(
        self,
        body: LibraryAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Library:
        """Vouch for a driver library."""
        found = self._call(
            "POST",
            "/v1/trust/libraries",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Library", found)

    def remove_driver_library(
        self,
        body: LibraryAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Library:
        """Vouch for a driver library no longer."""
        found = self._call(
            "POST",
            "/v1/trust/libraries/forget",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Library", found)

    def list_events(
        self,
        *,
        party: str | None = None,
        type_: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        from_position: int | None = None,
        to_position: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> EventPage:
        """Facts in order: of a party, of a type, recorded in [from, to), at positions in."""
        found = self._call(
            "GET",
            "/v1/audit/events",
            query={
                "party": party,
                "type": type_,
                "from": from_,
                "to": to,
                "from_position": from_position,
                "to_position": to_position,
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("EventPage", found)

    def read_event(
        self,
        position: int,
    ) -> Event:
        """The fact at a position."""
        found = self._call(
            "GET",
            _at("/v1/audit/events/{position}", position=position),
        )
        return cast("Event", found)

    def read_checkpoint(
        self,
    ) -> str:
        """The last signed head of the log: a C2SP signed note over origin, size and root."""
        found = self._call(
            "GET",
            "/v1/audit/log/checkpoint",
        )
        return cast("str", found)

    def read_log_key(
        self,
    ) -> LogKey:
        """The public key that signs the log's heads."""
        found = self._call(
            "GET",
            "/v1/audit/log/key",
        )
        return cast("LogKey", found)

    def read_proof(
        self,
        position: int,
    ) -> str:
        """The proof of one fact under the last signed head, as a `.tlog-proof` file."""
        found = self._call(
            "GET",
            _at("/v1/audit/proofs/{position}", position=position),
        )
        return cast("str", found)

    def read_usage_proof(
        self,
        lane: int,
        usage_position: int,
    ) -> str:
        """The proof of one usage report under the first pin that covers it."""
        found = self._call(
            "GET",
            _at(
                "/v1/audit/proofs/usage/{lane}/{usage_position}",
                lane=lane,
                usage_position=usage_position,
            ),
        )
        return cast("str", found)

    def read_funding(
        self,
        account_id: str,
    ) -> Funding:
        """What an account may spend now, in spend order."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/funding", account_id=account_id),
        )
        return cast("Funding", found)

    def fund_account(
        self,
        account_id: str,
        body: NewFundedAccount,
        *,
        idempotency_key: str | None = None,
    ) -> FundedAccount:
        """Pay for another account from now on, as far as a monthly cap goes."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/funded-accounts", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("FundedAccount", found)

    def list_funded_accounts(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FundedAccountPage:
        """Whom an account pays for, and paid for."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/funded-accounts", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("FundedAccountPage", found)

    def stop_funding(
        self,
        account_id: str,
        funded_account_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> FundedAccount:
        """Stop paying for another account, or being paid for. Leases that hold money keep
        it.
        """
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/funded-accounts/{funded_account_id}/end",
                account_id=account_id,
                funded_account_id=funded_account_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("FundedAccount", found)

    def set_budget(
        self,
        account_id: str,
        body: NewBudget,
        *,
        idempotency_key: str | None = None,
    ) -> Budget:
        """Cap what goes into escrow in a calendar month (UTC), for a project or a key."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/budgets", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Budget", found)

    def list_budgets(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> BudgetPage:
        """The caps of an account, and how far each is used this month."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/budgets", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("BudgetPage", found)

    def propose_grant(
        self,
        body: NewGrant,
        *,
        idempotency_key: str | None = None,
    ) -> Grant:
        """Propose a grant; a second person opens it by accepting."""
        found = self._call(
            "POST",
            "/v1/grants",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Grant", found)

    def list_grants(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> GrantPage:
        """Grants in the order in which they were proposed."""
        found = self._call(
            "GET",
            "/v1/grants",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("GrantPage", found)

    def propose_milestone(
        self,
        grant_id: str,
        body: MilestoneDone,
        *,
        idempotency_key: str | None = None,
    ) -> Grant:
        """Say that a milestone is done; a second person unlocks it by accepting."""
        found = self._call(
            "POST",
            _at("/v1/grants/{grant_id}/milestones", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Grant", found)

    def propose_clawback(
        self,
        grant_id: str,
        body: NewClawback,
        *,
        idempotency_key: str | None = None,
    ) -> Grant:
        """Propose to take back what is not earned; what is unlocked stays."""
        found = self._call(
            "POST",
            _at("/v1/grants/{grant_id}/clawback", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Grant", found)

    def accept_grant(
        self,
        grant_id: str,
        body: Acceptance,
        *,
        idempotency_key: str | None = None,
    ) -> Grant:
        """Accept what another member of the governance has proposed."""
        found = self._call(
            "POST",
            _at("/v1/grants/{grant_id}/accept", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Grant", found)

    def read_grant(
        self,
        grant_id: str,
    ) -> Grant:
        """One grant: what is locked, unlocked and without a milestone."""
        found = self._call(
            "GET",
            _at("/v1/grants/{grant_id}", grant_id=grant_id),
        )
        return cast("Grant", found)

    def propose_slash(
        self,
        epoch: int,
        body: NewSlash,
        *,
        idempotency_key: str | None = None,
    ) -> Correction:
        """Propose to take what has not matured of a reward; a second person accepts it."""
        found = self._call(
            "POST",
            _at("/v1/epochs/{epoch}/slashes", epoch=epoch),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Correction", found)

    def propose_reward_adjustment(
        self,
        epoch: int,
        body: NewAdjustment,
        *,
        idempotency_key: str | None = None,
    ) -> Correction:
        """Propose to give or to take for a sealed epoch, in the open one; a second person
        accepts.
        """
        found = self._call(
            "POST",
            _at("/v1/epochs/{epoch}/adjustments", epoch=epoch),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Correction", found)

    def accept_reward_correction(
        self,
        correction_id: str,
        body: NoFields,
        *,
        idempotency_key: str | None = None,
    ) -> Correction:
        """Accept what another member of the governance has proposed: now it moves."""
        found = self._call(
            "POST",
            _at("/v1/reward-corrections/{correction_id}/accept", correction_id=correction_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Correction", found)

    def list_reward_corrections(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CorrectionPage:
        """Slashes and adjustments in the order in which they were proposed."""
        found = self._call(
            "GET",
            "/v1/reward-corrections",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("CorrectionPage", found)

    def read_reward_correction(
        self,
        correction_id: str,
    ) -> Correction:
        """One correction, and what came of it."""
        found = self._call(
            "GET",
            _at("/v1/reward-corrections/{correction_id}", correction_id=correction_id),
        )
        return cast("Correction", found)

    def list_breakers(
        self,
    ) -> Breakers:
        """What may be minted, promised and paid out in a while, and what waits for it."""
        found = self._call(
            "GET",
            "/v1/breakers",
        )
        return cast("Breakers", found)

    def set_breaker(
        self,
        breaker: Literal["mint", "payout", "cash_out"],
        body: NewLimit,
        *,
        idempotency_key: str | None = None,
    ) -> Breaker:
        """Set a limit, or take it away: the one way round a breaker, with a reason for
        ever.
        """
        found = self._call(
            "POST",
            _at("/v1/breakers/{breaker}/limit", breaker=breaker),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Breaker", found)

    def open_promotion(
        self,
        body: NewPromotion,
        *,
        idempotency_key: str | None = None,
    ) -> Promotion:
        """Open a program with a fund from your own cash."""
        found = self._call(
            "POST",
            "/v1/promotions",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Promotion", found)

    def list_promotions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PromotionPage:
        """Programs in order of opening."""
        found = self._call(
            "GET",
            "/v1/promotions",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("PromotionPage", found)

    def read_promotion(
        self,
        program: str,
    ) -> Promotion:
        """Read a program."""
        found = self._call(
            "GET",
            _at("/v1/promotions/{program}", program=program),
        )
        return cast("Promotion", found)

    def close_promotion(
        self,
        program: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> PromotionClosed:
        """End a program: what was not granted goes back to the sponsor's cash. Grants live
        on.
        """
        found = self._call(
            "POST",
            _at("/v1/promotions/{program}/close", program=program),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PromotionClosed", found)

    def grant_promotion(
        self,
        program: str,
        body: NewPromotionGrant,
        *,
        idempotency_key: str | None = None,
    ) -> PromotionGrant:
        """Give an account credits of a program."""
        found = self._call(
            "POST",
            _at("/v1/promotions/{program}/grants", program=program),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PromotionGrant", found)

    def list_promotion_grants(
        self,
        program: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PromotionGrantPage:
        """What a program has granted, account by account."""
        found = self._call(
            "GET",
            _at("/v1/promotions/{program}/grants", program=program),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("PromotionGrantPage", found)

    def list_usage_summary(
        self,
        *,
        by: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        client_id: str | None = None,
        project_id: str | None = None,
        end_user_ref: str | None = None,
        model: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UsedPage:
        """What your leases used: hours that begin in [from, to), at most 366 days."""
        found = self._call(
            "GET",
            "/v1/usage/summary",
            query={
                "by": by,
                "from": from_,
                "to": to,
                "client_id": client_id,
                "project_id": project_id,
                "end_user_ref": end_user_ref,
                "model": model,
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("UsedPage", found)

    def list_utilisation(
        self,
        *,
        by: str | None = None,
        pool_id: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UtilisationPage:
        """Where the accelerators' time went: leased, idle, stranded, unavailable."""
        found = self._call(
            "GET",
            "/v1/utilisation",
            query={
                "by": by,
                "pool_id": pool_id,
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("UtilisationPage", found)

    def list_fragmentation(
        self,
        *,
        by: str | None = None,
        pool_id: str | None = None,
    ) -> Fragmentations:
        """What is free now, and whether it can be sold as whole devices."""
        found = self._call(
            "GET",
            "/v1/fragmentation",
            query={"by": by, "pool_id": pool_id},
        )
        return cast("Fragmentations", found)

    def read_forecast(
        self,
        account_id: str,
    ) -> Forecast:
        """The second when funds end: of each running lease, and of the balance behind them."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/forecast", account_id=account_id),
        )
        return cast("Forecast", found)

    def read_maturity(
        self,
        account_id: str,
    ) -> Maturity:
        """What an account has earned: held back, payable, earned, and what matures when."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/maturity", account_id=account_id),
        )
        return cast("Maturity", found)

    def read_payment_mode(
        self,
        account_id: str,
    ) -> PaymentMode:
        """How an account is paid."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/payment-mode", account_id=account_id),
        )
        return cast("PaymentMode", found)

    def set_payment_mode(
        self,
        account_id: str,
        body: NewPaymentMode,
        *,
        idempotency_key: str | None = None,
    ) -> PaymentMode:
        """Say how an account is paid; a changed destination is paid after 72 hours."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/payment-mode", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("PaymentMode", found)

    def remove_dust(
        self,
        account_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Forgone:
        """Give up earned credits of less than a cent, so that the account can be closed."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/forgo-dust", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Forgone", found)

    def list_account_cash_outs(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CashOutPage:
        """The cash-outs of an account, oldest first."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/cash-outs", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("CashOutPage", found)

    def submit_cash_out(
        self,
        account_id: str,
        body: NewCashOut,
        *,
        idempotency_key: str | None = None,
    ) -> CashOutState:
        """Ask for earned credits in cash, to the destination of the payment mode."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/cash-outs", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("CashOutState", found)

    def list_cash_outs(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CashOutPage:
        """Everybody's cash-outs, oldest first."""
        found = self._call(
            "GET",
            "/v1/cash-outs",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("CashOutPage", found)

    def read_cash_out(
        self,
        account_id: str,
        cash_out_id: str,
    ) -> CashOut:
        """One cash-out."""
        found = self._call(
            "GET",
            _at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
        )
        return cast("CashOut", found)

    def cancel_cash_out(
        self,
        account_id: str,
        cash_out_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> CashOutState:
        """Take a request back before the processor was asked."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/cancel",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("CashOutState", found)

    def confirm_cash_out(
        self,
        account_id: str,
        cash_out_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> CashOutState:
        """Say that a bank transfer was made."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/paid",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("CashOutState", found)

    def report_cash_out_failed(
        self,
        account_id: str,
        cash_out_id: str,
        body: WhyFailed,
        *,
        idempotency_key: str | None = None,
    ) -> CashOutState:
        """Say that a transfer will not be made; the credits come back."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/failed",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("CashOutState", found)

    def add_cash_out_hold(
        self,
        account_id: str,
        body: NewHold,
        *,
        idempotency_key: str | None = None,
    ) -> Holds:
        """Hold all cash-outs of an account: none is requested or sent until it is released."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/cash-outs/hold", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Holds", found)

    def remove_cash_out_hold(
        self,
        account_id: str,
        body: Release,
        *,
        idempotency_key: str | None = None,
    ) -> Holds:
        """Release a hold; others stay."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/cash-outs/release", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Holds", found)

    def list_payout_differences(
        self,
        *,
        open: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DifferencePage:
        """What the processor's list and our cash-outs do not agree on."""
        found = self._call(
            "GET",
            "/v1/cash-outs/differences",
            query={"open": open, "limit": limit, "cursor": cursor},
        )
        return cast("DifferencePage", found)

    def close_payout_difference(
        self,
        difference_id: str,
        body: DifferenceNote,
        *,
        idempotency_key: str | None = None,
    ) -> DifferenceSettled:
        """Explain a difference, so that it alarms no more."""
        found = self._call(
            "POST",
            _at("/v1/cash-outs/differences/{difference_id}/settle", difference_id=difference_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("DifferenceSettled", found)

    def read_cash_out_terms(
        self,
    ) -> MoneyOutTerms:
        """The dispute window, past and announced, and the smallest cash-out."""
        found = self._call(
            "GET",
            "/v1/cash-outs/terms",
        )
        return cast("MoneyOutTerms", found)

    def publish_maturity_window(
        self,
        body: NewWindow,
        *,
        idempotency_key: str | None = None,
    ) -> MoneyOutTerms:
        """Set how long earnings wait for disputes; the first version may begin in the past."""
        found = self._call(
            "POST",
            "/v1/cash-outs/terms/window",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("MoneyOutTerms", found)

    def publish_cash_out_minimum(
        self,
        body: NewMinimum,
        *,
        idempotency_key: str | None = None,
    ) -> MoneyOutTerms:
        """Set the smallest cash-out, in whole cents."""
        found = self._call(
            "POST",
            "/v1/cash-outs/terms/minimum",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("MoneyOutTerms", found)

    def add_signing_key(
        self,
        account_id: str,
        body: NewSigningKey,
        *,
        idempotency_key: str | None = None,
    ) -> SigningKey:
        """Let a key countersign the usage of your leases."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/signing-keys", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("SigningKey", found)

    def list_signing_keys(
        self,
        account_id: str,
    ) -> SigningKeys:
        """Every key that could sign for an account, oldest first."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/signing-keys", account_id=account_id),
        )
        return cast("SigningKeys", found)

    def revoke_signing_key(
        self,
        account_id: str,
        key_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> SigningKey:
        """Let a key sign no more; what it has signed stays signed."""
        found = self._call(
            "POST",
            _at(
                "/v1/accounts/{account_id}/signing-keys/{key_id}/revoke",
                account_id=account_id,
                key_id=key_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("SigningKey", found)

    def countersign_usage(
        self,
        lease_id: str,
        body: Countersignature,
        *,
        idempotency_key: str | None = None,
    ) -> Countersigned:
        """Sign for the usage of a lease of yours: so much, in all, up to a moment."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/countersign", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Countersigned", found)

    def read_stick(
        self,
        lease_id: str,
    ) -> Stick:
        """Both halves of a lease's usage: what the node reported and what the renter signed
        for.
        """
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/stick", lease_id=lease_id),
        )
        return cast("Stick", found)

    def create_payment(
        self,
        account_id: str,
        body: NewPayment,
        *,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Start a payment: the answer says where or how to pay."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/payments", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Payment", found)

    def list_payments(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> PaymentPage:
        """Payments of an account, in order of starting."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/payments", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("PaymentPage", found)

    def read_payment(
        self,
        payment_id: str,
    ) -> Payment:
        """Read a payment and what went back of it."""
        found = self._call(
            "GET",
            _at("/v1/payments/{payment_id}", payment_id=payment_id),
        )
        return cast("Payment", found)

    def confirm_payment(
        self,
        payment_id: str,
        body: BankConfirmation,
        *,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Confirm that a bank transfer arrived: its credits are cash at once."""
        found = self._call(
            "POST",
            _at("/v1/payments/{payment_id}/confirm", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Payment", found)

    def create_reversal(
        self,
        payment_id: str,
        body: BankReversal,
        *,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Record that the payer's bank took a transfer back: what leases hold of it goes,
        what was.
        """
        found = self._call(
            "POST",
            _at("/v1/payments/{payment_id}/reversals", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Payment", found)

    def create_refund(
        self,
        payment_id: str,
        body: NewRefund,
        *,
        idempotency_key: str | None = None,
    ) -> Refund:
        """Give unspent money back the way it came: it leaves the balance at once."""
        found = self._call(
            "POST",
            _at("/v1/payments/{payment_id}/refunds", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Refund", found)

    def confirm_refund(
        self,
        payment_id: str,
        refund_id: str,
        body: RefundConfirmation,
        *,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Confirm that the bank transfer of a refund was made."""
        found = self._call(
            "POST",
            _at(
                "/v1/payments/{payment_id}/refunds/{refund_id}/confirm",
                payment_id=payment_id,
                refund_id=refund_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Payment", found)

    def ingest_payment_event(
        self,
        processor: str,
        body: ProcessorEvent,
    ) -> PaymentEvent:
        """What a payment processor tells, signed by it. Told again, nothing happens."""
        found = self._call(
            "POST",
            _at("/v1/payments/events/{processor}", processor=processor),
            body=body,
        )
        return cast("PaymentEvent", found)

    def read_funds(
        self,
        account_id: str,
    ) -> Funds:
        """Warnings and auto top-up of an account, and how they stand."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/funds", account_id=account_id),
        )
        return cast("Funds", found)

    def set_balance_warnings(
        self,
        account_id: str,
        body: WarningsAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Funds:
        """Be warned when less than these is spendable."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/funds/warnings", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Funds", found)

    def set_auto_top_up(
        self,
        account_id: str,
        body: AutoTopUpAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Funds:
        """Pay by itself, with the card an earlier payment saved."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/funds/auto-top-up", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Funds", found)

    def delete_auto_top_up(
        self,
        account_id: str,
    ) -> Funds:
        """No more payments by itself. Twice is once."""
        found = self._call(
            "DELETE",
            _at("/v1/accounts/{account_id}/funds/auto-top-up", account_id=account_id),
        )
        return cast("Funds", found)

    def read_payment_terms(
        self,
    ) -> Terms:
        """The terms on which money is taken now."""
        found = self._call(
            "GET",
            "/v1/payment-terms",
        )
        return cast("Terms", found)

    def publish_payment_terms(
        self,
        body: TermsAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Terms:
        """Publish the next terms."""
        found = self._call(
            "POST",
            "/v1/payment-terms",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Terms", found)

    def create_write_off(
        self,
        account_id: str,
        body: WriteOffAsked,
        *,
        idempotency_key: str | None = None,
    ) -> WriteOff:
        """Let the chargeback reserve pay what an account owes and never will."""
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/write-offs", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("WriteOff", found)

    def add_reserve(
        self,
        body: ReserveAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Reserve:
        """Set take revenue aside for chargebacks."""
        found = self._call(
            "POST",
            "/v1/chargeback-reserve",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Reserve", found)

    def add_edge_device(
        self,
        body: NewEdgeDevice,
        *,
        idempotency_key: str | None = None,
    ) -> EdgeDevice:
        """Configure an edge device in a region of yours."""
        found = self._call(
            "POST",
            "/v1/edge-devices",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("EdgeDevice", found)

    def list_edge_devices(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> EdgeDevicePage:
        """Edge devices in the order in which they were added, removed ones too."""
        found = self._call(
            "GET",
            "/v1/edge-devices",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("EdgeDevicePage", found)

    def remove_edge_device(
        self,
        edge_device_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> EdgeDeviceRemoved:
        """Remove an edge device: it is charged for today and no longer."""
        found = self._call(
            "POST",
            _at("/v1/edge-devices/{edge_device_id}/remove", edge_device_id=edge_device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("EdgeDeviceRemoved", found)

    def list_device_fees(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DeviceFeePage:
        """The fee for edge devices, day by day."""
        found = self._call(
            "GET",
            "/v1/device-fees",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("DeviceFeePage", found)

    def provision_storage_node(
        self,
        region_id: str,
        body: NewStorageNode,
        *,
        idempotency_key: str | None = None,
    ) -> StorageNodeState:
        """Ask for the storage node of a region of yours; it costs by the hour from now on."""
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/storage-node", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("StorageNodeState", found)

    def read_storage_node(
        self,
        region_id: str,
    ) -> StorageNodes:
        """The storage nodes of a region and what they have cost."""
        found = self._call(
            "GET",
            _at("/v1/regions/{region_id}/storage-node", region_id=region_id),
        )
        return cast("StorageNodes", found)

    def confirm_storage_node(
        self,
        region_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> StorageNodeState:
        """Say that the storage node serves: nodes of a cloud region may join from now on."""
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/storage-node/ready", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("StorageNodeState", found)

    def remove_storage_node(
        self,
        region_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> StorageNodeState:
        """Remove the storage node; the time up to now is charged."""
        found = self._call(
            "POST",
            _at("/v1/regions/{region_id}/storage-node/remove", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("StorageNodeState", found)

    def report_usage_events(
        self,
        body: list[MeterEvent],
    ) -> Sent:
        """Usage of CPU, memory, storage and network: CloudEvents 1.0, one or a batch of
        1,000.
        """
        found = self._call(
            "POST",
            "/v1/usage/events",
            body=body,
            media_type="application/cloudevents-batch+json",
        )
        return cast("Sent", found)

    def list_usage_events(
        self,
        *,
        lease_id: str | None = None,
        meter: Literal["cpu", "memory", "storage", "network"] | None = None,
        route: str | None = None,
        dataset: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MeteredEventPage:
        """The events you sent; with a lease of yours, all events of that lease."""
        found = self._call(
            "GET",
            "/v1/usage/events",
            query={
                "lease_id": lease_id,
                "meter": meter,
                "route": route,
                "dataset": dataset,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("MeteredEventPage", found)

    def list_unmatched_usage(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> MeteredEventPage:
        """Events of yours that count for nothing yet, or never will, each with its reason."""
        found = self._call(
            "GET",
            "/v1/usage/unmatched",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("MeteredEventPage", found)

    def list_lease_resources(
        self,
        lease_id: str,
    ) -> Resources:
        """What each meter of a lease counts and costs."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/resources", lease_id=lease_id),
        )
        return cast("Resources", found)

    def list_resource_charges(
        self,
        lease_id: str,
        meter: Literal["cpu", "memory", "storage", "network"],
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ResourceChargePage:
        """The facts of one meter of a lease: what each counted, charged and commits to."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/resources/{meter}", lease_id=lease_id, meter=meter),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("ResourceChargePage", found)

    def list_lease_transfers(
        self,
        lease_id: str,
    ) -> Transfers:
        """Bytes of a lease that counted, by network route and dataset; the 1,000 largest."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/transfers", lease_id=lease_id),
        )
        return cast("Transfers", found)

    def release_storage(
        self,
        lease_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> StorageReleased:
        """Give up what a closed lease has stored: its storage is billed until now."""
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/storage/release", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("StorageReleased", found)

    def restart_job(
        self,
        job_id: str,
        body: Restart,
        *,
        idempotency_key: str | None = None,
    ) -> Restarted:
        """Go on with a job whose last lease ended with its funds: a new lease, matched
        anew.
        """
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/restart", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Restarted", found)

    def add_webhook(
        self,
        body: NewWebhook,
        *,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Tell an HTTPS endpoint of everything that is recorded about your account from now
        on.
        """
        found = self._call(
            "POST",
            "/v1/webhooks",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Webhook", found)

    def list_webhooks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> WebhookPage:
        """Your endpoints, in the order in which they were added."""
        found = self._call(
            "GET",
            "/v1/webhooks",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("WebhookPage", found)

    def rotate_webhook(
        self,
        endpoint_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """A new secret; the old one signs beside it for 24 hours."""
        found = self._call(
            "POST",
            _at("/v1/webhooks/{endpoint_id}/rotate", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Webhook", found)

    def stop_webhook(
        self,
        endpoint_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Tell an endpoint nothing more until it is started again."""
        found = self._call(
            "POST",
            _at("/v1/webhooks/{endpoint_id}/stop", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Webhook", found)

    def start_webhook(
        self,
        endpoint_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Go on telling an endpoint, from where it was stopped."""
        found = self._call(
            "POST",
            _at("/v1/webhooks/{endpoint_id}/start", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Webhook", found)

    def test_webhook(
        self,
        endpoint_id: str,
        body: Nothing,
    ) -> Tested:
        """Send an event of type `webhook.test` now, and tell what came of it."""
        found = self._call(
            "POST",
            _at("/v1/webhooks/{endpoint_id}/test", endpoint_id=endpoint_id),
            body=body,
        )
        return cast("Tested", found)

    def replay_webhook(
        self,
        endpoint_id: str,
        body: Replay,
    ) -> Replayed:
        """Tell an endpoint again what it was told before, or what was given up."""
        found = self._call(
            "POST",
            _at("/v1/webhooks/{endpoint_id}/replay", endpoint_id=endpoint_id),
            body=body,
        )
        return cast("Replayed", found)

    def list_deliveries(
        self,
        endpoint_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> DeliveryPage:
        """How the telling of each fact went, in order."""
        found = self._call(
            "GET",
            _at("/v1/webhooks/{endpoint_id}/deliveries", endpoint_id=endpoint_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("DeliveryPage", found)

    def issue_executor_key(
        self,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> ExecutorKey:
        """A key for the program that runs the work of a node's leases; it can do nothing
        else.
        """
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/executor-key", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ExecutorKey", found)

    def revoke_executor_key(
        self,
        node_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> ExecutorKey:
        """Let no executor act for the node until it gets another key."""
        found = self._call(
            "POST",
            _at("/v1/nodes/{node_id}/executor-key/revoke", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ExecutorKey", found)

    def acknowledge_command(
        self,
        node_id: str,
        lease_id: str,
        body: Acknowledgement,
        *,
        idempotency_key: str | None = None,
    ) -> WorkState:
        """The executor will start the work, or has stopped it: nothing of it runs any more."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/acknowledge",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("WorkState", found)

    def end_work(
        self,
        node_id: str,
        lease_id: str,
        body: WorkEnd,
        *,
        idempotency_key: str | None = None,
    ) -> WorkState:
        """The work ended by itself, or was lost: the lease ends with it, and so does its
        bill. Only.
        """
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/ended",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("WorkState", found)

    def decline_work(
        self,
        node_id: str,
        lease_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> WorkState:
        """The node cannot or may not run this work: the lease ends uncharged, close code
        10006.
        """
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/decline",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("WorkState", found)

    def ingest_lease_log(
        self,
        node_id: str,
        lease_id: str,
        body: NewLogPieces,
    ) -> LogHead:
        """Pieces of what the work printed. Sent twice is kept once."""
        found = self._call(
            "POST",
            _at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/log", node_id=node_id, lease_id=lease_id
            ),
            body=body,
        )
        return cast("LogHead", found)

    def read_lease_log(
        self,
        lease_id: str,
        *,
        from_seq: int | None = None,
    ) -> Log:
        """What the work of a lease printed, for its renter and its provider. Kept for a
        week.
        """
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/log", lease_id=lease_id),
            query={"from_seq": from_seq},
        )
        return cast("Log", found)

    def read_lease_work(
        self,
        lease_id: str,
    ) -> LeaseWork:
        """Whether the work of a lease was taken up, how it ended, and how it is reached."""
        found = self._call(
            "GET",
            _at("/v1/leases/{lease_id}/work", lease_id=lease_id),
        )
        return cast("LeaseWork", found)

    def register_client(
        self,
        body: NewClient,
        *,
        idempotency_key: str | None = None,
    ) -> ComputeClient:
        """Let an account bring jobs as a compute client. Twice is once."""
        found = self._call(
            "POST",
            "/v1/clients",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ComputeClient", found)

    def list_clients(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ComputeClientPage:
        """Compute clients in order of registration: yourself, or all for operators and
        auditors.
        """
        found = self._call(
            "GET",
            "/v1/clients",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("ComputeClientPage", found)

    def read_client(
        self,
        client_id: str,
    ) -> ComputeClient:
        """A client with the keys of its instances and its quotas."""
        found = self._call(
            "GET",
            _at("/v1/clients/{client_id}", client_id=client_id),
        )
        return cast("ComputeClient", found)

    def add_client_key(
        self,
        client_id: str,
        instance_id: str,
        body: NewClientKey,
        *,
        idempotency_key: str | None = None,
    ) -> ClientKey:
        """Issue a key for an instance of a client, shown once."""
        found = self._call(
            "POST",
            _at(
                "/v1/clients/{client_id}/instances/{instance_id}/keys",
                client_id=client_id,
                instance_id=instance_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ClientKey", found)

    def revoke_client_key(
        self,
        client_id: str,
        key_id: str,
    ) -> ComputeClient:
        """Take back an instance's key at once. Twice is once."""
        found = self._call(
            "DELETE",
            _at("/v1/clients/{client_id}/keys/{key_id}", client_id=client_id, key_id=key_id),
        )
        return cast("ComputeClient", found)

    def set_client_policy(
        self,
        client_id: str,
        body: ClientPolicy,
        *,
        idempotency_key: str | None = None,
    ) -> ComputeClient:
        """Set the least reputation of the nodes that run the client's jobs."""
        found = self._call(
            "POST",
            _at("/v1/clients/{client_id}/policy", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ComputeClient", found)

    def suspend_client(
        self,
        client_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> ComputeClient:
        """Nothing is submitted for it until it is resumed; what runs goes on."""
        found = self._call(
            "POST",
            _at("/v1/clients/{client_id}/suspend", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ComputeClient", found)

    def resume_client(
        self,
        client_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> ComputeClient:
        """The client may submit again."""
        found = self._call(
            "POST",
            _at("/v1/clients/{client_id}/resume", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ComputeClient", found)

    def set_client_quota(
        self,
        client_id: str,
        body: NewClientQuota,
        *,
        idempotency_key: str | None = None,
    ) -> ClientQuota:
        """How many GPUs the client holds at once, in one pool or everywhere; counted from
        now on.
        """
        found = self._call(
            "POST",
            _at("/v1/clients/{client_id}/quotas", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("ClientQuota", found)

    def create_group(
        self,
        body: NewGroup,
        *,
        idempotency_key: str | None = None,
    ) -> Group:
        """Make a group that shares a quota of GPUs."""
        found = self._call(
            "POST",
            "/v1/groups",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Group", found)

    def list_groups(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> GroupPage:
        """Groups in order of creation: your own, or all for operators and auditors."""
        found = self._call(
            "GET",
            "/v1/groups",
            query={"limit": limit, "cursor": cursor},
        )
        return cast("GroupPage", found)

    def read_group(
        self,
        group_id: str,
    ) -> Group:
        """A group, who is in it, and how much of its quota is in use."""
        found = self._call(
            "GET",
            _at("/v1/groups/{group_id}", group_id=group_id),
        )
        return cast("Group", found)

    def set_group_quota(
        self,
        group_id: str,
        body: GroupQuota,
        *,
        idempotency_key: str | None = None,
    ) -> Group:
        """Change how many GPUs a group holds at once."""
        found = self._call(
            "POST",
            _at("/v1/groups/{group_id}/quota", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Group", found)

    def add_group_member(
        self,
        group_id: str,
        body: NewGroupMember,
        *,
        idempotency_key: str | None = None,
    ) -> GroupMemberAdded:
        """What it leases from now on counts in the group."""
        found = self._call(
            "POST",
            _at("/v1/groups/{group_id}/members", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("GroupMemberAdded", found)

    def remove_group_member(
        self,
        group_id: str,
        body: NewGroupMember,
        *,
        idempotency_key: str | None = None,
    ) -> GroupMemberAdded:
        """What it leases from now on counts there no more; what runs goes on counting."""
        found = self._call(
            "POST",
            _at("/v1/groups/{group_id}/members/remove", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("GroupMemberAdded", found)

    def set_project_policy(
        self,
        account_id: str,
        body: ProjectPolicy,
        *,
        idempotency_key: str | None = None,
    ) -> Project:
        """Own the base, rent the burst, or do without: what a project does when a quota is
        full.
        """
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/projects", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Project", found)

    def list_project_policies(
        self,
        account_id: str,
    ) -> Projects:
        """What the projects of an account do when a quota is full."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/projects", account_id=account_id),
        )
        return cast("Projects", found)

    def set_counterparty(
        self,
        account_id: str,
        body: CounterpartyAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Counterparty:
        """Allow or deny another account, as renter, client or provider; leases that run go
        on.
        """
        found = self._call(
            "POST",
            _at("/v1/accounts/{account_id}/counterparties", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Counterparty", found)

    def list_counterparties(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> CounterpartyPage:
        """Whom an account allows and denies, in the order they were listed."""
        found = self._call(
            "GET",
            _at("/v1/accounts/{account_id}/counterparties", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("CounterpartyPage", found)

    def scale_job(
        self,
        job_id: str,
        body: Scale,
        *,
        idempotency_key: str | None = None,
    ) -> JobScaled:
        """Change how many members a job has: leases are closed now, or added as nodes are
        found.
        """
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/scale", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("JobScaled", found)

    def list_job_parts(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobPartPage:
        """The chunks or members of a job by number, each with its latest lease."""
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}/parts", job_id=job_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("JobPartPage", found)

    def read_job_cost(
        self,
        job_id: str,
    ) -> Cost:
        """What a job and everything that is part of it came to so far, each lease counted
        once.
        """
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}/cost", job_id=job_id),
        )
        return cast("Cost", found)

    def push_tasks(
        self,
        job_id: str,
        body: NewTasks,
        *,
        idempotency_key: str | None = None,
    ) -> Queue:
        """Add work to the queue of a job; an id that was ever there is not added again."""
        found = self._call(
            "POST",
            _at("/v1/jobs/{job_id}/tasks", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Queue", found)

    def read_task_queue(
        self,
        job_id: str,
    ) -> Queue:
        """How much work a queue holds."""
        found = self._call(
            "GET",
            _at("/v1/jobs/{job_id}/tasks", job_id=job_id),
        )
        return cast("Queue", found)

    def take_task(
        self,
        lease_id: str,
        body: TaskAsked,
        *,
        idempotency_key: str | None = None,
    ) -> Task:
        """The next task for a lease of a queue job, held for a while: its node or its
        renter asks.
        """
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/tasks/take", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("Task", found)

    def finish_task(
        self,
        lease_id: str,
        task_id: str,
        body: Nothing,
        *,
        idempotency_key: str | None = None,
    ) -> TaskDone:
        """A task is done; saying so twice, or from two leases that had it, is saying so
        once.
        """
        found = self._call(
            "POST",
            _at("/v1/leases/{lease_id}/tasks/{task_id}/done", lease_id=lease_id, task_id=task_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("TaskDone", found)

    def list_usage_breakdown(
        self,
        *,
        by: str | None = None,
        as_provider: bool | None = None,
        from_: str | None = None,
        to: str | None = None,
        kind: str | None = None,
        work: str | None = None,
        node_id: str | None = None,
        pool_id: str | None = None,
        client_id: str | None = None,
        project_id: str | None = None,
        end_user_ref: str | None = None,
        group_id: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> BreakdownPage:
        """What leases used, by kind of job, node, pool, client, project, end user or group."""
        found = self._call(
            "GET",
            "/v1/usage/breakdown",
            query={
                "by": by,
                "as_provider": as_provider,
                "from": from_,
                "to": to,
                "kind": kind,
                "work": work,
                "node_id": node_id,
                "pool_id": pool_id,
                "client_id": client_id,
                "project_id": project_id,
                "end_user_ref": end_user_ref,
                "group_id": group_id,
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("BreakdownPage", found)


def pages(first: Any, following: Any) -> Iterator[Any]:
    """Every item of a list: `pages(client.list_jobs(), lambda c: client.list_jobs(cursor=c))`."""
    page = first
    while True:
        yield from page["data"]
        if not page["has_more"]:
            return
        page = following(page["next_cursor"])
