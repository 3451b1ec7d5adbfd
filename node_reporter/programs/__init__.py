"""What does an owner type? Arguments go in; the subcommands of `tallystick-node` do their work and
say how it went.
"""

__all__ = ("edge", "execute", "install", "join", "run")
