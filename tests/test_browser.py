"""The report in a browser, as its readers meet it. Skipped where no Chromium is installed."""

import csv
import os
import shutil
import time

import numpy as np
import pandas as pd
import pytest
from test_report import HOSTILE, named

import mtlirt
from mtlirt.report import Evidence, facts, render

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

TABS = ("verdict", "leaderboard", "domains", "models", "items", "method")

# Smallest contrast of a text in view with what lies behind it (WCAG 2.2), and that text. Pictures are left out.
CONTRAST = """
const parse = (text) => { const n = text.match(/[0-9.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
const behind = (e) => {
  if (!e) return parse(getComputedStyle(document.body).backgroundColor);
  const own = parse(getComputedStyle(e).backgroundColor);
  return own[3] === 1 ? own : over(own, behind(e.parentElement));
};
const light = (c) => [0, 1, 2].map((k) => c[k] / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
let worst = [99, ""];
for (const e of document.querySelectorAll("body *")) {
  const text = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join("");
  if (!text || e.closest(".picture, script, style, title, noscript") || !e.getClientRects().length) continue;
  const style = getComputedStyle(e), ground = behind(e);
  const ink = over(parse(e instanceof SVGElement ? style.fill : style.color), ground);
  const [high, low] = [light(ink), light(ground)].sort((x, y) => y - x);
  const ratio = (high + .05) / (low + .05);
  if (ratio < worst[0]) worst = [ratio, text];
}
return worst;
"""


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, downloads):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        self.downloads = downloads
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def tell(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def open(self, path, width=1280, height=900, dark=False):
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get("about:blank")
        self.driver.get(path.as_uri())
        assert self.run("return document.documentElement.dataset.ready") == "yes"

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def tab(self, name):
        self.one(f"#tab-{name}").click()
        self.settle()

    def settle(self):
        """Wait until what the last event asked for is drawn."""
        wait = (
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)));"
        )
        self.driver.execute_async_script(wait)

    def column(self, grid, c):
        """Texts of a column, in the rows that are in the document."""
        rows = "[...document.querySelectorAll(`#${arguments[0]} tbody tr:not(.space)`)]"
        return self.run(f"return {rows}.map((row) => row.cells[arguments[1]].textContent)", grid, c)

    def head(self, grid, label):
        """Position of a column, and its button."""
        heads = self.driver.find_elements(By.CSS_SELECTOR, f"#{grid} thead button")
        titles = [head.get_attribute("title") for head in heads]
        return titles.index(label), heads[titles.index(label)]

    def type(self, selector, text):
        """Put a text into a field as typing does; the driver cannot type every character."""
        fill = "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
        self.run(f"{fill} e.dispatchEvent(new Event('input'))", selector, text)
        self.settle()

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()
        self.settle()

    def focused(self):
        return self.run("const e = document.activeElement; return [e.tagName, e.id, e.textContent.slice(0, 400)]")

    def downloaded(self, name):
        path, end = self.downloads / name, time.monotonic() + 10
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        path.unlink()
        return rows

    def problems(self):
        return self.driver.get_log("browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("chromium and chromedriver are not installed: Debian packages chromium, chromium-driver")
    os.environ["SE_OFFLINE"] = "true"  # the driver is given: nothing is looked up
    browser = Browser(tmp_path_factory.mktemp("downloads"))
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def shown(demo, tmp_path_factory):
    """The demo's report and its fit; with a model that answered nothing in one domain."""
    cv = mtlirt.cv_mtl(demo, lams=[20.0, 11.0], folds=3)
    path = tmp_path_factory.mktemp("demo") / "demo.html"
    return cv.fit.report(path, cv=cv, responses=demo), cv.fit


@pytest.fixture(scope="module")
def hostile(small, tmp_path_factory):
    answers = named(small.responses, HOSTILE, HOSTILE[:3], HOSTILE)
    fit = mtlirt.fit_mtl(answers, 1.0)
    path = tmp_path_factory.mktemp("hostile") / "hostile.html"
    path.write_text(render(facts(fit, Evidence.of(fit, responses=answers))), encoding="utf-8")
    return path, fit


@pytest.fixture(scope="module")
def options(golden_options, tmp_path_factory):
    fit = mtlirt.fit_nrm(golden_options)
    return fit.report(tmp_path_factory.mktemp("options") / "options.html", responses=golden_options), fit


def test_opens_from_disk_without_a_word_on_the_console(browser, shown):
    browser.open(shown[0])
    for tab in TABS:
        browser.tab(tab)
        assert browser.one(f"#{tab}").is_displayed()
        assert sum(browser.one(f"#{other}").is_displayed() for other in TABS) == 1
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.problems() == []


@pytest.mark.parametrize("name", ["model", "general_rank", "general", "se:general", "mean_score", "chess", "borrowed"])
def test_sorts_by_every_kind_of_column(browser, shown, name):
    path, fit = shown
    scores = fit.scores(se=True)
    browser.open(path)
    browser.tab("leaderboard")
    c, head = browser.head("board", name)
    first_ascending = name in ("model", "general_rank", "borrowed")
    for ascending in (first_ascending, not first_ascending):
        if name == "general_rank" and ascending:
            assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"  # how it opens
        else:
            head.click()
            browser.settle()
        texts, cells = browser.column("board", 0), browser.column("board", c)
        assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == ["descending", "ascending"][ascending]
        assert 10 < len(texts) < len(scores)  # only the rows in view are there
        if name == "model":  # numbers within names count as numbers
            assert sorted({text.split("-")[0] for text in texts}, reverse=not ascending) == list(
                dict.fromkeys(text.split("-")[0] for text in texts)
            )
            continue
        wanted = scores.set_index("model").loc[texts, name]
        if name != "borrowed":
            ends = scores[name].sort_values(ascending=ascending).head(len(texts)).to_numpy(dtype=float)
            np.testing.assert_allclose(wanted.to_numpy(dtype=float), ends, atol=1.001e-4)  # sorted by four digits
            digits = {"general_rank": 0, "mean_score": 3}.get(name, 2)
            shown_numbers = [float(cell.replace("−", "-")) for cell in cells]
            np.testing.assert_allclose(shown_numbers, ends, atol=0.5 * 10.0**-digits + 1.5e-4)
        else:
            assert cells == sorted(cells, reverse=not ascending)


def test_search_narrows_and_scrolling_goes_on(browser, shown):
    path, fit = shown
    browser.open(path)
    browser.tab("leaderboard")
    browser.one("#search-board").send_keys("FIR")
    browser.settle()
    wanted = [model for model in fit.models if "fir" in model.lower()]
    assert sorted(browser.column("board", 0)) == sorted(wanted)
    assert browser.one("#count-board").text == f"{len(wanted)} of {len(fit.models)} models"
    browser.type("#search-board", "no such model")
    assert browser.column("board", 0) == []
    browser.type("#search-board", "")
    seen = set()
    for top in range(0, 120 * 30 + 1, 300):
        browser.run("document.getElementById('board').scrollTop = arguments[0]", top)
        browser.settle()
        seen |= {*browser.column("board", 0)}
    assert seen == {*fit.models}


def test_csv_is_the_frame_of_scores(browser, shown):
    path, fit = shown
    browser.open(path)
    browser.tab("leaderboard")
    browser.one("#csv-all").click()
    head, *rows = browser.downloaded("report-scores.csv")
    scores = fit.scores(se=True)
    assert head == list(scores)
    got = pd.DataFrame(rows, columns=head)
    for name in scores:
        if name in ("model", "borrowed"):
            assert list(got[name]) == list(scores[name])
        else:
            numbers = [float(x) if x else np.nan for x in got[name]]
            np.testing.assert_allclose(numbers, scores[name].to_numpy(dtype=float), atol=5.001e-5)
    browser.type("#search-board", "elm")
    browser.one("#csv-shown").click()
    rows = browser.downloaded("report-scores-shown.csv")[1:]
    order = fit.general.rank(ascending=False)
    assert [row[0] for row in rows] == sorted((m for m in fit.models if "Elm" in m), key=order.get)


def test_keyboard_reaches_everything(browser, shown):
    browser.open(shown[0])
    browser.press(Keys.TAB)
    assert browser.focused()[1] == "tab-verdict"
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ENTER)
    assert browser.one("#leaderboard").is_displayed()
    stops = []
    for _ in range(6):
        browser.press(Keys.TAB)
        stops.append(browser.focused())
    ids = [stop[1] for stop in stops]
    assert ids[:3] == ["search-board", "csv-shown", "csv-all"]
    heading = next(k for k, stop in enumerate(stops) if stop[2] == "model")
    row = next(k for k, stop in enumerate(stops) if stop[2] in {*shown[1].models})
    assert heading < row
    while browser.focused()[2] != "model":
        browser.press(Keys.SHIFT, Keys.TAB, Keys.NULL)
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER, Keys.ENTER)  # by the general trait, lowest first
    lowest = shown[1].general.sort_values().index
    assert browser.column("board", 0)[:3] == list(lowest[:3])
    browser.press(Keys.TAB)
    for _ in range(40):
        browser.press(Keys.ARROW_DOWN)
    assert browser.focused()[2] == lowest[40]
    browser.press(Keys.ENTER)
    assert browser.one("#model h3").text == lowest[40]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("which", ["shown", "hostile"])
