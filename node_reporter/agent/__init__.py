"""How does the reporter run all day? The configuration and the time go in; measured, signed and
delivered reports, a status page and a diagnosis come out.
"""

__all__ = ("agent", "checks", "doctor", "loop", "page", "sd_notify", "unit_file")
