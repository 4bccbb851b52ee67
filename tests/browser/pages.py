"""The pages of `pubmark serve` in a real browser: Debian's Chromium, driven by Selenium; axe-core looks for what keeps people out.

    target/clients/browser/bin/python3 tests/browser/pages.py URL TOKEN_FILE AXE_FILE EMPTY_URL EMPTY_TOKEN_FILE [PICTURES]

The server's folder of results is that of the test `serve::browser`: `one` and `slow` of one schedule, the second with a regression, `other`
of another schedule; a submission that failed after a repetition; an experiment and a search for capacity; and a folder whose name means
harm. EMPTY_URL is that of a server without
results. Tokens are read from their files. With PICTURES, each page is saved there as a picture, too.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from late import draws_the_queue_when_the_focus_has_left, judges_the_form_that_is_shown, shows_the_newest_check

URL, TOKEN_FILE, AXE_FILE, EMPTY_URL, EMPTY_TOKEN_FILE = sys.argv[1:6]
PICTURES = pathlib.Path(sys.argv[6]) if len(sys.argv) > 6 else None
# Where the browser saves files.
SAVED = pathlib.Path(tempfile.mkdtemp(prefix="pubmark-saved-"))
# Longest wait for anything, s.
LIMIT_S = 40
# Windows: a telephone and a desk.
WIDTHS = [360, 1280]
SCHEMES = ["light", "dark"]
# What axe-core calls it when somebody cannot use a part of a page, or only with great effort.
SERIOUS = {"serious", "critical"}
EXPERIMENT, SEARCH = "20260201-090507-experiment", "20260202-090507-capacity"
CHOICE = "20260203-090507-choose-smart-home"
HARM = "20260101-090507-<img src=x onerror=document.title='broken'>"
ONE, SLOW, OTHER = "20260301-090507-one", "20260302-090507-slow", "20260303-090507-other"
FAILED = "20260304-090507-0000f41d"


def browser():
    options = webdriver.ChromeOptions()
    for word in ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900"]:
        options.add_argument(word)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


class Pages:
    """A browser with what the tests do in it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path):
        self.driver.get(URL + path)

    def find(self, selector):
        """An element that is there and can be seen, waited for."""
        def look(driver):
            seen = [one for one in driver.find_elements(By.CSS_SELECTOR, selector) if one.is_displayed()]
            return seen[0] if seen else False
        return self.wait(look, f"`{selector}` to be there")

    def wait(self, look, what):
        def patient(driver):
            try:
                return look(driver)
            except StaleElementReferenceException:
                # What was found has been replaced by what the server drew since.
                return False
            except WebDriverException as error:
                # The same, as Chromium calls it where it happens within one look.
                if "does not belong to the document" in str(error):
                    return False
                raise
        return WebDriverWait(self.driver, LIMIT_S, 0.1).until(patient, f"waited for {what} at {self.driver.current_url}")

    def wait_for_text(self, selector, text):
        def look(driver):
            return any(text in one.text for one in driver.find_elements(By.CSS_SELECTOR, selector))
        self.wait(look, f"`{text}` in `{selector}`")

    def names(self):
        """Ids of the list, in its order."""
        return [one.text.split(",")[0] for one in self.driver.find_elements(By.CSS_SELECTOR, ".results tbody th small:not(.reason)")]

    def select(self, *names):
        for name in names:
            self.find(f"input[name=run][value='{name}']").click()

    def tab_to(self, is_there, what, back=False):
        """Goes there with Tab alone; whoever uses a keyboard sees where the focus is."""
        keys = [Keys.SHIFT, Keys.TAB, Keys.NULL] if back else [Keys.TAB]
        for _ in range(150):
            self.driver.switch_to.active_element.send_keys(*keys)
            focused = self.driver.switch_to.active_element
            if is_there(focused):
                outline = self.driver.execute_script(
                    "var style = getComputedStyle(document.activeElement); return style.outlineStyle + style.outlineWidth")
                assert "none" not in outline and not outline.endswith("0px"), f"nobody sees that {what} has the focus"
                return focused
        raise AssertionError(f"Tab does not lead to {what}")

    def saved(self, name):
        """A file that the browser has saved, waited for."""
        path = SAVED / name
        self.wait(lambda _: path.is_file() and path.stat().st_size > 0, f"{name} to be saved")
        return path.read_bytes()

    def no_faults(self, *refusals):
        """Nothing in the browser's console but refusals of the server that the step is about."""
        expected = re.compile(f"status of ({'|'.join(refusals)}) ") if refusals else None
        entries = [entry["message"] for entry in self.driver.get_log("browser")]
        faults = [text for text in entries if not (expected and expected.search(text))]
        assert not faults, f"the console: {faults}"