def test_readable_narrow_and_dark(browser, request, which, width, dark):
    browser.open(request.getfixturevalue(which)[0], width=width, dark=dark)
    for tab in TABS:
        browser.tab(tab)
        if tab == "items":
            browser.run("document.querySelector('#item-grid tbody button').click()")
        ratio, text = browser.run(CONTRAST)
        assert ratio >= 4.5, (tab, text)
        wide, inner = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= inner, tab
    light = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is not dark
    assert browser.problems() == []


def test_hostile_names_show_as_names(browser, hostile):
    path, fit = hostile
    browser.open(path)
    browser.tab("leaderboard")
    browser.one("#csv-all").click()
    rows = browser.downloaded("report-scores.csv")
    assert {row[0] for row in rows[1:]} == {f"'{m}" if m.startswith("=") else m for m in fit.models}
    for name in HOSTILE:
        browser.type("#search-board", name)
        assert browser.column("board", 0) == [name]
        browser.run("document.querySelector('#board tbody button').click()")
        assert browser.run("return document.querySelector('#model h3').textContent") == name
        browser.tab("leaderboard")
    browser.tab("items")
    assert browser.run("return document.querySelectorAll('#item-grid img, #item-grid script').length") == 0
    for j, name in enumerate(HOSTILE[:3]):
        browser.type("#search-item", name)
        assert name in browser.column("item-grid", 0) + browser.column("item-grid", 1), j
    browser.run("document.querySelector('#item-grid tbody button').click()")
    assert browser.run("return document.scripts.length") == 2
    assert browser.problems() == []  # an alert would have stopped the driver


