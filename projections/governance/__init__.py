"""Which proposals and policies are there? Facts of governance go in; a list by state comes out."""

__all__ = ("policies", "registry")
