"""Maps: the passages of an index projected to two dimensions."""

from semsearch.maps.map import Map, make_map, open_map
from semsearch.maps.table import map_table

__all__ = ["Map", "make_map", "map_table", "open_map"]
