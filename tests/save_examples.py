"""Run the example notebooks and save their outputs: `python tests/save_examples.py`."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in an empty folder, and return it with static outputs."""
    notebook = nbformat.read(path, as_version=4)
    settings = {"timeout": 600, "startup_timeout": 600, "store_widget_state": False, "record_timing": False}
    client = NotebookClient(notebook, resources={"metadata": {"path": folder}}, **settings)
    # An IPython profile without the user's options.
    client.execute(env=os.environ | {"IPYTHONDIR": str(folder / "ipython")})
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = joined([output for output in map(static, cell.outputs) if output is not None])
    return notebook


def joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Join consecutive pieces of one stream, which differ from run to run, without the progress of a slow one."""
    found: list[nbformat.NotebookNode] = []
    for output in outputs:
        if found and output.output_type == "stream" and found[-1].get("name") == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    for output in found:
        if output.output_type == "stream":
            # Lines that a carriage return has taken back.
            output.text = re.sub(r"[^\n]*\r", "", output.text)
    return [output for output in found if output.get("text", "a")]


def static(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """Return an output without live parts, logs and the paths of a traceback; None if nothing is left."""
    if output.get("name") == "stderr":
        return None
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if "data" in output:
        output.data = {kind: value for kind, value in output.data.items() if value and kind != WIDGET}
        return output if output.data else None
    return output


def main() -> None:
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
