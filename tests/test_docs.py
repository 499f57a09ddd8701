"""Words that run: docstring examples and vignettes."""

import doctest
import importlib
import pkgutil
import runpy
from pathlib import Path

import pytest
from conftest import shared

import mtlirt

ROOT = Path(__file__).parents[1]
MODULES = sorted(m.name for m in pkgutil.walk_packages(mtlirt.__path__, "mtlirt.") if not m.name.endswith("__main__"))
EXAMPLES = {"mtlirt.plots": mtlirt.plots.__all__, "mtlirt.datasets": ("demo", "fetch")}
VIGNETTES = sorted(p.name for p in (ROOT / "vignettes").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_every_public_name_is_there_and_documented():
    for name in mtlirt.__all__:
        assert getattr(mtlirt, name).__doc__, name
    assert set(mtlirt.__all__) <= set(dir(mtlirt))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mtlirt.nothing


def test_every_public_function_and_class_has_an_example():
    """Exceptions and the sentences of `Status` aside."""
    public = {name: getattr(mtlirt, name) for name in mtlirt.__all__ if name not in ("datasets", "plots", "Status")}
    public |= {
        name: getattr(module, name) for module in (mtlirt.plots, mtlirt.datasets) for name in EXAMPLES[module.__name__]
    }
    for name, thing in public.items():
        if not (isinstance(thing, type) and issubclass(thing, (Exception, Warning))):
            assert ">>>" in thing.__doc__, name
            assert "+SKIP" not in thing.__doc__, name


@pytest.mark.parametrize("name", VIGNETTES)
def test_vignettes_run(name, capsys, monkeypatch):
    monkeypatch.setenv("VIGNETTE_MODELS", "100")
    if name in ("open-llm-leaderboard.py", "wrong-answers.py"):
        shared("data")
    runpy.run_path(str(ROOT / "vignettes" / name), run_name="__main__")
    assert capsys.readouterr().out
