"""Which region is a machine's, and where do earnings go that leave through a wallet? Places, wait
lists and signatures go in as `tallystick home` and `wallet`; answers of a server come out.
"""

__all__ = ()
