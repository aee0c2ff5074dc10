"""The report's page in a real browser: it draws, loads nothing, keeps hostile names text, and obeys the keyboard.

    page_browser_test.py WRITE_PAGES [--shots DIR] [--bench]

WRITE_PAGES is the program that writes the sample pages. --shots also saves screenshots; --bench prints size and
time of the large page and nothing else. Skipped, with the reason, where there is no Chromium.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
MISSING = ("python3-selenium" if webdriver is None else "chromium" if not CHROMIUM
           else "chromium-driver" if not DRIVER else "")
SAMPLES = ["clean", "overflow", "stagnation", "running_sum", "watch", "hostile"]
LAYERS, STEPS = 1000, 10_000
MAX_BYTES, MAX_MS = 5_000_000, 2000


def browser(width=1450, height=960):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--force-device-scale-factor=1",
                 "--disable-dev-shm-usage", "--no-first-run", f"--window-size={width},{height}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    return driver


def write_pages(program, directory, *numbers):
    done = subprocess.run([program, directory, *map(str, numbers)], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


def open_page(driver, path, scheme="light"):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get("file://" + path)
    driver.set_script_timeout(30)
    return driver.execute_async_script("""
        const done = arguments[0];
        const wait = () => {
          const mark = performance.getEntriesByName("report-drawn")[0];
          if (mark) done(mark.startTime); else setTimeout(wait, 10);
        };
        wait();""")


def measure_large(program, directory, driver, rounds=3):
    """Bytes and milliseconds from navigation start to the last chart, the best of some rounds."""
    write_pages(program, directory, LAYERS, STEPS)
    path = os.path.join(directory, "large.html")
    return os.path.getsize(path), min(open_page(driver, path) for _ in range(rounds))


@unittest.skipIf(MISSING, f"no {MISSING}: apt-get install chromium chromium-driver python3-selenium")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="mp-trace-page-")
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        write_pages(WRITE_PAGES, cls.top)
        cls.driver = browser()
        cls.addClassCleanup(cls.driver.quit)

    def open(self, name, scheme="light"):
        self.driver.get_log("browser")
        return open_page(self.driver, os.path.join(self.top, name + ".html"), scheme)

    def run_js(self, text, *more):
        return self.driver.execute_script(text, *more)

    def text_of(self, place):
        return self.run_js("return document.getElementById(arguments[0]).textContent", place)

    def test_every_page_draws_without_an_error_and_asks_for_nothing(self):
        for name in SAMPLES:
            for scheme in ("light", "dark"):
                with self.subTest(page=name, scheme=scheme):
                    self.open(name, scheme)
                    self.assertEqual([e["message"] for e in self.driver.get_log("browser")], [])
                    asked = self.run_js("return performance.getEntriesByType('resource').map((e) => e.name)")
                    self.assertEqual(asked, [])
                    self.assertFalse(self.run_js("return document.body.innerText.includes('could not be drawn')"))

    def test_the_first_screen_says_what_is_wrong_and_what_to_change(self):
        for name, verdict, says in (("overflow", "FAIL", ["blocks.2.mlp.up", "run blocks.2.mlp.up in fp32", "step 17"]),
                                    ("stagnation", "FAIL", ["blocks.1.attn.qkv", "master copy"]),
                                    ("running_sum", "FAIL", ["(loss)", "add up in fp32", "MP401"]),
                                    ("clean", "PASS", ["Nothing found"]),
                                    ("watch", "INCONCLUSIVE", ["ranks 2-3"])):
            with self.subTest(page=name):
                self.open(name)
                self.assertEqual(self.text_of("verdict"), verdict)
                for text in says:
                    self.assertIn(text, self.text_of("cause"))
                bottom = self.run_js("return document.getElementById('cause').getBoundingClientRect().bottom")
                self.assertLess(bottom, 960)

    def test_hostile_names_stay_text(self):
        self.open("hostile")
        self.assertTrue(self.driver.title.startswith("fail - "), self.driver.title)
        self.assertEqual(self.run_js("return document.querySelectorAll('img, iframe, object, b bdi img').length"), 0)
        scripts = self.run_js("return document.scripts.length")
        self.open("clean")
        self.assertEqual(self.run_js("return document.scripts.length"), scripts)
        self.open("hostile")
        text = self.run_js("return document.body.innerText")
        self.assertIn("<img src=x onerror=", text)
        for character in "\x1b\u202e\u2028":
            self.assertNotIn(character, text)
        self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 1450)

    def test_injected_markup_cannot_run(self):
        """Even past textContent, the policy stops what is not ours."""
        self.open("clean")
        self.run_js("""const s = document.createElement("script"); s.textContent = "document.title = 'owned'";
                       document.body.append(s);""")
        self.assertNotEqual(self.driver.title, "owned")

    def test_the_keyboard_reaches_every_control(self):
        self.open("overflow")
        wanted = set(self.run_js("""
            return [...document.querySelectorAll("a[href], select, [tabindex]")].map((e,
                i) => (e.dataset.n = String(i)))"""))
        reached = set()
        for _ in range(2 * len(wanted) + 4):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(self.run_js("return document.activeElement.dataset.n ?? ''"))
        self.assertEqual(wanted - reached, set())
        for place in ("loss-chart", "scale-chart"):
            self.assertEqual(self.run_js("return document.getElementById(arguments[0]).tabIndex", place), 0)

    def test_arrow_keys_move_through_the_map_and_say_where_they_are(self):
        self.open("overflow")
        canvas = self.driver.find_element("css selector", "#map-body > canvas")
        canvas.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("step 0", self.text_of("map-readout"))
        canvas.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertIn("step 2", self.text_of("map-readout"))
        canvas.send_keys(Keys.END)
        self.assertIn("step 59", self.text_of("map-readout"))
        before = self.text_of("map-readout")
        canvas.send_keys(Keys.ARROW_DOWN)
        self.assertNotEqual(self.text_of("map-readout"), before)
        canvas.send_keys(Keys.ARROW_UP, Keys.HOME)
        self.assertIn("wte", self.text_of("map-readout") + self.text_of("map"))
        self.assertNotEqual(self.run_js("return getComputedStyle(document.activeElement).outlineStyle"), "none")

    def test_the_culprit_of_a_skipped_step_is_a_key_away(self):
        self.open("overflow")
        chart = self.driver.find_element("id", "scale-chart")
        chart.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("step 17: forward overflow", self.text_of("scale-readout"))
        chart.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("step 34", self.text_of("scale-readout"))
        self.assertIn("blocks.2.mlp.up.weight", self.text_of("scale-readout"))

    def test_what_was_not_measured_is_hatched_not_blank(self):
        self.open("clean")
        canvas = self.driver.find_element("css selector", "#map-body > canvas")
        canvas.send_keys(Keys.ARROW_RIGHT, *[Keys.ARROW_RIGHT] * 45)
        self.assertIn("not measured", self.text_of("map-readout"))
        for row in (3, 27, 54):  # both bands
            self.assertGreater(self.colors_of(row), 2, f"row {row} has one colour: it looks like a good value")

    def colors_of(self, row):
        """How many colours two columns that were not measured have in a row of the map."""
        return self.run_js("""
            const { left, right, ys, rowHeight } = heat.place, c = heat.canvas.getContext("2d");
            const cell = (right - left) / data.map.columns, found = new Set();
            for (const x of [46, 47]) for (let d = 0; d < cell; ++d) for (let y = 0; y < rowHeight; ++y)
              found.add(c.getImageData(left + x * cell + d, ys[arguments[0]] + y, 1, 1).data.join());
            return found.size""", row)

    def test_exponents_have_the_colors_of_their_own_format(self):
        # Gradients around 2^-17 are below fp16's normal values, and not below bf16's.
        for sample, outside in (("overflow", True), ("stagnation", False)):
            self.open(sample)
            hot = self.run_js("""
                const canvas = exponents.canvas, context = canvas.getContext("2d");
                context.fillStyle = color("hot");
                context.fillRect(0, 0, 1, 1);
                const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data, hot = pixels.slice(0, 3);
                let found = -1;  // the one above
                for (let i = 0; i < pixels.length; i += 4) if (hot.every((v, k) => v === pixels[i + k])) ++found;
                return found""")
            self.assertEqual(hot > 0, outside, f"{sample}: {hot} pixels")

    def test_colors_follow_the_scheme(self):
        backgrounds = []
        for scheme in ("light", "dark"):
            self.open("overflow", scheme)
            backgrounds.append(self.run_js("return getComputedStyle(document.body).backgroundColor"))
            ratio = self.run_js("""
                const rgb = (c) => c.match(/\\d+/g).slice(0, 3).map(Number);
                const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255;
                  return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126*r + .7152*g
                      + .0722*b; };
                const card = getComputedStyle(document.querySelector(".card")).backgroundColor;
                const texts = document.querySelectorAll(".card p, .card td, .card dt, .card dd, .card h2, .answer");
                return Math.min(...[...texts]
                  .map((e) => { const [a, b] = [light(getComputedStyle(e).color), light(card)].sort((x, y) => y - x);
                    return (a + .05) / (b + .05); }));""")
            self.assertGreaterEqual(ratio, 4.5, scheme)
        self.assertNotEqual(*backgrounds)

    def test_a_large_run_is_small_and_quick(self):
        size, ms = measure_large(WRITE_PAGES, self.top, self.driver)
        print(f"{LAYERS} layers x {STEPS} steps: {size} bytes, drawn in {ms:.0f} ms", file=sys.stderr)
        self.assertLessEqual(size, MAX_BYTES)
        self.assertLessEqual(ms, MAX_MS)


def shots(directory):
    os.makedirs(directory, exist_ok=True)
    write_pages(WRITE_PAGES, directory)
    driver = browser()
    for name in SAMPLES:
        for scheme in ("light", "dark"):
            open_page(driver, os.path.join(directory, name + ".html"), scheme)
            driver.save_screenshot(os.path.join(directory, f"{name}-{scheme}.png"))
    driver.quit()


def bench():
    if MISSING:
        sys.exit(f"not measured: no {MISSING}")
    with tempfile.TemporaryDirectory() as top:
        driver = browser()
        size, ms = measure_large(WRITE_PAGES, top, driver, rounds=5)
        driver.quit()
    print(f"| {LAYERS} layers x {STEPS} steps | {size / 1e6:.2f} MB (goal 5) | {ms / 1000:.2f} s (goal 2) |")


if __name__ == "__main__":
    WRITE_PAGES = os.path.abspath(sys.argv.pop(1))
    if "--bench" in sys.argv:
        bench()
    elif "--shots" in sys.argv:
        shots(sys.argv[sys.argv.index("--shots") + 1])
    else:
        unittest.main()
