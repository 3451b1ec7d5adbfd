"""No address of a person enters the log, and a provider is not told for whom a renter works."""

from __future__ import annotations

import pytest

from tests.scenes.server import Scene

PURPOSE = {"project_id": "merger-with-acme", "end_user_ref": "user-7"}


@pytest.mark.parametrize("field", ["project_id", "end_user_ref"])
def test_a_job_with_an_address_in_it_is_refused_and_the_field_is_named(
    shared: Scene, field: str
) -> None:
    """The attack: end_user_ref "jane.doe@example.com" stays in the log for ever."""
    head = shared.head()
    refused = shared.renter.post("/v1/jobs", shared.job(**{field: "jane.doe@example.com"}))
    assert refused.status_code == 422
    assert field in refused.text
    assert "no e-mail address enters the log" in refused.text
    assert shared.head() == head


def test_a_payment_with_an_address_in_its_reference_is_refused(shared: Scene) -> None:
    amount = {"asset": "CREDIT", "units": "1"}
    deposit = {"source": "cash", "amount": amount, "reference": "from jane@example.com"}
    path = f"/v1/accounts/{shared.renter.account_id}/deposits"
    refused = shared.operator.post(path, deposit)
    assert refused.status_code == 422
    assert "reference" in refused.text


def test_the_provider_of_a_lease_is_not_told_for_whom_the_renter_works(shared: Scene) -> None:
    """The attack: the provider reads lease and log for project, end user, escrow and member."""
    lease = shared.lease(job=shared.job(**PURPOSE))
    path = f"/v1/leases/{lease['lease_id']}"
    provider = shared.owner if lease["node_id"] == shared.provider.node_id else shared.rival
    told = provider.read(path)
    assert not {*PURPOSE, "escrow"} & told.keys()
    (listed,) = provider.read("/v1/leases")["data"]
    assert not {*PURPOSE, "escrow"} & listed.keys()
    events = provider.read("/v1/audit/events", party=lease["lease_id"])["data"]
    assert "lease.reserved.v1" in {one["type"] for one in events}
    (member,) = shared.renter.read(f"/v1/accounts/{shared.renter.account_id}/members")["data"]
    for event in events:
        assert not {*PURPOSE, "escrow", "drawn", "counted", "by", "key_id"} & event["body"].keys()
        assert member["member_id"] not in str(event["body"])
        one = provider.read(f"/v1/audit/events/{event['position']}")
        assert one["body"] == event["body"]
    for sees in (shared.renter, shared.operator, shared.auditor):
        assert PURPOSE.items() <= sees.read(path).items()
        assert "escrow" in sees.read(path)
        whole = sees.read("/v1/audit/events", party=lease["lease_id"])["data"]
        assert any("escrow" in event["body"] for event in whole)
