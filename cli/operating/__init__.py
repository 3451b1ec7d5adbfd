"""How does an operator keep a server sound? The settings of this machine go in; the state of keys,
database, timers and contracts comes out, with what to do about it.
"""

__all__ = ()
