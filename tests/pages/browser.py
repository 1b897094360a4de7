"""Headless Chromium, for tests and pictures of pages."""
import base64
import importlib.util
import shutil
import sys


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def find_browser():
    if importlib.util.find_spec("selenium") is None:
        skip("python3-selenium is not installed (./start check installs it)")
    for needed in ("chromium", "chromedriver"):
        if shutil.which(needed) is None:
            skip(f"{needed} is not installed (./start check installs it)")


def open_browser(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--window-size=1200,900", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.get("about:blank")
    return browser


def photograph(browser, clip):
    """The part of the page as PNG; `clip` in pixels: x, y, width, height."""
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}})
    return base64.b64decode(shot["data"])