def test_model_page(browser, shown):
    path, fit = shown
    gap = fit.gaps.iloc[0]
    browser.open(path)
    browser.tab("models")
    browser.type("#search-model", gap["model"])
    browser.one("#found button").click()
    assert browser.one("#model h3").text == gap["model"]
    assert f"{gap['domain']} (borrowed)" in browser.one("#model").text
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#model circle")) == len(fit.domains)
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#model circle.hollow")) == 1
    heads = [cell.text for cell in browser.driver.find_elements(By.CSS_SELECTOR, "#model thead th")]
    assert heads == ["chosen lam", "separate domains", "complete pooling", "mean score"]
    rank = fit.scores().set_index("model").loc[gap["model"], "general_rank"]
    assert browser.one("#model tbody td").text == str(rank)


def test_item_page(browser, shown):
    path, fit = shown
    browser.open(path)
    browser.tab("items")
    browser.run(
        "const e = document.getElementById('flag-item'); e.value = 'flat'; e.dispatchEvent(new Event('change'))"
    )
    browser.settle()
    flat = fit.items[fit.items["flag"] == "slope 0"]
    assert sorted(browser.column("item-grid", 0)) == sorted(flat["item"])
    browser.run("const e = document.getElementById('flag-item'); e.value = ''; e.dispatchEvent(new Event('change'))")
    item = fit.items.loc[fit.items["a"].idxmax()]
    browser.type("#search-item", item["item"])
    browser.run("document.querySelector('#item-grid tbody button').click()")
    browser.settle()
    assert browser.one("#item h3").text == f"{item['domain']}: {item['item']}"
    points = np.array(
        [p.split(",") for p in browser.one("#item polyline").get_attribute("points").split()], dtype=float
    )
    height = points[:, 1]
    p = 1 / (1 + np.exp(-(item["a"] * np.linspace(-4, 4, 121) + item["d"])))
    assert np.corrcoef(height, p)[0, 1] < -0.9999  # svg counts from the top


def test_option_curves(browser, options):
    path, fit = options
    browser.open(path)
    browser.tab("items")
    browser.run("document.querySelector('#item-grid tbody button').click()")
    browser.settle()
    first = fit.items.iloc[0]
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#item polyline")) == first["n_options"]
    keys = [entry.text for entry in browser.driver.find_elements(By.CSS_SELECTOR, ".keys .main")]
    assert len(keys) == 1
    assert keys[0].startswith(f"{first['key']} (key)")
    assert browser.problems() == []
