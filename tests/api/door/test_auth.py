"""Who may call what: the matrix of operations and callers, and what makes a key good.

own -> let through      foreign, absent -> 404, alike      no key -> 401      wrong scope -> 403
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import APIRouter

from api.authority.votes import EXAMPLE
from api.door import auth, keys
from api.door.auth import EXECUTOR, KEY, NODE, PUBLIC, Access
from api.door.door import Door
from api.door.moments import moment
from api.door.operation import Operation
from api.governance import policy_rehearsal
from api.index import WAYS
from api.main import operations
from domain.parties.account import ROLES, SCOPES_OF, SCOPES_OF_ROLE
from tests.scenes.governors import enrol_once, signed_by_two
from tests.scenes.holdings import (
    DESCRIBED,
    added_edge_device,
    added_of_team,
    admission,
    dataset,
    datastore,
    deployed_edge_device,
    device_config,
    edge_device,
    reservation,
    used_volume,
    volume,
)
from tests.scenes.server import CLOUD_ACCOUNT, Caller, Scene

ABSENT = "f" * 32
PASSED = {200, 201, 402, 409, 412, 422}
"""Through the door and past the question whose it is; what the rules say then is not asked here."""

BY_NAME = {operation.name: operation for operation in operations()}
ROOM_OF = {name: room for room, found in WAYS.items() for name in found}
_numbers = itertools.count(1)


def by_room(names: Iterable[str]) -> pytest.MarkDecorator:
    """A test for the operations of each room among these: one for each operation is thousands."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(ROOM_OF[name], []).append(name)
    return pytest.mark.parametrize("names", found.values(), ids=list(found))


@dataclass(frozen=True)
class Row:
    """Whose an object is, who stands for everybody else, and what is sent."""

    own: str
    foreign: str | None = None  # None: nothing in the path belongs to anybody
    body: Callable[[Scene], dict[str, Any]] | None = None
    query: str = ""


def _nothing(_scene: Scene) -> dict[str, Any]:
    return {}


