"""Who is signed in? A key or a wallet goes in once; a cookie comes out whose row can be revoked."""

__all__ = ("sessions", "wallets")
