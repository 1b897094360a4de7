#!/usr/bin/python3
"""Looks at the pages of tandem in a real browser: browser_test.py TANDEM SCENARIOS FOLDER.

Writes a page of each kind into FOLDER, opens it in headless Chromium, zooms every curve, prints it, and fails on a message
in the console, on a request to anything but the page itself, on an element that the keyboard cannot reach, and on a page that
is wider than its window, on a critical path that only color shows, on a curve without a table, on a text that a phone shows too
small or a dark page too faint, and on a print of more than 2 MB. Leaves a screenshot and a PDF of each. Exit code 77: no browser here.
"""
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from browser import find_browser, open_browser, photograph, skip

try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    skip("python3-selenium is not installed (./start check installs it)")


def tandem(program, *arguments, codes=(0,)):
    result = subprocess.run([program, *map(str, arguments), "-q"], capture_output=True, text=True)
    if result.returncode not in codes:
        sys.exit(f"{arguments}: exit code {result.returncode}\n{result.stderr}")


def write_pages(program, scenarios, folder):
    simulated = scenarios / "digits-sim.yaml"
    cluster = scenarios / "bert-large-hgx-h100.yaml"
    baseline = folder / "baseline.json"
    tandem(program, "check", simulated, "--baseline", baseline, "--update")
    report = json.loads(baseline.read_text())
    for figure in ("mean", "median"):
        report["step_time_ns"][figure] -= 1000
    report["per_step_ns"]["compute"] -= 1000
    baseline.write_text(json.dumps(report))
    tandem(program, "run", simulated, "--html", folder / "run.html")
    tandem(program, "run", cluster, "--html", folder / "cluster.html")
    tandem(program, "run", scenarios / "gpt-mesh.yaml", "--html", folder / "mesh.html")
    tandem(program, "sweep", scenarios / "gpt-sweep.yaml", "--no-results", "--html", folder / "sweep.html")
    tandem(program, "plan", scenarios / "gpt-sweep.yaml", "--html", folder / "plan.html")
    tandem(program, "compare", scenarios / "digits.yaml", "--replicas", "1,2", "--steps", "20", "--tries", "1", "--html",
           folder / "compare.html")
    tandem(program, "check", simulated, "--baseline", baseline, "--html", folder / "check.html", codes=(0, 1))
    measured = scenarios / "digits.yaml"
    tandem(program, "check", measured, "--against", program, "--html", folder / "paired.html", codes=(0, 1, 6))
    tandem(program, "check", measured, "--history", folder / "history.jsonl", "--html", folder / "launch.html", codes=(6,))
    suite = folder / "suite"
    suite.mkdir()
    for example in ("digits-sim", "mesh"):
        shutil.copy(scenarios / f"{example}.yaml", suite)
    tandem(program, "check", suite, "--baseline", folder / "golden", "--update")
    tandem(program, "check", suite, "--baseline", folder / "golden", "--always", "--html", folder / "suite.html")
    launches = [{"commit": f"c{i}", "date": "2026-11-22T12:00:00Z", "step_time_ns": (10 + i // 15) * 1000000 + i * 7919 % 1000,
                 "disturbed": i % 11 == 5, "verdict": "ok"} for i in range(40)]
    series = {"scenario": "digits", "machine": "a machine", "launches": launches,
              "changes": [{"launch": 15, "change": 0.1, "p_value": 0.005}, {"launch": 30, "change": 0.09, "p_value": 0.005}]}
    stairs = [{"commit": f"{i * 7919:08x}", "date": "2026-11-22T12:00:00Z", "step_time_ns": 192415 + 2000 * (i // 9),
               "disturbed": False, "verdict": "ok"} for i in range(40)]
    exact = {"scenario": "digits-sim", "engine": "sim", "machine": "", "exact": True, "launches": stairs,
             "changes": [{"launch": i, "change": 0.01, "p_value": 0} for i in (9, 18, 27, 36)]}
    history = folder / "history.json"
    history.write_text(json.dumps({"kind": "history", "margin": 0.03, "series": [series, exact]}))
    tandem(program, "report", history, "--html", folder / "history.html")
    return sorted(folder.glob("*.html"))


class Look:
    """One page in the browser; `problems` says what is wrong with it."""

    def __init__(self, browser, page):
        self.browser, self.page, self.problems = browser, page, []
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # of what was open before
        browser.get(page.as_uri())

    def expect(self, holds, problem):
        if not holds:
            self.problems.append(problem)

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def outline(self):
        self.expect(self.js("return document.title").endswith("- Tandem"), "no title")
        if self.page.stem != "suite":  # a table of verdicts
            self.expect(self.js("return document.querySelectorAll('svg[role=img]').length") > 0, "no picture")
        unnamed = self.js("return [...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('title')).length")
        self.expect(unnamed == 0, f"{unnamed} pictures without a name")
        self.expect(self.js("return document.documentElement.scrollWidth <= innerWidth"), "wider than the window")

    def zoom(self):
        for figure in self.browser.find_elements(By.CSS_SELECTOR, "figure.xy"):
            buttons = figure.find_elements(By.TAG_NAME, "button")
            self.expect(buttons, "a curve that cannot be zoomed")
            if not buttons:
                continue
            self.js("arguments[0].scrollIntoView({block: 'center'})", figure)
            buttons[0].click()
            area = figure.find_element(By.CSS_SELECTOR, ".zoom")
            self.js("arguments[0].scrollIntoView({block: 'center'})", area)
            ActionChains(self.browser).move_to_element_with_offset(area, -100, 0).click_and_hold().move_by_offset(
                180, 0).release().perform()
            self.expect(self.js("return arguments[0].chart.isZoomed()", figure), "dragging does not zoom")
            buttons[0].click()
            self.expect(not area.is_displayed(), "no way back to the picture")

    def keyboard(self):
        self.js("document.activeElement?.blur(); scrollTo(0, 0)")
        wanted = self.js("return document.querySelectorAll('summary, button, .scrolls[tabindex]').length")
        reached = set()
        for _ in range(wanted + 5):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(self.js("const e = document.activeElement; return e === document.body ? -1 : "
                                "[...document.querySelectorAll('summary, button, .scrolls[tabindex]')].indexOf(e)"))
        self.expect(len(reached - {-1}) == wanted, f"the keyboard reaches {len(reached - {-1})} of {wanted} elements")
        summaries = self.browser.find_elements(By.TAG_NAME, "summary")
        if summaries:
            summaries[0].send_keys(Keys.ENTER)
            self.expect(self.js("return document.querySelector('details').open"), "Enter does not open a table")

    def black_and_white(self):
        """On paper the critical path differs from all work by its fill, and has an outline; so it has on the screen."""
        fills = """return Object.fromEntries([...document.querySelectorAll('.gantt rect')].map(e =>
            [e.className.baseVal, [getComputedStyle(e).fill, getComputedStyle(e).stroke]]))"""
        for media in ("screen", "print"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
            styles = self.js(fills)
            if "critical" not in styles:
                continue
            fill, stroke = styles.pop("critical")
            self.expect(stroke not in ("none", fill), f"{media}: the critical path has no outline")
            others = [name for name, (other, _) in styles.items() if other == fill]
            self.expect(not others, f"{media}: the critical path looks like {others}")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        untold = self.js("return [...document.querySelectorAll('.gantt, .xy')].filter("
                         "f => !f.closest('section').querySelector('table')).length")
        self.expect(untold == 0, f"{untold} timelines and curves without a table")

    def print(self):
        result = self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False, "landscape": True})
        pdf = base64.b64decode(result["data"])
        self.page.with_suffix(".pdf").write_bytes(pdf)
        self.expect(len(pdf) > 10_000, "prints nothing")
        self.expect(len(pdf) < 2_000_000, f"prints {len(pdf)} bytes")

    def phone(self):
        """In a narrow window texts of pictures stay legible, and nothing but pictures and tables is scrolled sideways."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})
        least = self.js("""return Math.min(...[...document.querySelectorAll('svg text')].map(t => {
            const svg = t.closest('svg');
            return parseFloat(getComputedStyle(t).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        }), 99)""")
        self.expect(least >= 9, f"phone: a text of {least:.1f} px in a picture")
        self.expect(self.js("return document.documentElement.scrollWidth <= innerWidth"), "phone: wider than the window")
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {})
        self.page.with_suffix(".phone.png").write_bytes(base64.b64decode(shot["data"]))
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def dark(self):
        """Where the reader prefers a dark page, texts and fills stand out from a dark ground."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": scheme})
        faint = self.js("""
            const light = text => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(v => (v /= 255) <= 0.03928 ?
                v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            const ground = light(getComputedStyle(document.body).backgroundColor);
            if (ground > 0.1) return ["the ground is light"];
            const of = (selector, property, least) => [...document.querySelectorAll(selector)].filter(e =>
                contrast(light(getComputedStyle(e)[property]), ground) < least).map(e => selector);
            return [...new Set([...of('h1, h2, p, td, th, dt, dd, summary, .verdict', 'color', 4.5), ...of('svg text', 'fill', 4.5)])];""")
        self.expect(not faint, f"dark: {faint} are hard to read")
        size = self.browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000)}
        self.page.with_suffix(".dark.png").write_bytes(photograph(self.browser, clip))
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})

    def photograph(self):
        self.js("scrollTo(0, 0)")
        size = self.browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000)}
        self.page.with_suffix(".png").write_bytes(photograph(self.browser, clip))

    def logs(self):
        for entry in self.browser.get_log("browser"):
            self.expect(False, f"console: {entry['message']}")
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            self.expect(url.startswith(("data:", self.page.as_uri())), f"a request to {url}")


def main():
    program, scenarios, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    find_browser()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = False
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            for page in write_pages(program, scenarios, folder):
                look = Look(browser, page)
                for part in (look.outline, look.photograph, look.zoom, look.keyboard, look.black_and_white, look.phone, look.dark, look.print, look.logs):
                    part()
                size = page.stat().st_size
                look.expect(size <= 1_000_000, f"{size} bytes")
                print(f"{page.name}: {size} bytes, " + ("; ".join(look.problems) or "ok"))
                failed |= bool(look.problems)
        finally:
            browser.quit()
    sys.exit(1 if failed else 0)


main()
