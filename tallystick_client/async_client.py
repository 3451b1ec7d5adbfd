"""The REST API's operations for asyncio. Written by `python -m api.openapi.write`: do not edit.

Every method is one operation of docs/reference/openapi.json, and `iter_...` reads a list to its
end. Refusals are raised as `ApiProblem`; switch on its `code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from tallystick_client.calls import AsyncCalls, at, items_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tallystick_client import forms


class AsyncClient(AsyncCalls):
    """Every operation of the API for asyncio."""

    async def create_account(
        self, body: forms.AccountRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountOpenedAnswer:
        """Opens an account with its first owner and a first API key, which is shown once."""
        found = await self._call(
            "POST", "/v1/accounts", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.AccountOpenedAnswer", found)

    async def list_accounts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.AccountPage:
        """Lists accounts in order of opening: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/accounts",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.AccountPage", found)

    def iter_accounts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.AccountAnswer]:
        """Every item of `list_accounts` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_accounts(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_account(self, account_id: str) -> forms.AccountAnswer:
        """Returns an account."""
        found = await self._call("GET", at("/v1/accounts/{account_id}", account_id=account_id))
        return cast("forms.AccountAnswer", found)

    async def close_account(
        self, account_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountClosedAnswer:
        """Closes an account. Its leases must be settled, its nodes retired and its books
        empty.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/close", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountClosedAnswer", found)

    async def create_wallet_challenge(
        self, account_id: str, body: forms.WalletChallengeRequest
    ) -> forms.WalletChallengeAnswer:
        """Returns a text (EIP-4361) for the wallet to sign. It is valid for ten minutes and
        one use.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/wallets/challenge", account_id=account_id),
            body=body,
        )
        return cast("forms.WalletChallengeAnswer", found)

    async def link_wallet(
        self, account_id: str, body: forms.WalletProofRequest, *, idempotency_key: str | None = None
    ) -> forms.WalletAnswer:
        """Links the wallet that signed the challenge. Rewards are paid to this wallet."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/wallets", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WalletAnswer", found)

    async def list_wallets(self, account_id: str) -> forms.WalletsAnswer:
        """Lists the wallets of an account and shows which one is paid now."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/wallets", account_id=account_id)
        )
        return cast("forms.WalletsAnswer", found)

    async def create_deposit(
        self, account_id: str, body: forms.DepositRequest, *, idempotency_key: str | None = None
    ) -> forms.DepositAnswer:
        """Confirms money that arrived. Each payment is confirmed once."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/deposits", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DepositAnswer", found)

    async def list_deposits(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DepositPage:
        """Lists confirmed deposits, and credits bought by burning tokens, in order."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/deposits", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.DepositPage", found)

    def iter_deposits(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DepositAnswer]:
        """Every item of `list_deposits` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_deposits(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def invite_account(
        self, body: forms.AccountInvitationRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountInvitationAnswer:
        """Opens an account whose owner gets the first key by a code, which is shown once."""
        found = await self._call(
            "POST",
            "/v1/account-invitations",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountInvitationAnswer", found)

    async def sign_up(
        self, body: forms.SignUpRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountOpenedAnswer:
        """Opens an account of your own and shows its first API key, once, if this market
        lets you.
        """
        found = await self._call(
            "POST", "/v1/sign-up", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.AccountOpenedAnswer", found)

    async def verify_account(
        self, account_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountVerifiedAnswer:
        """Verifies an account that signed itself up: you know its owner, and it may do
        everything.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/verify", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountVerifiedAnswer", found)

    async def set_plan(
        self, account_id: str, body: forms.AccountPlanRequest, *, idempotency_key: str | None = None
    ) -> forms.AccountPlanAnswer:
        """Sets the plan of an account."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/plan", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountPlanAnswer", found)

    async def read_plan(self, account_id: str) -> forms.AccountPlanAnswer:
        """Returns the plan of an account."""
        found = await self._call("GET", at("/v1/accounts/{account_id}/plan", account_id=account_id))
        return cast("forms.AccountPlanAnswer", found)

    async def list_members(self, account_id: str) -> forms.AccountMembersAnswer:
        """Lists present and former members of an account."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/members", account_id=account_id)
        )
        return cast("forms.AccountMembersAnswer", found)

    async def change_member_role(
        self,
        account_id: str,
        member_id: str,
        body: forms.MemberRoleRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AccountMemberAnswer:
        """Changes the role of a member. The member's keys are narrowed to it at once."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/members/{member_id}/role",
                account_id=account_id,
                member_id=member_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountMemberAnswer", found)

    async def remove_member(
        self,
        account_id: str,
        member_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AccountMemberRemovedAnswer:
        """Removes a member. Every key in the member's name ends at once."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/members/{member_id}/remove",
                account_id=account_id,
                member_id=member_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AccountMemberRemovedAnswer", found)

    async def invite_member(
        self, account_id: str, body: forms.InvitationRequest, *, idempotency_key: str | None = None
    ) -> forms.InvitationAnswer:
        """Invites a member. The answer shows a code, once: hand it to the invitee to
        redeem.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/invitations", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.InvitationAnswer", found)

    async def list_invitations(self, account_id: str) -> forms.InvitationsAnswer:
        """Lists invitations that wait to be redeemed. Their codes are not stored."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/invitations", account_id=account_id)
        )
        return cast("forms.InvitationsAnswer", found)

    async def withdraw_invitation(
        self,
        account_id: str,
        invitation_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.InvitationWithdrawnAnswer:
        """Withdraws an invitation that was not redeemed yet."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/invitations/{invitation_id}/withdraw",
                account_id=account_id,
                invitation_id=invitation_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.InvitationWithdrawnAnswer", found)

    async def redeem_invitation(
        self, body: forms.InvitationRedeemRequest, *, idempotency_key: str | None = None
    ) -> forms.InvitationRedeemedAnswer:
        """Redeems an invitation: you are a member with a key, which is shown once, to you
        alone.
        """
        found = await self._call(
            "POST",
            "/v1/invitations/redeem",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.InvitationRedeemedAnswer", found)

    async def list_api_keys(self, account_id: str) -> forms.ApiKeysAnswer:
        """Lists the keys of an account, revoked ones too. The keys themselves are not
        stored.
        """
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/api-keys", account_id=account_id)
        )
        return cast("forms.ApiKeysAnswer", found)

    async def create_api_key(
        self, account_id: str, body: forms.ApiKeyRequest, *, idempotency_key: str | None = None
    ) -> forms.ApiKeyAnswer:
        """Issues another API key for yourself, which is shown once."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/api-keys", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ApiKeyAnswer", found)

    async def rotate_api_key(
        self,
        account_id: str,
        key_id: str,
        body: forms.ApiKeyRotationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.ApiKeyAnswer:
        """Issues a successor of a key of yours, shown once. The old key stays valid for 24
        hours.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/api-keys/{key_id}/rotate",
                account_id=account_id,
                key_id=key_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ApiKeyAnswer", found)

    async def delete_api_key(self, account_id: str, key_id: str) -> forms.ApiKeyAnswer:
        """Revokes a key at once: your own, or as an administrator another's. Twice is once."""
        found = await self._call(
            "DELETE",
            at("/v1/accounts/{account_id}/api-keys/{key_id}", account_id=account_id, key_id=key_id),
        )
        return cast("forms.ApiKeyAnswer", found)

    async def add_webhook(
        self, body: forms.WebhookRequest, *, idempotency_key: str | None = None
    ) -> forms.WebhookAnswer:
        """Adds an HTTPS endpoint that receives everything recorded about your account from
        now on.
        """
        found = await self._call(
            "POST", "/v1/webhooks", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.WebhookAnswer", found)

    async def list_webhooks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.WebhookPage:
        """Lists your endpoints, in the order in which they were added."""
        found = await self._call(
            "GET",
            "/v1/webhooks",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.WebhookPage", found)

    def iter_webhooks(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.WebhookAnswer]:
        """Every item of `list_webhooks` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_webhooks(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def rotate_webhook(
        self, endpoint_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.WebhookAnswer:
        """Creates a new secret. The old one signs beside it for 24 hours."""
        found = await self._call(
            "POST",
            at("/v1/webhooks/{endpoint_id}/rotate", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WebhookAnswer", found)

    async def stop_webhook(
        self, endpoint_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.WebhookAnswer:
        """Stops deliveries to an endpoint until it is started again."""
        found = await self._call(
            "POST",
            at("/v1/webhooks/{endpoint_id}/stop", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WebhookAnswer", found)

    async def start_webhook(
        self, endpoint_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.WebhookAnswer:
        """Starts deliveries to an endpoint again, from where they were stopped."""
        found = await self._call(
            "POST",
            at("/v1/webhooks/{endpoint_id}/start", endpoint_id=endpoint_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WebhookAnswer", found)

    async def test_webhook(
        self, endpoint_id: str, body: forms.EmptyRequest
    ) -> forms.WebhookTestAnswer:
        """Sends an event of type `webhook.test` now, and returns the result; one at a time."""
        found = await self._call(
            "POST", at("/v1/webhooks/{endpoint_id}/test", endpoint_id=endpoint_id), body=body
        )
        return cast("forms.WebhookTestAnswer", found)

    async def replay_webhook(
        self, endpoint_id: str, body: forms.WebhookReplayRequest
    ) -> forms.WebhookReplayAnswer:
        """Delivers events to an endpoint again, delivered ones and given-up ones."""
        found = await self._call(
            "POST", at("/v1/webhooks/{endpoint_id}/replay", endpoint_id=endpoint_id), body=body
        )
        return cast("forms.WebhookReplayAnswer", found)

    async def list_deliveries(
        self,
        endpoint_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.WebhookDeliveryPage:
        """Lists the deliveries of each fact and their results, in order."""
        found = await self._call(
            "GET",
            at("/v1/webhooks/{endpoint_id}/deliveries", endpoint_id=endpoint_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.WebhookDeliveryPage", found)

    def iter_deliveries(
        self,
        endpoint_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.WebhookDeliveryAnswer]:
        """Every item of `list_deliveries` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_deliveries(
                endpoint_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def register_client(
        self, body: forms.ComputeClientRequest, *, idempotency_key: str | None = None
    ) -> forms.ComputeClientAnswer:
        """Registers an account that may bring jobs as a compute client. A second call
        changes.
        """
        found = await self._call(
            "POST", "/v1/clients", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.ComputeClientAnswer", found)

    async def list_clients(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.ComputeClientPage:
        """Lists compute clients in order of registration: yourself, or all for operators
        and.
        """
        found = await self._call(
            "GET",
            "/v1/clients",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.ComputeClientPage", found)

    def iter_clients(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.ComputeClientAnswer]:
        """Every item of `list_clients` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_clients(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_client(self, client_id: str) -> forms.ComputeClientAnswer:
        """Returns a client with the keys of its instances and its quotas."""
        found = await self._call("GET", at("/v1/clients/{client_id}", client_id=client_id))
        return cast("forms.ComputeClientAnswer", found)

    async def add_client_key(
        self,
        client_id: str,
        instance_id: str,
        body: forms.ClientKeyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.ClientKeyAnswer:
        """Issues a key for an instance of your client, shown once."""
        found = await self._call(
            "POST",
            at(
                "/v1/clients/{client_id}/instances/{instance_id}/keys",
                client_id=client_id,
                instance_id=instance_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ClientKeyAnswer", found)

    async def revoke_client_key(self, client_id: str, key_id: str) -> forms.ComputeClientAnswer:
        """Revokes an instance's key at once. A second call changes nothing."""
        found = await self._call(
            "DELETE",
            at("/v1/clients/{client_id}/keys/{key_id}", client_id=client_id, key_id=key_id),
        )
        return cast("forms.ComputeClientAnswer", found)

    async def set_client_policy(
        self, client_id: str, body: forms.ClientPolicyRequest, *, idempotency_key: str | None = None
    ) -> forms.ComputeClientAnswer:
        """Sets the least reputation of the nodes that run the client's jobs."""
        found = await self._call(
            "POST",
            at("/v1/clients/{client_id}/policy", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ComputeClientAnswer", found)

    async def suspend_client(
        self, client_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.ComputeClientAnswer:
        """Suspends a client. Nothing is submitted for it until it is resumed; its leases go
        on.
        """
        found = await self._call(
            "POST",
            at("/v1/clients/{client_id}/suspend", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ComputeClientAnswer", found)

    async def resume_client(
        self, client_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.ComputeClientAnswer:
        """Resumes a client, which may submit again."""
        found = await self._call(
            "POST",
            at("/v1/clients/{client_id}/resume", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ComputeClientAnswer", found)

    async def set_client_quota(
        self, client_id: str, body: forms.ClientQuotaRequest, *, idempotency_key: str | None = None
    ) -> forms.ClientQuotaAnswer:
        """Sets how many GPUs a client holds at once, in one pool or in all; counted from
        now on.
        """
        found = await self._call(
            "POST",
            at("/v1/clients/{client_id}/quotas", client_id=client_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ClientQuotaAnswer", found)

    async def list_governors(self) -> forms.GovernorsAnswer:
        """Lists the governors in force and every change that was proposed."""
        found = await self._call("GET", "/v1/governors")
        return cast("forms.GovernorsAnswer", found)

    async def propose_governor_change(
        self, body: forms.GovernorChangeRequest, *, idempotency_key: str | None = None
    ) -> forms.GovernorsAnswer:
        """Proposes a change of the governors. The first governor is enrolled at once."""
        found = await self._call(
            "POST",
            "/v1/governors/changes",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.GovernorsAnswer", found)

    async def vote_on_governor_change(
        self, change: int, body: forms.GovernorVoteRequest, *, idempotency_key: str | None = None
    ) -> forms.GovernorsAnswer:
        """Votes on a change with a governor's signature."""
        found = await self._call(
            "POST",
            at("/v1/governors/changes/{change}/votes", change=change),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.GovernorsAnswer", found)

    async def apply_governor_change(
        self, change: int, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.GovernorsAnswer:
        """Puts a scheduled change into force, once its epoch was opened. A timer does this
        too.
        """
        found = await self._call(
            "POST",
            at("/v1/governors/changes/{change}/apply", change=change),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.GovernorsAnswer", found)

    async def list_key_recoveries(self) -> forms.KeyRecoveriesAnswer:
        """Lists the recoveries of the operator's key: one that waits, and all that were."""
        found = await self._call("GET", "/v1/key-recoveries")
        return cast("forms.KeyRecoveriesAnswer", found)

    async def cancel_key_recovery(
        self,
        recovery: int,
        body: forms.KeyRecoveryCancelRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.KeyRecoveriesAnswer:
        """Cancels a recovery that waits. One person is enough: a governor, or while none is
        enrolled a.
        """
        found = await self._call(
            "POST",
            at("/v1/key-recoveries/{recovery}/cancel", recovery=recovery),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.KeyRecoveriesAnswer", found)

    async def read_price(self) -> forms.TokenPriceAnswer:
        """Returns the price of a TOKEN now: each source, the median, or why there is no
        price.
        """
        found = await self._call("GET", "/v1/oracle")
        return cast("forms.TokenPriceAnswer", found)

    async def set_price_sources(
        self, body: forms.PriceSourcesRequest, *, idempotency_key: str | None = None
    ) -> forms.PriceSourcesAnswer:
        """Sets the price sources that count, and the member whose keys feed each of them."""
        found = await self._call(
            "POST", "/v1/oracle/sources", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.PriceSourcesAnswer", found)

    async def report_price(
        self, body: forms.PriceObservationRequest, *, idempotency_key: str | None = None
    ) -> forms.PriceObservationAnswer:
        """Records a price that a source published, told by its feeder. Prices are only
        added, each.
        """
        found = await self._call(
            "POST",
            "/v1/oracle/observations",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PriceObservationAnswer", found)

    async def list_price_snapshots(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.PriceSnapshotPage:
        """Lists every snapshot in order: all sources at each burn or seal that needed a
        price.
        """
        found = await self._call(
            "GET", "/v1/oracle/snapshots", query={"limit": limit, "cursor": cursor, "order": order}
        )
        return cast("forms.PriceSnapshotPage", found)

    def iter_price_snapshots(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.PriceSnapshotAnswer]:
        """Every item of `list_price_snapshots` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_price_snapshots(limit=limit, cursor=at_cursor, order=order),
            cursor,
        )

    async def take_price_snapshot(
        self, body: forms.PriceSnapshotRequest, *, idempotency_key: str | None = None
    ) -> forms.PriceSnapshotAnswer:
        """Records the sources' prices now, usable or not. Within 10 s of a healthy snapshot
        that one.
        """
        found = await self._call(
            "POST", "/v1/oracle/snapshots", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.PriceSnapshotAnswer", found)

    async def list_tariffs(self) -> forms.TariffsAnswer:
        """Lists every version of the tariff, oldest first."""
        found = await self._call("GET", "/v1/tariffs")
        return cast("forms.TariffsAnswer", found)

    async def publish_tariff(
        self, body: forms.TariffRequest, *, idempotency_key: str | None = None
    ) -> forms.TariffAnswer:
        """Publishes the next version. Leases that are reserved already keep theirs."""
        found = await self._call(
            "POST", "/v1/tariffs", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.TariffAnswer", found)

    async def register_provider_kind(
        self, body: forms.ProviderKindRequest, *, idempotency_key: str | None = None
    ) -> forms.ProviderKindAnswer:
        """Registers a kind of provider, or another cost of one, from a date on."""
        found = await self._call(
            "POST", "/v1/provider-kinds", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.ProviderKindAnswer", found)

    async def list_provider_kinds(self) -> forms.ProviderKindsAnswer:
        """Lists the kinds of providers and what a GPU-hour costs on each. Anyone may read
        them.
        """
        found = await self._call("GET", "/v1/provider-kinds")
        return cast("forms.ProviderKindsAnswer", found)

    async def read_funding(self, account_id: str) -> forms.AccountFundingAnswer:
        """Returns what an account may spend now, in spend order."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/funding", account_id=account_id)
        )
        return cast("forms.AccountFundingAnswer", found)

    async def fund_account(
        self,
        account_id: str,
        body: forms.FundedAccountRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.FundedAccountAnswer:
        """Starts paying for another account from now on, up to a monthly cap."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/funded-accounts", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.FundedAccountAnswer", found)

    async def list_funded_accounts(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.FundedAccountPage:
        """Lists the accounts that an account pays for or paid for."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/funded-accounts", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.FundedAccountPage", found)

    def iter_funded_accounts(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.FundedAccountAnswer]:
        """Every item of `list_funded_accounts` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_funded_accounts(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def stop_funding(
        self,
        account_id: str,
        funded_account_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.FundedAccountAnswer:
        """Stops paying for another account, or being paid for. Leases that hold money keep
        it.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/funded-accounts/{funded_account_id}/end",
                account_id=account_id,
                funded_account_id=funded_account_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.FundedAccountAnswer", found)

    async def set_budget(
        self, account_id: str, body: forms.BudgetRequest, *, idempotency_key: str | None = None
    ) -> forms.BudgetAnswer:
        """Caps what goes into escrow in a calendar month (UTC), for a project or a key."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/budgets", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.BudgetAnswer", found)

    async def list_budgets(
        self, account_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.BudgetPage:
        """Lists the caps of an account, and how much of each is used this month."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/budgets", account_id=account_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.BudgetPage", found)

    def iter_budgets(
        self, account_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.BudgetAnswer]:
        """Every item of `list_budgets` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_budgets(account_id, limit=limit, cursor=at_cursor), cursor
        )

    async def open_promotion(
        self, body: forms.PromotionRequest, *, idempotency_key: str | None = None
    ) -> forms.PromotionAnswer:
        """Opens a program with a fund from your own cash."""
        found = await self._call(
            "POST", "/v1/promotions", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.PromotionAnswer", found)

    async def list_promotions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PromotionPage:
        """Lists programs in order of opening, to the operator and auditors."""
        found = await self._call(
            "GET",
            "/v1/promotions",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PromotionPage", found)

    def iter_promotions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PromotionAnswer]:
        """Every item of `list_promotions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_promotions(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_promotion(self, program: str) -> forms.PromotionAnswer:
        """Returns a program, to the operator and auditors."""
        found = await self._call("GET", at("/v1/promotions/{program}", program=program))
        return cast("forms.PromotionAnswer", found)

    async def close_promotion(
        self, program: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.PromotionClosedAnswer:
        """Ends a program. Credits that were not granted return to the sponsor's cash.
        Grants go on.
        """
        found = await self._call(
            "POST",
            at("/v1/promotions/{program}/close", program=program),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PromotionClosedAnswer", found)

    async def grant_promotion(
        self, program: str, body: forms.PromotionGrantRequest, *, idempotency_key: str | None = None
    ) -> forms.PromotionGrantAnswer:
        """Gives an account credits of a program."""
        found = await self._call(
            "POST",
            at("/v1/promotions/{program}/grants", program=program),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PromotionGrantAnswer", found)

    async def list_promotion_grants(
        self,
        program: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PromotionGrantPage:
        """Lists the grants of a program, account by account; to a party its own."""
        found = await self._call(
            "GET",
            at("/v1/promotions/{program}/grants", program=program),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PromotionGrantPage", found)

    def iter_promotion_grants(
        self,
        program: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PromotionGrantAnswer]:
        """Every item of `list_promotion_grants` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_promotion_grants(
                program, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_forecast(self, account_id: str) -> forms.FundsForecastAnswer:
        """Returns the second when funds end: of each running lease, and of the balance
        behind them.
        """
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/forecast", account_id=account_id)
        )
        return cast("forms.FundsForecastAnswer", found)

    async def create_payment(
        self, account_id: str, body: forms.PaymentRequest, *, idempotency_key: str | None = None
    ) -> forms.PaymentAnswer:
        """Starts a payment. The answer says where or how to pay."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/payments", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentAnswer", found)

    async def list_payments(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PaymentPage:
        """Lists payments of an account, in order of starting."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/payments", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PaymentPage", found)

    def iter_payments(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PaymentAnswer]:
        """Every item of `list_payments` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_payments(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_payment(self, payment_id: str) -> forms.PaymentAnswer:
        """Returns a payment and how much of it went back."""
        found = await self._call("GET", at("/v1/payments/{payment_id}", payment_id=payment_id))
        return cast("forms.PaymentAnswer", found)

    async def confirm_payment(
        self,
        payment_id: str,
        body: forms.BankConfirmationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PaymentAnswer:
        """Confirms that a bank transfer arrived. Its credits are cash at once."""
        found = await self._call(
            "POST",
            at("/v1/payments/{payment_id}/confirm", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentAnswer", found)

    async def create_reversal(
        self,
        payment_id: str,
        body: forms.BankReversalRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PaymentAnswer:
        """Records that the payer's bank reversed a transfer."""
        found = await self._call(
            "POST",
            at("/v1/payments/{payment_id}/reversals", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentAnswer", found)

    async def create_refund(
        self,
        payment_id: str,
        body: forms.PaymentRefundRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PaymentRefundAnswer:
        """Refunds unspent money the way it came. It leaves the balance at once."""
        found = await self._call(
            "POST",
            at("/v1/payments/{payment_id}/refunds", payment_id=payment_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentRefundAnswer", found)

    async def confirm_refund(
        self,
        payment_id: str,
        refund_id: str,
        body: forms.RefundConfirmationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PaymentAnswer:
        """Confirms that the bank transfer of a refund was made."""
        found = await self._call(
            "POST",
            at(
                "/v1/payments/{payment_id}/refunds/{refund_id}/confirm",
                payment_id=payment_id,
                refund_id=refund_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentAnswer", found)

    async def ingest_payment_event(
        self, processor: str, body: forms.PaymentEventRequest
    ) -> forms.PaymentEventAnswer:
        """Records an event that a payment processor signed. A second delivery changes
        nothing.
        """
        found = await self._call(
            "POST", at("/v1/payments/events/{processor}", processor=processor), body=body
        )
        return cast("forms.PaymentEventAnswer", found)

    async def read_funds(self, account_id: str) -> forms.FundsSettingsAnswer:
        """Returns warnings and auto top-up of an account, and their state."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/funds", account_id=account_id)
        )
        return cast("forms.FundsSettingsAnswer", found)

    async def set_balance_warnings(
        self,
        account_id: str,
        body: forms.BalanceWarningsRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.FundsSettingsAnswer:
        """Sets the levels of the spendable balance below which the account is warned."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/funds/warnings", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.FundsSettingsAnswer", found)

    async def set_auto_top_up(
        self, account_id: str, body: forms.AutoTopUpRequest, *, idempotency_key: str | None = None
    ) -> forms.FundsSettingsAnswer:
        """Sets automatic payments, with the card that an earlier payment saved."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/funds/auto-top-up", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.FundsSettingsAnswer", found)

    async def delete_auto_top_up(self, account_id: str) -> forms.FundsSettingsAnswer:
        """Ends automatic payments. A second call changes nothing."""
        found = await self._call(
            "DELETE", at("/v1/accounts/{account_id}/funds/auto-top-up", account_id=account_id)
        )
        return cast("forms.FundsSettingsAnswer", found)

    async def read_payment_terms(self) -> forms.PaymentTermsAnswer:
        """Returns the terms on which money is taken now."""
        found = await self._call("GET", "/v1/payment-terms")
        return cast("forms.PaymentTermsAnswer", found)

    async def publish_payment_terms(
        self, body: forms.PaymentTermsRequest, *, idempotency_key: str | None = None
    ) -> forms.PaymentTermsAnswer:
        """Publishes the next terms."""
        found = await self._call(
            "POST", "/v1/payment-terms", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.PaymentTermsAnswer", found)

    async def create_write_off(
        self,
        account_id: str,
        body: forms.DebtWriteOffRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DebtWriteOffAnswer:
        """Lets the charge-back reserve pay a debt that the account will not pay."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/write-offs", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DebtWriteOffAnswer", found)

    async def add_reserve(
        self, body: forms.ChargebackReserveRequest, *, idempotency_key: str | None = None
    ) -> forms.ChargebackReserveAnswer:
        """Sets platform revenue aside for charge-backs."""
        found = await self._call(
            "POST",
            "/v1/chargeback-reserve",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ChargebackReserveAnswer", found)

    async def register_provider(
        self, body: forms.ProviderRequest, *, idempotency_key: str | None = None
    ) -> forms.ProviderAnswer:
        """Registers a provider of the caller's account, together with how the account is
        paid.
        """
        found = await self._call(
            "POST", "/v1/providers", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.ProviderAnswer", found)

    async def list_providers(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.ProviderPage:
        """Lists providers in order of registration: your own, or all for operators and
        auditors.
        """
        found = await self._call(
            "GET",
            "/v1/providers",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.ProviderPage", found)

    def iter_providers(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.ProviderAnswer]:
        """Every item of `list_providers` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_providers(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_provider(self, provider_id: str) -> forms.ProviderAnswer:
        """Returns a provider."""
        found = await self._call("GET", at("/v1/providers/{provider_id}", provider_id=provider_id))
        return cast("forms.ProviderAnswer", found)

    async def open_region(
        self, body: forms.RegionRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionAnswer:
        """Opens a region of one of the caller's providers."""
        found = await self._call(
            "POST", "/v1/regions", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.RegionAnswer", found)

    async def list_regions(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.RegionPage:
        """Lists regions in order of opening: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/regions",
            query={
                "provider_id": provider_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.RegionPage", found)

    def iter_regions(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.RegionAnswer]:
        """Every item of `list_regions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_regions(
                provider_id=provider_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_region(self, region_id: str) -> forms.RegionAnswer:
        """Returns a region."""
        found = await self._call("GET", at("/v1/regions/{region_id}", region_id=region_id))
        return cast("forms.RegionAnswer", found)

    async def set_region_policy(
        self, region_id: str, body: forms.RegionPolicyRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionAnswer:
        """Sets which jobs may run in a region, what it refuses or ranks down, and how safe
        it is.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/policy", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionAnswer", found)

    async def set_region_hardware(
        self,
        region_id: str,
        body: forms.HardwareRulesRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.RegionAnswer:
        """Sets the hardware rules of a region (C-11 to C-18)."""
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/hardware-rules", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionAnswer", found)

    async def list_region_nodes(
        self,
        region_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.RegionNodePage:
        """Lists the nodes of a region in order of joining."""
        found = await self._call(
            "GET",
            at("/v1/regions/{region_id}/nodes", region_id=region_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.RegionNodePage", found)

    def iter_region_nodes(
        self,
        region_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.RegionNodeAnswer]:
        """Every item of `list_region_nodes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_region_nodes(
                region_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def set_region_growth(
        self, region_id: str, body: forms.RegionGrowthRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionGrowthAnswer:
        """Sets how a region grows. A region without workers is opening until it has enough."""
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/growth", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionGrowthAnswer", found)

    async def read_region_growth(self, region_id: str) -> forms.RegionGrowthAnswer:
        """Returns how a region grows, its phase, and how many nodes of each role it has."""
        found = await self._call("GET", at("/v1/regions/{region_id}/growth", region_id=region_id))
        return cast("forms.RegionGrowthAnswer", found)

    async def set_region_phase(
        self, region_id: str, body: forms.RegionPhaseRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionGrowthAnswer:
        """Moves a region to another phase. A draining region takes no nodes and no new
        leases of other.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/phase", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionGrowthAnswer", found)

    async def create_join_code(
        self, body: forms.JoinCodeRequest, *, idempotency_key: str | None = None
    ) -> forms.JoinCodeAnswer:
        """Issues a code that lets one machine join a region, valid for ten minutes."""
        found = await self._call(
            "POST", "/v1/nodes/join-codes", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.JoinCodeAnswer", found)

    async def confirm_node(
        self,
        node_id: str,
        body: forms.NodeKeyConfirmationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.NodeStateAnswer:
        """Confirms a node: the owner has compared the key with the one the machine shows."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/confirm", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def admit_node(
        self, node_id: str, body: forms.NodeAdmissionRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Admits a confirmed node, by the operator or, in a permissionless region, by its
        owner.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/admit", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def activate_node(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Activates a node. It takes new leases from now on."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/activate", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def start_maintenance(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Starts maintenance. The node takes no new leases; running ones go on."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/maintenance", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def retire_node(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Retires a node for good, with its devices."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/retire", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def report_specs(
        self, node_id: str, body: forms.NodeSpecsRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Records a new inventory, sent by the node. New devices count after the next
        admission.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/specs", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def list_nodes(
        self,
        *,
        provider_id: str | None = None,
        region_id: str | None = None,
        account_id: str | None = None,
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
        | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.NodePage:
        """Lists nodes in order of joining: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/nodes",
            query={
                "provider_id": provider_id,
                "region_id": region_id,
                "account_id": account_id,
                "phase": phase,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.NodePage", found)

    def iter_nodes(
        self,
        *,
        provider_id: str | None = None,
        region_id: str | None = None,
        account_id: str | None = None,
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
        | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.NodeAnswer]:
        """Every item of `list_nodes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_nodes(
                provider_id=provider_id,
                region_id=region_id,
                account_id=account_id,
                phase=phase,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def read_node(self, node_id: str) -> forms.NodeAnswer:
        """Returns a node."""
        found = await self._call("GET", at("/v1/nodes/{node_id}", node_id=node_id))
        return cast("forms.NodeAnswer", found)

    async def list_node_keys(self, node_id: str) -> forms.NodeKeysAnswer:
        """Lists the public keys that a node signs its reports with. Anyone may check them."""
        found = await self._call("GET", at("/v1/nodes/{node_id}/keys", node_id=node_id))
        return cast("forms.NodeKeysAnswer", found)

    async def set_revenue_shares(
        self, node_id: str, body: forms.RevenueSharesRequest, *, idempotency_key: str | None = None
    ) -> forms.RevenueSharesAnswer:
        """Splits what a node earns among its owners, for leases reserved from now on."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/revenue-shares", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RevenueSharesAnswer", found)

    async def read_revenue_shares(self, node_id: str) -> forms.RevenueSharesAnswer:
        """Lists the owners that share what the node's provider earns."""
        found = await self._call("GET", at("/v1/nodes/{node_id}/revenue-shares", node_id=node_id))
        return cast("forms.RevenueSharesAnswer", found)

    async def release_revenue_shares(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.RevenueSharesLeftAnswer:
        """Gives up your share of a node that another provider runs, for leases reserved
        from now on.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/revenue-shares/release", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RevenueSharesLeftAnswer", found)

    async def create_node_transfer(
        self, node_id: str, body: forms.NodeTransferRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeTransferAnswer:
        """Offers your part of a node to another account. Nothing changes until that one
        accepts.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/transfer", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeTransferAnswer", found)

    async def accept_node_transfer(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeTransferAnswer:
        """Accepts a part of a node that its owner offered you. No lease may hold the node:
        drain it.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/transfer/accept", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeTransferAnswer", found)

    async def rotate_node_key(
        self,
        node_id: str,
        body: forms.NodeKeyRotationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.NodeKeyRotatedAnswer:
        """Replaces a node's signing key from a report on. The node calls this, with both
        keys.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/keys/rotate", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeKeyRotatedAnswer", found)

    async def revoke_node_key(
        self,
        node_id: str,
        body: forms.NodeKeyRevocationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.NodeStateAnswer:
        """Revokes a lost or stolen key."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/keys/revoke", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def list_devices(
        self,
        *,
        node_id: str | None = None,
        node_ids: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DevicePage:
        """Lists devices in order of registration: your own, those of nodes that you own a
        part of and.
        """
        found = await self._call(
            "GET",
            "/v1/devices",
            query={
                "node_id": node_id,
                "node_ids": node_ids,
                "region_id": region_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.DevicePage", found)

    def iter_devices(
        self,
        *,
        node_id: str | None = None,
        node_ids: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DeviceAnswer]:
        """Every item of `list_devices` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_devices(
                node_id=node_id,
                node_ids=node_ids,
                region_id=region_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def read_device(self, device_id: str) -> forms.DeviceAnswer:
        """Returns a device, and which leases hold how much of it."""
        found = await self._call("GET", at("/v1/devices/{device_id}", device_id=device_id))
        return cast("forms.DeviceAnswer", found)

    async def reshape_device(
        self,
        device_id: str,
        body: forms.DeviceReshapingRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DeviceReshapedAnswer:
        """Ends the leases whose part of a repartitioned device is gone, by the provider's
        fault.
        """
        found = await self._call(
            "POST",
            at("/v1/devices/{device_id}/reshape", device_id=device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DeviceReshapedAnswer", found)

    async def list_resource_kinds(self) -> forms.ResourceKindsAnswer:
        """Lists every kind of resource that can be rented, by kind and vendor."""
        found = await self._call("GET", "/v1/resource-kinds")
        return cast("forms.ResourceKindsAnswer", found)

    async def register_resource_kind(
        self, body: forms.ResourceKindRequest, *, idempotency_key: str | None = None
    ) -> forms.ResourceKindAnswer:
        """Registers a vendor's devices of a kind, from a date on."""
        found = await self._call(
            "POST", "/v1/resource-kinds", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.ResourceKindAnswer", found)

    async def register_model_class(
        self, body: forms.ModelClassRequest, *, idempotency_key: str | None = None
    ) -> forms.ModelClassAnswer:
        """Puts a model into a class of the tariff, from a date on. The class decides its
        fee.
        """
        found = await self._call(
            "POST",
            "/v1/resource-kinds/models",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ModelClassAnswer", found)

    async def grant_licence(
        self, body: forms.LicenceRequest, *, idempotency_key: str | None = None
    ) -> forms.LicenceAnswer:
        """Records a licence that one of your providers holds. Its nodes may list the seats."""
        found = await self._call(
            "POST", "/v1/licences", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.LicenceAnswer", found)

    async def list_licences(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.LicencePage:
        """Lists licences in the order of their grant: your own, or all for operators and
        auditors.
        """
        found = await self._call(
            "GET",
            "/v1/licences",
            query={
                "provider_id": provider_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.LicencePage", found)

    def iter_licences(
        self,
        *,
        provider_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.LicenceAnswer]:
        """Every item of `list_licences` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_licences(
                provider_id=provider_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def revoke_licence(
        self, licence_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.LicenceRevokedAnswer:
        """Revokes a licence. Its seats are not accepted in further nodes; held ones run to
        their.
        """
        found = await self._call(
            "POST",
            at("/v1/licences/{licence_id}/revoke", licence_id=licence_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LicenceRevokedAnswer", found)

    async def schedule_maintenance(
        self,
        node_id: str,
        body: forms.MaintenanceWindowRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.MaintenanceWindowAnswer:
        """Schedules maintenance of a node. No lease is reserved over that time."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/maintenances", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MaintenanceWindowAnswer", found)

    async def list_maintenances(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.MaintenanceWindowPage:
        """Lists the announced maintenance of a node, in order. Renters may read it before
        they rent.
        """
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/maintenances", node_id=node_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.MaintenanceWindowPage", found)

    def iter_maintenances(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.MaintenanceWindowAnswer]:
        """Every item of `list_maintenances` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_maintenances(
                node_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def cancel_maintenance(
        self,
        node_id: str,
        maintenance_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.MaintenanceWindowAnswer:
        """Cancels maintenance that is announced, or ends one that runs."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/maintenances/{maintenance_id}/cancel",
                node_id=node_id,
                maintenance_id=maintenance_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MaintenanceWindowAnswer", found)

    async def drain_node(
        self, node_id: str, body: forms.NodeDrainRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeStateAnswer:
        """Drains a node: it takes no new leases until it is activated again."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/drain", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeStateAnswer", found)

    async def set_node_role(
        self, node_id: str, body: forms.NodeRoleRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeRoleAnswer:
        """Sets the role of a node: worker, ingress or control. Only workers are."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/role", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeRoleAnswer", found)

    async def read_ingress_load(self, region_id: str) -> forms.IngressLoadsAnswer:
        """Returns how much work goes through each ingress node of a region."""
        found = await self._call("GET", at("/v1/regions/{region_id}/ingress", region_id=region_id))
        return cast("forms.IngressLoadsAnswer", found)

    async def provision_storage_node(
        self, region_id: str, body: forms.StorageNodeRequest, *, idempotency_key: str | None = None
    ) -> forms.StorageNodeStateAnswer:
        """Requests the storage node of a central region of yours. It costs by the hour from
        now on.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/storage-node", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.StorageNodeStateAnswer", found)

    async def read_storage_node(self, region_id: str) -> forms.StorageNodesAnswer:
        """Returns the storage nodes of a region and their cost."""
        found = await self._call(
            "GET", at("/v1/regions/{region_id}/storage-node", region_id=region_id)
        )
        return cast("forms.StorageNodesAnswer", found)

    async def confirm_storage_node(
        self, region_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.StorageNodeStateAnswer:
        """Reports that the storage node serves, sent by the machine itself with a key of
        its provider's.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/storage-node/ready", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.StorageNodeStateAnswer", found)

    async def replace_storage_node(
        self, region_id: str, body: forms.StorageNodeRequest, *, idempotency_key: str | None = None
    ) -> forms.StorageNodeStateAnswer:
        """Replaces the storage node: the old one is charged to now, the next one is
        provisioned in the.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/storage-node/replace", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.StorageNodeStateAnswer", found)

    async def remove_storage_node(
        self, region_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.StorageNodeStateAnswer:
        """Removes the storage node of a region without nodes. The time up to now is
        charged.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/storage-node/remove", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.StorageNodeStateAnswer", found)

    async def report_cloud_account(
        self,
        provider_id: str,
        body: forms.CloudAccountRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CloudAccountAnswer:
        """Reports the checklist of a cloud provider's account; the last report counts."""
        found = await self._call(
            "POST",
            at("/v1/providers/{provider_id}/cloud-account", provider_id=provider_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CloudAccountAnswer", found)

    async def read_cloud_account(self, provider_id: str) -> forms.CloudAccountAnswer:
        """Returns the checklist of a cloud provider: what is done, and what is missing."""
        found = await self._call(
            "GET", at("/v1/providers/{provider_id}/cloud-account", provider_id=provider_id)
        )
        return cast("forms.CloudAccountAnswer", found)

    async def list_cloud_regions(self) -> forms.CloudRegionsAnswer:
        """Lists the regions of clouds that can be opened here."""
        found = await self._call("GET", "/v1/cloud-regions")
        return cast("forms.CloudRegionsAnswer", found)

    async def report_cloud_quotas(
        self, region_id: str, body: forms.CloudQuotasRequest, *, idempotency_key: str | None = None
    ) -> forms.CloudQuotasAnswer:
        """Reports what a region's cloud allows and what of it is used; the last report
        counts.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/cloud-quotas", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CloudQuotasAnswer", found)

    async def read_cloud_quotas(self, region_id: str) -> forms.CloudQuotasAnswer:
        """Returns the quotas of a cloud region, and how many jobs can still start on each
        GPU model.
        """
        found = await self._call(
            "GET", at("/v1/regions/{region_id}/cloud-quotas", region_id=region_id)
        )
        return cast("forms.CloudQuotasAnswer", found)

    async def set_capacity_class(
        self, node_id: str, body: forms.CapacityClassRequest, *, idempotency_key: str | None = None
    ) -> forms.CapacityClassAnswer:
        """Sets the capacity class of a node for leases to come."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/capacity-class", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CapacityClassAnswer", found)

    async def request_admission(
        self, body: forms.AdmissionRequest, *, idempotency_key: str | None = None
    ) -> forms.AdmissionAnswer:
        """Requests the admission of a machine to a region of yours that admits by the
        procedure.
        """
        found = await self._call(
            "POST", "/v1/admissions", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.AdmissionAnswer", found)

    async def list_admissions(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.AdmissionPage:
        """Lists admissions in order of request: your own, or all for operators and
        auditors.
        """
        found = await self._call(
            "GET",
            "/v1/admissions",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.AdmissionPage", found)

    def iter_admissions(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.AdmissionAnswer]:
        """Every item of `list_admissions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_admissions(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def validate_admission(
        self, admission_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.AdmissionAnswer:
        """Validates a requested machine."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/validate", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdmissionAnswer", found)

    async def refuse_admission(
        self,
        admission_id: str,
        body: forms.AdmissionRefusalRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AdmissionAnswer:
        """Refuses a machine that is not installed yet, and says why."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/refuse", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdmissionAnswer", found)

    async def ship_boot_drive(
        self, admission_id: str, body: forms.BootDriveRequest, *, idempotency_key: str | None = None
    ) -> forms.AdmissionAnswer:
        """Records that the boot drive of a validated machine is on its way."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/ship", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdmissionAnswer", found)

    async def do_firmware_step(
        self,
        admission_id: str,
        body: forms.FirmwareStepRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AdmissionAnswer:
        """Records a step of the firmware setup: TPM cleared, CSM off, Secure Boot off."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/firmware", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdmissionAnswer", found)

    async def install_machine(
        self,
        admission_id: str,
        body: forms.InstalledMachineRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AdmissionAnswer:
        """Records that the machine started from its boot drive, under the id that it shows."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/installed", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdmissionAnswer", found)

    async def create_installed_code(
        self, admission_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.JoinCodeAnswer:
        """Issues a code that lets the installed machine join, valid for ten minutes."""
        found = await self._call(
            "POST",
            at("/v1/admissions/{admission_id}/join-codes", admission_id=admission_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JoinCodeAnswer", found)

    async def read_admission(self, admission_id: str) -> forms.AdmissionAnswer:
        """Returns an admission and what is left to do."""
        found = await self._call(
            "GET", at("/v1/admissions/{admission_id}", admission_id=admission_id)
        )
        return cast("forms.AdmissionAnswer", found)

    async def stop_node(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeConditionAnswer:
        """Records that a machine is turned off. It comes back by way of maintenance."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/stop", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeConditionAnswer", found)

    async def report_node_error(
        self, node_id: str, body: forms.NodeErrorRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeConditionAnswer:
        """Reports an error, sent by the node. It takes no new leases until it comes back by
        way of.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/error", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeConditionAnswer", found)

    async def fail_node(
        self, node_id: str, body: forms.NodeErrorRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeConditionAnswer:
        """Marks a node as failed until it is repaired. The error is kept."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/fail", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeConditionAnswer", found)

    async def state_node_setup(
        self, node_id: str, body: forms.NodeSetupRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeConditionAnswer:
        """States how a machine is set up: its uplink, UPnP, and exclusive access."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/setup", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeConditionAnswer", found)

    async def set_idle_mining(
        self, node_id: str, body: forms.IdleMiningRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeConditionAnswer:
        """Sets whether a machine mines while no lease runs on it. It needs a wallet that is
        paid.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/idle-mining", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeConditionAnswer", found)

    async def read_node_condition(self, node_id: str) -> forms.NodeConditionAnswer:
        """Returns the condition of a node, and what its owner states about it."""
        found = await self._call("GET", at("/v1/nodes/{node_id}/condition", node_id=node_id))
        return cast("forms.NodeConditionAnswer", found)

    async def grant_region_admin(
        self, region_id: str, body: forms.RegionAdminRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionAdminsAnswer:
        """Lets another account see and manage the nodes of a region. Money stays the
        provider's.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/admins", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionAdminsAnswer", found)

    async def list_region_admins(self, region_id: str) -> forms.RegionAdminsAnswer:
        """Lists the administrators of a region beside its provider."""
        found = await self._call("GET", at("/v1/regions/{region_id}/admins", region_id=region_id))
        return cast("forms.RegionAdminsAnswer", found)

    async def revoke_region_admin(
        self,
        region_id: str,
        account_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.RegionAdminsAnswer:
        """Takes the administration of a region from an account; an administrator may step
        down.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/regions/{region_id}/admins/{account_id}/revoke",
                region_id=region_id,
                account_id=account_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionAdminsAnswer", found)

    async def set_region_place(
        self, region_id: str, body: forms.RegionPlaceRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionPlaceAnswer:
        """Sets where a region is: which machines are sent to it, and its dot on the map."""
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/place", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionPlaceAnswer", found)

    async def read_region_place(self, region_id: str) -> forms.RegionPlaceAnswer:
        """Returns where a region is."""
        found = await self._call("GET", at("/v1/regions/{region_id}/place", region_id=region_id))
        return cast("forms.RegionPlaceAnswer", found)

    async def create_check_in(
        self, body: forms.CheckInRequest, *, idempotency_key: str | None = None
    ) -> forms.CheckInAnswer:
        """Sends a new machine to the region of its place, or puts the account on a wait
        list. Call it.
        """
        found = await self._call(
            "POST", "/v1/check-ins", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.CheckInAnswer", found)

    async def set_wait_list_terms(
        self, list_id: str, body: forms.WaitListTermsRequest, *, idempotency_key: str | None = None
    ) -> forms.WaitListAnswer:
        """Sets what starts a region that people wait for; the operator does for places."""
        found = await self._call(
            "POST",
            at("/v1/wait-lists/{list_id}/terms", list_id=list_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WaitListAnswer", found)

    async def withdraw_from_wait_list(
        self, list_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.WaitListAnswer:
        """Takes your account off a wait list."""
        found = await self._call(
            "POST",
            at("/v1/wait-lists/{list_id}/leave", list_id=list_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WaitListAnswer", found)

    async def list_wait_lists(self) -> forms.WaitListsAnswer:
        """Lists the wait lists that your account is on, or all for operators and auditors."""
        found = await self._call("GET", "/v1/wait-lists")
        return cast("forms.WaitListsAnswer", found)

    async def read_node_targets(self, node_id: str) -> forms.NodeTargetsAnswer:
        """Lists what a node's reporter should try: its region's control and ingress, and
        neighbours.
        """
        found = await self._call("GET", at("/v1/nodes/{node_id}/targets", node_id=node_id))
        return cast("forms.NodeTargetsAnswer", found)

    async def report_latency(
        self, node_id: str, body: forms.NodeLatencyRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeLatencyAnswer:
        """Records how far a node is from its region's control and its ingress, sent by the
        node. Within.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/latency", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeLatencyAnswer", found)

    async def read_latency(self, node_id: str) -> forms.NodeLatencyAnswer:
        """Returns what a node measured of the way to its region's control and its ingress."""
        found = await self._call("GET", at("/v1/nodes/{node_id}/latency", node_id=node_id))
        return cast("forms.NodeLatencyAnswer", found)

    async def report_ingress_bytes(
        self, node_id: str, body: forms.IngressBytesRequest, *, idempotency_key: str | None = None
    ) -> forms.IngressBytesAnswer:
        """Records the bytes that went through an ingress node, signed by its key."""
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/ingress-bytes", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.IngressBytesAnswer", found)

    async def list_ingress_bytes(self, region_id: str) -> forms.IngressDaysAnswer:
        """Lists the bytes through each ingress node of a region by UTC day, the newest
        first.
        """
        found = await self._call(
            "GET", at("/v1/regions/{region_id}/ingress-bytes", region_id=region_id)
        )
        return cast("forms.IngressDaysAnswer", found)

    async def report_neighbours(
        self, node_id: str, body: forms.NodeNeighboursRequest, *, idempotency_key: str | None = None
    ) -> forms.NodeNeighboursAnswer:
        """Records the private addresses of a node and the neighbours it reached, signed by
        its key.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/neighbours", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.NodeNeighboursAnswer", found)

    async def read_neighbours(self, node_id: str) -> forms.NodeNeighboursAnswer:
        """Returns which nodes of its region a node reaches on private addresses, before it
        is admitted.
        """
        found = await self._call("GET", at("/v1/nodes/{node_id}/neighbours", node_id=node_id))
        return cast("forms.NodeNeighboursAnswer", found)

    async def read_region_neighbours(self, region_id: str) -> forms.RegionNeighboursAnswer:
        """Returns whether all nodes of a region reach each other on private addresses, node
        by node.
        """
        found = await self._call(
            "GET", at("/v1/regions/{region_id}/neighbours", region_id=region_id)
        )
        return cast("forms.RegionNeighboursAnswer", found)

    async def read_where_next(self) -> forms.WhereNextAnswer:
        """Shows where regions are wanted: accounts that wait, unmet demand, and what is
        used.
        """
        found = await self._call("GET", "/v1/where-next")
        return cast("forms.WhereNextAnswer", found)

    async def read_region_map(self) -> forms.RegionMapAnswer:
        """Returns regions, where people wait, and your own nodes with their devices
        (operators and.
        """
        found = await self._call("GET", "/v1/where-next/map")
        return cast("forms.RegionMapAnswer", found)

    async def add_edge_device(
        self, body: forms.EdgeDeviceRequest, *, idempotency_key: str | None = None
    ) -> forms.EdgeDeviceAnswer:
        """Adds an edge device in a region of yours: a physical one with the storage mode
        central.
        """
        found = await self._call(
            "POST", "/v1/edge-devices", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.EdgeDeviceAnswer", found)

    async def list_edge_devices(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.EdgeDevicePage:
        """Lists edge devices in the order in which they were added, removed ones too: your
        own, or.
        """
        found = await self._call(
            "GET",
            "/v1/edge-devices",
            query={
                "account_id": account_id,
                "region_id": region_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.EdgeDevicePage", found)

    def iter_edge_devices(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.EdgeDeviceAnswer]:
        """Every item of `list_edge_devices` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_edge_devices(
                account_id=account_id,
                region_id=region_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def report_edge_device(
        self, edge_device_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.EdgeDeviceStateAnswer:
        """Reports that an edge device runs, sent by the device with a key of its owner's
        account. It is.
        """
        found = await self._call(
            "POST",
            at("/v1/edge-devices/{edge_device_id}/report", edge_device_id=edge_device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.EdgeDeviceStateAnswer", found)

    async def remove_edge_device(
        self, edge_device_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.EdgeDeviceRemovedAnswer:
        """Removes an edge device. It is charged for today and no longer."""
        found = await self._call(
            "POST",
            at("/v1/edge-devices/{edge_device_id}/remove", edge_device_id=edge_device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.EdgeDeviceRemovedAnswer", found)

    async def list_device_fees(
        self, *, account_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> forms.DeviceFeePage:
        """Lists the fee for edge devices, day by day."""
        found = await self._call(
            "GET",
            "/v1/device-fees",
            query={"account_id": account_id, "limit": limit, "cursor": cursor},
        )
        return cast("forms.DeviceFeePage", found)

    def iter_device_fees(
        self, *, account_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.DeviceFeeAnswer]:
        """Every item of `list_device_fees` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_device_fees(
                account_id=account_id, limit=limit, cursor=at_cursor
            ),
            cursor,
        )

    async def set_device_config(
        self, region_id: str, body: forms.DeviceConfigRequest, *, idempotency_key: str | None = None
    ) -> forms.DeviceConfigAnswer:
        """Sets a revision of a device configuration of a region of yours. Devices keep what
        they run.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/device-configs", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DeviceConfigAnswer", found)

    async def list_device_configs(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DeviceConfigPage:
        """Lists device configurations, each with its last revision."""
        found = await self._call(
            "GET",
            "/v1/device-configs",
            query={
                "account_id": account_id,
                "region_id": region_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.DeviceConfigPage", found)

    def iter_device_configs(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DeviceConfigAnswer]:
        """Every item of `list_device_configs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_device_configs(
                account_id=account_id,
                region_id=region_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def list_device_config_revisions(
        self,
        region_id: str,
        config: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.DeviceConfigPage:
        """Lists the revisions of a device configuration, from the first on."""
        found = await self._call(
            "GET",
            at(
                "/v1/regions/{region_id}/device-configs/{config}",
                region_id=region_id,
                config=config,
            ),
            query={"limit": limit, "cursor": cursor, "order": order},
        )
        return cast("forms.DeviceConfigPage", found)

    def iter_device_config_revisions(
        self,
        region_id: str,
        config: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.DeviceConfigAnswer]:
        """Every item of `list_device_config_revisions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_device_config_revisions(
                region_id, config, limit=limit, cursor=at_cursor, order=order
            ),
            cursor,
        )

    async def deploy_device_config(
        self,
        edge_device_id: str,
        body: forms.DeviceDeploymentRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DeviceDeploymentAnswer:
        """Deploys the last revision of a configuration to an active edge device, which runs
        it instead.
        """
        found = await self._call(
            "POST",
            at("/v1/edge-devices/{edge_device_id}/deploy", edge_device_id=edge_device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DeviceDeploymentAnswer", found)

    async def report_inference(
        self,
        edge_device_id: str,
        body: forms.DeviceInferenceRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DeviceInferenceAnswer:
        """Reports how the inference of an edge device goes, sent by the device with a key
        of its.
        """
        found = await self._call(
            "POST",
            at("/v1/edge-devices/{edge_device_id}/inference", edge_device_id=edge_device_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DeviceInferenceAnswer", found)

    async def read_device_work(
        self, edge_device_id: str, *, boot_id: str
    ) -> forms.DeviceRunsAnswer:
        """Returns what an edge device runs in this boot, asked by the device with a key of
        its owner's.
        """
        found = await self._call(
            "GET",
            at("/v1/edge-devices/{edge_device_id}/work", edge_device_id=edge_device_id),
            query={"boot_id": boot_id},
        )
        return cast("forms.DeviceRunsAnswer", found)

    async def add_datastore(
        self, region_id: str, body: forms.DatastoreRequest, *, idempotency_key: str | None = None
    ) -> forms.DatastoreAnswer:
        """Adds a datastore to a region of yours. It needs the plan team and a node in the
        region.
        """
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/datastores", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DatastoreAnswer", found)

    async def list_datastores(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DatastorePage:
        """Lists datastores in the order in which they were added."""
        found = await self._call(
            "GET",
            "/v1/datastores",
            query={
                "account_id": account_id,
                "region_id": region_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.DatastorePage", found)

    def iter_datastores(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DatastoreAnswer]:
        """Every item of `list_datastores` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_datastores(
                account_id=account_id,
                region_id=region_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def remove_datastore(
        self, datastore_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.DatastoreRemovedAnswer:
        """Removes a datastore, and forgets its user and password. No new lease mounts it."""
        found = await self._call(
            "POST",
            at("/v1/datastores/{datastore_id}/remove", datastore_id=datastore_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DatastoreRemovedAnswer", found)

    async def add_reservation(
        self, region_id: str, body: forms.ReservationRequest, *, idempotency_key: str | None = None
    ) -> forms.ReservationAnswer:
        """Reserves a host name and a port in a region of yours."""
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/reservations", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ReservationAnswer", found)

    async def list_reservations(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.ReservationPage:
        """Lists reservations, and the lease that holds each."""
        found = await self._call(
            "GET",
            "/v1/reservations",
            query={
                "account_id": account_id,
                "region_id": region_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.ReservationPage", found)

    def iter_reservations(
        self,
        *,
        account_id: str | None = None,
        region_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.ReservationAnswer]:
        """Every item of `list_reservations` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_reservations(
                account_id=account_id,
                region_id=region_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def remove_reservation(
        self, reservation_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.ReservationRemovedAnswer:
        """Removes a reservation that no lease holds."""
        found = await self._call(
            "POST",
            at("/v1/reservations/{reservation_id}/remove", reservation_id=reservation_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ReservationRemovedAnswer", found)

    async def read_usage_head(self, node_id: str) -> forms.UsageHeadAnswer:
        """Returns how far the log holds this node's chain. A reporter asks this at every
        start.
        """
        found = await self._call("GET", at("/v1/nodes/{node_id}/usage/head", node_id=node_id))
        return cast("forms.UsageHeadAnswer", found)

    async def read_node_usage(
        self, node_id: str, *, after_seq: int | None = None, after_position: int | None = None
    ) -> forms.NodeUsageAnswer:
        """Lists a node's stored usage, and the part that earns nothing, with the rule."""
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/usage", node_id=node_id),
            query={"after_seq": after_seq, "after_position": after_position},
        )
        return cast("forms.NodeUsageAnswer", found)

    async def list_node_hours(
        self,
        node_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.NodeHourPage:
        """Lists what a node reported, by UTC hour; hours that begin in [from, to)."""
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/usage/hours", node_id=node_id),
            query={"from": from_, "to": to, "limit": limit, "cursor": cursor, "order": order},
        )
        return cast("forms.NodeHourPage", found)

    def iter_node_hours(
        self,
        node_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.NodeHourAnswer]:
        """Every item of `list_node_hours` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_node_hours(
                node_id, from_=from_, to=to, limit=limit, cursor=at_cursor, order=order
            ),
            cursor,
        )

    async def list_usage_summary(
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
    ) -> forms.UsageSummaryPage:
        """Lists usage of your leases: hours that begin in [from, to), at most 366 days."""
        found = await self._call(
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
        return cast("forms.UsageSummaryPage", found)

    def iter_usage_summary(
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
    ) -> AsyncIterator[forms.UsageSummaryAnswer]:
        """Every item of `list_usage_summary` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_usage_summary(
                by=by,
                from_=from_,
                to=to,
                client_id=client_id,
                project_id=project_id,
                end_user_ref=end_user_ref,
                model=model,
                account_id=account_id,
                limit=limit,
                cursor=at_cursor,
            ),
            cursor,
        )

    async def list_utilisation(
        self,
        *,
        by: str | None = None,
        pool_id: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> forms.UtilisationPage:
        """Lists the accelerators' time by use: leased, idle, mined, stranded, unavailable."""
        found = await self._call(
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
        return cast("forms.UtilisationPage", found)

    def iter_utilisation(
        self,
        *,
        by: str | None = None,
        pool_id: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[forms.UtilisationAnswer]:
        """Every item of `list_utilisation` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_utilisation(
                by=by, pool_id=pool_id, from_=from_, to=to, limit=limit, cursor=at_cursor
            ),
            cursor,
        )

    async def list_fragmentation(
        self, *, by: str | None = None, pool_id: str | None = None
    ) -> forms.FragmentationsAnswer:
        """Lists what is free now, and whether it can be sold as whole devices."""
        found = await self._call("GET", "/v1/fragmentation", query={"by": by, "pool_id": pool_id})
        return cast("forms.FragmentationsAnswer", found)

    async def list_lease_resources(self, lease_id: str) -> forms.LeaseResourcesAnswer:
        """Lists what a lease used beside GPU time, and what each meter of it counts and
        costs.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/resources", lease_id=lease_id))
        return cast("forms.LeaseResourcesAnswer", found)

    async def list_resource_charges(
        self,
        lease_id: str,
        meter: Literal["cpu", "memory", "storage", "network"],
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> forms.ResourceChargePage:
        """Lists the facts of one meter of a lease: what each counted, charged and did not
        count.
        """
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/resources/{meter}", lease_id=lease_id, meter=meter),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.ResourceChargePage", found)

    def iter_resource_charges(
        self,
        lease_id: str,
        meter: Literal["cpu", "memory", "storage", "network"],
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[forms.ResourceChargeAnswer]:
        """Every item of `list_resource_charges` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_resource_charges(
                lease_id, meter, limit=limit, cursor=at_cursor
            ),
            cursor,
        )

    async def list_resource_rows(
        self, lease_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.ResourceRowPage:
        """Lists the signed rows of a lease beside GPU time, each with the report it stands
        in.
        """
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/resource-rows", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.ResourceRowPage", found)

    def iter_resource_rows(
        self, lease_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.ResourceRowAnswer]:
        """Every item of `list_resource_rows` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_resource_rows(lease_id, limit=limit, cursor=at_cursor),
            cursor,
        )

    async def read_lease_transfers(self, lease_id: str) -> forms.LeaseTransfersAnswer:
        """Returns the totals of what a lease moved over the network, and the datasets of
        its job.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/transfers", lease_id=lease_id))
        return cast("forms.LeaseTransfersAnswer", found)

    async def list_resource_use(
        self,
        *,
        by: str | None = None,
        as_provider: bool | None = None,
        from_: str | None = None,
        to: str | None = None,
        kind: str | None = None,
        node_id: str | None = None,
        client_id: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> forms.ResourceUsePage:
        """Lists signed use of CPU, memory, storage and network by kind of job, node,
        client, project or.
        """
        found = await self._call(
            "GET",
            "/v1/usage/resources",
            query={
                "by": by,
                "as_provider": as_provider,
                "from": from_,
                "to": to,
                "kind": kind,
                "node_id": node_id,
                "client_id": client_id,
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return cast("forms.ResourceUsePage", found)

    def iter_resource_use(
        self,
        *,
        by: str | None = None,
        as_provider: bool | None = None,
        from_: str | None = None,
        to: str | None = None,
        kind: str | None = None,
        node_id: str | None = None,
        client_id: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[forms.ResourceUseAnswer]:
        """Every item of `list_resource_use` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_resource_use(
                by=by,
                as_provider=as_provider,
                from_=from_,
                to=to,
                kind=kind,
                node_id=node_id,
                client_id=client_id,
                account_id=account_id,
                limit=limit,
                cursor=at_cursor,
            ),
            cursor,
        )

    async def list_usage_breakdown(
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
    ) -> forms.UsageBreakdownPage:
        """Lists usage of leases, by kind of job, node, pool, client, project, end user or
        group.
        """
        found = await self._call(
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
        return cast("forms.UsageBreakdownPage", found)

    def iter_usage_breakdown(
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
    ) -> AsyncIterator[forms.UsageBreakdownAnswer]:
        """Every item of `list_usage_breakdown` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_usage_breakdown(
                by=by,
                as_provider=as_provider,
                from_=from_,
                to=to,
                kind=kind,
                work=work,
                node_id=node_id,
                pool_id=pool_id,
                client_id=client_id,
                project_id=project_id,
                end_user_ref=end_user_ref,
                group_id=group_id,
                account_id=account_id,
                limit=limit,
                cursor=at_cursor,
            ),
            cursor,
        )

    async def create_volume(
        self, body: forms.VolumeRequest, *, idempotency_key: str | None = None
    ) -> forms.VolumeAnswer:
        """Creates a volume, for an account whose balance covers its grace and an hour."""
        found = await self._call(
            "POST", "/v1/volumes", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.VolumeAnswer", found)

    async def list_volumes(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.VolumePage:
        """Lists volumes in the order in which they were created, deleted ones too."""
        found = await self._call(
            "GET",
            "/v1/volumes",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.VolumePage", found)

    def iter_volumes(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.VolumeAnswer]:
        """Every item of `list_volumes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_volumes(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_volume(self, volume_id: str) -> forms.VolumeShownAnswer:
        """Returns a volume with the leases that have or had it."""
        found = await self._call("GET", at("/v1/volumes/{volume_id}", volume_id=volume_id))
        return cast("forms.VolumeShownAnswer", found)

    async def attach_volume(
        self, volume_id: str, body: forms.VolumeAttachRequest, *, idempotency_key: str | None = None
    ) -> forms.JobVolumesAnswer:
        """Attaches a volume to a job: its next leases mount it."""
        found = await self._call(
            "POST",
            at("/v1/volumes/{volume_id}/attach", volume_id=volume_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobVolumesAnswer", found)

    async def detach_volume(
        self, volume_id: str, body: forms.VolumeDetachRequest, *, idempotency_key: str | None = None
    ) -> forms.JobVolumesAnswer:
        """Detaches a volume from a job: its next leases do not mount it."""
        found = await self._call(
            "POST",
            at("/v1/volumes/{volume_id}/detach", volume_id=volume_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobVolumesAnswer", found)

    async def delete_volume(
        self, volume_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.VolumeAnswer:
        """Deletes a volume that no lease has attached. Its data are erased, and it costs no
        more.
        """
        found = await self._call(
            "POST",
            at("/v1/volumes/{volume_id}/delete", volume_id=volume_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.VolumeAnswer", found)

    async def confirm_volume_erased(
        self,
        node_id: str,
        volume_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.VolumeErasedAnswer:
        """Confirms that nothing of a deleted volume is left where the node keeps volumes."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/volumes/{volume_id}/erased",
                node_id=node_id,
                volume_id=volume_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.VolumeErasedAnswer", found)

    async def place_dataset(
        self, body: forms.DatasetRequest, *, idempotency_key: str | None = None
    ) -> forms.DatasetAnswer:
        """Registers where a dataset lies, or moves it."""
        found = await self._call(
            "POST", "/v1/datasets", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.DatasetAnswer", found)

    async def list_datasets(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DatasetPage:
        """Lists datasets in the order in which they were last placed."""
        found = await self._call(
            "GET",
            "/v1/datasets",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.DatasetPage", found)

    def iter_datasets(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DatasetAnswer]:
        """Every item of `list_datasets` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_datasets(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def remove_dataset(
        self, dataset_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.DatasetRemovedAnswer:
        """Removes the place of a dataset. Jobs may still refer to its name."""
        found = await self._call(
            "POST",
            at("/v1/datasets/{dataset_id}/remove", dataset_id=dataset_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DatasetRemovedAnswer", found)

    async def create_attestation_nonce(
        self,
        node_id: str,
        device_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AttestationNonceAnswer:
        """Returns the nonce that a device must sign, bound to the last report of the node."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/devices/{device_id}/attestation-nonce",
                node_id=node_id,
                device_id=device_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AttestationNonceAnswer", found)

    async def create_attestation(
        self,
        node_id: str,
        device_id: str,
        body: forms.AttestationRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.AttestationAnswer:
        """Records evidence for an issued nonce. The verdict counts for the epoch it falls
        into.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/devices/{device_id}/attestation",
                node_id=node_id,
                device_id=device_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AttestationAnswer", found)

    async def add_attribute(
        self, body: forms.AttributeRequest, *, idempotency_key: str | None = None
    ) -> forms.AttributeAnswer:
        """Records a statement that a third party signed about a node or a provider."""
        found = await self._call(
            "POST", "/v1/attributes", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.AttributeAnswer", found)

    async def list_attributes(
        self,
        *,
        subject_id: str | None = None,
        name: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.AttributePage:
        """Lists statements in the order in which they came; `account_id` is the signer's."""
        found = await self._call(
            "GET",
            "/v1/attributes",
            query={
                "subject_id": subject_id,
                "name": name,
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.AttributePage", found)

    def iter_attributes(
        self,
        *,
        subject_id: str | None = None,
        name: str | None = None,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.AttributeAnswer]:
        """Every item of `list_attributes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_attributes(
                subject_id=subject_id,
                name=name,
                account_id=account_id,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def revoke_attribute(
        self, statement_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.AttributeRevokedAnswer:
        """Revokes a statement that your account signed."""
        found = await self._call(
            "POST",
            at("/v1/attributes/{statement_id}/revoke", statement_id=statement_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AttributeRevokedAnswer", found)

    async def read_node_reputation(
        self,
        node_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.ReputationAnswer:
        """Returns the reputation of a node and its devices, now or as of `as_of_position`."""
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/reputation", node_id=node_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.ReputationAnswer", found)

    async def read_provider_reputation(
        self,
        provider_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.ReputationAnswer:
        """Returns the reputation of all nodes of a provider together."""
        found = await self._call(
            "GET",
            at("/v1/providers/{provider_id}/reputation", provider_id=provider_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.ReputationAnswer", found)

    async def list_node_evidence(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.ReputationEvidencePage:
        """Lists the evidence behind the score of a node, now or as of `as_of_position`."""
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/reputation/evidence", node_id=node_id),
            query={
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("forms.ReputationEvidencePage", found)

    def iter_node_evidence(
        self,
        node_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> AsyncIterator[forms.ReputationEvidenceAnswer]:
        """Every item of `list_node_evidence` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_node_evidence(
                node_id, limit=limit, cursor=at_cursor, as_of_position=as_of_position, as_of=as_of
            ),
            cursor,
        )

    async def list_provider_evidence(
        self,
        provider_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.ReputationEvidencePage:
        """Lists the evidence behind the score of a provider, over all of its nodes."""
        found = await self._call(
            "GET",
            at("/v1/providers/{provider_id}/reputation/evidence", provider_id=provider_id),
            query={
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("forms.ReputationEvidencePage", found)

    def iter_provider_evidence(
        self,
        provider_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> AsyncIterator[forms.ReputationEvidenceAnswer]:
        """Every item of `list_provider_evidence` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_provider_evidence(
                provider_id,
                limit=limit,
                cursor=at_cursor,
                as_of_position=as_of_position,
                as_of=as_of,
            ),
            cursor,
        )

    async def read_renter_reputation(
        self,
        account_id: str,
        *,
        client_id: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.ReputationAnswer:
        """Returns the reputation of a renter, to the renter and to providers that rented to
        it.
        """
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/renter-reputation", account_id=account_id),
            query={"client_id": client_id, "as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.ReputationAnswer", found)

    async def list_settings(self) -> forms.RegionSettingsAnswer:
        """Lists what to expect of edge and of datacenter nodes, in numbers where known
        (K-4).
        """
        found = await self._call("GET", "/v1/settings")
        return cast("forms.RegionSettingsAnswer", found)

    async def read_node_trust(
        self, node_id: str, *, epoch: int | None = None
    ) -> forms.NodeTrustAnswer:
        """Returns the trust tier of each device of a node in an epoch, by default the
        newest.
        """
        found = await self._call(
            "GET", at("/v1/nodes/{node_id}/trust", node_id=node_id), query={"epoch": epoch}
        )
        return cast("forms.NodeTrustAnswer", found)

    async def list_driver_libraries(self) -> forms.DriverLibrariesAnswer:
        """Lists the driver libraries that the operator trusts. A device under another fails
        tier 2.
        """
        found = await self._call("GET", "/v1/trust/libraries")
        return cast("forms.DriverLibrariesAnswer", found)

    async def add_driver_library(
        self, body: forms.DriverLibraryRequest, *, idempotency_key: str | None = None
    ) -> forms.DriverLibraryAnswer:
        """Adds a driver library to the trusted ones."""
        found = await self._call(
            "POST", "/v1/trust/libraries", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.DriverLibraryAnswer", found)

    async def remove_driver_library(
        self, body: forms.DriverLibraryRequest, *, idempotency_key: str | None = None
    ) -> forms.DriverLibraryAnswer:
        """Removes a driver library from the trusted ones."""
        found = await self._call(
            "POST",
            "/v1/trust/libraries/forget",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DriverLibraryAnswer", found)

    async def list_epochs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.EpochPage:
        """Lists epochs in order."""
        found = await self._call(
            "GET", "/v1/epochs", query={"limit": limit, "cursor": cursor, "order": order}
        )
        return cast("forms.EpochPage", found)

    def iter_epochs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.EpochAnswer]:
        """Every item of `list_epochs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_epochs(limit=limit, cursor=at_cursor, order=order), cursor
        )

    async def preview_epoch(self, *, epoch: int | None = None) -> forms.EpochPreviewAnswer:
        """Returns the weights of the open epoch, or of the one named."""
        found = await self._call("GET", "/v1/epochs/preview", query={"epoch": epoch})
        return cast("forms.EpochPreviewAnswer", found)

    async def read_epoch(self, epoch: int) -> forms.EpochAnswer:
        """Returns an epoch."""
        found = await self._call("GET", at("/v1/epochs/{epoch}", epoch=epoch))
        return cast("forms.EpochAnswer", found)

    async def list_epoch_rewards(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.EpochRewardPage:
        """Lists the rewards that a sealed epoch credited, by account."""
        found = await self._call(
            "GET",
            at("/v1/epochs/{epoch}/rewards", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.EpochRewardPage", found)

    def iter_epoch_rewards(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.EpochRewardAnswer]:
        """Every item of `list_epoch_rewards` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_epoch_rewards(epoch, limit=limit, cursor=at_cursor), cursor
        )

    async def read_payout_file(self, epoch: int) -> dict[str, Any]:
        """Returns the file that the payout of an epoch is proposed and claimed from, byte
        for byte.
        """
        found = await self._call("GET", at("/v1/epochs/{epoch}/payout.json", epoch=epoch))
        return cast("dict[str, Any]", found)

    async def read_epoch_file(self, epoch: int) -> dict[str, Any]:
        """Returns the file of a sealed epoch, byte for byte: its SHA-256 is in the seal."""
        found = await self._call("GET", at("/v1/epochs/{epoch}/epoch.json", epoch=epoch))
        return cast("dict[str, Any]", found)

    async def read_epoch_clients(self, epoch: int) -> dict[str, Any]:
        """Returns by compute client whose work the rewards of a sealed epoch pay for: the
        companion of.
        """
        found = await self._call("GET", at("/v1/epochs/{epoch}/clients.json", epoch=epoch))
        return cast("dict[str, Any]", found)

    async def explain_epoch(self, epoch: int, node_id: str) -> forms.EpochExplanationAnswer:
        """Explains a node's reward in a sealed epoch, also a reward of zero."""
        found = await self._call(
            "GET", at("/v1/epochs/{epoch}/explain/{node_id}", epoch=epoch, node_id=node_id)
        )
        return cast("forms.EpochExplanationAnswer", found)

    async def list_wash_signals(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.UseDivisionPage:
        """Lists how much of each node's use in an epoch came from one renter, or from
        related ones.
        """
        found = await self._call(
            "GET",
            at("/v1/epochs/{epoch}/signals", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.UseDivisionPage", found)

    def iter_wash_signals(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.UseDivisionAnswer]:
        """Every item of `list_wash_signals` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_wash_signals(epoch, limit=limit, cursor=at_cursor), cursor
        )

    async def list_renter_signals(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.UseDivisionPage:
        """Lists how much of each renter's use in an epoch went to one owner, or to related
        ones; to a.
        """
        found = await self._call(
            "GET",
            at("/v1/epochs/{epoch}/renter-signals", epoch=epoch),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.UseDivisionPage", found)

    def iter_renter_signals(
        self, epoch: int, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.UseDivisionAnswer]:
        """Every item of `list_renter_signals` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_renter_signals(epoch, limit=limit, cursor=at_cursor), cursor
        )

    async def propose_slash(
        self, epoch: int, body: forms.RewardSlashRequest, *, idempotency_key: str | None = None
    ) -> forms.RewardCorrectionAnswer:
        """Proposes to slash what has not matured of a reward. The votes of governors do it."""
        found = await self._call(
            "POST",
            at("/v1/epochs/{epoch}/slashes", epoch=epoch),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RewardCorrectionAnswer", found)

    async def propose_reward_adjustment(
        self, epoch: int, body: forms.RewardAdjustmentRequest, *, idempotency_key: str | None = None
    ) -> forms.RewardCorrectionAnswer:
        """Proposes to add or deduct for a sealed epoch, in the open one, by governors'
        votes.
        """
        found = await self._call(
            "POST",
            at("/v1/epochs/{epoch}/adjustments", epoch=epoch),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RewardCorrectionAnswer", found)

    async def accept_reward_correction(
        self,
        correction_id: str,
        body: forms.RewardAcceptanceRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.RewardCorrectionAnswer:
        """Votes for a proposal with a governor's signature; the last vote needed does it."""
        found = await self._call(
            "POST",
            at("/v1/reward-corrections/{correction_id}/accept", correction_id=correction_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RewardCorrectionAnswer", found)

    async def list_reward_corrections(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.RewardCorrectionPage:
        """Lists slashes and adjustments in the order in which they were proposed."""
        found = await self._call(
            "GET",
            "/v1/reward-corrections",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.RewardCorrectionPage", found)

    def iter_reward_corrections(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.RewardCorrectionAnswer]:
        """Every item of `list_reward_corrections` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_reward_corrections(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_reward_correction(self, correction_id: str) -> forms.RewardCorrectionAnswer:
        """Returns one correction and its result."""
        found = await self._call(
            "GET", at("/v1/reward-corrections/{correction_id}", correction_id=correction_id)
        )
        return cast("forms.RewardCorrectionAnswer", found)

    async def rehearse_policy(
        self, body: forms.PolicyRehearsalRequest
    ) -> forms.PolicyRehearsalAnswer:
        """Settles all past epochs again under a proposal, and compares to the unit."""
        found = await self._call("POST", "/v1/policies/dry-run", body=body)
        return cast("forms.PolicyRehearsalAnswer", found)

    async def propose_policy(
        self, body: forms.PolicyProposalRequest, *, idempotency_key: str | None = None
    ) -> forms.PolicyProposalAnswer:
        """Proposes a policy, or another document for approval. Its lint is recorded."""
        found = await self._call(
            "POST",
            "/v1/policies/proposals",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def list_policy_proposals(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PolicyProposalPage:
        """Lists proposals in the order in which they were made."""
        found = await self._call(
            "GET",
            "/v1/policies/proposals",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PolicyProposalPage", found)

    def iter_policy_proposals(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PolicyProposalAnswer]:
        """Every item of `list_policy_proposals` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_policy_proposals(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def revise_policy_proposal(
        self,
        proposal_number: int,
        body: forms.PolicyProposalRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Replaces the document of a proposal. Votes on the earlier document end."""
        found = await self._call(
            "POST",
            at("/v1/policies/proposals/{proposal_number}/revise", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def open_policy_review(
        self,
        proposal_number: int,
        body: forms.PolicyReviewRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Opens the review of a proposal, also of one that fails the lint."""
        found = await self._call(
            "POST",
            at("/v1/policies/proposals/{proposal_number}/review", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def approve_policy_proposal(
        self,
        proposal_number: int,
        body: forms.PolicyVoteRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Approves a proposal with a governor's signature."""
        found = await self._call(
            "POST",
            at("/v1/policies/proposals/{proposal_number}/approve", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def reject_policy_proposal(
        self,
        proposal_number: int,
        body: forms.PolicyRejectionRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Rejects a proposal with a governor's signature."""
        found = await self._call(
            "POST",
            at("/v1/policies/proposals/{proposal_number}/reject", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def cancel_policy_proposal(
        self,
        proposal_number: int,
        body: forms.PolicyVoteRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Votes to cancel a scheduled version before its first epoch, with a governor's
        signature.
        """
        found = await self._call(
            "POST",
            at("/v1/policies/proposals/{proposal_number}/cancel", proposal_number=proposal_number),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def withdraw_policy_proposal(
        self,
        proposal_number: int,
        body: forms.ProposalReasonRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Withdraws your own proposal, as long as it is not scheduled."""
        found = await self._call(
            "POST",
            at(
                "/v1/policies/proposals/{proposal_number}/withdraw", proposal_number=proposal_number
            ),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def schedule_policy_proposal(
        self,
        proposal_number: int,
        body: forms.PolicySchedulingRequest,
        *,
        if_match: str,
        idempotency_key: str | None = None,
    ) -> forms.PolicyProposalAnswer:
        """Publishes an approved proposal as the next version, for an epoch far enough
        ahead.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/policies/proposals/{proposal_number}/schedule", proposal_number=proposal_number
            ),
            body=body,
            if_match=if_match,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PolicyProposalAnswer", found)

    async def read_policy_proposal(self, proposal_number: int) -> forms.PolicyProposalDetailAnswer:
        """Returns one proposal: its document, the lint's findings, and its votes with their
        times.
        """
        found = await self._call(
            "GET", at("/v1/policies/proposals/{proposal_number}", proposal_number=proposal_number)
        )
        return cast("forms.PolicyProposalDetailAnswer", found)

    async def list_policies(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.PolicyVersionPage:
        """Lists every version of the policy, oldest first, as known now or at a moment of
        the past.
        """
        found = await self._call(
            "GET",
            "/v1/policies",
            query={
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("forms.PolicyVersionPage", found)

    def iter_policies(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> AsyncIterator[forms.PolicyVersionAnswer]:
        """Every item of `list_policies` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_policies(
                limit=limit,
                cursor=at_cursor,
                order=order,
                as_of_position=as_of_position,
                as_of=as_of,
            ),
            cursor,
        )

    async def read_policy(
        self, policy_version: int, *, as_of_position: int | None = None, as_of: str | None = None
    ) -> forms.PolicyVersionAnswer:
        """Returns one version of the policy."""
        found = await self._call(
            "GET",
            at("/v1/policies/{policy_version}", policy_version=policy_version),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.PolicyVersionAnswer", found)

    async def propose_grant(
        self, body: forms.MilestoneGrantRequest, *, idempotency_key: str | None = None
    ) -> forms.MilestoneGrantAnswer:
        """Proposes a grant. The votes of governors open it."""
        found = await self._call(
            "POST", "/v1/grants", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.MilestoneGrantAnswer", found)

    async def list_grants(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.MilestoneGrantPage:
        """Lists grants in the order in which they were proposed."""
        found = await self._call(
            "GET",
            "/v1/grants",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.MilestoneGrantPage", found)

    def iter_grants(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.MilestoneGrantAnswer]:
        """Every item of `list_grants` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_grants(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def propose_milestone(
        self,
        grant_id: str,
        body: forms.GrantMilestoneDoneRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.MilestoneGrantAnswer:
        """Reports a milestone as done. The votes of governors unlock it."""
        found = await self._call(
            "POST",
            at("/v1/grants/{grant_id}/milestones", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MilestoneGrantAnswer", found)

    async def propose_clawback(
        self, grant_id: str, body: forms.GrantClawbackRequest, *, idempotency_key: str | None = None
    ) -> forms.MilestoneGrantAnswer:
        """Proposes to claw back what is not earned. Unlocked TOKEN stay."""
        found = await self._call(
            "POST",
            at("/v1/grants/{grant_id}/clawback", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MilestoneGrantAnswer", found)

    async def accept_grant(
        self,
        grant_id: str,
        body: forms.GrantAcceptanceRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.MilestoneGrantAnswer:
        """Votes for a proposal with a governor's signature; the last vote needed does it."""
        found = await self._call(
            "POST",
            at("/v1/grants/{grant_id}/accept", grant_id=grant_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MilestoneGrantAnswer", found)

    async def read_grant(self, grant_id: str) -> forms.MilestoneGrantAnswer:
        """Returns one grant: its locked and unlocked parts, and the part without a
        milestone.
        """
        found = await self._call("GET", at("/v1/grants/{grant_id}", grant_id=grant_id))
        return cast("forms.MilestoneGrantAnswer", found)

    async def list_breakers(self) -> forms.BreakersAnswer:
        """Lists the limits on minting, promising and paying out, and the amounts that wait
        for them.
        """
        found = await self._call("GET", "/v1/breakers")
        return cast("forms.BreakersAnswer", found)

    async def set_breaker(
        self,
        breaker: Literal["mint", "payout", "cash_out"],
        body: forms.BreakerLimitRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.BreakerAnswer:
        """Sets or removes the limit of a breaker. The reason is recorded for good."""
        found = await self._call(
            "POST",
            at("/v1/breakers/{breaker}/limit", breaker=breaker),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.BreakerAnswer", found)

    async def list_payouts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PayoutRootPage:
        """Lists payout roots in the order they were built, and the state of each."""
        found = await self._call(
            "GET",
            "/v1/payouts",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PayoutRootPage", found)

    def iter_payouts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PayoutRootAnswer]:
        """Every item of `list_payouts` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_payouts(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def list_claims(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PayoutClaimPage:
        """Lists confirmed claims: your own, or those of all accounts for operators and
        auditors.
        """
        found = await self._call(
            "GET",
            "/v1/payouts/claims",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.PayoutClaimPage", found)

    def iter_claims(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PayoutClaimAnswer]:
        """Every item of `list_claims` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_claims(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_rewards(self, account_id: str) -> forms.LifetimeRewardsAnswer:
        """Returns lifetime totals of an account: credited, matured and claimed TOKEN."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/rewards", account_id=account_id)
        )
        return cast("forms.LifetimeRewardsAnswer", found)

    async def read_payout_proof(self, epoch: int, *, address: str) -> forms.PayoutProofAnswer:
        """Returns the Merkle proof of a wallet's total under the root of an epoch."""
        found = await self._call(
            "GET", at("/v1/payouts/{epoch}/proof", epoch=epoch), query={"address": address}
        )
        return cast("forms.PayoutProofAnswer", found)

    async def publish_offer(
        self, body: forms.OfferRequest, *, idempotency_key: str | None = None
    ) -> forms.OfferAnswer:
        """Publishes an offer of a node at a price, not below the usage fee of its class."""
        found = await self._call(
            "POST", "/v1/offers", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.OfferAnswer", found)

    async def search_offers(
        self,
        *,
        model: str | None = None,
        gpu_class: str | None = None,
        price_max: int | None = None,
        account_id: str | None = None,
        node_id: str | None = None,
        setting: Literal["edge", "datacenter"] | None = None,
        kind: str | None = None,
        max_latency_ms: int | None = None,
        gpu_count: int | None = None,
        sla_class: str | None = None,
        offer_ids: str | None = None,
        node_ids: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
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
        capacity_class: Literal["on_demand", "preemptible", "committed"] | None = None,
        workload_class: str | None = None,
        security_tier: int | None = None,
        min_reputation_ppm: int | None = None,
        region_id: str | None = None,
        pool_id: str | None = None,
    ) -> forms.OfferPage:
        """Lists open offers that meet every demand, cheapest first, with what is known of
        each.
        """
        found = await self._call(
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
                "max_latency_ms": max_latency_ms,
                "gpu_count": gpu_count,
                "sla_class": sla_class,
                "offer_ids": offer_ids,
                "node_ids": node_ids,
                "limit": limit,
                "cursor": cursor,
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
                "capacity_class": capacity_class,
                "workload_class": workload_class,
                "security_tier": security_tier,
                "min_reputation_ppm": min_reputation_ppm,
                "region_id": region_id,
                "pool_id": pool_id,
            },
        )
        return cast("forms.OfferPage", found)

    def iter_offers(
        self,
        *,
        model: str | None = None,
        gpu_class: str | None = None,
        price_max: int | None = None,
        account_id: str | None = None,
        node_id: str | None = None,
        setting: Literal["edge", "datacenter"] | None = None,
        kind: str | None = None,
        max_latency_ms: int | None = None,
        gpu_count: int | None = None,
        sla_class: str | None = None,
        offer_ids: str | None = None,
        node_ids: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
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
        capacity_class: Literal["on_demand", "preemptible", "committed"] | None = None,
        workload_class: str | None = None,
        security_tier: int | None = None,
        min_reputation_ppm: int | None = None,
        region_id: str | None = None,
        pool_id: str | None = None,
    ) -> AsyncIterator[forms.OfferAnswer]:
        """Every item of `search_offers` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.search_offers(
                model=model,
                gpu_class=gpu_class,
                price_max=price_max,
                account_id=account_id,
                node_id=node_id,
                setting=setting,
                kind=kind,
                max_latency_ms=max_latency_ms,
                gpu_count=gpu_count,
                sla_class=sla_class,
                offer_ids=offer_ids,
                node_ids=node_ids,
                limit=limit,
                cursor=at_cursor,
                vendor=vendor,
                memory_mib=memory_mib,
                mode=mode,
                isolation=isolation,
                capability=capability,
                cpu_cores=cpu_cores,
                ram_mib=ram_mib,
                storage_gib=storage_gib,
                network_mbps=network_mbps,
                arch=arch,
                os=os,
                min_kernel=min_kernel,
                network_class=network_class,
                substrate=substrate,
                capacity_class=capacity_class,
                workload_class=workload_class,
                security_tier=security_tier,
                min_reputation_ppm=min_reputation_ppm,
                region_id=region_id,
                pool_id=pool_id,
            ),
            cursor,
        )

    async def read_offer(self, offer_id: str) -> forms.OfferAnswer:
        """Returns an offer, with what is known of its machine."""
        found = await self._call("GET", at("/v1/offers/{offer_id}", offer_id=offer_id))
        return cast("forms.OfferAnswer", found)

    async def withdraw_offer(
        self, offer_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.OfferWithdrawnAnswer:
        """Closes an offer. Leases opened from it keep their price."""
        found = await self._call(
            "POST",
            at("/v1/offers/{offer_id}/withdraw", offer_id=offer_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.OfferWithdrawnAnswer", found)

    async def list_auctions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.AuctionPage:
        """Lists requests that take bids now, in the order in which they came."""
        found = await self._call(
            "GET",
            "/v1/auctions",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.AuctionPage", found)

    def iter_auctions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.AuctionAnswer]:
        """Every item of `list_auctions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_auctions(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_auction(self, lease_id: str) -> forms.AuctionAnswer:
        """Returns the auction of a request. Every bidder can read what the request asks
        for.
        """
        found = await self._call("GET", at("/v1/auctions/{lease_id}", lease_id=lease_id))
        return cast("forms.AuctionAnswer", found)

    async def submit_bid(
        self, lease_id: str, body: forms.BidRequest, *, idempotency_key: str | None = None
    ) -> forms.BidAnswer:
        """Places a bid on a request with one of your offers. The deposit is held until a
        bid wins.
        """
        found = await self._call(
            "POST",
            at("/v1/auctions/{lease_id}/bids", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.BidAnswer", found)

    async def list_auction_bids(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.BidPage:
        """Lists the bids of a request: all for its renter and for operators, your own for a
        bidder.
        """
        found = await self._call(
            "GET",
            at("/v1/auctions/{lease_id}/bids", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.BidPage", found)

    def iter_auction_bids(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.BidAnswer]:
        """Every item of `list_auction_bids` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_auction_bids(
                lease_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def list_bids(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.BidPage:
        """Lists your bids and the state of their deposits, in order."""
        found = await self._call(
            "GET",
            "/v1/bids",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.BidPage", found)

    def iter_bids(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.BidAnswer]:
        """Every item of `list_bids` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_bids(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def withdraw_bid(
        self,
        lease_id: str,
        bid_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.BidWithdrawnAnswer:
        """Withdraws a bid that has not won. Before the closing its deposit comes back; a
        bid binds.
        """
        found = await self._call(
            "POST",
            at("/v1/auctions/{lease_id}/bids/{bid_id}/withdraw", lease_id=lease_id, bid_id=bid_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.BidWithdrawnAnswer", found)

    async def accept_bid(
        self,
        lease_id: str,
        bid_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.BidAcceptedAnswer:
        """Accepts a bid of a request whose `pick` is "renter". The lease is reserved at its
        price.
        """
        found = await self._call(
            "POST",
            at("/v1/auctions/{lease_id}/bids/{bid_id}/accept", lease_id=lease_id, bid_id=bid_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.BidAcceptedAnswer", found)

    async def set_standing_bid(
        self, lease_id: str, body: forms.StandingBidRequest, *, idempotency_key: str | None = None
    ) -> forms.StandingBidSetAnswer:
        """Raises or lowers the standing bid of an interruptible lease."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/bid", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.StandingBidSetAnswer", found)

    async def read_standing_bid(self, lease_id: str) -> forms.StandingBidAnswer:
        """Returns the standing bid of an interruptible lease, and the bid to beat."""
        found = await self._call("GET", at("/v1/leases/{lease_id}/bid", lease_id=lease_id))
        return cast("forms.StandingBidAnswer", found)

    async def list_pricing_modules(self) -> forms.PricingModulesAnswer:
        """Lists every pricing module of this installation, plug-ins too, with its version."""
        found = await self._call("GET", "/v1/pricing-modules")
        return cast("forms.PricingModulesAnswer", found)

    async def read_market_prices(self, *, pool_id: str | None = None) -> forms.MarketPricesAnswer:
        """Returns the present prices of winning standing bids, by class: in all pools, or
        in one.
        """
        found = await self._call("GET", "/v1/market-prices", query={"pool_id": pool_id})
        return cast("forms.MarketPricesAnswer", found)

    async def set_offer_prices(
        self,
        offer_id: str,
        body: forms.OfferPriceListRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.OfferPriceListAnswer:
        """Sets the lowest price of interruptible leases, and the prices of whole months."""
        found = await self._call(
            "POST",
            at("/v1/offers/{offer_id}/prices", offer_id=offer_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.OfferPriceListAnswer", found)

    async def read_offer_prices(self, offer_id: str) -> forms.OfferPriceListAnswer:
        """Returns the price list of an offer, where its provider has set one."""
        found = await self._call("GET", at("/v1/offers/{offer_id}/prices", offer_id=offer_id))
        return cast("forms.OfferPriceListAnswer", found)

    async def list_unmatched_requests(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.UnmatchedRequestPage:
        """Lists requests that found no node, the newest first: your own; all of them for
        operators and.
        """
        found = await self._call(
            "GET",
            "/v1/unmatched-requests",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.UnmatchedRequestPage", found)

    def iter_unmatched_requests(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.UnmatchedRequestAnswer]:
        """Every item of `list_unmatched_requests` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_unmatched_requests(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_node_matches(
        self, node_id: str, *, since: str | None = None
    ) -> forms.NodeMatchesAnswer:
        """Returns how often a node was a candidate for a lease, and by what it lost the
        others; of the.
        """
        found = await self._call(
            "GET", at("/v1/nodes/{node_id}/matches", node_id=node_id), query={"since": since}
        )
        return cast("forms.NodeMatchesAnswer", found)

    async def create_pool(
        self, body: forms.PoolRequest, *, idempotency_key: str | None = None
    ) -> forms.PoolCreatedAnswer:
        """Creates a pool of your own. Providers add their nodes one by one."""
        found = await self._call(
            "POST", "/v1/pools", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.PoolCreatedAnswer", found)

    async def list_pools(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PoolPage:
        """Lists pools in order of creation."""
        found = await self._call(
            "GET",
            "/v1/pools",
            query={
                "account_id": account_id,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.PoolPage", found)

    def iter_pools(
        self,
        *,
        account_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PoolAnswer]:
        """Every item of `list_pools` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_pools(
                account_id=account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def set_pool_policy(
        self, pool_id: str, body: forms.PoolPolicyForm, *, idempotency_key: str | None = None
    ) -> forms.PoolPolicyAnswer:
        """Sets the whole policy of a pool. Settings that are left out get their default."""
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/policy", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolPolicyAnswer", found)

    async def add_pool_node(
        self, pool_id: str, body: forms.PoolNodeRequest, *, idempotency_key: str | None = None
    ) -> forms.PoolNodeAddedAnswer:
        """Puts a node of yours into a pool. A node is in one pool at most."""
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/nodes", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolNodeAddedAnswer", found)

    async def list_pool_nodes(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PoolNodePage:
        """Lists the nodes of a pool in the order in which they were added."""
        found = await self._call(
            "GET",
            at("/v1/pools/{pool_id}/nodes", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PoolNodePage", found)

    def iter_pool_nodes(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PoolNodeAnswer]:
        """Every item of `list_pool_nodes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_pool_nodes(
                pool_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def remove_pool_node(
        self,
        pool_id: str,
        node_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PoolNodeAddedAnswer:
        """Removes a node from a pool, by its provider or the pool's owner. Running leases
        go on.
        """
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/nodes/{node_id}/remove", pool_id=pool_id, node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolNodeAddedAnswer", found)

    async def read_pool(self, pool_id: str) -> forms.PoolAnswer:
        """Returns a pool: its policy, and how many accelerators of each kind it has."""
        found = await self._call("GET", at("/v1/pools/{pool_id}", pool_id=pool_id))
        return cast("forms.PoolAnswer", found)

    async def list_pool_queue(
        self, pool_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.WaitingRequestPage:
        """Lists the requests that wait for a pool, in order. Names of other accounts are
        left out.
        """
        found = await self._call(
            "GET",
            at("/v1/pools/{pool_id}/queue", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.WaitingRequestPage", found)

    def iter_pool_queue(
        self, pool_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.WaitingRequestAnswer]:
        """Every item of `list_pool_queue` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_pool_queue(pool_id, limit=limit, cursor=at_cursor), cursor
        )

    async def list_pool_decisions(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PoolDecisionPage:
        """Lists decisions of a pool's scheduler, in order."""
        found = await self._call(
            "GET",
            at("/v1/pools/{pool_id}/decisions", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PoolDecisionPage", found)

    def iter_pool_decisions(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PoolDecisionAnswer]:
        """Every item of `list_pool_decisions` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_pool_decisions(
                pool_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_pool_decision(
        self, pool_id: str, at_position: int
    ) -> forms.PoolDecisionDetailAnswer:
        """Returns all inputs of one decision, and repeats it. For the pool's owner and
        operators.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/pools/{pool_id}/decisions/{at_position}",
                pool_id=pool_id,
                at_position=at_position,
            ),
        )
        return cast("forms.PoolDecisionDetailAnswer", found)

    async def register_component(
        self, pool_id: str, body: forms.PoolComponentRequest, *, idempotency_key: str | None = None
    ) -> forms.PoolComponentRegisteredAnswer:
        """Registers a component of your pool, such as a gateway, a storage service or a
        licence.
        """
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/components", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolComponentRegisteredAnswer", found)

    async def list_components(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PoolComponentPage:
        """Lists the components of a pool with their health; removed ones say so."""
        found = await self._call(
            "GET",
            at("/v1/pools/{pool_id}/components", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PoolComponentPage", found)

    def iter_components(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PoolComponentAnswer]:
        """Every item of `list_components` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_components(
                pool_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def remove_component(
        self,
        pool_id: str,
        component_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PoolComponentRemovedAnswer:
        """Removes a component from your pool, for good."""
        found = await self._call(
            "POST",
            at(
                "/v1/pools/{pool_id}/components/{component_id}/remove",
                pool_id=pool_id,
                component_id=component_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolComponentRemovedAnswer", found)

    async def report_component_health(
        self,
        pool_id: str,
        component_id: str,
        body: forms.PoolComponentHealthRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PoolComponentHealthAnswer:
        """Records the health of a component of your pool. The last report counts, for two
        hours.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/pools/{pool_id}/components/{component_id}/health",
                pool_id=pool_id,
                component_id=component_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolComponentHealthAnswer", found)

    async def set_pool_metadata(
        self, pool_id: str, body: forms.PoolMetadataRequest, *, idempotency_key: str | None = None
    ) -> forms.PoolMetadataAnswer:
        """Sets the whole metadata of your pool. Its hash goes to the pool's contract."""
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/metadata", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolMetadataAnswer", found)

    async def create_pool_heads(
        self, pool_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.PoolHeadsAnswer:
        """Cuts the heads of your pool at the present end of the log, to be anchored by its
        contract.
        """
        found = await self._call(
            "POST",
            at("/v1/pools/{pool_id}/heads", pool_id=pool_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PoolHeadsAnswer", found)

    async def list_pool_heads(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PoolHeadsPage:
        """Lists the heads that a pool has cut, the latest first."""
        found = await self._call(
            "GET",
            at("/v1/pools/{pool_id}/heads", pool_id=pool_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PoolHeadsPage", found)

    def iter_pool_heads(
        self,
        pool_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PoolHeadsAnswer]:
        """Every item of `list_pool_heads` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_pool_heads(
                pool_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_pool_controller(self, pool_id: str) -> forms.PoolControllerAnswer:
        """Returns the contract of a pool, what it is to say, and what the last check of it
        found.
        """
        found = await self._call("GET", at("/v1/pools/{pool_id}/controller", pool_id=pool_id))
        return cast("forms.PoolControllerAnswer", found)

    async def read_pool_health(self, pool_id: str) -> forms.PoolHealthAnswer:
        """Returns how many nodes and components of a pool are well, and which are not."""
        found = await self._call("GET", at("/v1/pools/{pool_id}/health", pool_id=pool_id))
        return cast("forms.PoolHealthAnswer", found)

    async def create_group(
        self, body: forms.QuotaGroupRequest, *, idempotency_key: str | None = None
    ) -> forms.QuotaGroupAnswer:
        """Creates a group that shares a quota of GPUs."""
        found = await self._call(
            "POST", "/v1/groups", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.QuotaGroupAnswer", found)

    async def list_groups(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.QuotaGroupPage:
        """Lists groups in order of creation: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/groups",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.QuotaGroupPage", found)

    def iter_groups(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.QuotaGroupAnswer]:
        """Every item of `list_groups` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_groups(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_group(self, group_id: str) -> forms.QuotaGroupAnswer:
        """Returns a group, its members, and how much of its quota is in use."""
        found = await self._call("GET", at("/v1/groups/{group_id}", group_id=group_id))
        return cast("forms.QuotaGroupAnswer", found)

    async def set_group_quota(
        self,
        group_id: str,
        body: forms.QuotaGroupLimitRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.QuotaGroupAnswer:
        """Changes how many GPUs a group holds at once."""
        found = await self._call(
            "POST",
            at("/v1/groups/{group_id}/quota", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.QuotaGroupAnswer", found)

    async def add_group_member(
        self,
        group_id: str,
        body: forms.QuotaGroupMemberRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.QuotaGroupMemberAddedAnswer:
        """Adds a member to a group. Its later leases count in the group."""
        found = await self._call(
            "POST",
            at("/v1/groups/{group_id}/members", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.QuotaGroupMemberAddedAnswer", found)

    async def remove_group_member(
        self,
        group_id: str,
        body: forms.QuotaGroupMemberRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.QuotaGroupMemberAddedAnswer:
        """Removes a member from a group. Its later leases do not count; running ones still
        do.
        """
        found = await self._call(
            "POST",
            at("/v1/groups/{group_id}/members/remove", group_id=group_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.QuotaGroupMemberAddedAnswer", found)

    async def set_project_policy(
        self,
        account_id: str,
        body: forms.ProjectPolicyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.ProjectAnswer:
        """Sets what a project does when a quota is full: own the base, rent the burst, or
        refuse.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/projects", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ProjectAnswer", found)

    async def list_project_policies(self, account_id: str) -> forms.ProjectsAnswer:
        """Lists what the projects of an account do when a quota is full."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/projects", account_id=account_id)
        )
        return cast("forms.ProjectsAnswer", found)

    async def set_counterparty(
        self,
        account_id: str,
        body: forms.CounterpartyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CounterpartyAnswer:
        """Allows or denies another account, as renter, client or provider. Running leases
        go on.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/counterparties", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CounterpartyAnswer", found)

    async def list_counterparties(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.CounterpartyPage:
        """Lists the accounts that an account allows and denies, in the order of listing."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/counterparties", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.CounterpartyPage", found)

    def iter_counterparties(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.CounterpartyAnswer]:
        """Every item of `list_counterparties` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_counterparties(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def submit_job(
        self, body: forms.JobRequest, *, idempotency_key: str | None = None
    ) -> forms.JobAnswer:
        """Submits a job. Leases are opened for it."""
        found = await self._call(
            "POST", "/v1/jobs", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.JobAnswer", found)

    async def list_jobs(
        self,
        *,
        state: Literal["open", "cancelled", "completed", "failed"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.JobPage:
        """Lists jobs in order of submission: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/jobs",
            query={
                "state": state,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.JobPage", found)

    def iter_jobs(
        self,
        *,
        state: Literal["open", "cancelled", "completed", "failed"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.JobAnswer]:
        """Every item of `list_jobs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_jobs(
                state=state, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def read_job(self, job_id: str) -> forms.JobAnswer:
        """Returns a job."""
        found = await self._call("GET", at("/v1/jobs/{job_id}", job_id=job_id))
        return cast("forms.JobAnswer", found)

    async def cancel_job(
        self, job_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.JobCancelledAnswer:
        """Cancels a job. It gets no new leases; its present leases are closed one by one."""
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/cancel", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobCancelledAnswer", found)

    async def explain_job(self, job_id: str) -> forms.JobExplanationAnswer:
        """Explains the placement of a job's leases; for a job without one, what stands in
        its way.
        """
        found = await self._call("GET", at("/v1/jobs/{job_id}/explain", job_id=job_id))
        return cast("forms.JobExplanationAnswer", found)

    async def open_gang(
        self, body: forms.GangRequest, *, idempotency_key: str | None = None
    ) -> forms.GangAnswer:
        """Reserves every member of a gang in one append, or none."""
        found = await self._call(
            "POST", "/v1/gangs", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.GangAnswer", found)

    async def list_gangs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.GangPage:
        """Lists gangs in order of request: your own, or all for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/gangs",
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.GangPage", found)

    def iter_gangs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.GangAnswer]:
        """Every item of `list_gangs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_gangs(
                limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def cancel_gang(
        self, gang_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.GangAnswer:
        """Cancels a gang before it has opened, at no charge. Close an open gang lease by
        lease.
        """
        found = await self._call(
            "POST",
            at("/v1/gangs/{gang_id}/cancel", gang_id=gang_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.GangAnswer", found)

    async def read_gang(self, gang_id: str) -> forms.GangAnswer:
        """Returns a gang: its members and how many are ready, or its place in the queue."""
        found = await self._call("GET", at("/v1/gangs/{gang_id}", gang_id=gang_id))
        return cast("forms.GangAnswer", found)

    async def scale_job(
        self, job_id: str, body: forms.JobScaleRequest, *, idempotency_key: str | None = None
    ) -> forms.JobScaledAnswer:
        """Changes how many members a job has: leases are closed now, or added as nodes are
        found.
        """
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/scale", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobScaledAnswer", found)

    async def list_job_parts(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.JobPartPage:
        """Lists the chunks or members of a job by number, each with its latest lease."""
        found = await self._call(
            "GET",
            at("/v1/jobs/{job_id}/parts", job_id=job_id),
            query={"limit": limit, "cursor": cursor, "order": order},
        )
        return cast("forms.JobPartPage", found)

    def iter_job_parts(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.JobPartAnswer]:
        """Every item of `list_job_parts` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_job_parts(
                job_id, limit=limit, cursor=at_cursor, order=order
            ),
            cursor,
        )

    async def read_job_cost(self, job_id: str) -> forms.JobTreeCostAnswer:
        """Returns the cost of a job and of everything that is part of it, each lease
        counted once.
        """
        found = await self._call("GET", at("/v1/jobs/{job_id}/cost", job_id=job_id))
        return cast("forms.JobTreeCostAnswer", found)

    async def push_tasks(
        self, job_id: str, body: forms.QueueTasksRequest, *, idempotency_key: str | None = None
    ) -> forms.TaskQueueAnswer:
        """Adds tasks to the queue of a job. An id that was ever there is not added again."""
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/tasks", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.TaskQueueAnswer", found)

    async def read_task_queue(self, job_id: str) -> forms.TaskQueueAnswer:
        """Returns how many tasks a queue holds."""
        found = await self._call("GET", at("/v1/jobs/{job_id}/tasks", job_id=job_id))
        return cast("forms.TaskQueueAnswer", found)

    async def take_task(
        self, lease_id: str, body: forms.QueueTaskTakeRequest, *, idempotency_key: str | None = None
    ) -> forms.QueueTaskAnswer:
        """Hands the next task to a lease of a queue job, held for a while. Its node or
        renter asks.
        """
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/tasks/take", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.QueueTaskAnswer", found)

    async def finish_task(
        self,
        lease_id: str,
        task_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.QueueTaskDoneAnswer:
        """Marks a task as done. A second report of it, by the same lease or another,
        changes.
        """
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/tasks/{task_id}/done", lease_id=lease_id, task_id=task_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.QueueTaskDoneAnswer", found)

    async def add_workspace(self, body: forms.WorkspaceContentsForm) -> forms.WorkspaceKeptAnswer:
        """Keeps the list of files of a folder, and says which pieces of them are to be
        sent.
        """
        found = await self._call("POST", "/v1/workspaces", body=body)
        return cast("forms.WorkspaceKeptAnswer", found)

    async def add_workspace_pieces(
        self, body: forms.WorkspacePiecesRequest
    ) -> forms.PiecesKeptAnswer:
        """Keeps pieces of files. What no workspace of yours names is not kept."""
        found = await self._call("POST", "/v1/workspaces/pieces", body=body)
        return cast("forms.PiecesKeptAnswer", found)

    async def list_assignments(self, node_id: str) -> forms.AssignmentsAnswer:
        """Lists the leases of a node: device, start and end of each."""
        found = await self._call("GET", at("/v1/nodes/{node_id}/assignments", node_id=node_id))
        return cast("forms.AssignmentsAnswer", found)

    async def start_lease(
        self,
        node_id: str,
        lease_id: str,
        body: forms.LeaseReadinessRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.LeaseReadyAnswer:
        """Starts a lease whose work runs. Billing starts now, at the price that is locked
        here.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/ready",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseReadyAnswer", found)

    async def quote_job(self, body: forms.JobQuoteRequest) -> forms.JobQuoteAnswer:
        """Returns the node that a job would get now, why that one, and if none, which
        demand to.
        """
        found = await self._call("POST", "/v1/quotes", body=body)
        return cast("forms.JobQuoteAnswer", found)

    async def stream_lease_events(
        self, *, lease_id: str | None = None, after: int | None = None, seconds: int | None = None
    ) -> bytes:
        """Streams what happens to your leases, live (server-sent events)."""
        found = await self._call(
            "GET",
            "/v1/lease-events",
            query={"lease_id": lease_id, "after": after, "seconds": seconds},
        )
        return cast("bytes", found)

    async def report_renter_health(
        self, lease_id: str, body: forms.LeaseCheckInRequest
    ) -> forms.HealthReportAnswer:
        """Records the health of the renter's half. The last report counts."""
        found = await self._call(
            "POST", at("/v1/leases/{lease_id}/check-in", lease_id=lease_id), body=body
        )
        return cast("forms.HealthReportAnswer", found)

    async def report_work_health(
        self, node_id: str, lease_id: str, body: forms.WorkHealthRequest
    ) -> forms.HealthReportAnswer:
        """Records the health of the work, reported by the node's half."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/health",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
        )
        return cast("forms.HealthReportAnswer", found)

    async def read_lease_health(self, lease_id: str) -> forms.LeaseHealthAnswer:
        """Returns the health of both halves of a lease, with machine, kernel and last
        report.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/health", lease_id=lease_id))
        return cast("forms.LeaseHealthAnswer", found)

    async def pause_lease(
        self, lease_id: str, body: forms.LeaseTurnRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseStateAnswer:
        """Pauses an interruptible lease. It costs nothing until it is resumed."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/pause", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseStateAnswer", found)

    async def resume_lease(
        self, lease_id: str, body: forms.LeaseTurnRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseStateAnswer:
        """Resumes a lease on the same devices, if they are free."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/resume", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseStateAnswer", found)

    async def extend_lease(
        self,
        lease_id: str,
        body: forms.LeaseExtensionRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.LeaseStateAnswer:
        """Extends a fixed term. Top up an open-ended lease instead."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/extend", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseStateAnswer", found)

    async def reclaim_lease(
        self, lease_id: str, body: forms.LeaseReclaimRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseStateAnswer:
        """Reclaims the devices: the quoted reclaim window begins, at the full rate."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/reclaim", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseStateAnswer", found)

    async def cancel_reclaim(
        self, lease_id: str, body: forms.LeaseTurnRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseStateAnswer:
        """Cancels a reclaim. The renter keeps the devices."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/reclaim/cancel", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseStateAnswer", found)

    async def quote_lease(
        self, body: forms.LeaseQuoteRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseQuoteAnswer:
        """Requests a lease and quotes its price, valid for a limited time."""
        found = await self._call(
            "POST", "/v1/lease-quotes", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.LeaseQuoteAnswer", found)

    async def accept_quote(
        self,
        lease_id: str,
        body: forms.QuoteAcceptanceRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.LeaseOpenedAnswer:
        """Accepts a quote before it expires. The devices are reserved and the money is
        held.
        """
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/accept", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseOpenedAnswer", found)

    async def list_lease_steps(
        self, lease_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.LeaseStepPage:
        """Lists the life of a lease, from request to archive: each fact with cause and
        money.
        """
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/events", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.LeaseStepPage", found)

    def iter_lease_steps(
        self, lease_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.LeaseStepAnswer]:
        """Every item of `list_lease_steps` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_lease_steps(lease_id, limit=limit, cursor=at_cursor), cursor
        )

    async def open_lease(
        self, body: forms.LeaseRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseOpenedAnswer:
        """Opens a lease on the cheapest node that fits, with the money held for it."""
        found = await self._call(
            "POST", "/v1/leases", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.LeaseOpenedAnswer", found)

    async def list_leases(
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
        open: bool | None = None,
        renter_id: str | None = None,
        job_id: str | None = None,
        node_id: str | None = None,
        estimate: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> forms.LeasePage:
        """Lists leases in order of request, as renter or as provider; all for operators
        and.
        """
        found = await self._call(
            "GET",
            "/v1/leases",
            query={
                "state": state,
                "open": open,
                "renter_id": renter_id,
                "job_id": job_id,
                "node_id": node_id,
                "estimate": estimate,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
                "as_of_position": as_of_position,
                "as_of": as_of,
            },
        )
        return cast("forms.LeasePage", found)

    def iter_leases(
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
        open: bool | None = None,
        renter_id: str | None = None,
        job_id: str | None = None,
        node_id: str | None = None,
        estimate: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
    ) -> AsyncIterator[forms.LeaseAnswer]:
        """Every item of `list_leases` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_leases(
                state=state,
                open=open,
                renter_id=renter_id,
                job_id=job_id,
                node_id=node_id,
                estimate=estimate,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
                as_of_position=as_of_position,
                as_of=as_of,
            ),
            cursor,
        )

    async def close_lease(
        self, lease_id: str, body: forms.LeaseClosingRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseClosedAnswer:
        """Closes a lease. Credits that its escrow cannot need any more come back at once."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/close", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseClosedAnswer", found)

    async def fund_lease(
        self, lease_id: str, body: forms.LeaseTopUpRequest, *, idempotency_key: str | None = None
    ) -> forms.LeaseToppedUpAnswer:
        """Puts credits into the escrow of a lease: your own, or of an account that you pay
        for.
        """
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/top-up", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.LeaseToppedUpAnswer", found)

    async def read_lease(
        self, lease_id: str, *, as_of_position: int | None = None, as_of: str | None = None
    ) -> forms.LeaseAnswer:
        """Returns a lease, now or as of a position or a time."""
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}", lease_id=lease_id),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.LeaseAnswer", found)

    async def list_lease_usage(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.LeaseHourPage:
        """Lists GPU time of a lease, hour by hour, and time that earned nothing."""
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/usage", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.LeaseHourPage", found)

    def iter_lease_usage(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.LeaseHourAnswer]:
        """Every item of `list_lease_usage` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_lease_usage(
                lease_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def list_lease_charges(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.LeaseChargePage:
        """Lists the cost of a lease, accrual by accrual, and the receiver of each unit."""
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/charges", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.LeaseChargePage", found)

    def iter_lease_charges(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.LeaseChargeAnswer]:
        """Every item of `list_lease_charges` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_lease_charges(
                lease_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def list_lease_history(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.LeaseFactPage:
        """Lists every fact of a lease, and the state after it."""
        found = await self._call(
            "GET",
            at("/v1/leases/{lease_id}/history", lease_id=lease_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.LeaseFactPage", found)

    def iter_lease_history(
        self,
        lease_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.LeaseFactAnswer]:
        """Every item of `list_lease_history` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_lease_history(
                lease_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def fund_escrow(
        self, job_id: str, body: forms.EscrowFundingRequest, *, idempotency_key: str | None = None
    ) -> forms.JobEscrowAnswer:
        """Puts credits into the escrow of a job."""
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/escrow", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobEscrowAnswer", found)

    async def read_escrow(self, job_id: str) -> forms.JobEscrowAnswer:
        """Returns the escrow of a job: its credits, their sources, its leases and when it
        ends.
        """
        found = await self._call("GET", at("/v1/jobs/{job_id}/escrow", job_id=job_id))
        return cast("forms.JobEscrowAnswer", found)

    async def withdraw_escrow(
        self, job_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.JobEscrowAnswer:
        """Returns the escrow of a job to its sources, once all of its leases are settled."""
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/escrow/withdraw", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobEscrowAnswer", found)

    async def restart_job(
        self, job_id: str, body: forms.JobRestartRequest, *, idempotency_key: str | None = None
    ) -> forms.JobRestartedAnswer:
        """Restarts a job whose last lease ended with its funds: a new lease, matched again."""
        found = await self._call(
            "POST",
            at("/v1/jobs/{job_id}/restart", job_id=job_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.JobRestartedAnswer", found)

    async def issue_executor_key(
        self, node_id: str, body: forms.ExecutorKeyRequest, *, idempotency_key: str | None = None
    ) -> forms.ExecutorKeyAnswer:
        """Issues a key for the program that runs the work of a node's leases. It can do
        nothing.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/executor-key", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ExecutorKeyAnswer", found)

    async def revoke_executor_key(
        self, node_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.ExecutorKeyAnswer:
        """Revokes the executor's key. No executor acts for the node until it gets another
        key.
        """
        found = await self._call(
            "POST",
            at("/v1/nodes/{node_id}/executor-key/revoke", node_id=node_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.ExecutorKeyAnswer", found)

    async def acknowledge_command(
        self,
        node_id: str,
        lease_id: str,
        body: forms.WorkAcknowledgementRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.WorkStateAnswer:
        """Records that the executor will start the work, or has stopped all of it."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/acknowledge",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WorkStateAnswer", found)

    async def end_work(
        self,
        node_id: str,
        lease_id: str,
        body: forms.WorkEndRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.WorkStateAnswer:
        """Records that the work ended by itself, or was lost."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/ended",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WorkStateAnswer", found)

    async def decline_work(
        self,
        node_id: str,
        lease_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.WorkStateAnswer:
        """Declines work that the node cannot or may not run. The lease ends uncharged, code
        10006.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/decline",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.WorkStateAnswer", found)

    async def ingest_lease_log(
        self, node_id: str, lease_id: str, body: forms.WorkLogPiecesRequest
    ) -> forms.WorkLogHeadAnswer:
        """Stores pieces of the work's output. A piece that is sent twice is kept once."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/log", node_id=node_id, lease_id=lease_id
            ),
            body=body,
        )
        return cast("forms.WorkLogHeadAnswer", found)

    async def read_lease_log(
        self, lease_id: str, *, from_seq: int | None = None
    ) -> forms.WorkLogAnswer:
        """Returns the output of a lease's work, for its renter and its provider. Kept for a
        week.
        """
        found = await self._call(
            "GET", at("/v1/leases/{lease_id}/log", lease_id=lease_id), query={"from_seq": from_seq}
        )
        return cast("forms.WorkLogAnswer", found)

    async def read_lease_work(self, lease_id: str) -> forms.LeaseWorkAnswer:
        """Returns whether the work of a lease was started, how it ended, and how to reach
        it.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/work", lease_id=lease_id))
        return cast("forms.LeaseWorkAnswer", found)

    async def read_lease_workspace(self, node_id: str, lease_id: str) -> forms.LeaseWorkspaceAnswer:
        """Returns the list of files of a lease's work, for the executor that starts it."""
        found = await self._call(
            "GET",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/workspace",
                node_id=node_id,
                lease_id=lease_id,
            ),
        )
        return cast("forms.LeaseWorkspaceAnswer", found)

    async def read_workspace_pieces(
        self, node_id: str, lease_id: str, body: forms.PiecesWantedRequest
    ) -> forms.WorkspacePiecesAnswer:
        """Returns pieces of the files of a lease's work, for the executor that starts it."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/workspace/pieces",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
        )
        return cast("forms.WorkspacePiecesAnswer", found)

    async def add_lease_secrets(
        self, lease_id: str, body: forms.LeaseSecretsRequest
    ) -> forms.LeaseSecretsAnswer:
        """Hands sealed variables to the executor of a lease's node. They are in no log and
        no list.
        """
        found = await self._call(
            "POST", at("/v1/leases/{lease_id}/secrets", lease_id=lease_id), body=body
        )
        return cast("forms.LeaseSecretsAnswer", found)

    async def add_lease_results(
        self, node_id: str, lease_id: str, body: forms.LeaseResultsRequest
    ) -> forms.ResultsListedAnswer:
        """Keeps the list of files that the work of a lease left, once. Files that its
        renter did not.
        """
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/results",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
        )
        return cast("forms.ResultsListedAnswer", found)

    async def add_result_pieces(
        self, node_id: str, lease_id: str, body: forms.WorkspacePiecesRequest
    ) -> forms.PiecesKeptAnswer:
        """Keeps pieces of the files that the work of a lease left."""
        found = await self._call(
            "POST",
            at(
                "/v1/nodes/{node_id}/assignments/{lease_id}/results/pieces",
                node_id=node_id,
                lease_id=lease_id,
            ),
            body=body,
        )
        return cast("forms.PiecesKeptAnswer", found)

    async def read_lease_results(self, lease_id: str) -> forms.LeaseResultsAnswer:
        """Returns the list of files that the work of a lease left. Kept for a day."""
        found = await self._call("GET", at("/v1/leases/{lease_id}/results", lease_id=lease_id))
        return cast("forms.LeaseResultsAnswer", found)

    async def read_result_pieces(
        self, lease_id: str, body: forms.PiecesWantedRequest
    ) -> forms.WorkspacePiecesAnswer:
        """Returns pieces of the files that the work of a lease left, for its renter."""
        found = await self._call(
            "POST", at("/v1/leases/{lease_id}/results/pieces", lease_id=lease_id), body=body
        )
        return cast("forms.WorkspacePiecesAnswer", found)

    async def delete_lease_results(
        self, lease_id: str, body: forms.EmptyRequest
    ) -> forms.LeaseResultsDeletedAnswer:
        """Deletes the files that the work of a lease left, before their day is over."""
        found = await self._call(
            "POST", at("/v1/leases/{lease_id}/results/delete", lease_id=lease_id), body=body
        )
        return cast("forms.LeaseResultsDeletedAnswer", found)

    async def read_lease_use(self, lease_id: str) -> forms.LeaseUseAnswer:
        """Returns what a lease has used so far, what that costs, and how busy its devices
        are.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/use", lease_id=lease_id))
        return cast("forms.LeaseUseAnswer", found)

    async def export_focus_csv(
        self, account_id: str, period: str, *, focus: Literal["1.2", "1.3"] | None = None
    ) -> bytes:
        """Returns charges of a month in the columns of FOCUS 1.2 or 1.3, as CSV."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}.csv",
                account_id=account_id,
                period=period,
            ),
            query={"focus": focus},
        )
        return cast("bytes", found)

    async def export_focus_parquet(
        self, account_id: str, period: str, *, focus: Literal["1.2", "1.3"] | None = None
    ) -> bytes:
        """Returns charges of a month in the columns of FOCUS 1.2 or 1.3, as Parquet."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}.parquet",
                account_id=account_id,
                period=period,
            ),
            query={"focus": focus},
        )
        return cast("bytes", found)

    async def export_journal(self, account_id: str, period: str) -> bytes:
        """Returns the account's books of a month as an hledger journal, from the account's
        side, in.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}.journal",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    async def export_lines_csv(self, account_id: str, period: str) -> bytes:
        """Returns every movement on the account's books in a month, as plain CSV."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}/lines.csv",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    async def export_lines_json(self, account_id: str, period: str) -> bytes:
        """Returns every movement on the account's books in a month, one JSON object a line."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}/lines.jsonl",
                account_id=account_id,
                period=period,
            ),
        )
        return cast("bytes", found)

    async def list_invoices(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.InvoiceSummaryPage:
        """Lists invoices and credit notes of an account, in the order of issue."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/invoices", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.InvoiceSummaryPage", found)

    def iter_invoices(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.InvoiceSummaryAnswer]:
        """Every item of `list_invoices` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_invoices(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def issue_invoice(
        self, account_id: str, body: forms.InvoiceRequest, *, idempotency_key: str | None = None
    ) -> forms.InvoiceIssuedAnswer:
        """Issues the invoice of a closed month, once for each account, month and kind."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/invoices", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.InvoiceIssuedAnswer", found)

    async def read_invoice_html(self, account_id: str, written_number: str) -> bytes:
        """Returns one document as a complete HTML page."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/invoices/{written_number}.html",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("bytes", found)

    async def read_invoice_pdf(self, account_id: str, written_number: str) -> bytes:
        """Returns one document as PDF. The same document gives the same bytes."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/invoices/{written_number}.pdf",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("bytes", found)

    async def read_invoice(self, account_id: str, written_number: str) -> forms.InvoiceAnswer:
        """Returns one invoice or credit note, with the text that was hashed."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/invoices/{written_number}",
                account_id=account_id,
                written_number=written_number,
            ),
        )
        return cast("forms.InvoiceAnswer", found)

    async def issue_credit_note(
        self,
        account_id: str,
        written_number: str,
        body: forms.CreditNoteRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.InvoiceIssuedAnswer:
        """Credits lines of an invoice, with a credit note of its own number."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/invoices/{written_number}/credit",
                account_id=account_id,
                written_number=written_number,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.InvoiceIssuedAnswer", found)

    async def read_billing_details(self, account_id: str) -> forms.BillingDetailsAnswer:
        """Returns the name and address on the account's invoices."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/billing-details", account_id=account_id)
        )
        return cast("forms.BillingDetailsAnswer", found)

    async def set_billing_details(
        self, account_id: str, body: forms.BillingDetailsRequest
    ) -> forms.BillingDetailsAnswer:
        """Sets the name and address on invoices. They replace earlier ones and are in no
        log.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/billing-details", account_id=account_id),
            body=body,
        )
        return cast("forms.BillingDetailsAnswer", found)

    async def erase_billing_details(self, account_id: str) -> forms.BillingDetailsAnswer:
        """Erases name and address. Invoices show only the account's id from then on."""
        found = await self._call(
            "DELETE", at("/v1/accounts/{account_id}/billing-details", account_id=account_id)
        )
        return cast("forms.BillingDetailsAnswer", found)

    async def set_region_terms(
        self, region_id: str, body: forms.RegionTermsRequest, *, idempotency_key: str | None = None
    ) -> forms.RegionTermsAnswer:
        """Sets how a region shares what its nodes earn, a whole notice period ahead."""
        found = await self._call(
            "POST",
            at("/v1/regions/{region_id}/terms", region_id=region_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.RegionTermsAnswer", found)

    async def read_region_terms(self, region_id: str) -> forms.RegionTermsAnswer:
        """Returns how a region shares what its nodes earn. Any account may read it."""
        found = await self._call("GET", at("/v1/regions/{region_id}/terms", region_id=region_id))
        return cast("forms.RegionTermsAnswer", found)

    async def list_region_days(
        self, region_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.RegionDayPage:
        """Lists days that a region has shared out, newest first, for its provider and the
        receivers.
        """
        found = await self._call(
            "GET",
            at("/v1/regions/{region_id}/shares", region_id=region_id),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.RegionDayPage", found)

    def iter_region_days(
        self, region_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.RegionDayAnswer]:
        """Every item of `list_region_days` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_region_days(region_id, limit=limit, cursor=at_cursor),
            cursor,
        )

    async def list_region_shares(
        self, region_id: str, date: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.NodeSharePage:
        """Lists every node's share of a day and why; of other regions, the shares paid to
        you.
        """
        found = await self._call(
            "GET",
            at("/v1/regions/{region_id}/shares/{date}", region_id=region_id, date=date),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.NodeSharePage", found)

    def iter_region_shares(
        self, region_id: str, date: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.NodeShareAnswer]:
        """Every item of `list_region_shares` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_region_shares(
                region_id, date, limit=limit, cursor=at_cursor
            ),
            cursor,
        )

    async def read_balances(
        self, account_id: str, *, as_of_position: int | None = None, as_of: str | None = None
    ) -> forms.BalancesAnswer:
        """Returns the balances of an account: now, or as of a position or a time."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/balances", account_id=account_id),
            query={"as_of_position": as_of_position, "as_of": as_of},
        )
        return cast("forms.BalancesAnswer", found)

    async def list_journal(
        self,
        account_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.JournalLinePage:
        """Lists every movement on the account's books, in order; recorded in [from, to)."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/journal", account_id=account_id),
            query={
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
                "as_of_position": as_of_position,
                "as_of": as_of,
                "order": order,
            },
        )
        return cast("forms.JournalLinePage", found)

    def iter_journal(
        self,
        account_id: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of_position: int | None = None,
        as_of: str | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.JournalLineAnswer]:
        """Every item of `list_journal` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_journal(
                account_id,
                from_=from_,
                to=to,
                limit=limit,
                cursor=at_cursor,
                as_of_position=as_of_position,
                as_of=as_of,
                order=order,
            ),
            cursor,
        )

    async def read_statement(
        self, account_id: str, period: str, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.MonthlyStatementAnswer:
        """Returns the statement of one month: balances, what was charged, and what was
        earned.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/{period}",
                account_id=account_id,
                period=period,
            ),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.MonthlyStatementAnswer", found)

    async def read_account_statement(
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
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.AccountStatementAnswer:
        """Returns a statement of any period, accrued as of now or as of any moment."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/statements", account_id=account_id),
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
                "order": order,
            },
        )
        return cast("forms.AccountStatementAnswer", found)

    async def read_statement_line(
        self, account_id: str, position: int
    ) -> forms.StatementLineDetailAnswer:
        """Returns the fact behind a line, its booked entry, and the arithmetic of its
        amounts.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/lines/{position}",
                account_id=account_id,
                position=position,
            ),
        )
        return cast("forms.StatementLineDetailAnswer", found)

    async def read_statement_line_proof(self, account_id: str, position: int) -> str:
        """Returns the proof of a line's fact under the last signed head, as a `.tlog-proof`
        file.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/lines/{position}/proof",
                account_id=account_id,
                position=position,
            ),
        )
        return cast("str", found)

    async def list_statement_line_reports(
        self, account_id: str, position: int, *, limit: int | None = None, cursor: str | None = None
    ) -> forms.ConsumedReportPage:
        """Lists the signed reports that an accrual read, and the worth of each. Their sum
        is the.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/lines/{position}/reports",
                account_id=account_id,
                position=position,
            ),
            query={"limit": limit, "cursor": cursor},
        )
        return cast("forms.ConsumedReportPage", found)

    def iter_statement_line_reports(
        self, account_id: str, position: int, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncIterator[forms.ConsumedReportAnswer]:
        """Every item of `list_statement_line_reports` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_statement_line_reports(
                account_id, position, limit=limit, cursor=at_cursor
            ),
            cursor,
        )

    async def read_statement_line_report_proof(
        self, account_id: str, position: int, usage_position: int
    ) -> str:
        """Returns one report's signed bytes and its proof under the first pin that covers
        it.
        """
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/statements/lines/{position}/reports/{usage_position}/proof",
                account_id=account_id,
                position=position,
                usage_position=usage_position,
            ),
        )
        return cast("str", found)

    async def list_earnings(
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
    ) -> forms.EarningPage:
        """Lists sums of earnings: your own, or those of all accounts for operators and
        auditors.
        """
        found = await self._call(
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
        return cast("forms.EarningPage", found)

    def iter_earnings(
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
    ) -> AsyncIterator[forms.EarningAnswer]:
        """Every item of `list_earnings` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_earnings(
                by=by,
                node_id=node_id,
                lease_id=lease_id,
                epoch=epoch,
                account_id=account_id,
                from_=from_,
                to=to,
                limit=limit,
                cursor=at_cursor,
            ),
            cursor,
        )

    async def read_node_today(self, node_id: str) -> forms.NodeDayEarningsAnswer:
        """Returns a node's earnings since midnight UTC: its provider's, or your part as its
        owner.
        """
        found = await self._call("GET", at("/v1/nodes/{node_id}/earnings/today", node_id=node_id))
        return cast("forms.NodeDayEarningsAnswer", found)

    async def explain_earning(self, position: int) -> forms.EarningExplanationAnswer:
        """Returns how one accrual was shared: every number of the arithmetic, and the
        booked entry.
        """
        found = await self._call("GET", at("/v1/earnings/explain/{position}", position=position))
        return cast("forms.EarningExplanationAnswer", found)

    async def read_owner_part(
        self, node_id: str, *, price: int | None = None
    ) -> forms.OwnerPartsAnswer:
        """Returns the owner's part of a GPU-hour of a node, at a price or at those of its
        offers.
        """
        found = await self._call(
            "GET",
            at("/v1/nodes/{node_id}/earnings/per-hour", node_id=node_id),
            query={"price": price},
        )
        return cast("forms.OwnerPartsAnswer", found)

    async def read_maturity(self, account_id: str) -> forms.EarningsMaturityAnswer:
        """Returns the earnings of an account: held back, payable, earned, and when they
        mature.
        """
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/maturity", account_id=account_id)
        )
        return cast("forms.EarningsMaturityAnswer", found)

    async def read_payment_mode(self, account_id: str) -> forms.PaymentModeAnswer:
        """Returns how an account is paid."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/payment-mode", account_id=account_id)
        )
        return cast("forms.PaymentModeAnswer", found)

    async def set_payment_mode(
        self, account_id: str, body: forms.PaymentModeRequest, *, idempotency_key: str | None = None
    ) -> forms.PaymentModeAnswer:
        """Sets how an account is paid. A changed destination is paid after 72 hours."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/payment-mode", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PaymentModeAnswer", found)

    async def remove_dust(
        self, account_id: str, body: forms.EmptyRequest, *, idempotency_key: str | None = None
    ) -> forms.EarningsForgoneAnswer:
        """Gives up earned credits of less than a cent, so that the account can be closed."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/forgo-dust", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.EarningsForgoneAnswer", found)

    async def list_account_cash_outs(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.CashOutPage:
        """Lists the cash-outs of an account."""
        found = await self._call(
            "GET",
            at("/v1/accounts/{account_id}/cash-outs", account_id=account_id),
            query={"limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.CashOutPage", found)

    def iter_account_cash_outs(
        self,
        account_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.CashOutAnswer]:
        """Every item of `list_account_cash_outs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_account_cash_outs(
                account_id, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def submit_cash_out(
        self, account_id: str, body: forms.CashOutRequest, *, idempotency_key: str | None = None
    ) -> forms.CashOutStateAnswer:
        """Requests a cash-out of earned credits, to the destination of the payment mode."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/cash-outs", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutStateAnswer", found)

    async def list_cash_outs(
        self,
        *,
        account_id: str | None = None,
        open: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.CashOutPage:
        """Lists the cash-outs of all accounts."""
        found = await self._call(
            "GET",
            "/v1/cash-outs",
            query={
                "account_id": account_id,
                "open": open,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.CashOutPage", found)

    def iter_cash_outs(
        self,
        *,
        account_id: str | None = None,
        open: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.CashOutAnswer]:
        """Every item of `list_cash_outs` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_cash_outs(
                account_id=account_id,
                open=open,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def read_cash_out(self, account_id: str, cash_out_id: str) -> forms.CashOutAnswer:
        """Returns one cash-out."""
        found = await self._call(
            "GET",
            at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
        )
        return cast("forms.CashOutAnswer", found)

    async def cancel_cash_out(
        self,
        account_id: str,
        cash_out_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CashOutStateAnswer:
        """Cancels a cash-out that the processor was not yet asked to pay."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/cancel",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutStateAnswer", found)

    async def confirm_cash_out(
        self,
        account_id: str,
        cash_out_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CashOutStateAnswer:
        """Confirms that a bank transfer was made."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/paid",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutStateAnswer", found)

    async def report_cash_out_failed(
        self,
        account_id: str,
        cash_out_id: str,
        body: forms.CashOutFailureRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CashOutStateAnswer:
        """Records that a transfer will not be made. The credits come back."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/cash-outs/{cash_out_id}/failed",
                account_id=account_id,
                cash_out_id=cash_out_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutStateAnswer", found)

    async def add_cash_out_hold(
        self, account_id: str, body: forms.CashOutHoldRequest, *, idempotency_key: str | None = None
    ) -> forms.CashOutHoldsAnswer:
        """Holds all cash-outs of an account. None is requested or sent until the hold is
        released.
        """
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/cash-outs/hold", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutHoldsAnswer", found)

    async def remove_cash_out_hold(
        self,
        account_id: str,
        body: forms.CashOutHoldReleaseRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CashOutHoldsAnswer:
        """Releases a hold. Other holds stay."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/cash-outs/release", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CashOutHoldsAnswer", found)

    async def list_payout_differences(
        self,
        *,
        open: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.PayoutDifferencePage:
        """Lists differences between the processor's payouts and our cash-outs."""
        found = await self._call(
            "GET",
            "/v1/cash-outs/differences",
            query={"open": open, "limit": limit, "cursor": cursor, "order": order, "since": since},
        )
        return cast("forms.PayoutDifferencePage", found)

    def iter_payout_differences(
        self,
        *,
        open: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.PayoutDifferenceAnswer]:
        """Every item of `list_payout_differences` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_payout_differences(
                open=open, limit=limit, cursor=at_cursor, order=order, since=since
            ),
            cursor,
        )

    async def close_payout_difference(
        self,
        difference_id: str,
        body: forms.PayoutDifferenceNoteRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.PayoutDifferenceClosedAnswer:
        """Explains a difference, which ends its alarm."""
        found = await self._call(
            "POST",
            at("/v1/cash-outs/differences/{difference_id}/settle", difference_id=difference_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.PayoutDifferenceClosedAnswer", found)

    async def read_cash_out_terms(self) -> forms.MoneyOutTermsAnswer:
        """Returns the dispute windows, past and announced, and the smallest cash-out."""
        found = await self._call("GET", "/v1/cash-outs/terms")
        return cast("forms.MoneyOutTermsAnswer", found)

    async def publish_maturity_window(
        self, body: forms.MaturityWindowRequest, *, idempotency_key: str | None = None
    ) -> forms.MoneyOutTermsAnswer:
        """Sets how long earnings wait for disputes, for what is charged from then on."""
        found = await self._call(
            "POST",
            "/v1/cash-outs/terms/window",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MoneyOutTermsAnswer", found)

    async def publish_cash_out_minimum(
        self, body: forms.CashOutMinimumRequest, *, idempotency_key: str | None = None
    ) -> forms.MoneyOutTermsAnswer:
        """Sets the smallest cash-out, in whole cents."""
        found = await self._call(
            "POST",
            "/v1/cash-outs/terms/minimum",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.MoneyOutTermsAnswer", found)

    async def open_dispute(
        self, body: forms.DisputeRequest, *, idempotency_key: str | None = None
    ) -> forms.DisputeAnswer:
        """Opens a dispute over charges of a lease or volume, inside their window. The
        owners' parts are.
        """
        found = await self._call(
            "POST", "/v1/disputes", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.DisputeAnswer", found)

    async def list_disputes(
        self,
        *,
        lease_id: str | None = None,
        volume_id: str | None = None,
        state: Literal["open", "resolved"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.DisputePage:
        """Lists disputes of which you are a party; all of them for operators and auditors."""
        found = await self._call(
            "GET",
            "/v1/disputes",
            query={
                "lease_id": lease_id,
                "volume_id": volume_id,
                "state": state,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.DisputePage", found)

    def iter_disputes(
        self,
        *,
        lease_id: str | None = None,
        volume_id: str | None = None,
        state: Literal["open", "resolved"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.DisputeAnswer]:
        """Every item of `list_disputes` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_disputes(
                lease_id=lease_id,
                volume_id=volume_id,
                state=state,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def read_dispute(self, dispute_id: str) -> forms.DisputeDetailAnswer:
        """Returns a dispute with its lines, its evidence and its statements."""
        found = await self._call("GET", at("/v1/disputes/{dispute_id}", dispute_id=dispute_id))
        return cast("forms.DisputeDetailAnswer", found)

    async def answer_dispute(
        self,
        dispute_id: str,
        body: forms.DisputeAnswerRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DisputeAnswer:
        """Adds a statement or evidence to a dispute, as either side, until the ruling."""
        found = await self._call(
            "POST",
            at("/v1/disputes/{dispute_id}/answer", dispute_id=dispute_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DisputeAnswer", found)

    async def rule_dispute(
        self,
        dispute_id: str,
        body: forms.DisputeRulingRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.DisputeAnswer:
        """Rules on a dispute, as an operator that is neither party. The ruling is final and
        booked.
        """
        found = await self._call(
            "POST",
            at("/v1/disputes/{dispute_id}/rule", dispute_id=dispute_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.DisputeAnswer", found)

    async def create_adjustment(
        self, body: forms.GoodwillAdjustmentRequest, *, idempotency_key: str | None = None
    ) -> forms.AdjustmentAnswer:
        """Returns part of a charge to a renter, paid by the network's revenue (operator)."""
        found = await self._call(
            "POST", "/v1/adjustments", body=body, idempotency_key=idempotency_key, records=True
        )
        return cast("forms.AdjustmentAnswer", found)

    async def list_adjustments(
        self,
        *,
        lease_id: str | None = None,
        volume_id: str | None = None,
        corrects_position: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> forms.AdjustmentPage:
        """Lists corrections of charges that you paid or were paid, in booking order."""
        found = await self._call(
            "GET",
            "/v1/adjustments",
            query={
                "lease_id": lease_id,
                "volume_id": volume_id,
                "corrects_position": corrects_position,
                "limit": limit,
                "cursor": cursor,
                "order": order,
                "since": since,
            },
        )
        return cast("forms.AdjustmentPage", found)

    def iter_adjustments(
        self,
        *,
        lease_id: str | None = None,
        volume_id: str | None = None,
        corrects_position: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        since: str | None = None,
    ) -> AsyncIterator[forms.AdjustmentAnswer]:
        """Every item of `list_adjustments` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_adjustments(
                lease_id=lease_id,
                volume_id=volume_id,
                corrects_position=corrects_position,
                limit=limit,
                cursor=at_cursor,
                order=order,
                since=since,
            ),
            cursor,
        )

    async def create_late_usage_adjustment(
        self, body: forms.LateUsageAdjustmentRequest, *, idempotency_key: str | None = None
    ) -> forms.AdjustmentAnswer:
        """Charges signed usage that was reported after the lease was settled (operator)."""
        found = await self._call(
            "POST",
            "/v1/adjustments/late-usage",
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.AdjustmentAnswer", found)

    async def read_adjustment(self, adjustment_id: str) -> forms.AdjustmentAnswer:
        """Returns one correction and every account it moved."""
        found = await self._call(
            "GET", at("/v1/adjustments/{adjustment_id}", adjustment_id=adjustment_id)
        )
        return cast("forms.AdjustmentAnswer", found)

    async def add_signing_key(
        self, account_id: str, body: forms.SigningKeyRequest, *, idempotency_key: str | None = None
    ) -> forms.SigningKeyAnswer:
        """Registers a key that countersigns the usage of your leases."""
        found = await self._call(
            "POST",
            at("/v1/accounts/{account_id}/signing-keys", account_id=account_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.SigningKeyAnswer", found)

    async def list_signing_keys(self, account_id: str) -> forms.SigningKeysAnswer:
        """Lists every key that could sign for an account, oldest first."""
        found = await self._call(
            "GET", at("/v1/accounts/{account_id}/signing-keys", account_id=account_id)
        )
        return cast("forms.SigningKeysAnswer", found)

    async def revoke_signing_key(
        self,
        account_id: str,
        key_id: str,
        body: forms.EmptyRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.SigningKeyAnswer:
        """Revokes a signing key. Its earlier signatures stay valid."""
        found = await self._call(
            "POST",
            at(
                "/v1/accounts/{account_id}/signing-keys/{key_id}/revoke",
                account_id=account_id,
                key_id=key_id,
            ),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.SigningKeyAnswer", found)

    async def countersign_usage(
        self,
        lease_id: str,
        body: forms.CountersignatureRequest,
        *,
        idempotency_key: str | None = None,
    ) -> forms.CountersignatureAnswer:
        """Records a renter's signature for the usage of a lease: the total, up to a moment."""
        found = await self._call(
            "POST",
            at("/v1/leases/{lease_id}/countersign", lease_id=lease_id),
            body=body,
            idempotency_key=idempotency_key,
            records=True,
        )
        return cast("forms.CountersignatureAnswer", found)

    async def read_stick(self, lease_id: str) -> forms.CountersignedUsageAnswer:
        """Returns both halves of a lease's usage: the node's reports and the renter's
        signature.
        """
        found = await self._call("GET", at("/v1/leases/{lease_id}/stick", lease_id=lease_id))
        return cast("forms.CountersignedUsageAnswer", found)

    async def list_events(
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
        order: Literal["asc", "desc"] | None = None,
    ) -> forms.LogEventPage:
        """Lists facts in order."""
        found = await self._call(
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
                "order": order,
            },
        )
        return cast("forms.LogEventPage", found)

    def iter_events(
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
        order: Literal["asc", "desc"] | None = None,
    ) -> AsyncIterator[forms.LogEventAnswer]:
        """Every item of `list_events` from `cursor` on, `limit` at a time."""
        return items_async(
            lambda at_cursor: self.list_events(
                party=party,
                type_=type_,
                from_=from_,
                to=to,
                from_position=from_position,
                to_position=to_position,
                limit=limit,
                cursor=at_cursor,
                as_of_position=as_of_position,
                as_of=as_of,
                order=order,
            ),
            cursor,
        )

    async def read_event(self, position: int) -> forms.LogEventAnswer:
        """Returns the fact at a position."""
        found = await self._call("GET", at("/v1/audit/events/{position}", position=position))
        return cast("forms.LogEventAnswer", found)

    async def read_checkpoint(self) -> str:
        """Returns the last signed head of the log: a C2SP signed note over origin, size and
        root.
        """
        found = await self._call("GET", "/v1/audit/log/checkpoint")
        return cast("str", found)

    async def read_log_key(self) -> forms.LogKeyAnswer:
        """Returns the public key that signs the log's heads, and every announced
        replacement of it.
        """
        found = await self._call("GET", "/v1/audit/log/key")
        return cast("forms.LogKeyAnswer", found)

    async def read_proof(self, position: int) -> str:
        """Returns the proof of one fact under the last signed head, as a `.tlog-proof`
        file.
        """
        found = await self._call("GET", at("/v1/audit/proofs/{position}", position=position))
        return cast("str", found)

    async def read_usage_proof(self, lane: int, usage_position: int) -> str:
        """Returns the proof of one usage report under the first pin that covers it."""
        found = await self._call(
            "GET",
            at(
                "/v1/audit/proofs/usage/{lane}/{usage_position}",
                lane=lane,
                usage_position=usage_position,
            ),
        )
        return cast("str", found)

    async def read_solvency(self) -> forms.BooksSolvencyAnswer:
        """Returns what the network holds, and whose it is: all accounts by kind, added up."""
        found = await self._call("GET", "/v1/solvency")
        return cast("forms.BooksSolvencyAnswer", found)

    async def list_timers(self) -> forms.TimerRunsAnswer:
        """Lists the timers of the server: last run, duration, error, next run."""
        found = await self._call("GET", "/v1/timers")
        return cast("forms.TimerRunsAnswer", found)

    async def list_alerts(self) -> forms.AlertsHeldAnswer:
        """Lists what is wrong now, and the numbers of the server by which it is judged."""
        found = await self._call("GET", "/v1/alerts")
        return cast("forms.AlertsHeldAnswer", found)
