"""What LaTeX gets of a notebook's file, by nbconvert."""

from __future__ import annotations

import re

import nbformat
from nbconvert import LatexExporter


def outputs_for_latex(notebook: nbformat.NotebookNode) -> str:
    """Return the texts of the outputs, as they stand in the document."""
    document, _ = LatexExporter().from_notebook_node(notebook)
    return "\n".join(re.findall(r"\\begin\{Verbatim\}.*?\\end\{Verbatim\}", document, re.DOTALL))