def signs_in(pages):
    pages.open("/")
    pages.find("#token").send_keys("0" * 64 + Keys.ENTER)
    pages.wait_for_text("#problem", "not valid for this server")
    pages.no_faults("401")
    look_at(pages, "login")
    pages.find("#token").send_keys(pathlib.Path(TOKEN_FILE).read_text().strip() + Keys.ENTER)
    pages.find(".results")
    assert pages.names() == [FAILED, OTHER, SLOW, ONE, CHOICE, SEARCH, EXPERIMENT, HARM], pages.names()
    assert not pages.driver.get_cookies()
    # A page makes two requests: the second one may have been refused after the look above.
    pages.no_faults("401")


def has_nothing_yet(pages):
    pages.driver.get(EMPTY_URL)
    pages.find("#token").send_keys(pathlib.Path(EMPTY_TOKEN_FILE).read_text().strip() + Keys.ENTER)
    pages.wait_for_text("#view", "There are no results yet")
    look_at(pages, "empty")
    pages.find("#view a[href='/new']")
    pages.no_faults("401")


def sorts(pages):
    def runs():
        return [name for name in pages.names() if name in (ONE, SLOW)]
    pages.find("#by-p99").click()
    pages.wait(lambda _: runs() == [ONE, SLOW], "the slower one to be last")
    assert pages.names()[-1] == EXPERIMENT, "without a p99 it is last"
    head = pages.find("th[aria-sort]")
    assert (head.text.strip().lower()[:3], head.get_attribute("aria-sort")) == ("p99", "ascending"), head.text
    pages.find("#by-p99").click()
    pages.wait(lambda _: runs() == [SLOW, ONE], "the slower one to be first")
    assert pages.names()[-1] == EXPERIMENT, "without a p99 it is last either way"
    pages.driver.back()
    pages.wait(lambda _: runs() == [ONE, SLOW], "the order before")


def notes_and_searches(pages):
    pages.open("/")
    pages.find(f"button[data-note='{ONE}']").click()
    look_at(pages, "note")
    pages.find("#note-text").send_keys("<img src=x onerror=\"document.title='broken in'\"> quiet")
    pages.find("#note-tags").send_keys("lab, night")
    pages.find("#note button[value=yes]").click()
    pages.wait_for_text(".results .note", "onerror")
    assert not pages.driver.find_elements(By.CSS_SELECTOR, ".results img") and "broken" not in pages.driver.title
    search = pages.find("#filter")
    search.send_keys("tag=lab" + Keys.ENTER)
    pages.wait(lambda _: pages.names() == [ONE], "the result with the tag")
    pages.find("#filter").clear()
    pages.find("#filter").send_keys("\"quoted' <b>" + Keys.ENTER)
    pages.wait_for_text("#view", "No result matches")
    look_at(pages, "nothing-matches")
    pages.find("#filter").clear()
    pages.find("#filter").send_keys("sistem=x" + Keys.ENTER)
    pages.wait_for_text("#problem", "There is no key sistem")
    pages.no_faults("400")


