"""A map without a map: one tile for each country, placed by hand roughly as on the globe.

    a region stands on the tile that is nearest to it:  min over tiles of  4 dlat^2 + dlon^2

Column and row are a table here; another country needs one line. Degrees are whole, and the distance
is in whole numbers: it chooses a tile and measures nothing. No map of others is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

SIZE, STEP = 66, 71
COLUMNS, ROWS = 14, 6
MILLION = 1_000_000
LEVELS = ((750_000, "t4"), (650_000, "t3"), (550_000, "t2"), (0, "t1"))
"""The leased part from which on a tile is darker, in ppm."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A place of the map: ISO code, name, column, row, and about where it is in degrees."""

    code: str
    name: str
    column: int
    row: int
    latitude: int
    longitude: int


TILES = (
    Tile("CA", "Canada", 2, 0, 56, -106),
    Tile("US-W", "United States, west", 1, 1, 39, -118),
    Tile("US-C", "United States, middle", 2, 1, 38, -98),
    Tile("US-E", "United States, east", 3, 1, 39, -78),
    Tile("MX", "Mexico", 2, 2, 23, -102),
    Tile("CO", "Colombia", 3, 3, 4, -73),
    Tile("BR", "Brazil", 4, 4, -12, -50),
    Tile("AR", "Argentina", 4, 5, -35, -64),
    Tile("CL", "Chile", 3, 5, -33, -71),
    Tile("IS", "Iceland", 5, 0, 65, -18),
    Tile("IE", "Ireland", 5, 1, 53, -8),
    Tile("GB", "United Kingdom", 6, 1, 53, -1),
    Tile("NO", "Norway", 7, 0, 61, 9),
    Tile("SE", "Sweden", 8, 0, 62, 16),
    Tile("FI", "Finland", 9, 0, 63, 26),
    Tile("NL", "Netherlands", 7, 1, 52, 5),
    Tile("DE", "Germany", 8, 1, 51, 10),
    Tile("PL", "Poland", 9, 1, 52, 19),
    Tile("FR", "France", 7, 2, 47, 2),
    Tile("ES", "Spain", 6, 2, 40, -4),
    Tile("IT", "Italy", 8, 2, 42, 13),
    Tile("RO", "Romania", 9, 2, 46, 25),
    Tile("MA", "Morocco", 6, 3, 32, -6),
    Tile("EG", "Egypt", 9, 3, 27, 30),
    Tile("NG", "Nigeria", 7, 4, 9, 8),
    Tile("KE", "Kenya", 9, 4, 0, 38),
    Tile("ZA", "South Africa", 8, 5, -29, 24),
    Tile("AE", "United Arab Emirates", 10, 3, 24, 54),
    Tile("IN", "India", 11, 3, 21, 78),
    Tile("SG", "Singapore", 12, 4, 1, 104),
    Tile("KR", "South Korea", 12, 1, 36, 128),
    Tile("JP", "Japan", 13, 1, 36, 138),
    Tile("TW", "Taiwan", 12, 2, 24, 121),
    Tile("AU", "Australia", 13, 5, -27, 134),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """What stands on a tile: devices and their leased part; no leased part: nothing was booked."""

    devices: int
    leased_ppm: int | None
    names: tuple[str, ...]
    path: str


def tile_at(latitude_e6: int, longitude_e6: int) -> Tile:
    """The tile that is nearest to a place, in millionths of a degree; the date line is a line."""

    def distance(tile: Tile) -> tuple[int, str]:
        north = latitude_e6 // MILLION - tile.latitude
        east = abs(longitude_e6 // MILLION - tile.longitude)
        east = min(east, 360 - east)
        return 4 * north * north + east * east, tile.code

    return min(TILES, key=distance)


def tile_map(placed: Sequence[tuple[Tile, Placed]]) -> Markup:
    """All tiles as one drawing; those with devices lead to their rows of the table beneath."""
    by_code = {tile.code: found for tile, found in placed}
    drawn = Markup("").join(_tile(tile, by_code.get(tile.code)) for tile in TILES)
    return Markup(
        '<div class="plot tilemap"><svg viewBox="0 0 {} {}" role="group"'
        ' aria-label="Regions with devices, laid out roughly as on a map">{}</svg></div>'
    ).format(COLUMNS * STEP - STEP + SIZE, ROWS * STEP - STEP + SIZE, drawn)


def level(leased_ppm: int | None) -> str:
    """The shade of a tile."""
    return next(name for least, name in LEVELS if (leased_ppm or 0) >= least)


def _tile(tile: Tile, found: Placed | None) -> Markup:
    x, y = tile.column * STEP, tile.row * STEP
    rect = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="6"/>')
    if found is None:
        told = Markup(
            '<g><title>{}: nothing yet</title>{}<text class="none" x="{}" y="{}">{}</text></g>'
        )
        return told.format(tile.name, rect.format("t0", x, y, SIZE, SIZE), x + 8, y + 20, tile.code)
    shade = level(found.leased_ppm)
    leased = "" if found.leased_ppm is None else f"{found.leased_ppm // 10_000} %"
    says = f"{tile.name}: {found.devices} devices" + (f", {leased} leased" if leased else "")
    square = rect.format(shade, x, y, SIZE, SIZE)
    texts = (
        _text("code", x, y + 20, tile.code),
        _text("v", x, y + 40, str(found.devices)),
        _text("v", x, y + 57, leased),
    )
    kind = "onfill" if shade == "t4" else ""
    open_ = Markup('<a href="{}" aria-label="{}"><g class="{}"><title>{}</title>{}{}</g></a>')
    return open_.format(found.path, says, kind, says, square, Markup("").join(texts))


def _text(kind: str, x: int, y: int, text: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, x + 8, y, text)
