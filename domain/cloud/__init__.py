"""What may a cloud account run, and how far is it set up? Checklists, quotas and the capacity
classes of nodes go in; what a provider may open and how many jobs can still start come out.
"""

__all__ = ("capacity", "onboarding", "quotas", "reasons", "registry")
