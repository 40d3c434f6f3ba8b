"""What Sphinx is told: notebooks are run, docstrings are NumPy's, and no page needs a network."""

from importlib import metadata

project = "tensornp"
copyright = "tensornp contributors"
release = metadata.version("tensornp")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_static_path, html_css_files = ["_static"], ["cards.css"]
html_title = f"tensornp {release}"
html_copy_source = html_show_sourcelink = False
pygments_style, pygments_dark_style = "tango", "monokai"

# The README's links are to headings.
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
# Live parts would come from elsewhere, and ask a kernel that is not there.
nb_ipywidgets_js = {}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Tensors, arrays and options are words in these docstrings, and no names that a page could be found for.
napoleon_use_rtype = napoleon_preprocess_types = False
napoleon_use_ivar = True