def compares(pages):
    pages.open("/")
    compare = pages.find("button[data-action=compare]")
    assert not compare.is_enabled(), "nothing is selected"
    pages.select(ONE, SLOW)
    look_at(pages, "selected")
    pages.find("button[data-action=compare]").click()
    pages.find("table.scorecard")
    look_at(pages, "compare")
    pages.no_faults()
    pages.open("/")
    pages.select(ONE, OTHER)
    pages.find("button[data-action=compare]").click()
    pages.wait_for_text("#problem", "different schedules")
    pages.no_faults("422")


def says_what_cannot_be_compared(pages):
    pages.open("/")
    pages.select(ONE, EXPERIMENT)
    pages.wait_for_text("#selected", "compare and history are for single runs")
    for action in ["compare", "history"]:
        assert not pages.find(f"button[data-action={action}]").is_enabled(), action
    assert pages.find("button[data-action=export]").is_enabled()
    look_at(pages, "selected-kinds")
    pages.open("/compare?run=" + ONE + "&run=" + SEARCH)
    pages.wait_for_text("#problem", "is a search for capacity")
    pages.open("/history?run=" + EXPERIMENT)
    pages.wait_for_text("#problem", "is an experiment")
    pages.no_faults("409")


def compares_by_keyboard(pages):
    pages.open("/")
    pages.find(".results")
    for name in [SLOW, ONE]:
        pages.tab_to(lambda one: one.get_attribute("value") == name and one.get_attribute("name") == "run", name).send_keys(Keys.SPACE)
    pages.wait_for_text("#selected", "2 selected")
    # What acts on the selection stands before the list.
    pages.tab_to(lambda one: one.get_attribute("data-action") == "compare", "Compare", back=True).send_keys(Keys.ENTER)
    pages.find("table.scorecard")
    pages.tab_to(lambda one: one.tag_name == "a" and (one.get_attribute("href") or "").find("#") > 0, "a section")
    pages.no_faults()


def starts_by_keyboard(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.tab_to(lambda one: one.get_attribute("id") == "workload", "the workload").send_keys("hello")
    pages.wait_for_text("#command", "pubmark run hello")
    for field, value in [("warmup", "0s"), ("duration", "2s")]:
        focused = pages.tab_to(lambda one: one.get_attribute("id") == field, field)
        focused.send_keys(Keys.CONTROL, "a", Keys.NULL, value)
    pages.wait_for_text("#command", "--warmup 0s --duration 2s")
    pages.wait(lambda _: pages.find("#run").is_enabled(), "Start")
    pages.tab_to(lambda one: one.get_attribute("id") == "run", "Start").send_keys(Keys.ENTER)
    pages.wait_for_text("h1", "hello on builtin")
    pages.find("#verdict")
    pages.no_faults()


def opens_files_of_a_report(pages):
    """The page is the report of an experiment that was made here: its links lead to files that need the token."""
    driver = pages.driver
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(SAVED)})
    experiment = driver.current_url
    pages.find("a[href$='/files/csv/runs.csv']").click()
    head, *rows = pages.saved("runs.csv").decode().splitlines()
    assert head.startswith("order,") or "repetition" in head, head
    assert len(rows) == 2, "a row for each run, and not the cells"
    pages.find("a[href$='/files/experiment.json']").click()
    assert json.loads(pages.saved("experiment.json"))["name"], "the record of the experiment"
    # The report of a run in it is a page of its own, with files of its own.
    pages.find("a[href$='/report.html']").click()
    pages.find("#verdict")
    assert "/files/" in driver.current_url and driver.current_url.endswith("/report.html"), driver.current_url
    look_at(pages, "report-of-a-cell")
    pages.find("a[href$='/record.json']").click()
    assert json.loads(pages.saved("record.json"))["workload"]["name"] == "hello"
    pages.find("a[href$='.hdr']").click()
    pages.wait(lambda _: list(SAVED.glob("*.hdr")), "a histogram to be saved")
    pages.find("nav.pages a[href='" + driver.current_url.split("/files/")[0].removeprefix(URL) + "']").click()
    pages.wait(lambda _: driver.current_url == experiment, "the experiment")
    pages.wait_for_text("h1", "Levels")
    # Nothing in the reports leads nowhere, once the page knows the names of the files.
    links = "return [...document.querySelectorAll('#page a[href]')].map(link => link.href)"
    dead = lambda: [link for link in driver.execute_script(links) if not re.search(r"#|/files/", link)]
    pages.wait(lambda _: not dead(), "links that lead to files")
    pages.no_faults()


