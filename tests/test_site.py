"""The documentation site: every public name is on it, and it builds without a warning."""

import re
import subprocess
import sys
from pathlib import Path

import mtlirt

DOCS = Path(__file__).parents[1] / "docs"


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(p.read_text() for p in (DOCS / "reference").glob("*.md"))
    named = set(re.findall(r":: mtlirt\.(\w+)", pages))
    assert set(mtlirt.__all__) <= named
    assert {"demo", "fetch"} <= set(re.findall(r":: mtlirt\.datasets\.(\w+)", pages))


def test_fits_say_how_they_end():
    for name in ("fit_mtl", "fit_nrm", "fit_mtl_nrm", "fit_llm_nrm"):
        assert "Convergence\n" in getattr(mtlirt, name).__doc__, name


def test_the_site_builds_without_a_warning(tmp_path):
    """Vignettes are laid out, not run: test_docs.py runs them."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "cache"]
    command += ["-D", "nb_execution_mode=off", "-D", "suppress_warnings=ref.python,myst-nb.lexer"]
    done = subprocess.run([*map(str, command), str(DOCS), str(tmp_path / "html")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fit_mtl" in (tmp_path / "html" / "reference" / "fitting.html").read_text()
