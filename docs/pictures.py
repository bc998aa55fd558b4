"""Take the pictures of the report that the documentation shows, from run folders; needs playwright and chromium.

python docs/pictures.py PAGE.html PICTURE.png [--dark] [--select VARIABLE]
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path


def take(page_file: Path, picture: Path, *, dark: bool, variable: str | None) -> None:
    """Open the page as a reader would, select a variable if asked to, and save what is seen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": 1480, "height": 980},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        page.goto(page_file.resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready")
        if variable:
            page.fill("#search", variable)
            page.press("#search", "Enter")
            page.fill("#search", "")
            page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(300)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--select")
    chosen = parser.parse_args()
    take(chosen.page, chosen.picture, dark=chosen.dark, variable=chosen.select)
