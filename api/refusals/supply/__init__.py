"""What do refusals about machines and where they stand say? One file for each room whose reasons it
holds, like the folder above.
"""

__all__ = ("cloud", "fleet", "hardware", "sites", "storage")
