"""The documentation site. Build: make docs"""

import os
import re
import shutil
from pathlib import Path

import mtlirt

HERE = Path(__file__).parent
ROOT = HERE.parent
DATA = ROOT.parent / "shared" / "data"
NEED_DATA = ("open-llm-leaderboard.py", "wrong-answers.py")

project = "mtlirt"
author = "The mtlirt developers"
copyright = author
version = release = mtlirt.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "myst_nb"]
exclude_patterns = ["_build", "conf.py", "pictures.py"]
html_theme = "furo"
html_title = "mtlirt"
html_show_copyright = False
templates_path = []
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_custom_sections = ["Convergence", ("Warns", "notes")]

myst_enable_extensions = ["deflist", "dollarmath"]
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["ref.python"]  # several classes have an attribute of the same name


os.environ |= {"MTLIRT_DATA": str(DATA), "VIGNETTE_KEPT": str(ROOT / "vignettes" / "heterogeneity-study")}
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _lay_out_vignettes() -> None:
    """Copies of the vignettes, beside the pages that list them; those on real answers only where these are at hand."""
    folder = HERE / "vignettes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in sorted((ROOT / "vignettes").iterdir()):
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
        elif path.suffix == ".py" and (DATA.exists() or path.name not in NEED_DATA):
            shutil.copy(path, folder)


def _as_written(app, what, name, obj, options, lines):
    """Docstrings are plain text: bars, stars and trailing underscores mean themselves."""
    for i, line in enumerate(lines):
        parts = line.split("`")
        parts[::2] = [re.sub(r"(\*(?! )|\||(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
        lines[i] = line if line.lstrip().startswith((">>>", "...")) else "`".join(parts)


def setup(app):
    """Called by sphinx."""
    _lay_out_vignettes()
    app.connect("autodoc-process-docstring", _as_written, priority=100)
