"""Whether a passkey asserted a text: a WebAuthn assertion, checked with its public key alone.

    challenge of the assertion == SHA-256(text)        of the type webauthn.get, at the key's origin
    signed                     == authenticator data || SHA-256(client data)
    flags                      => a person was there and was verified

A key is `<COSE key>@<origin>`; its relying party is the origin's host. The counter of signatures is
not looked at: what is signed serves once by itself. The library of the check is one of the server's
(`webauthn`); where it is not installed an export's passkeys are counted as not checked.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from re import compile as pattern
from urllib.parse import urlsplit

from domain.authority.vote import ASSERTION_PATTERN

_ASSERTION = pattern(ASSERTION_PATTERN)


@cache
def is_checkable() -> bool:
    """Whether the library is installed."""
    return find_spec("webauthn") is not None


def is_asserted(key: str, text: str, signature: str) -> bool:
    """Whether the passkey made this assertion for this text; `key` without `passkey:`."""
    if _ASSERTION.fullmatch(signature) is None:
        return False
    from webauthn import verify_authentication_response  # takes a fifth of a second to import
    from webauthn.helpers import bytes_to_base64url
    from webauthn.helpers.structs import AuthenticationCredential, AuthenticatorAssertionResponse

    public, _, origin = key.partition("@")
    data, client_data, signed = map(bytes.fromhex, signature.partition(":")[2].split("."))
    name = sha256(key.encode()).digest()  # the credential's own id is no part of what is signed
    try:
        verify_authentication_response(
            credential=AuthenticationCredential(
                id=bytes_to_base64url(name),
                raw_id=name,
                response=AuthenticatorAssertionResponse(
                    client_data_json=client_data, authenticator_data=data, signature=signed
                ),
            ),
            expected_challenge=sha256(text.encode()).digest(),
            expected_rp_id=urlsplit(origin).hostname or "",
            expected_origin=origin,
            credential_public_key=bytes.fromhex(public),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception:
        # The library raises a dozen kinds for bytes that no authenticator can have made.
        return False
    return True