_LIBRARY = {"driver": "580.95.05", "sha256": "5e" * 32}
RENTERS = Row("renter", "stranger")
OWNERS = Row("owner", "rival")
OWNERS_ACCOUNT = RENTERS
"""Of the account in the path, which is the renter's: everybody may earn."""
ROWS: dict[str, Row] = {
    "create_account": Row("operator", body=lambda _s: {"kind": "party"}),
    "invite_account": Row("operator", body=lambda _s: {"kind": "party"}),
    "sign_up": Row("anybody", None, lambda _s: {"nonce": "0" * 22}),
    "verify_account": Row("operator", None, _nothing),
    "list_accounts": Row("renter"),
    "read_account": RENTERS,
    "close_account": Row("renter", "stranger", _nothing),
    "list_members": RENTERS,
    "change_member_role": Row("renter", "stranger", lambda _s: {"role": "viewer"}),
    "invite_member": Row(
        "renter", "stranger", lambda _s: {"role": "viewer", "scopes": ["account"]}
    ),
    "list_invitations": RENTERS,
    "withdraw_invitation": Row("renter", "stranger", _nothing),
    "redeem_invitation": Row("anybody", None, lambda _s: {"code": "ts_invite_" + "0" * 43}),
    "remove_member": Row("renter", "stranger", _nothing),
    "list_api_keys": RENTERS,
    "create_api_key": Row("renter", "stranger", lambda _s: {"scopes": ["billing:read"]}),
    "rotate_api_key": Row("renter", "stranger", _nothing),
    "delete_api_key": RENTERS,
    "create_wallet_challenge": Row("renter", "stranger", lambda _s: {"address": "0x" + "1" * 40}),
    "link_wallet": Row(
        "renter", "stranger", lambda _s: {"nonce": "0" * 22, "signature": "0x" + "00" * 65}
    ),
    "list_wallets": RENTERS,
    "create_deposit": Row("operator", None, lambda _s: _deposit()),
    "list_deposits": RENTERS,
    "register_provider": Row(
        "owner", body=lambda _s: {"kind": "physical", "payment_mode": "credits"}
    ),
    "list_providers": Row("owner"),
    "read_provider": OWNERS,
    "open_region": Row("owner", None, lambda s: _region(s, s.provider.provider_id)),
    "list_regions": Row("owner"),
    "read_region": OWNERS,
    "set_region_hardware": Row("operator", body=lambda _s: {"rules": ["ram"]}),
    "set_region_policy": Row("owner", "rival", lambda _s: {"allow_public_jobs": True}),
    "list_region_nodes": OWNERS,
    "set_region_growth": Row("owner", "rival", lambda _s: {"workers_min": 2}),
    "set_region_phase": Row("owner", "rival", lambda _s: {"phase": "draining"}),
    "read_region_growth": OWNERS,
    "set_region_place": Row("owner", "rival", lambda _s: _berlin()),
    "read_region_place": OWNERS,
    "create_check_in": Row("owner", body=lambda _s: {"state": "DE-BE"}),
    "grant_region_admin": Row("owner", "rival", lambda s: {"account_id": s.stranger.account_id}),
    "revoke_region_admin": Row("owner", "rival", _nothing),
    "list_region_admins": OWNERS,
    "set_wait_list_terms": Row("owner", "rival", lambda _s: {"threshold": 3}),
    "withdraw_from_wait_list": Row("owner", body=_nothing),
    "list_wait_lists": Row("owner"),
    "read_node_targets": Row("node", "other_node"),
    "report_latency": Row("node", "other_node", lambda _s: _ways()),
    "read_latency": Row("renter"),
    "report_ingress_bytes": Row("node", "other_node", lambda _s: _through()),
    "list_ingress_bytes": OWNERS,
    "report_neighbours": Row("node", "other_node", lambda _s: _nobody_near()),
    "read_neighbours": OWNERS,
    "read_region_neighbours": OWNERS,
    "read_where_next": Row("owner"),
    "read_region_map": Row("owner"),
    "set_plan": Row("operator", body=lambda _s: {"plan": "team"}),
    "read_plan": RENTERS,
    "add_datastore": Row("owner", "rival", lambda _s: datastore()),
    "list_datastores": Row("owner"),
    "remove_datastore": Row("owner", "rival", _nothing),
    "add_reservation": Row("owner", "rival", lambda _s: reservation()),
    "list_reservations": Row("owner"),
    "remove_reservation": Row("owner", "rival", _nothing),
    "report_cloud_account": Row("owner", "rival", lambda _s: CLOUD_ACCOUNT),
    "read_cloud_account": OWNERS,
    "list_cloud_regions": Row("anybody"),
    "set_capacity_class": Row("owner", "rival", lambda _s: {"capacity_class": "on_demand"}),
    "report_cloud_quotas": Row("owner", "rival", lambda _s: _cloud_quotas()),
    "read_cloud_quotas": OWNERS,
    "set_region_terms": Row("owner", "rival", lambda _s: _region_terms()),
    "read_region_terms": Row("owner"),
    "list_region_days": OWNERS,
    "list_region_shares": OWNERS,
    "create_join_code": Row("owner", None, lambda s: {"region_id": s.provider.region_id}),
    "join_node": Row("anybody", None, lambda s: s.provider.joining("ZZZZZZZZ", "x")),
    "confirm_node": Row("owner", "rival", lambda s: {"key_id": s.provider.signing.key_id}),
    "rotate_node_key": Row("anybody", None, lambda _s: _rotation()),
    "revoke_node_key": Row("owner", "rival", lambda _s: {"key_id": "0" * 16}),
    "admit_node": Row("operator", "rival", _nothing),
    "activate_node": Row("owner", "rival", _nothing),
    "start_maintenance": Row("owner", "rival", _nothing),
    "retire_node": Row("owner", "rival", _nothing),
    "report_specs": Row("node", "other_node", lambda s: _specs(s)),
    "schedule_maintenance": Row("owner", "rival", lambda _s: _maintenance()),
    "cancel_maintenance": Row("owner", "rival", _nothing),
    "list_maintenances": Row("renter"),
    "drain_node": Row("owner", "rival", _nothing),
    "set_node_role": Row("owner", "rival", lambda _s: {"role": "worker"}),
    "read_ingress_load": OWNERS,
    "list_provider_kinds": Row("anybody"),
    "register_provider_kind": Row("operator", None, lambda _s: _provider_kind()),
    "list_resource_kinds": Row("anybody"),
    "request_admission": Row("owner", None, lambda s: _admission(s)),
    "list_admissions": Row("owner"),
    "read_admission": OWNERS,
    "validate_admission": Row("operator", None, _nothing),
    "refuse_admission": Row("operator", None, lambda _s: {"why": "no"}),
    "ship_boot_drive": Row("operator", None, lambda _s: {"tracking": "1Z"}),
    "do_firmware_step": Row("owner", "rival", lambda _s: {"step": "csm_off"}),
    "install_machine": Row("owner", "rival", lambda _s: {"minion_id": "minion-1"}),
    "create_installed_code": Row("owner", "rival", _nothing),
    "stop_node": Row("owner", "rival", _nothing),
    "report_node_error": Row("node", "other_node", lambda _s: {"error": "Xid 79"}),
    "fail_node": Row("owner", "rival", lambda _s: {"error": "fan"}),
    "state_node_setup": Row("owner", "rival", lambda _s: {"upnp": True}),
    "set_idle_mining": Row("owner", "rival", lambda _s: {"enabled": False}),
    "read_node_condition": OWNERS,
    "register_resource_kind": Row("operator", None, lambda _s: _kind()),
    "register_model_class": Row("operator", None, lambda _s: _model_class()),
    "grant_licence": Row("owner", None, lambda s: _licence(s)),
    "list_licences": Row("owner"),
    "revoke_licence": Row("owner", "rival", _nothing),
    "add_attribute": Row("renter", None, lambda s: _statement(s)),
    "list_attributes": Row("anybody"),
    "revoke_attribute": Row("renter", "stranger", _nothing),
    "read_node_reputation": Row("anybody"),
    "read_provider_reputation": Row("anybody"),
    "list_node_evidence": Row("anybody"),
    "list_provider_evidence": Row("anybody"),
    "read_renter_reputation": RENTERS,
    "list_settings": Row("anybody"),
    "list_nodes": Row("owner"),
    "read_node": OWNERS,
    "list_assignments": Row("node", "other_node"),
    "start_lease": Row("node", "other_node", _nothing),
    "read_usage_head": Row("node", "other_node"),
    "ingest_usage": Row("anybody", None, _nothing),
    "read_node_trust": Row("node", "other_node"),
    "list_driver_libraries": Row("anybody"),
    "add_driver_library": Row("operator", body=lambda _s: _LIBRARY),
    "remove_driver_library": Row("operator", body=lambda _s: _LIBRARY),
    "create_attestation_nonce": Row("node", "other_node", _nothing),
    "create_attestation": Row(
        "node",
        "other_node",
        lambda _s: {"server_nonce": "0" * 64, "plugin": "none", "evidence": "AAAA"},
    ),
    "read_node_usage": Row("node", "other_node"),
    "list_node_hours": OWNERS,
    "read_node_matches": OWNERS,
    "list_devices": Row("owner"),
    "reshape_device": Row("owner", "rival", lambda _s: {"lease_ids": ["lease_" + "0" * 32]}),
    "read_device": OWNERS,
    "publish_offer": Row("owner", None, lambda s: _offer(s)),
    "search_offers": Row("anybody"),
    "read_offer": Row("anybody"),
    "withdraw_offer": Row("owner", "rival", _nothing),
    "submit_job": Row("renter", None, lambda s: s.job()),
    "list_jobs": Row("renter"),
    "read_job": RENTERS,
    "fund_escrow": Row("renter", "stranger", lambda _s: {"amount": _credits(1)}),
    "read_escrow": RENTERS,
    "withdraw_escrow": Row("renter", "stranger", _nothing),
    "cancel_job": Row("renter", "stranger", _nothing),
    "explain_job": RENTERS,
    "quote_job": Row("renter", None, lambda s: {"job": s.job()}),
    "open_lease": Row("renter", None, lambda s: {"job": s.job()}),
    "close_lease": Row("renter", "stranger", _nothing),
    "list_auctions": Row("owner"),
    "list_unmatched_requests": Row("renter"),
    "read_auction": Row("owner"),
    "submit_bid": Row("owner", None, lambda s: _bid(s)),
    "list_auction_bids": Row("renter"),
    "list_bids": Row("owner"),
    "withdraw_bid": Row("owner", "rival", _nothing),
    "accept_bid": Row("renter", "stranger", _nothing),
    "set_standing_bid": Row("renter", "stranger", lambda _s: {"bid": _credits(1)}),
    "read_standing_bid": RENTERS,
    "list_pricing_modules": Row("anybody"),
    "read_market_prices": Row("anybody"),
    "set_offer_prices": Row("owner", "rival", _nothing),
    "read_offer_prices": Row("anybody"),
    "list_leases": Row("renter"),
    "read_lease": RENTERS,
    "list_lease_usage": RENTERS,
    "list_lease_charges": RENTERS,
    "stream_lease_events": Row("renter"),
    "list_lease_steps": RENTERS,
    "pause_lease": Row("renter", "stranger", _nothing),
    "resume_lease": Row("renter", "stranger", _nothing),
    "extend_lease": Row("renter", "stranger", lambda _s: {"seconds": 60}),
    "reclaim_lease": Row("owner", "rival", _nothing),
    "cancel_reclaim": Row("owner", "rival", _nothing),
    "quote_lease": Row("renter", None, lambda s: {"job": s.job()}),
    "accept_quote": Row("renter", "stranger", lambda _s: {"quote_id": "quote_" + "0" * 32}),
    "list_utilisation": Row("renter"),
    "list_fragmentation": Row("renter"),
    "list_lease_history": RENTERS,
    "list_resource_use": Row("owner"),
    "list_resource_rows": RENTERS,
    "list_lease_resources": RENTERS,
    "list_resource_charges": RENTERS,
    "read_lease_transfers": RENTERS,
    "add_edge_device": Row("owner", None, lambda s: edge_device(s.provider.region_id)),
    "report_edge_device": Row("owner", "rival", _nothing),
    "remove_edge_device": Row("owner", "rival", _nothing),
    "list_edge_devices": Row("owner"),
    "set_device_config": Row("owner", "rival", lambda _s: device_config()),
    "list_device_configs": Row("owner"),
    "list_device_config_revisions": Row("owner", "rival"),
    "deploy_device_config": Row("owner", "rival", lambda _s: {"config": "counter"}),
    "report_inference": Row("owner", "rival", lambda _s: _inference()),
    "read_device_work": Row("owner", "rival", query="?boot_id=3f0c9a52"),
    "list_device_fees": Row("owner"),
    "create_volume": Row("renter", None, lambda s: volume(s)),
    "list_volumes": Row("renter"),
    "read_volume": RENTERS,
    "attach_volume": Row("renter", "stranger", lambda s: {**_a_job(s), "path": "/vol/a"}),
    "detach_volume": Row("renter", "stranger", lambda s: _a_job(s)),
    "delete_volume": Row("renter", "stranger", _nothing),
    "confirm_volume_erased": Row("executor", "other_executor", _nothing),
    "place_dataset": Row("renter", None, lambda s: dataset(s)),
    "list_datasets": Row("renter"),
    "remove_dataset": Row("renter", "stranger", _nothing),
    "provision_storage_node": Row("owner", "rival", lambda _s: {"storage_class": "pd-ssd"}),
    "confirm_storage_node": Row("owner", "rival", _nothing),
    "replace_storage_node": Row("owner", "rival", lambda _s: {"storage_class": "pd-ssd"}),
    "remove_storage_node": Row("owner", "rival", _nothing),
    "read_storage_node": OWNERS,
    "read_balances": RENTERS,
    "list_journal": RENTERS,
    "read_statement": RENTERS,
    "list_earnings": Row("owner"),
    "export_focus_csv": RENTERS,
    "export_focus_parquet": RENTERS,
    "export_journal": RENTERS,
    "export_lines_csv": RENTERS,
    "export_lines_json": RENTERS,
    "list_invoices": RENTERS,
    "read_invoice": RENTERS,
    "read_invoice_html": RENTERS,
    "read_invoice_pdf": RENTERS,
    "issue_invoice": Row("operator", None, lambda _s: {"period": "2020-01"}),
    "issue_credit_note": Row("operator", None, lambda _s: _credit_note()),
    "read_billing_details": RENTERS,
    "set_billing_details": Row("renter", "stranger", lambda _s: {"name": "A", "address": []}),
    "erase_billing_details": RENTERS,
    "list_epochs": Row("anybody"),
    "preview_epoch": Row("anybody"),
    "read_epoch": Row("anybody"),
    "list_epoch_rewards": Row("anybody"),
    "explain_epoch": Row("anybody"),
    "list_wash_signals": Row("anybody"),
    "list_renter_signals": Row("operator"),
    "read_payout_file": Row("anybody"),
    "read_epoch_file": Row("anybody"),
    "read_epoch_clients": Row("anybody"),
    "list_payouts": Row("anybody"),
    "list_claims": Row("renter"),
    "read_rewards": RENTERS,
    "read_payout_proof": Row("anybody", query="?address=0x" + "1" * 40),
    "list_governors": Row("anybody"),
    "propose_governor_change": Row("operator", None, lambda _s: _threshold()),
    "vote_on_governor_change": Row("operator", None, lambda _s: _governor_vote()),
    "apply_governor_change": Row("operator", None, _nothing),
    "list_key_recoveries": Row("anybody"),
    "cancel_key_recovery": Row("operator", None, _nothing),
    "propose_grant": Row("operator", None, lambda s: _milestone_grant(s)),
    "rehearse_policy": Row("operator", None, lambda _s: {"document": policy_rehearsal.EXAMPLE}),
    "propose_milestone": Row(
        "operator", None, lambda _s: {"milestone_id": "api", "evidence": "matrix"}
    ),
    "propose_clawback": Row("operator", None, lambda _s: {"scope": "unearned", "reason": "matrix"}),
    "accept_grant": Row("operator", None, lambda _s: {"what": "opening", "vote": EXAMPLE}),
    "list_breakers": Row("anybody"),
    "list_price_snapshots": Row("anybody"),
    "set_breaker": Row(
        "operator", None, lambda _s: {"limit": "1", "window_seconds": 1, "reason": "matrix"}
    ),
    "propose_slash": Row("operator", None, lambda s: _slash(s)),
    "propose_reward_adjustment": Row("operator", None, lambda s: _reward_adjustment(s)),
    "accept_reward_correction": Row("operator", None, lambda _s: {"vote": EXAMPLE}),
    "list_reward_corrections": Row("anybody"),
    "read_reward_correction": Row("anybody"),
    "propose_policy": Row("operator", None, lambda _s: _proposal(7)),
    "revise_policy_proposal": Row("operator", None, lambda _s: _proposal(5)),
    "open_policy_review": Row("operator", None, lambda _s: {"stage": "matrix"}),
    "approve_policy_proposal": Row("operator", None, lambda _s: {"vote": EXAMPLE}),
    "cancel_policy_proposal": Row("operator", None, lambda _s: {"vote": EXAMPLE}),
    "reject_policy_proposal": Row(
        "operator", None, lambda _s: {"reason": "matrix", "vote": EXAMPLE}
    ),
    "withdraw_policy_proposal": Row("operator", None, lambda _s: {"reason": "matrix"}),
    "schedule_policy_proposal": Row("operator", None, _nothing),
    "list_policies": Row("anybody"),
    "read_policy": Row("anybody"),
    "list_policy_proposals": Row("anybody"),
    "read_policy_proposal": Row("anybody"),
    "list_grants": Row("anybody"),
    "read_grant": Row("anybody"),
    "list_events": Row("renter"),
    "read_event": Row("renter", "stranger"),
    "read_checkpoint": Row("anybody"),
    "read_log_key": Row("anybody"),
    "list_timers": Row("operator"),
    "list_alerts": Row("operator"),
    "read_solvency": Row("anybody"),
    "read_proof": Row("renter", "stranger"),
    "read_usage_proof": Row("owner"),
    "set_revenue_shares": Row("owner", "rival", lambda _s: {"shares": []}),
    "read_revenue_shares": OWNERS,
    "create_node_transfer": Row("owner", "rival", lambda s: {"account_id": s.stranger.account_id}),
    "accept_node_transfer": Row("owner", "rival", _nothing),
    "release_revenue_shares": Row("stranger", "rival", lambda s: _owned_with_a_stranger(s)),
    "list_node_keys": Row("anybody"),
    "fund_lease": Row("renter", None, lambda _s: {"amount": _credits(1)}),
    "countersign_usage": Row("renter", "stranger", lambda _s: _countersignature()),
    "read_stick": RENTERS,
    "add_signing_key": Row("renter", "stranger", lambda _s: {"public_key": "ab" * 32}),
    "revoke_signing_key": Row("renter", "stranger", _nothing),
    "list_signing_keys": RENTERS,
    "restart_job": Row("renter", "stranger", _nothing),
    "open_dispute": Row("renter", None, lambda _s: _dispute("lease_" + ABSENT, 1)),
    "list_disputes": Row("renter"),
    "read_dispute": RENTERS,
    "answer_dispute": Row("renter", "stranger", lambda _s: {"statement": "matrix"}),
    "rule_dispute": Row("operator", None, lambda _s: {"outcome": "rejected"}),
    "create_adjustment": Row("operator", None, lambda _s: _goodwill(999_999_999)),
    "create_late_usage_adjustment": Row(
        "operator", None, lambda _s: {"lease_id": "lease_" + ABSENT}
    ),
    "list_adjustments": Row("renter"),
    "read_adjustment": RENTERS,
    "read_account_statement": RENTERS,
    "read_statement_line": RENTERS,
    "read_statement_line_proof": RENTERS,
    "list_statement_line_reports": RENTERS,
    "read_statement_line_report_proof": RENTERS,
    "explain_earning": OWNERS,
    "read_node_today": Row("node", "other_node"),
    "read_owner_part": Row("node", "other_node"),
    "list_usage_summary": Row("renter"),
    "read_forecast": RENTERS,
    "list_tariffs": Row("anybody"),
    "read_price": Row("anybody"),
    "set_price_sources": Row("operator", None, lambda _s: {"sources": [_fed(" ")]}),
    "report_price": Row("operator", None, lambda s: _price(s)),
    "take_price_snapshot": Row("operator", None, _nothing),
    "publish_tariff": Row("operator", None, lambda _s: _tariff()),
    "read_funding": RENTERS,
    "fund_account": Row("renter", "stranger", lambda s: {"funded_account_id": s.rival.account_id}),
    "list_funded_accounts": RENTERS,
    "stop_funding": Row("renter", "stranger", _nothing),
    "set_budget": Row("renter", "stranger", lambda _s: {"scope": "project", "target": "matrix"}),
    "list_budgets": RENTERS,
    "open_promotion": Row("operator", None, lambda _s: {"program": "other", "amount": _credits(1)}),
    "list_promotions": Row("operator"),
    "read_promotion": Row("operator"),
    "grant_promotion": Row("operator", None, lambda s: _grant(s)),
    "list_promotion_grants": Row("operator"),
    "close_promotion": Row("operator", None, _nothing),
    "read_maturity": OWNERS_ACCOUNT,
    "read_payment_mode": OWNERS_ACCOUNT,
    "set_payment_mode": Row("renter", "stranger", lambda _s: {"mode": "credits"}),
    "remove_dust": Row("renter", "stranger", _nothing),
    "list_account_cash_outs": OWNERS_ACCOUNT,
    "list_cash_outs": Row("operator"),
    "submit_cash_out": Row("renter", "stranger", _nothing),
    "read_cash_out": OWNERS_ACCOUNT,
    "cancel_cash_out": Row("renter", "stranger", _nothing),
    "confirm_cash_out": Row("operator", None, _nothing),
    "report_cash_out_failed": Row("operator", None, lambda _s: {"reason": "matrix"}),
    "add_cash_out_hold": Row("operator", None, lambda _s: {"reason": "matrix"}),
    "remove_cash_out_hold": Row("operator", None, _nothing),
    "list_payout_differences": Row("operator"),
    "close_payout_difference": Row("operator", None, lambda _s: {"note": "matrix"}),
    "read_cash_out_terms": Row("owner"),
    "publish_maturity_window": Row("operator", None, lambda _s: _window()),
    "publish_cash_out_minimum": Row("operator", None, lambda _s: {"minimum": _credits(1)}),
    "create_payment": Row(
        "renter", "stranger", lambda _s: {"method": "bank", "amount": _credits(1)}
    ),
    "list_payments": RENTERS,
    "read_payment": RENTERS,
    "confirm_payment": Row("operator", None, lambda _s: {"reference": "matrix"}),
    "create_reversal": Row("operator", None, lambda _s: _reversal()),
    "create_refund": Row("operator", None, lambda _s: {"amount": _credits(1)}),
    "confirm_refund": Row("operator", None, lambda _s: {"reference": "matrix"}),
    "ingest_payment_event": Row("anybody", None, _nothing),
    "read_funds": RENTERS,
    "set_balance_warnings": Row("renter", "stranger", lambda _s: {"thresholds": []}),
    "set_auto_top_up": Row("renter", "stranger", lambda _s: _auto_top_up()),
    "delete_auto_top_up": RENTERS,
    "read_payment_terms": Row("anybody"),
    "publish_payment_terms": Row("operator", None, lambda _s: _terms()),
    "create_write_off": Row(
        "operator", None, lambda _s: {"amount": _credits(1), "reason": "matrix"}
    ),
    "add_reserve": Row("operator", None, lambda _s: {"amount": _credits(1)}),
    "add_webhook": Row("renter", None, lambda _s: {"url": "https://hooks.invalid/b"}),
    "list_webhooks": Row("renter"),
    "rotate_webhook": Row("renter", "stranger", _nothing),
    "stop_webhook": Row("renter", "stranger", _nothing),
    "start_webhook": Row("renter", "stranger", _nothing),
    "test_webhook": Row("renter", "stranger", _nothing),
    "replay_webhook": Row("renter", "stranger", lambda _s: {"from_position": 1, "to_position": 2}),
    "list_deliveries": RENTERS,
    "issue_executor_key": Row("owner", "rival", _nothing),
    "revoke_executor_key": Row("owner", "rival", _nothing),
    "acknowledge_command": Row("owner", "rival", lambda _s: _acknowledgement()),
    "end_work": Row(
        "executor", "other_executor", lambda _s: {"executor": "0" * 16, "outcome": "lost"}
    ),
    "decline_work": Row("owner", "rival", _nothing),
    "ingest_lease_log": Row("executor", "other_executor", lambda _s: _printed()),
    "read_lease_log": RENTERS,
    "add_workspace": Row("renter", None, lambda _s: {"salt": "5a" * 16}),
    "add_workspace_pieces": Row("renter", None, lambda _s: {"data": ["aGVsbG8K"]}),
    "read_lease_workspace": Row("executor", "other_executor"),
    "read_workspace_pieces": Row("executor", "other_executor", lambda _s: {"sha256": ["5a" * 32]}),
    "add_lease_secrets": Row("renter", "stranger", lambda _s: {"sealed": "5a" * 48}),
    "add_lease_results": Row("executor", "other_executor", lambda _s: {"files": []}),
    "add_result_pieces": Row("executor", "other_executor", lambda _s: {"data": ["aGVsbG8K"]}),
    "delete_lease_results": Row("renter", "stranger", lambda _s: {}),
    "read_lease_results": RENTERS,
    "read_lease_use": RENTERS,
    "read_result_pieces": Row("renter", "stranger", lambda _s: {"sha256": ["5a" * 32]}),
    "read_lease_work": RENTERS,
    "report_renter_health": Row("renter", "stranger", lambda _s: {"machine": "workstation-7"}),
    "report_work_health": Row("executor", "other_executor", lambda _s: {"well": True}),
    "read_lease_health": RENTERS,
    "register_client": Row("operator", None, lambda _s: {"client_id": "acct_none"}),
    "list_clients": Row("operator"),
    "read_client": Row("operator", "stranger"),
    "add_client_key": Row("client_admin", "stranger", _nothing),
    "revoke_client_key": Row("operator", "stranger"),
    "set_client_policy": Row("operator", "stranger", _nothing),
    "suspend_client": Row("operator", None, _nothing),
    "resume_client": Row("operator", None, _nothing),
    "set_client_quota": Row("operator", None, _nothing),
    "create_group": Row("renter", None, _nothing),
    "list_groups": Row("renter"),
    "read_group": RENTERS,
    "set_group_quota": Row("renter", "stranger", _nothing),
    "add_group_member": Row("renter", "stranger", lambda _s: _member("matrix")),
    "remove_group_member": Row("renter", "stranger", lambda _s: _member("matrix-2")),
    "set_project_policy": Row(
        "renter", "stranger", lambda _s: {"project_id": "matrix", "overflow": "refuse"}
    ),
    "list_project_policies": RENTERS,
    "set_counterparty": Row(
        "renter", "stranger", lambda s: {"counterparty_id": s.auditor.account_id, "verdict": "none"}
    ),
    "list_counterparties": RENTERS,
    "scale_job": Row("renter", "stranger", lambda _s: {"members": 1}),
    "list_job_parts": RENTERS,
    "read_job_cost": RENTERS,
    "push_tasks": Row("renter", "stranger", lambda _s: {"tasks": [{"task_id": "matrix"}]}),
    "read_task_queue": RENTERS,
    "take_task": Row("renter", "stranger", _nothing),
    "finish_task": Row("renter", "stranger", _nothing),
    "list_usage_breakdown": Row("renter"),
    "create_pool": Row("owner", None, lambda _s: _pool()),
    "set_pool_policy": Row("owner", "rival", lambda _s: {"scheduler": "immediate"}),
    "add_pool_node": Row("owner", None, lambda s: {"node_id": s.provider.node_id}),
    "remove_pool_node": Row("owner", None, _nothing),
    "list_pools": Row("anybody"),
    "register_component": Row("owner", "rival", lambda _s: {"kind": "monitor", "name": "matrix"}),
    "remove_component": Row("owner", "rival", _nothing),
    "report_component_health": Row("owner", "rival", lambda _s: {"health": "well"}),
    "set_pool_metadata": Row("owner", "rival", lambda _s: {"metadata": {"a": "b"}}),
    "create_pool_heads": Row("owner", "rival", _nothing),
    "list_components": Row("anybody"),
    "list_pool_heads": Row("anybody"),
    "read_pool_controller": Row("anybody"),
    "read_pool_health": Row("anybody"),
    "read_pool": Row("anybody"),
    "list_pool_nodes": Row("anybody"),
    "list_pool_queue": Row("renter"),
    "list_pool_decisions": Row("renter"),
    "read_pool_decision": OWNERS,
    "open_gang": Row("renter", None, lambda s: {"job": s.job(), "members": 1}),
    "cancel_gang": Row("renter", "stranger", _nothing),
    "list_gangs": Row("renter"),
    "read_gang": RENTERS,
}
"""Every operation has a row; the marketplace's own rules are tested elsewhere."""

