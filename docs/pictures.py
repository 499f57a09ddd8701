"""Makes the README's pictures from the bundled answers. Run: python docs/pictures.py (needs Chromium)"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib.figure import Figure

import mtlirt

OUT = Path(__file__).parent / "images"
WINDOW = "1200,900"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    cv = mtlirt.cv_mtl(mtlirt.datasets.demo())
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    cv.plot("path", ax=figure.subplots())
    figure.savefig(OUT / "path.png", dpi=110)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium found: the screenshot is left out")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        cv.fit.report(page, cv=cv, responses=mtlirt.datasets.demo())
        command = [browser, "--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WINDOW}"]
        command += ["--virtual-time-budget=5000", f"--screenshot={OUT / 'report.png'}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