def sees_a_fault(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    for name, value in [("duration", "9s"), ("warmup", "0s"), ("fault", "kill:at=2s,for=2s")]:
        pages.find("#" + name).clear()
        pages.find("#" + name).send_keys(value)
    pages.wait_for_text("#command", "--fault")
    pages.wait_for_text("#plan", "kill")
    pages.find("#run").click()
    pages.wait_for_text(".log", "fault begins: kill")
    pages.find(".small-charts svg .band.fault")
    pages.wait_for_text(".log", "fault ends: kill")
    look_at(pages, "live-fault")
    pages.find("#faults")
    pages.find("#over-time svg .band.fault")
    pages.no_faults()


def shows_a_regression(pages):
    pages.open("/")
    pages.select(SLOW)
    pages.find("button[data-action=history]").click()
    pages.wait_for_text("tr.regressed", "regression")
    rows = pages.driver.find_elements(By.CSS_SELECTOR, ".history tbody tr")
    assert len(rows) == 2, f"`other` has another schedule: {[row.text for row in rows]}"
    assert "regressed" not in rows[0].get_attribute("class") and "regressed" in rows[1].get_attribute("class")
    look_at(pages, "history")
    condition = pages.find("#fail-on")
    condition.clear()
    condition.send_keys("p99>+1000%" + Keys.ENTER)
    pages.wait_for_text(".finding", "0 regressions (")
    pages.no_faults()


def writes_and_starts(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.wait_for_text("#plan", "devices")
    look_at(pages, "new")
    Select(pages.find("#workload")).select_by_value("")
    text = pages.find("#text")
    pages.wait_for_text("#judgement", "can be started")
    # A key that there is not, in line 2.
    text.send_keys(Keys.CONTROL, Keys.HOME)
    text.send_keys(Keys.CONTROL, Keys.NULL, Keys.END, Keys.ENTER, "descriptoin: x")
    pages.wait_for_text("#text-problem", "Line 2, ")
    pages.wait_for_text("#text-lines b", "2")
    assert not pages.find("#run").is_enabled()
    look_at(pages, "new-wrong")
    pages.no_faults("422")
    Select(pages.find("#workload")).select_by_value("smart-home")
    # What runs already is not started.
    pages.find("#endpoint").send_keys("mqtt://127.0.0.1:1883")
    pages.wait_for_text("#command", "--endpoint mqtt://127.0.0.1:1883")
    assert "--system" not in pages.find("#command").text and not pages.find("#system").is_enabled()
    look_at(pages, "new-endpoint")
    # By hand: what a driver clears, the page is not told of as of a key.
    pages.find("#endpoint").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    pages.wait_for_text("#command", "--system builtin")
    for name, value in [("duration", "60s"), ("warmup", "0s")]:
        pages.find("#" + name).clear()
        pages.find("#" + name).send_keys(value)
    pages.wait_for_text("#command", "pubmark run smart-home --system builtin --warmup 0s")
    pages.find("#measure").click()
    # The end of what is measured: a run that began before would be in its way.
    pages.wait_for_text("#plan", "the loopback is an upper bound")
    pages.find("#run").click()


def searches_and_experiments(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.find("input[name=kind][value=capacity]").click()
    pages.wait_for_text("#command", "pubmark capacity smart-home --system=builtin")
    pages.wait_for_text("#plan", "The first trial:")
    assert not pages.driver.find_element(By.ID, "scale").is_displayed(), "a search has no scale"
    Select(pages.find("#workload")).select_by_value("")
    pages.wait_for_text("#command", "pubmark capacity workload.yaml --system=builtin")
    assert pages.find("#text-name").text == "workload.yaml" and pages.find("#text").is_displayed()
    Select(pages.find("#link")).select_by_value("lte")
    pages.wait_for_text("#command", "--link=lte")
    Select(pages.find("#link")).select_by_value("")
    Select(pages.find("#workload")).select_by_value("smart-home")
    pages.find("#objectives").send_keys(",p98<1ms")
    pages.wait_for_text("#judgement", "p98")
    assert not pages.find("#run").is_enabled()
    look_at(pages, "new-capacity")
    pages.no_faults("422")
    pages.find("input[name=kind][value=experiment]").click()
    pages.wait_for_text("#plan", "9: 3 repetitions")
    pages.wait_for_text("#command", "pubmark experiment experiment.yaml")
    text = pages.find("#definition")
    text.send_keys(Keys.CONTROL, Keys.HOME)
    text.send_keys(Keys.CONTROL, Keys.NULL, Keys.END, Keys.ENTER, "descriptoin: x")
    pages.wait_for_text("#definition-problem", "Line 2, ")
    pages.wait_for_text("#definition-lines b", "2")
    look_at(pages, "new-experiment-wrong")
    text.clear()
    text.send_keys("name: levels\ntitle: Levels\nworkload: hello\naxes: {system: builtin, protocol: mqtt5, qos: [0, 1]}\n")
    for name, value in [("repeat", "1"), ("each-duration", "3s"), ("each-warmup", "1s"), ("wait", "0s")]:
        pages.find("#" + name).send_keys(value)
    pages.find("#only").send_keys("qos=7")
    pages.wait_for_text("#judgement", "not a value of the axis")
    pages.find("#only").clear()
    pages.find("#only").send_keys("qos=0,1")
    pages.wait_for_text("#plan", "2: 1 repetition")
    pages.wait_for_text("#command", "--only=qos=0,1 --repeat=1 --duration=3s --warmup=1s --wait=0s")
    pages.wait_for_text("#plan", "✓ ")
    pages.find("#measure").click()
    pages.wait_for_text("#plan", "this machine can")
    look_at(pages, "new-experiment")
    pages.find("#run").click()
    pages.wait_for_text(".among", "run 1 of 2")
    pages.find(".small-charts svg")
    look_at(pages, "live-experiment")
    pages.wait_for_text(".among", "run 2 of 2")
    pages.wait_for_text(".log", "run 1 of 2")
    pages.wait_for_text("h1", "Levels")
    pages.no_faults("422")


def watches_and_stops(pages):
    pages.find(".small-charts svg")
    pages.wait_for_text(".state", "running")
    look_at(pages, "live")
    address = pages.driver.current_url
    pages.open("/")
    pages.wait_for_text(".queue", "smart-home")
    look_at(pages, "queue")
    asked = "return performance.getEntriesByType('resource').filter(one => one.name.endsWith('/queue')).length"
    rests_unseen(pages, lambda: pages.driver.execute_script(asked))
    pages.driver.get(address)
    pages.find(".small-charts svg")
    rests_unseen(pages, lambda: pages.find(".state").text)
    stops_by_keyboard(pages)
    pages.find("#verdict")
    heads = [one.text for one in pages.driver.find_elements(By.CSS_SELECTOR, "h1") if one.is_displayed()]
    assert heads == ["smart-home on builtin"], heads
    pages.find("#over-time figure")
    look_at(pages, "report")
    pages.no_faults("422")


def rests_unseen(pages, shown):
    """A page that nobody sees asks for nothing: what it shows, which changes within a few seconds otherwise, stays."""
    def see(is_seen):
        hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: arguments[0]});"
        pages.driver.execute_script(hide + "document.dispatchEvent(new Event('visibilitychange'))", not is_seen)
    see(False)
    # A response may be on its way.
    time.sleep(0.5)
    before = shown()
    time.sleep(3)
    assert shown() == before, "it asks although nobody sees it"
    see(True)
    pages.wait(lambda _: shown() != before, "the page to ask again")


def stops_by_keyboard(pages):
    """Reaches the button with Tab alone, and presses it; what is drawn each second does not take the focus away."""
    driver = pages.driver
    pages.find("#stop")
    pages.find(".small-charts svg")
    def focused():
        return driver.switch_to.active_element.get_attribute("id")
    for _ in range(30):
        if focused() == "stop":
            break
        driver.switch_to.active_element.send_keys(Keys.TAB)
    assert focused() == "stop", "Tab does not lead to Stop"
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "nobody sees where the focus is"
    # The page may replace the element between the two steps of reading it, which `wait` repeats.
    before = pages.wait(lambda _: pages.find(".state").text, "how the run stands")
    pages.wait(lambda _: pages.find(".state").text != before, "the next second")
    assert focused() == "stop", "the focus went away"
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    driver.switch_to.alert.accept()


def checks_one_experiment_against_another(pages):
    pages.open("/?filter=kind=experiment")
    pages.wait(lambda _: len(pages.names()) == 2, "the experiment that was made, and the one that was there")
    pages.select(*pages.names())
    pages.wait_for_text("#selected", "compare and history are for single runs")
    pages.find("button[data-action=check]").click()
    pages.wait(lambda _: pages.find("#check-finding").text not in ("", "Checking…"), "what comes of it")
    assert re.match(r"(Passed|Undecided|Failed): \d", pages.find("#check-finding").text), pages.find("#check-finding").text
    assert pages.find("#check .of").text.endswith(" against " + EXPERIMENT), pages.find("#check .of").text
    look_at(pages, "check")
    pages.find("#check-fail-on").clear()
    pages.find("#check-fail-on").send_keys("p98>+1%" + Keys.ENTER)
    pages.wait_for_text("#check-finding", "p98")
    pages.find("#check button[value=no]").click()
    pages.no_faults("422", "409")


def shows_other_kinds(pages):
    for name in [EXPERIMENT, SEARCH, CHOICE]:
        pages.open("/runs/" + name)
        pages.find("h2")
        # Made up: only the choice has the folder of a run. A link leads to a file of the server, or is none.
        links = lambda kind: pages.driver.find_elements(By.CSS_SELECTOR, f"a[href{kind}")
        pages.wait(lambda _: not links("^='runs/']") and not links("^='trials/']"), f"the links of {name} to be resolved")
        reports = links("$='/report.html']")
        assert bool(reports) == (name == CHOICE), f"{name}: {len(reports)} links to reports"
        look_at(pages, name.split("-")[-1])
        pages.no_faults()


def deletes(pages):
    pages.open("/")
    pages.select(OTHER)
    pages.find("button[data-action=delete]").click()
    pages.wait_for_text("#going", OTHER + ": ")
    look_at(pages, "delete")
    pages.find("#delete button[value=no]").click()
    assert OTHER in pages.names()
    pages.find("button[data-action=delete]").click()
    pages.find("#delete button[value=yes]").click()
    pages.wait(lambda _: pages.names() and OTHER not in pages.names(), f"{OTHER} to be gone")
    pages.no_faults()


def look_at(pages, name):
    """The page that is open, in each window and colour scheme: nothing wider than the window, nothing that keeps people out."""
    driver = pages.driver
    axe = pathlib.Path(AXE_FILE).read_text()
    for width in WIDTHS:
        height = 800 if width == 360 else 900
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for scheme in SCHEMES:
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            view = f"{name} at {width} {scheme}"
            ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(255, 255, 255)") == (scheme == "light"), f"{view}: the ground is {ground}"
            wide = driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view}: {wide} px wider than the window"
            driver.execute_script(axe)
            found = driver.execute_async_script(
                "var done = arguments[arguments.length - 1];"
                "axe.run(document, { resultTypes: ['violations'] }).then(function (found) { done(found.violations); });")
            serious = [f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]} {node['failureSummary'][:200]}"
                       for one in found if one["impact"] in SERIOUS for node in one["nodes"]]
            assert not serious, f"{view}: " + "\n".join(serious)
            if PICTURES:
                driver.save_screenshot(str(PICTURES / f"{name}-{width}-{scheme}.png"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def chooses(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.find("input[name=kind][value=choose]").click()
    pages.wait_for_text("#command", "pubmark choose requirements.yaml")
    pages.wait_for_text("#plan", "builtin over mqtt5")
    assert pages.find("#text-name").text == "requirements.yaml"
    look_at(pages, "new-choice")
    text = pages.find("#requirements")
    text.send_keys(Keys.CONTROL, Keys.HOME)
    text.send_keys(Keys.CONTROL, Keys.NULL, Keys.END, Keys.ENTER, "grwth: 2")
    pages.wait_for_text("#requirements-problem", "Line 2, column 1: unknown field")
    pages.wait_for_text("#requirements-lines b", "2")
    look_at(pages, "new-choice-wrong")
    text.clear()
    text.send_keys("workload: hello\nobjectives: loss=0\ncandidates: [builtin]\nheadroom: false\n"
                   "window: {duration: 60s, warmup: 0s}\n")
    pages.wait_for_text("#judgement", "can be started")
    pages.find("#run").click()
    pages.wait_for_text(".among", "builtin, screening")
    pages.find(".small-charts svg")
    look_at(pages, "live-choice")
    pages.find("#stop").click()
    pages.driver.switch_to.alert.accept()
    pages.wait_for_text("#candidates", "builtin")
    pages.no_faults("422")


def fails(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.find("#endpoint").send_keys("mqtt://127.0.0.1:9")
    pages.wait_for_text("#command", "--endpoint mqtt://127.0.0.1:9")
    pages.wait_for_text("#judgement", "can be started")
    pages.find("#run").click()
    pages.wait_for_text(".failure", "Failed to connect to mqtt://127.0.0.1:9")
    pages.wait_for_text(".failure", "Start the system, or check")
    look_at(pages, "live-failed")
    pages.open("/")
    pages.wait_for_text(".results .reason", "failed to connect to mqtt://127.0.0.1:9")
    look_at(pages, "list-failed")
    pages.no_faults()


def shows_a_failure_beside_a_report(pages):
    pages.open("/runs/" + FAILED)
    pages.find("#verdict")
    pages.wait_for_text("#problem", "Failed to connect to mqtt://127.0.0.1:7: connection refused. Start the system.")
    look_at(pages, "report-and-failure")
    pages.no_faults()


STEPS = [has_nothing_yet, signs_in, sorts, notes_and_searches, compares, says_what_cannot_be_compared, compares_by_keyboard,
         shows_a_regression, shows_a_failure_beside_a_report, judges_the_form_that_is_shown, chooses, fails, searches_and_experiments, opens_files_of_a_report, writes_and_starts, watches_and_stops, sees_a_fault,
         starts_by_keyboard, checks_one_experiment_against_another, shows_the_newest_check, draws_the_queue_when_the_focus_has_left,
         shows_other_kinds, deletes]


def main():
    driver = browser()
    try:
        driver.set_page_load_timeout(LIMIT_S)
        driver.set_script_timeout(LIMIT_S)
        pages = Pages(driver)
        for step in STEPS:
            step(pages)
            print("ok", step.__name__, flush=True)
    finally:
        driver.quit()
        shutil.rmtree(SAVED)


main()