WITHOUT_ABSENT = {"read_statement"}
NOTHING_YET = {
    "read_lease_workspace",
    "read_workspace_pieces",
    "accept_node_transfer",
    "list_renter_signals",
    "read_usage_proof",
    "read_invoice",
    "read_invoice_html",
    "read_invoice_pdf",
    "issue_credit_note",
    "countersign_usage",
    "revoke_signing_key",
    "open_dispute",
    "read_dispute",
    "answer_dispute",
    "rule_dispute",
    "create_adjustment",
    "create_late_usage_adjustment",
    "read_adjustment",
    "read_statement_line",
    "read_statement_line_proof",
    "list_statement_line_reports",
    "read_statement_line_report_proof",
    "explain_earning",
    "stop_funding",
    "read_promotion",
    "grant_promotion",
    "list_promotion_grants",
    "close_promotion",
    "read_cash_out",
    "cancel_cash_out",
    "confirm_cash_out",
    "report_cash_out_failed",
    "close_payout_difference",
    "confirm_refund",
    "set_auto_top_up",
    "add_attribute",
    "revoke_attribute",
    "read_policy",
    "propose_slash",
    "propose_reward_adjustment",
    "accept_reward_correction",
    "vote_on_governor_change",
    "apply_governor_change",
    "cancel_key_recovery",
    "approve_policy_proposal",
    "reject_policy_proposal",
    "cancel_policy_proposal",
    "accept_grant",
    "register_client",
    "revoke_client_key",
    "finish_task",
    "read_pool_decision",
    "read_auction",
    "submit_bid",
    "list_auction_bids",
    "withdraw_bid",
    "accept_bid",
    "set_standing_bid",
    "read_standing_bid",
    "read_offer_prices",
}
"""Nothing was made of these yet: who is let through is told so."""


