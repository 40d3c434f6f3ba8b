"""Build the pages: ``python .docs/build.py [FOLDER]``, into ``build/docs`` of the clone.

The README is the start page, the examples are run, what is public is described by its docstrings. Whatever the pages
lead to must be among them, and they load nothing from a network. Where Sphinx is missing, the environment that the
examples and the tests share gets it.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = {"README.md": "index.md", ".github/CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Where a file of the clone stands among the pages."""
PARTS = {
    "kinds.md": (".github/CONTRIBUTING.md", "Every kind of tensor"),
    "limits.md": ("README.md", "Limits"),
}
"""Pages that are the part of a file under a heading."""
EXAMPLES = tuple(path.name for path in sorted((ROOT / "examples").glob("*.ipynb")))
_LINK = re.compile(r"\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s]+)\)")
_CONTENTS = """

```{{toctree}}
:hidden:

examples/index
{pages}
```
"""
_GALLERY = """# Examples

Each is run from its first cell to its last when these pages are made.

```{toctree}
:maxdepth: 1
:glob:

*
```
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the pages, and return 0 if nothing was amiss."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--examples", nargs="*", default=EXAMPLES, metavar="NAME", help="the notebooks that are run")
    options = parser.parse_args(arguments)
    if find_spec("myst_nb") is None:
        sys.path.insert(0, str(ROOT / "examples"))
        from environment import ensure

        python = ensure("examples", "docs")
        given = sys.argv[1:] if arguments is None else arguments
        return subprocess.run([python, __file__, *given], check=False).returncode
    problems = build(options.folder, options.examples)
    print("\n".join(problems) or f"built {options.folder / 'index.html'}")
    return 1 if problems else 0


def build(folder: Path, examples: Sequence[str] = EXAMPLES) -> list[str]:
    """Build the pages into a folder, and return what is amiss with them."""
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "pages"
        assemble(source, examples)
        code = build_main(
            ["-q", "-W", "--keep-going", "-c", str(HERE), "-d", f"{place}/trees", str(source), str(folder)]
        )
    return [f"Sphinx ended with {code}"] if code else list(broken(folder))


def assemble(source: Path, examples: Sequence[str]) -> None:
    """Lay out what the pages are made of."""
    (source / "examples").mkdir(parents=True)
    for name in examples:
        notebook = json.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = relinked("".join(cell["source"]), Path("examples"), examples)
        (source / "examples" / name).write_text(json.dumps(notebook), encoding="utf-8")
    (source / "examples" / "index.md").write_text(_GALLERY, encoding="utf-8")
    shutil.copytree(ROOT / ".github" / "images", source / "images")
    for path, page in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        (source / page).write_text(relinked(text, Path(path).parent, examples), encoding="utf-8")
    for page, (path, heading) in PARTS.items():
        text = part((ROOT / path).read_text(encoding="utf-8"), heading)
        (source / page).write_text(relinked(text, Path(path).parent, examples), encoding="utf-8")
    others = [page.removesuffix(".md") for page in ("api.md", *PARTS, *PAGES.values()) if page != "index.md"]
    with (source / "index.md").open("a", encoding="utf-8") as index:
        index.write(_CONTENTS.format(pages="\n".join(others)))
    (source / "api.md").write_text("\n".join(api()), encoding="utf-8")


def part(text: str, heading: str) -> str:
    """Return what stands under a heading of the second level, as a page."""
    found = re.search(rf"^## {heading}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"there is no heading {heading!r}")
    return re.sub("^#(?=#)", "", found[0], flags=re.MULTILINE)


def relinked(text: str, folder: Path, examples: Sequence[str]) -> str:
    """Return a text of the clone whose links lead to the pages; what is none of these is named, and no link."""

    def link(found: re.Match[str]) -> str:
        said, target = found.groups()
        if re.match(r"https?:|#", target):
            return found[0]
        path, anchor = urldefrag(target)
        path = posixpath.normpath((folder / path).as_posix()) if path else ""
        name = path.rpartition("/")[2]
        if path in PAGES:
            place = PAGES[path]
        elif path.startswith(".github/images/"):
            place = f"images/{name}"
        elif path == f"examples/{name}" and name in examples:
            place = path
        else:
            return said
        return f"[{said}](/{place}{f'#{anchor}' if anchor else ''})"

    return _LINK.sub(link, text)


def api() -> Iterator[str]:
    """Yield the lines of a page of all that is public."""
    import tensornp

    public = {name: getattr(tensornp, name) for name in sorted(tensornp.__all__) if name != "errors"}
    classes = {name: one for name, one in public.items() if isinstance(one, type)}
    errors = {name for name, one in classes.items() if issubclass(one, Exception)}
    yield "# API\n"
    for heading, directive, names in (
        ("Functions", "autofunction", public.keys() - classes.keys()),
        ("What they return", "autoclass", classes.keys() - errors),
        ("Errors", "autoexception", errors),
    ):
        yield f"## {heading}\n\n```{{eval-rst}}"
        members = "\n   :members:" if directive == "autoclass" else ""
        yield from (f".. {directive}:: tensornp.{name}{members}\n" for name in sorted(names))
        yield "```\n"


class _Page(HTMLParser):
    """What a page names, leads to and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes of an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in {"stylesheet", "icon", "preload"}:
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


def broken(folder: Path) -> Iterator[str]:
    """Yield what pages lead to and is not there, and what they would load from elsewhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for target in (*page.links, *page.loaded):
            if target.startswith("data:"):
                continue
            if re.match(r"(https?:)?//", target):
                if target in page.loaded:
                    yield f"{path.name} loads {target}"
                continue
            place, anchor = map(unquote, urldefrag(target))
            other = (path.parent / place.partition("?")[0]).resolve() if place else path
            if not other.exists():
                yield f"{path.name} leads to {target}, which is not there"
            elif anchor and other in pages and anchor not in pages[other].anchors:
                yield f"{path.name} leads to {target}, a place that is not there"
    for path in folder.rglob("*.css"):
        for found in re.findall(r"url\(['\"]?(https?:[^)'\"]*)|@import ['\"](https?:[^'\"]*)", path.read_text("utf-8")):
            yield f"{path.name} loads {''.join(found)}"


if __name__ == "__main__":
    sys.exit(main())
