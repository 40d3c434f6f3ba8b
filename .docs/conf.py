"""Configure Sphinx: `python -m sphinx -W -n .docs build/docs`."""

import shutil
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "tensornp"
copyright = "tensornp contributors"
release = metadata.version("tensornp")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["examples/README.md"]

templates_path = ["_templates"]
html_theme = "furo"
html_title = f"tensornp {release}"
html_static_path = ["_static", "../.github/images"]
html_css_files = ["cards.css"]

nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_excludepatterns = ["examples/*"]
nb_ipywidgets_js = {}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Types in docstrings are words such as "array", not references.
napoleon_use_rtype = napoleon_preprocess_types = False
napoleon_use_ivar = True
nitpick_ignore_regex = [("py:class", r"(?!tensornp\.).*")]

# Sphinx reads only its own folder. The notebooks are stored with outputs and are not run again.
shutil.copytree(
    ROOT / "examples", HERE / "examples", ignore=shutil.ignore_patterns("*.py", "*.txt"), dirs_exist_ok=True
)
# Pages of names that are no longer public would still be built.
shutil.rmtree(HERE / "generated", ignore_errors=True)
PAGES = {"index": "README.md", "contributing": ".github/CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
LINKS = {
    "(.docs/": "(",
    ".github/images/": "_static/",
    "(.github/CONTRIBUTING.md)": "(contributing.md)",
    "(CHANGELOG.md)": "(changelog.md)",
    "[license](LICENSE)": "license",
}


def put_file_of_the_clone_first(app, docname, source):
    """Put a file of the clone in front of its page, with links that fit."""
    if docname in PAGES:
        text = (ROOT / PAGES[docname]).read_text(encoding="utf-8")
        for link, replacement in LINKS.items():
            text = text.replace(link, replacement)
        source[0] = f"{text}\n{source[0]}"


def setup(app):
    """Connect the files of the clone."""
    app.connect("source-read", put_file_of_the_clone_first)
