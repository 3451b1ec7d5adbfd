"""What is this machine? Its files, its cloud and its configuration go in; the inventory that the
node signs comes out.
"""

__all__ = ("config", "inventory", "machine")
