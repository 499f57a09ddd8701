"""More of the report in a browser: the keyboard, ties, many options, links between items, paper."""
# ruff: noqa: F811  (fixtures are imported by name)

import time

import numpy as np
import pandas as pd
import pytest
from test_browser import TABS, By, Keys, browser, shown  # noqa: F401

import mtlirt
from mtlirt.report import Evidence, facts, render

# The rows at which the Tab key stops, and whether each is in view below the headings.
STOPS = """
const place = document.getElementById(arguments[0]), box = place.getBoundingClientRect();
const top = place.querySelector("thead").getBoundingClientRect().bottom;
return [...place.querySelectorAll("tbody button")].filter((b) => b.tabIndex === 0).map((b) => {
  const own = b.closest("tr").getBoundingClientRect();
  return [b.textContent, own.top >= top - 2 && own.bottom <= box.bottom + 2, b === document.activeElement];
});
"""


def written(folder, name, told):
    path = folder / f"{name}.html"
    path.write_text(render(told), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def repeated(small, tmp_path_factory):
    """A page where the third item repeats the second, and its fit."""
    frame = small.responses.to_long().set_index(["item", "model"])
    _, second, third = small.responses.items["item"][:3]
    frame.loc[third, "score"] = frame.loc[second, "score"].to_numpy()
    answers = mtlirt.Responses.from_long(frame.reset_index())
    fit = mtlirt.fit_mtl(answers, 1.0)
    return written(tmp_path_factory.mktemp("repeated"), "r", facts(fit, Evidence.of(fit, responses=answers))), fit


def test_the_tab_key_finds_a_row_after_scrolling(browser, shown):
    browser.open(shown[0])
    browser.tab("leaderboard")
    for top in (0, 45, 1500, 1530, 1612, 99999, 700):
        browser.run("document.getElementById('board').scrollTop = arguments[0]", top)
        browser.settle()
        stops = browser.run(STOPS, "board")
        assert [seen for _, seen, _ in stops] == [True], top
    browser.run("document.querySelector('#board tbody button[tabindex=\"0\"]').focus()")
    browser.run("document.getElementById('board').scrollTop += 1200")
    browser.settle()
    [(name, seen, focused)] = browser.run(STOPS, "board")
    assert (seen, focused) == (True, True)
    browser.press(Keys.ARROW_DOWN)
    [(below, seen, focused)] = browser.run(STOPS, "board")
    assert (below != name, seen, focused) == (True, True, True)


@pytest.mark.parametrize("width", [1280, 400])
def test_focused_headings_are_not_under_the_first_column(browser, shown, width):
    browser.open(shown[0], width=width)
    browser.tab("leaderboard")
    lefts = browser.run(
        """
        const heads = [...document.querySelectorAll("#board thead button")];
        const edge = heads[0].getBoundingClientRect().right;
        const left = (head) => { head.focus(); return head.getBoundingClientRect().left - edge; };
        return heads.slice(1).reverse().map(left);
        """
    )
    assert min(lefts) >= -1


def test_ranks_of_many_models_fit_a_narrow_screen(browser, repeated):
    browser.open(repeated[0], width=320)
    browser.tab("models")
    assert "under other regimes not known here" in browser.one("#model caption").text
    browser.run(
        "const e = document.querySelector('#model caption'); e.textContent = e.textContent.replace(/\\d+/, '4,272')"
    )
    wide, inner = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= inner


def test_ten_options_have_ten_lines(browser, tmp_path):
    rng = np.random.default_rng(1)
    options = [chr(ord("A") + k) for k in range(10)]
    rows = [
        {
            "model": f"m{i}",
            "domain": "d",
            "item": f"i{j}",
            "option": str(rng.choice(options[: 1 + max(1, i % 10)])),
            "key": "A",
        }
        for i in range(40)
        for j in range(6)
    ]
    frame = pd.DataFrame(rows)
    fit = mtlirt.fit_nrm(mtlirt.Responses.from_long(frame, score=None, option="option", key="key"))
    most = fit.items.loc[fit.items["n_options"].idxmax()]
    assert most["n_options"] > 7
    browser.open(written(tmp_path, "ten", facts(fit)))
    browser.tab("items")
    browser.type("#search-item", most["item"])
    browser.run("document.querySelector('#item-grid tbody button').click()")
    browser.settle()
    style = (
        "return [...document.querySelectorAll(arguments[0])].map((e) => `${e.style.stroke} ${e.style.strokeDasharray}`)"
    )
    lines = browser.run(style, "#item polyline")
    assert len(set(lines)) == len(lines) == most["n_options"]
    assert browser.run(style, ".keys line") == lines


def test_equal_traits_stand_in_the_order_of_their_ranks(browser, repeated, tmp_path):
    told = facts(repeated[1])
    for column in told["leaderboard"]:
        if column["name"] in ("general", "mean_score"):
            column["values"] = [
                round(value) for value in column["values"]
            ]  # ties on the page that the ranks know apart
    browser.open(written(tmp_path, "ties", told))
    browser.tab("leaderboard")
    for name, ranks in (("general", "general_rank"), ("mean_score", "mean_score_rank")):
        for falling in (True, False):
            browser.head("board", name)[1].click()
            browser.settle()
            shown_ranks = [int(text) for text in browser.column("board", browser.head("board", ranks)[0])]
            assert shown_ranks == sorted(shown_ranks, reverse=not falling)


def test_items_are_found_as_they_are_named_and_lead_to_each_other(browser, repeated):
    path, fit = repeated
    (domain, second), (_, third) = fit.items[["domain", "item"]].to_numpy()[1:3]
    browser.open(path)
    browser.tab("items")
    browser.type("#search-item", f"{domain}: {third}")
    assert browser.column("item-grid", 0) == [third]
    browser.run("document.querySelector('#item-grid tbody button').click()")
    link = browser.one("#item .link")
    assert link.text == f"{domain}: {second}"
    link.click()
    assert browser.one("#item h3").text == f"{domain}: {second}"
    assert browser.focused()[0] == "H3"
    assert [e.text for e in browser.driver.find_elements(By.CSS_SELECTOR, "#item h3 bdi")] == [domain, second]


def test_the_csv_says_its_encoding(browser, shown):
    browser.open(shown[0])
    browser.tab("leaderboard")
    browser.one("#csv-all").click()
    path, end = browser.downloads / "report-scores.csv", time.monotonic() + 10
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert path.read_bytes()[:3] == b"\xef\xbb\xbf"
    path.unlink()


def test_on_paper_everything_is_shown(browser, shown):
    path, fit = shown
    browser.open(path, dark=True)
    browser.tab("items")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert all(browser.one(f"#{tab}").is_displayed() for tab in TABS)
    assert len(browser.column("board", 0)) == len(fit.models) == 120
    assert len(browser.column("item-grid", 0)) == 200
    assert browser.one("#items-printed").text.startswith("The first 200 of 260 rows.")
    assert not browser.one("#board-printed").is_displayed()
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#leaders circle")) == 20
    browser.tell(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.tell("Emulation.setEmulatedMedia", media="")
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert [tab for tab in TABS if browser.one(f"#{tab}").is_displayed()] == ["items"]
    assert len(browser.column("item-grid", 0)) < 100
    assert browser.problems() == []
