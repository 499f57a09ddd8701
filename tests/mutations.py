"""JSON in which some values are replaced or missing, for tests of what a reader makes of it."""

import copy

from hypothesis import strategies as st

NASTY = (
    *(None, True, False, -1, 0, 2, 0.5, 1e308, float("nan"), float("-inf"), 10**400),
    *("", "A", "x" * 100, "\ud800", "1e999", "../x"),
    *([], {}, [[[1]]], [None], ["A"], [{}], {"a": {"b": []}}, {"value": {"k": [1]}}),
)


def _places(value):
    """Every container in it, with every key or index."""
    if isinstance(value, (dict, list)):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(inner)


@st.composite
def mutated(draw, value):
    """A copy with one to three changes."""
    value = {"whole": copy.deepcopy(value)}
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        if container is value or draw(st.booleans()):
            container[key] = copy.deepcopy(draw(st.sampled_from(NASTY)))
        else:
            del container[key]
    return value["whole"]
