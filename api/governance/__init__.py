"""How is a policy proposed, rehearsed and published? Proposals, votes and grants go in over HTTP;
policies, rehearsals and breakers come out.
"""

__all__ = ("passing", "registry", "rehearsal")
