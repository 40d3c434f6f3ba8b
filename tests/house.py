"""Count the house: lines, modules, rooms, and the arrows between them; `python tests/house.py`.

A room is a folder of `src/tensornp/`; an arrow leads from a module, or a room, to another one that it imports.
"""

from __future__ import annotations

import graphlib
from collections import Counter
from pathlib import Path

from test_house import MODULES, SRC, imports_of

SMALL = 40
"""Lines under which a module should have a good reason."""


def main() -> None:
    """Print what is counted, of all and of each room."""
    names = {".".join(("tensornp", *path.relative_to(SRC).with_suffix("").parts)): path for path in MODULES}
    edges = {name: arrows_from(path, name, names) for name, path in names.items()}
    rooms = Counter(path.parent for path in MODULES)
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    pages = sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in SRC.rglob("static/**/*") if path.is_file()
    )
    small = sum(lines[path] < SMALL for path in MODULES if path.name != "__init__.py")
    between = {(room_of(a), room_of(b)) for a, others in edges.items() for b in others if room_of(a) != room_of(b)}
    print(f"{sum(lines.values()):,} lines of Python, {pages:,} of JavaScript and CSS")
    print(f"{len(MODULES)} modules, {small} of them under {SMALL} lines, in {len(rooms)} rooms")
    print(f"{sum(map(len, edges.values())):,} arrows between modules, {len(between)} between rooms, {circles(edges)}")
    print("\nlines  modules  room")
    for room, count in sorted(rooms.items()):
        own = sum(n for path, n in lines.items() if path.parent == room)
        print(f"{own:5,}  {count:7}  {room.relative_to(SRC).as_posix()}")


def num_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def arrows_from(path: Path, name: str, names: dict[str, Path]) -> set[str]:
    """Return the modules of ours that one imports, wherever in it, and not the packages that they are in."""
    found = {imported for imported in imports_of(path) if imported.startswith("tensornp.")}
    return {other for other in names for one in found if one == other or one.startswith(f"{other}.")} - {name}


def room_of(name: str) -> str:
    return name.rpartition(".")[0]


def circles(edges: dict[str, set[str]]) -> str:
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return f"a circle: {' -> '.join(error.args[1])}"
    return "no circle"


if __name__ == "__main__":
    main()