def _pool() -> dict[str, Any]:
    """One without a queue: the nodes of everybody's scene stay there for everybody."""
    return {"name": "matrix", "policy": {"scheduler": "immediate"}}


def _proposal(number: int) -> dict[str, Any]:
    heading = {
        "number": number,
        "title": "matrix",
        "category": "Core",
        "authors": ["matrix"],
        "created": "2026-11-20",
    }
    return {"document": {"format": "tallystick-policy-v1", "proposal": heading}}


def _credit_note() -> dict[str, Any]:
    line = {"line": 1, "amount": {"asset": "CREDIT", "units": "1"}}
    return {"lines": [line], "cause": "matrix", "reason": "matrix"}


def _member(target: str) -> dict[str, str]:
    return {"kind": "project", "target": target}


def _credits(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def _bid(scene: Scene) -> dict[str, Any]:
    return {"offer_id": scene.provider.offer_id, "price_per_gpu_hour": _credits(2_000_000)}


def _payment(units: int) -> dict[str, Any]:
    return {"method": "bank", "amount": _credits(units)}


def _write_off() -> dict[str, Any]:
    return {"amount": _credits(1), "reason": "matrix"}


def _acknowledgement() -> dict[str, str]:
    return {
        "command": "stop",
        "workload_sha256": "5a" * 32,
        "executor": "0" * 16,
        "runner": "docker",
    }


def _printed() -> dict[str, Any]:
    return {"seq": 0, "data": [{"stream": "stdout", "body": "aGVsbG8K"}]}


def _countersignature() -> dict[str, Any]:
    until = "2026-11-20T09:00:00Z"
    return {"key_id": "0" * 16, "gpu_us": "1", "until": until, "signature": "0" * 128}


def _dispute(lease_id: str, position: int) -> dict[str, Any]:
    return {"lease_id": lease_id, "lines": [{"position": position}], "claim_code": "other"}


def _goodwill(position: int) -> dict[str, Any]:
    return {"corrects_position": position, "amount": _credits(1)}


def _grant(scene: Scene) -> dict[str, Any]:
    return {"account_id": scene.renter.account_id, "amount": _credits(1)}


def _reversal() -> dict[str, Any]:
    return {"amount": _credits(1), "reference": "matrix", "reason": "matrix"}


def _auto_top_up() -> dict[str, Any]:
    most = _credits(25_000_000)
    return {"threshold": most, "amount": most, "monthly_max": most, "payment_id": "pay_0"}


LATER = 99
"""A version that is not the next one: what everybody shares here stays as it is."""


def _tariff() -> dict[str, Any]:
    return {
        "version": LATER,
        "usage_fees": [],
        "provider_share_ppm": 0,
        "effective_from": "2027-01-01T00:00:00Z",
    }


def _price(scene: Scene) -> dict[str, Any]:
    path, body, now_us = "/v1/oracle/sources", {"sources": [_fed("matrix")]}, scene.clock.now_us()
    scene.operator.made(path, body, **signed_by_two(scene.anybody, path, body, now_us))
    published_at = moment(now_us)
    return {"source": "matrix", "price_micro_usd": 1_000, "published_at": published_at}


def _owned_with_a_stranger(scene: Scene) -> dict[str, Any]:
    shares = [{"account_id": scene.stranger.account_id, "share_ppm": 100_000}]
    path = f"/v1/nodes/{scene.provider.node_id}/revenue-shares"
    scene.owner.made(path, {"shares": shares})
    return {}


def _fed(source: str) -> dict[str, Any]:
    return {"source": source, "member_id": "member_operator"}


def _window() -> dict[str, Any]:
    from_ = "2027-01-01T00:00:00Z"
    return {"version": LATER, "window_seconds": 0, "effective_from": from_}


def _terms() -> dict[str, Any]:
    return {
        "version": LATER,
        "minimum": _credits(25_000_000),
        "chargeback_window_days": 0,
        "effective_from": "2027-01-01T00:00:00Z",
    }


def _slash(scene: Scene) -> dict[str, Any]:
    amount = {"asset": "TOKEN", "units": "1"}
    return {"account_id": scene.owner.account_id, "amount": amount, "reason": "matrix"}


def _reward_adjustment(scene: Scene) -> dict[str, Any]:
    return {"account_id": scene.owner.account_id, "delta": "-1", "reason": "matrix"}


def _threshold() -> dict[str, Any]:
    return {"action": "threshold", "governors": 3, "threshold": 2}


def _governor_vote() -> dict[str, Any]:
    return {"choice": "yes", "vote": EXAMPLE}


def _milestone_grant(scene: Scene) -> dict[str, Any]:
    return {
        "account_id": scene.owner.account_id,
        "total": {"asset": "TOKEN", "units": "100"},
        "milestones": [{"milestone_id": "api", "share_ppm": 100_000}],
    }


def _deposit() -> dict[str, Any]:
    amount = {"asset": "CREDIT", "units": "1"}
    return {"source": "cash", "amount": amount, "reference": f"matrix {next(_numbers)}"}


def _cloud_quotas() -> dict[str, Any]:
    none = {"limit": 0, "used": 0}
    return {"gpus": [], "cpus": none, "local_ssd_gb": none}


def _berlin() -> dict[str, Any]:
    return {"boundaries": [{"kind": "state", "value": "DE-BE"}]}


def _ways() -> dict[str, Any]:
    return {"ways": [{"target": "control", "rtt_us": 1_000, "samples": 5}]}


def _nobody_near() -> dict[str, Any]:
    return {"challenge": "1", "addresses": [], "tried": []}


def _through() -> dict[str, Any]:
    day = "2026-11-20T10:0"
    return {"from": f"{day}0:00Z", "until": f"{day}5:00Z", "bytes_in": 1, "bytes_out": 1}


def _region_terms() -> dict[str, Any]:
    costs = ("base", "control", "ingress", "most", "arrears_max")
    return {
        "version": 1,
        "effective_from": "2030-01-01",
        "shared": True,
        "participation_ppm": 0,
        "infra": {cost: {"asset": "CREDIT", "units": "0"} for cost in costs},
    }


def _region(scene: Scene, provider_id: str) -> dict[str, Any]:
    del scene
    return {
        "provider_id": provider_id,
        "name": f"m{next(_numbers)}",
        "storage_mode": "local",
        "setting": "edge",
        "admission": "operator",
        "allow_public_jobs": True,
    }


def _rotation() -> dict[str, Any]:
    return {
        "public_key": "11" * 32,
        "previous_key_id": "0" * 16,
        "from_seq": 2,
        "previous_signature": "0" * 128,
        "signature": "0" * 128,
    }


def _specs(scene: Scene) -> dict[str, Any]:
    joining = scene.provider.joining("ZZZZZZZZ", "NVIDIA A100-PCIE-80GB")
    return {"devices": joining["devices"], "host": joining["host"]}


def _a_job(scene: Scene) -> dict[str, Any]:
    (first, *_) = scene.renter.read("/v1/jobs")["data"]
    return {"job_id": first["job_id"]}


def _inference() -> dict[str, Any]:
    return {"deployment": 1, "boot_id": "3f0c9a52", "status": "running"}


def _maintenance() -> dict[str, Any]:
    return {"kind": "planned", "from": "2026-12-01T02:00:00Z", "until": "2026-12-01T04:00:00Z"}


def _admission(scene: Scene) -> dict[str, Any]:
    return {"region_id": scene.provider.region_id, **DESCRIBED}


def _provider_kind() -> dict[str, Any]:
    cost = {"asset": "CREDIT", "units": "400000"}
    from_ = "2027-01-01T00:00:00Z"
    return {"kind": "acme", "cloud": True, "cost_per_gpu_hour": cost, "effective_from": from_}


def _kind() -> dict[str, Any]:
    return {
        "kind": "npu",
        "vendor": "acme",
        "dimensions": ["compute", "memory"],
        "memory": "dedicated",
        "divisible": False,
        "capacity_asset": "GPU_MS",
        "effective_from": "2027-01-01T00:00:00Z",
    }


def _model_class() -> dict[str, Any]:
    from_ = "2027-01-01T00:00:00Z"
    classed = {"vendor": "acme", "model": "Acme One", "gpu_class": "accelerator"}
    return {**classed, "effective_from": from_}


def _licence(scene: Scene) -> dict[str, Any]:
    return {
        "provider_id": scene.provider.provider_id,
        "vendor": "thirdai",
        "model": "ThirdAI Bolt",
        "seats": 2,
        "terms_sha256": "0a" * 32,
        "from": "2026-11-20T00:00:00Z",
    }


def _statement(scene: Scene) -> dict[str, Any]:
    return {
        "subject_id": scene.provider.node_id,
        "name": "location",
        "value": "DE-BE",
        "signer_account_id": scene.renter.account_id,
        "key_id": "0" * 16,
        "signature": "0" * 128,
        "stated_at": "2026-11-20T00:00:00Z",
    }


def _offer(scene: Scene) -> dict[str, Any]:
    price = {"asset": "CREDIT", "units": "2500000"}
    return {
        "provider_id": scene.provider.provider_id,
        "node_id": scene.provider.node_id,
        "price_per_gpu_hour": price,
    }


@pytest.fixture(scope="module")
def places(shared: Scene) -> dict[str, str]:
    """Ids of one object of each kind, the renter's and the owner's."""
    lease = shared.running()
    facts = shared.renter.read(f"/v1/leases/{lease['lease_id']}/history")["data"]
    payments = f"/v1/accounts/{shared.renter.account_id}/payments"
    payment = shared.renter.made(payments, _payment(25_000_000))
    webhook = shared.renter.made("/v1/webhooks", {"url": "https://hooks.invalid/a"})
    enrol_once(shared.operator)
    shared.operator.made("/v1/policies/proposals", _proposal(5))
    renter_key = keys.key_id(shared.renter.key or "")
    assert renter_key is not None
    return {
        "account_id": shared.renter.account_id,
        "member_id": shared.member(shared.renter, "viewer", ["account"]).member_id,
        "invitation_id": "invitation_" + "1" * 32,
        "key_id": renter_key,
        "provider_id": shared.provider.provider_id,
        "region_id": shared.provider.region_id,
        "list_id": shared.provider.region_id,
        "node_id": shared.provider.node_id,
        "device_id": shared.provider.device_ids[0],
        "maintenance_id": _planned(shared),
        "licence_id": shared.owner.made("/v1/licences", _licence(shared))["licence_id"],
        "statement_id": "stmt_" + "1" * 32,
        "edge_device_id": deployed_edge_device(shared),
        "config": "counter",
        "admission_id": admission(shared),
        "volume_id": used_volume(shared),
        "dataset_id": shared.renter.made("/v1/datasets", dataset(shared))["dataset_id"],
        "datastore_id": added_of_team(shared, "datastores", datastore()),
        "reservation_id": added_of_team(shared, "reservations", reservation()),
        "meter": "cpu",
        "date": "2027-01-01",
        "offer_id": shared.provider.offer_id,
        "job_id": lease["job_id"],
        "lease_id": lease["lease_id"],
        "epoch": "1",
        "position": str(facts[0]["position"]),
        "lane": "0",
        "usage_position": "1",
        "period": "2026-11",
        "grant_id": shared.operator.made("/v1/grants", _milestone_grant(shared))["grant_id"],
        "proposal_number": "5",
        "policy_version": "1",
        "written_number": "INV-000001",
        "dispute_id": "dispute_" + "1" * 32,
        "adjustment_id": "adj_" + "1" * 32,
        "correction_id": "correction_" + "1" * 32,
        "change": "1",
        "recovery": "1",
        "breaker": "payout",
        "program": "matrix",
        "cash_out_id": "cashout_" + "1" * 32,
        "difference_id": "difference_" + "1" * 32,
        "refund_id": "refund_" + "1" * 32,
        "payment_id": payment["payment_id"],
        "processor": "bank",
        "endpoint_id": webhook["endpoint_id"],
        "bid_id": "bid_" + "1" * 32,
        "funded_account_id": shared.rival.account_id,
        "client_id": _client(shared).account_id,
        "instance_id": "matrix",
        "group_id": shared.renter.made("/v1/groups", {})["group_id"],
        "task_id": "matrix-none",
        "pool_id": (pool_id := shared.owner.made("/v1/pools", _pool())["pool_id"]),
        "component_id": shared.owner.made(
            f"/v1/pools/{pool_id}/components", {"kind": "monitor", "name": "watch"}
        )["component_id"],
        "at_position": "1",
        "gang_id": shared.renter.made("/v1/gangs", {"job": shared.job(), "members": 1})["gang_id"],
    }


def _planned(scene: Scene) -> str:
    path = f"/v1/nodes/{scene.provider.node_id}/maintenances"
    return str(scene.owner.made(path, _maintenance())["maintenance_id"])


def _caller(scene: Scene, name: str) -> Caller:
    if name == "node":
        return scene.provider.node
    if name == "other_node":
        return scene.other.node
    if name == "client_admin":
        return _client(scene)
    if name.endswith("executor"):
        return _executor(scene, scene.other if name == "other_executor" else scene.provider)
    found: Caller = getattr(scene, name)
    return found


_clients: dict[int, Caller] = {}


def _client(scene: Scene) -> Caller:
    """The owner of a compute client's account."""
    if id(scene) not in _clients:
        made = _clients[id(scene)] = scene.account(kind="client")
        scene.operator.made("/v1/clients", {"client_id": made.account_id})
    return _clients[id(scene)]


_executors: dict[tuple[int, str], Caller] = {}


def _executor(scene: Scene, provider: Any) -> Caller:
    """The executor of a node; its key is issued anew when a test has taken it back."""
    found = _executors.get((id(scene), provider.node_id))
    if found is None or found.get(f"/v1/nodes/{provider.node_id}/assignments").status_code != 200:
        told = provider.node.made(f"/v1/nodes/{provider.node_id}/executor-key")
        found = Caller(scene.http, told["executor_key"], provider.node_id)
        _executors[id(scene), provider.node_id] = found
    return found


def _call(scene: Scene, operation: Operation, caller: Caller, places: dict[str, str]) -> Any:
    row = ROWS[operation.name]
    if operation.name == "revoke_signing_key":
        places = {**places, "key_id": "0" * 16}
    path = operation.path.format(**places) + row.query
    if operation.method == "GET":
        return caller.get(path)
    if operation.method == "DELETE":
        return caller.delete(path)
    assert row.body is not None
    headers = {"Content-Type": operation.media_type}
    if operation.guarded:
        headers["If-Match"] = '"v1"'
    body = row.body(scene)
    if operation.checked:
        headers |= signed_by_two(scene.anybody, path, body, scene.clock.now_us())
    return caller.post(path, body, **headers)


def test_every_operation_has_a_row_in_the_matrix() -> None:
    assert ROWS.keys() == BY_NAME.keys()


@by_room(n for n, o in BY_NAME.items() if PUBLIC not in o.access.audiences)
def test_a_call_without_a_key_is_answered_401(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        response = _call(shared, BY_NAME[name], shared.anybody, places)
        assert (response.status_code, response.json()["code"]) == (401, "unauthenticated"), name
        assert response.headers["WWW-Authenticate"] == "Bearer", name


@by_room(n for n, o in BY_NAME.items() if KEY in o.access.audiences)
def test_a_key_without_any_of_the_scopes_is_answered_403(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        operation = BY_NAME[name]
        useless = next(
            s for s in ("meter", "audit:read", "payout:read") if s not in operation.access.scopes
        )
        response = _call(shared, operation, _with_scopes(shared, useless), places)
        assert (response.status_code, response.json()["code"]) == (403, "scope_missing"), name


_by_scope: dict[tuple[int, str], Caller] = {}


def _with_scopes(scene: Scene, scope: str) -> Caller:
    found = _by_scope.get((id(scene), scope))
    if found is None:
        found = _by_scope[id(scene), scope] = scene.account(scopes=[scope])
    return found


@by_room(n for n, o in BY_NAME.items() if o.access.audiences == {KEY})
def test_a_node_may_not_make_the_calls_of_people(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        response = _call(shared, BY_NAME[name], shared.provider.node, places)
        assert (response.status_code, response.json()["code"]) == (403, "audience_wrong"), name


@by_room(n for n, o in BY_NAME.items() if not o.access.audiences & {EXECUTOR, PUBLIC})
def test_an_executor_may_make_the_calls_of_executors_and_no_others(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        response = _call(shared, BY_NAME[name], _executor(shared, shared.provider), places)
        assert (response.status_code, response.json()["code"]) == (403, "audience_wrong"), name


@by_room(n for n, row in ROWS.items() if row.foreign is not None)
def test_what_belongs_to_another_is_answered_like_what_does_not_exist(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        row, operation = ROWS[name], BY_NAME[name]
        assert row.foreign is not None
        caller = _caller(shared, row.foreign)
        foreign = _call(shared, operation, caller, places)
        absent = _call(shared, operation, caller, _absent(operation, places))
        found = foreign.status_code, absent.status_code
        assert found == (404, 404), (name, foreign.text, absent.text)
        told, expected = foreign.json(), absent.json()
        assert (told["code"], told["title"]) == (expected["code"], expected["title"]), name


def _absent(operation: Operation, places: dict[str, str]) -> dict[str, str]:
    """The same address with an id nobody has, in the place of the thing asked about."""
    first = operation.path.split("{", 1)[1].split("}", 1)[0]
    prefix = places[first].partition("_")[0]
    absent = "999999999" if first == "position" else f"{prefix}_{ABSENT}"
    return {**places, first: absent}


_staff: dict[tuple[int, str, str], Caller] = {}
MACHINES_OF = {
    "node": "owner",
    "executor": "owner",
    "other_node": "rival",
    "other_executor": "rival",
}


def _member_of(scene: Scene, name: str, role: str) -> tuple[Caller, frozenset[str]]:
    """A member with this role of a caller's account, with every scope the role may hold."""
    account = _caller(scene, MACHINES_OF.get(name, name))
    kind = {"operator": "operator", "auditor": "auditor", "client_admin": "client"}
    scopes = SCOPES_OF[kind.get(name, "party")] & SCOPES_OF_ROLE[role]
    place = (id(scene), account.account_id, role)
    if place not in _staff:
        _staff[place] = scene.member(account, role, sorted(scopes))
    return _staff[place], scopes


OTHER_ROLES = [role for role in ROLES if role != "owner"]
"""The scene's callers are owners: the other tests of the matrix are theirs."""


@by_room(n for n, o in BY_NAME.items() if KEY in o.access.audiences and ROWS[n].foreign is not None)
def test_what_belongs_to_another_is_told_to_no_role(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    """Every route, every role, on what is another's and what does not exist."""
    told = [(name, *each) for name in names for each in _told_to_roles(name, shared, places)]
    assert not told


def _told_to_roles(
    name: str, scene: Scene, places: dict[str, str]
) -> Iterator[tuple[str, dict[str, str], str]]:
    """The roles that are answered something else, where, and what they are told."""
    row, operation = ROWS[name], BY_NAME[name]
    assert row.foreign is not None
    for role in OTHER_ROLES:
        stranger, scopes = _member_of(scene, row.foreign, role)
        expected = 403 if operation.access.scopes.isdisjoint(scopes) else 404
        for where in (places, _absent(operation, places)):
            refused = _call(scene, operation, stranger, where)
            if refused.status_code != expected:
                yield role, where, refused.text


@by_room(n for n, row in ROWS.items() if row.own != "anybody")
def test_the_owner_is_let_through(names: list[str], shared: Scene, places: dict[str, str]) -> None:
    for name in names:
        here = _spare(shared, places, shared.renter) if name in HARMFUL else places
        if name == "remove_edge_device":
            here = {**here, "edge_device_id": added_edge_device(shared)}
        expected = PASSED | ({404} if name in NOTHING_YET else set())
        response = _call(shared, BY_NAME[name], _caller(shared, ROWS[name].own), here)
        assert response.status_code in expected, (name, response.text)


HARMFUL = {
    "delete_api_key",
    "rotate_api_key",
    "remove_member",
    "change_member_role",
    "withdraw_invitation",
}


def _spare(
    scene: Scene, places: dict[str, str], holder: Caller, role: str = "owner"
) -> dict[str, str]:
    """A key of the holder, a member and an invitation that nothing else needs."""
    path = f"/v1/accounts/{scene.renter.account_id}"
    key = scene.renter.made(f"{path}/api-keys", {"scopes": ["meter"]})["key_id"]
    if holder is not scene.renter:
        key = _again(scene, holder, role)
    invited = scene.renter.made(f"{path}/invitations", {"role": "viewer", "scopes": ["account"]})
    member = scene.member(scene.renter, "viewer", ["account"]).member_id
    return {**places, "key_id": key, "member_id": member, "invitation_id": invited["invitation_id"]}


def _again(scene: Scene, holder: Caller, role: str) -> str:
    """Another key of a member, who redeems an invitation for it."""
    path = f"/v1/accounts/{scene.renter.account_id}/invitations"
    asked = {"role": role, "scopes": ["meter"], "member_id": holder.member_id}
    code = scene.renter.made(path, asked)["code"]
    return str(holder.made("/v1/invitations/redeem", {"code": code})["key_id"])


GONE_WITH_ITS_NODE = {"reshape_device"}
"""The owner, who was let through before, has retired the node."""


@by_room(n for n, o in BY_NAME.items() if KEY in o.access.audiences and ROWS[n].own != "anybody")
def test_a_member_is_let_through_as_far_as_their_role_goes(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    """Every route, every role, on what is the account's own."""
    for name in names:
        answers = {role: _answer_to_a_member(name, role, shared, places) for role in OTHER_ROLES}
        assert all(is_right for is_right, _ in answers.values()), (name, answers)


def _answer_to_a_member(
    name: str, role: str, scene: Scene, places: dict[str, str]
) -> tuple[bool, str]:
    """Whether a member with this role is let through, or turned away, as they should be."""
    row, operation = ROWS[name], BY_NAME[name]
    caller, scopes = _member_of(scene, row.own, role)
    if operation.access.scopes.isdisjoint(scopes):
        refused = _call(scene, operation, caller, places)
        answer = refused.status_code, refused.json()["code"]
        return answer == (403, "scope_missing"), refused.text
    if name in HARMFUL:
        places = _spare(scene, places, caller, role)
    if name == "remove_edge_device":
        places = {**places, "edge_device_id": added_edge_device(scene)}
    # Who works for the operator without its scope sees what anybody sees.
    sees_less = row.own == "operator" and "operator" not in scopes
    may_be_absent = name in NOTHING_YET | GONE_WITH_ITS_NODE or sees_less
    expected = PASSED | ({404} if may_be_absent else set())
    response = _call(scene, operation, caller, places)
    if name == "report_price" and response.status_code == 403:
        # The role opens the route; each source has one feeder, and this member is none.
        return response.json()["code"] == "price_source_foreign", response.text
    return response.status_code in expected, response.text


def test_a_changed_role_narrows_the_keys_of_a_member_at_once(scene: Scene) -> None:
    """Effective scopes are those of the key that the member's present role may hold."""
    member = scene.member(scene.renter, "admin", ["account", "account:admin", "renter"])
    mine = f"/v1/accounts/{scene.renter.account_id}"
    assert member.post("/v1/jobs", scene.job()).status_code == 201
    role = f"{mine}/members/{member.member_id}/role"
    scene.renter.made(role, {"role": "viewer"})
    for response in (
        member.post("/v1/jobs", scene.job()),
        member.post(f"{mine}/api-keys", {"scopes": ["account"]}),
        member.get(f"{mine}/api-keys"),
    ):
        assert (response.status_code, response.json()["code"]) == (403, "scope_missing")
    assert member.get(mine).status_code == 200
    listed = scene.renter.read(f"{mine}/api-keys")["data"]
    theirs = next(one for one in listed if one["member_id"] == member.member_id)
    assert (theirs["scopes"], theirs["opens"]) == (
        ["account", "account:admin", "renter"],
        ["account"],
    )
    scene.renter.made(role, {"role": "member"})
    assert member.post("/v1/jobs", scene.job()).status_code == 201


@pytest.mark.parametrize("who", ["operator", "auditor"])
@pytest.mark.parametrize(
    "name",
    [
        "read_account",
        "list_members",
        "list_wallets",
        "list_events",
        "read_event",
        "list_leases",
        "read_lease",
        "read_balances",
        "read_node",
        "read_provider",
        "list_devices",
        "list_jobs",
        "list_earnings",
    ],
)
def test_operators_and_auditors_read_what_is_not_theirs(
    who: str, name: str, shared: Scene, places: dict[str, str]
) -> None:
    response = _call(shared, BY_NAME[name], _caller(shared, who), places)
    assert response.status_code == 200, response.text


def test_no_operation_that_changes_anything_is_for_a_scope_that_reads() -> None:
    reads = {"billing:read", "earnings:read", "audit:read", "payout:read", "account"}
    for name, operation in BY_NAME.items():
        if operation.method != "GET":
            assert not operation.access.scopes & reads, name


@by_room(n for n, o in BY_NAME.items() if o.method != "GET")
def test_an_auditor_records_nothing(
    names: list[str], shared: Scene, places: dict[str, str]
) -> None:
    for name in names:
        operation = BY_NAME[name]
        if KEY not in operation.access.audiences:
            assert operation.access.audiences <= {PUBLIC, NODE, EXECUTOR}, name
            continue
        _call(shared, operation, shared.auditor, places)  # what its body needs is there then
        head = shared.head()
        response = _call(shared, operation, shared.auditor, places)
        assert (response.status_code, shared.head()) == (403, head), name


def test_a_key_of_the_operators_account_without_its_scope_is_like_anybodys(
    shared: Scene, places: dict[str, str]
) -> None:
    made = shared.operator.made(
        "/v1/accounts/acct_operator/api-keys",
        {"scopes": ["account", "renter", "provider", "billing:read"]},
    )
    clerk, head = Caller(shared.http, made["key"], "acct_operator"), shared.head()
    for name in (
        "admit_node",
        "activate_node",
        "start_maintenance",
        "close_lease",
        "read_lease",
        "read_node",
        "read_balances",
        "read_account",
    ):
        response = _call(shared, BY_NAME[name], clerk, places)
        assert response.status_code == 404, (name, response.text)
    for path in ("/v1/leases", "/v1/nodes", "/v1/jobs"):
        assert clerk.read(path)["data"] == [], path
    assert shared.head() == head


def test_lists_hold_nothing_of_others(shared: Scene, places: dict[str, str]) -> None:
    alone = shared.account()  # who owns no part of a node, which the stranger was given
    for path in (
        "/v1/leases",
        "/v1/jobs",
        "/v1/nodes",
        "/v1/devices",
        "/v1/providers",
        "/v1/regions",
        "/v1/earnings",
        "/v1/payouts/claims",
    ):
        assert alone.read(path)["data"] == [], path
    accounts = alone.read("/v1/accounts")["data"]
    assert [one["account_id"] for one in accounts] == [alone.account_id]
    mine = alone.account_id
    for event in alone.read("/v1/audit/events")["data"]:
        assert mine in str(event["body"])
    assert alone.read("/v1/audit/events", party=places["lease_id"])["data"] == []


def test_a_list_asked_for_another_account_is_empty_and_not_ones_own(shared: Scene) -> None:
    for path in ("/v1/nodes", "/v1/providers", "/v1/earnings", "/v1/payouts/claims"):
        assert shared.owner.read(path, account_id=shared.rival.account_id)["data"] == [], path
        own = shared.owner.read(path, account_id=shared.owner.account_id)
        assert own == shared.owner.read(path), path
    asked = shared.auditor.read("/v1/nodes", account_id=shared.rival.account_id)["data"]
    assert {node["account_id"] for node in asked} == {shared.rival.account_id}


def test_a_route_that_declares_nobody_does_not_start() -> None:
    router = APIRouter(route_class=Door)

    def open_to_all() -> None:
        """Nobody said for whom."""

    with pytest.raises(AttributeError):
        router.add_api_route("/v1/open", open_to_all)


def test_an_access_for_nobody_or_with_unknown_scopes_cannot_be_made() -> None:
    for audiences, scopes in (((), ()), ((KEY,), ()), ((PUBLIC,), ("account",)), ((KEY,), ("x",))):
        with pytest.raises(AssertionError):
            Access(frozenset(audiences), frozenset(scopes))


@pytest.mark.parametrize(
    "header",
    [
        "Bearer nonsense",
        "Basic dXNlcjpwYXNz",
        "Bearer ts_live_" + "0" * 59,
        "Bearer",
        "Bearer ts_node_" + "0" * 43 + "_000000",
    ],
)
def test_a_malformed_key_is_refused_before_the_database_is_asked(
    header: str, shared: Scene
) -> None:
    response = shared.http.get("/v1/accounts", headers={"Authorization": header})
    assert (response.status_code, response.json()["code"]) == (401, "credential_invalid")


def test_an_unknown_key_of_the_right_form_is_refused(shared: Scene) -> None:
    for key in (keys.new(), auth.node_key(bytes(range(32)))):
        response = Caller(shared.http, key).get("/v1/accounts")
        assert (response.status_code, response.json()["code"]) == (401, "credential_invalid")


def test_a_bad_key_is_refused_even_where_none_is_needed(shared: Scene) -> None:
    assert Caller(shared.http, keys.new()).get("/v1/offers").status_code == 401


def test_a_revoked_key_is_dead_at_once(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    made = scene.renter.made(path, {"scopes": ["account"]})
    caller = Caller(scene.http, made["key"], scene.renter.account_id)
    assert caller.get("/v1/accounts").status_code == 200
    assert scene.renter.delete(f"{path}/{made['key_id']}").status_code == 200
    assert caller.get("/v1/accounts").status_code == 401


def test_a_key_dies_at_its_hour_and_a_rotated_one_after_a_day(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    expires = {"scopes": ["account"], "expires_at": "2026-11-22T12:00:00Z"}
    made = scene.renter.made(path, expires)
    rotated = scene.renter.made(f"{path}/{made['key_id']}/rotate")
    assert rotated["expires_at"] == made["expires_at"], "a successor ends with the key it replaces"
    old = Caller(scene.http, made["key"])
    new = Caller(scene.http, rotated["key"])
    assert old.get("/v1/accounts").status_code == new.get("/v1/accounts").status_code == 200
    scene.clock.advance(25 * 3_600_000_000)  # type: ignore[attr-defined]
    assert old.get("/v1/accounts").status_code == 401
    assert new.get("/v1/accounts").status_code == 200
    scene.clock.advance(28 * 3_600_000_000)  # type: ignore[attr-defined]
    assert new.get("/v1/accounts").status_code == 401


def test_a_member_who_left_has_no_key(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}"
    member = scene.member(scene.renter, "billing", ["account"])
    assert member.get(path).status_code == 200
    scene.renter.made(f"{path}/members/{member.member_id}/remove")
    assert member.get(path).status_code == 401


def test_keys_are_never_stored(scene: Scene) -> None:
    made = scene.renter.made(
        f"/v1/accounts/{scene.renter.account_id}/api-keys", {"scopes": ["account"]}
    )
    with scene.service.connection() as connection:
        row = connection.execute(
            "SELECT count(*) FROM command WHERE position(%s IN convert_from(body, 'UTF8')) > 0",
            (made["key"],),
        ).fetchone()
        assert row == (0,)
