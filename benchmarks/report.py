"""The html report: its size, the time to make it, and how a browser takes it.

Three reports: the bundled demo, the table of the Open LLM Leaderboard where it lies beside the checkout, and 4,272
models x 13,259 items in 56 domains from `LeaderboardDesign`. Browser timings are of headless Chromium: until the page's
script has run, and from a click on a heading, or a letter typed into the search field, until the next picture is drawn.
Run: python -m benchmarks.report
"""

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import mtlirt
from benchmarks.measure import clock, machine

TABLE = Path(__file__).parents[2] / "shared" / "data" / "open_llm_leaderboard.parquet"
SHARE = 0.2  # of lam_max, for the largest, which is not cross-validated here
LOADS, SORTS = 5, 12
DRAWN = """
const done = arguments[arguments.length - 1], [act, what] = arguments, start = performance.now();
if (act === "sort") document.querySelectorAll("#board thead button")[what].click();
else { const e = document.getElementById("search-board"); e.value = what; e.dispatchEvent(new Event("input")); }
document.body.offsetHeight;
const script = performance.now() - start;
requestAnimationFrame(() => requestAnimationFrame(() => done([script, performance.now() - start])));
"""


def fits() -> Iterator[tuple[str, mtlirt.Responses, mtlirt.Fit, mtlirt.CVResult | None]]:
    tables = {"demo": mtlirt.datasets.demo()}
    if TABLE.exists():
        tables["Open LLM Leaderboard"] = mtlirt.read_responses(TABLE)
    for name, responses in tables.items():
        cv = mtlirt.cv_mtl(responses)
        yield name, responses, cv.fit, cv
    responses = mtlirt.simulate(mtlirt.LeaderboardDesign(), 1).responses
    lam = SHARE * float(mtlirt.fusion_thresholds(responses).max())
    yield "LeaderboardDesign", responses, mtlirt.fit_mtl(responses, lam), None


def browse(path: Path) -> str:
    """Seconds in a browser, in words."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        ready = []
        for _ in range(LOADS):
            driver.get(path.as_uri())
            ready.append(
                driver.execute_script("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
            )
        driver.execute_script("document.getElementById('tab-leaderboard').click()")
        heads = driver.execute_script("return document.querySelectorAll('#board thead button').length")
        sorts = [driver.execute_async_script(DRAWN, "sort", k % heads) for k in range(SORTS)]
        searches = [driver.execute_async_script(DRAWN, "search", text) for text in ("a", "am", "am0", "")]
    finally:
        driver.quit()
    return f"ready after {statistics.median(ready):.0f} ms; {_spread('sort', sorts)}; {_spread('search', searches)}"


def _spread(name: str, times: list[list[float]]) -> str:
    script, drawn = ([t[k] for t in times] for k in (0, 1))
    times_told = f"{statistics.median(script):.0f} ms ({max(script):.0f} at most)"
    return f"{name} {times_told}, drawn after {max(drawn):.0f} ms at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="Folder that keeps the reports.")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for name, responses, fit, cv in fits():
            path = (options.keep or Path(folder)) / f"{name.replace(' ', '-').lower()}.html"
            with clock() as work:
                fit.report(path, cv=cv, responses=responses)
            size = path.stat().st_size / 1e6
            shape = f"{len(fit.models):,} x {len(fit.items):,}, {len(fit.domains)} domains"
            print(f"{name} ({shape}): {size:.2f} MB, written in {work.wall:.1f} s")
            print(f"  {browse(path) if shutil.which('chromedriver') else 'no Chromium here'}")


if __name__ == "__main__":
    main()
