"""The live view of `--live` in a real browser: Debian's Chromium, driven by Selenium.

    target/clients/browser/bin/python3 tests/browser/live.py PUBMARK AXE_FILE

A run is watched until its page has become its report; another one is stopped from its page; a comparison is watched run after run. Each page
is looked at on a telephone, and by axe-core.
"""
import pathlib
import random
import socket
import subprocess
import sys

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PUBMARK, AXE = sys.argv[1], pathlib.Path(sys.argv[2]).read_text()
# Longest wait for anything, s.
LIMIT_S = 40
# Counts what the server sends to the page.
COUNT = "var parse = JSON.parse; window.messages = 0; JSON.parse = function (text) { window.messages += 1; return parse(text); };"
MARK = "document.getElementById('view').firstElementChild.isOld = true;"
IS_OLD = "return document.getElementById('view').firstElementChild.isOld === true"


def browser():
    options = webdriver.ChromeOptions()
    for word in ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=360,900"]:
        options.add_argument(word)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def free_port():
    """A port below those that Linux gives to clients."""
    for port in random.sample(range(20_000, 32_768), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def start(*words):
    """A command, and the address of its page."""
    run = subprocess.Popen([PUBMARK, *words, "--warmup", "1s", f"--live={free_port()}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if line.startswith("live view at "):
            return run, line.split()[-1]
    raise AssertionError(f"the run printed no address and ended with {run.wait()}")


def wait(driver, look, what):
    # What was found may be replaced by what is drawn the next second.
    return WebDriverWait(driver, LIMIT_S, 0.1, [StaleElementReferenceException]).until(look, f"waited for {what}: {driver.title}")


def shows(driver, selector, text):
    return any(text in one.text for one in driver.find_elements(By.CSS_SELECTOR, selector))


def keeps_nobody_out(driver):
    """Nothing that axe-core calls serious."""
    driver.execute_script(AXE)
    found = driver.execute_async_script(
        "var done = arguments[arguments.length - 1];"
        "axe.run(document, { resultTypes: ['violations'] }).then(function (found) { done(found.violations); });")
    serious = [f"{one['id']}: {node['html'][:160]}" for one in found if one["impact"] in ("serious", "critical") for node in one["nodes"]]
    assert not serious, "\n".join(serious)


def became_the_report(driver, kind="PUBMARK RUN"):
    wait(driver, lambda _: shows(driver, ".kind", kind), "the report")
    wide = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the report is {wide} pixels wider than a telephone"


def is_watched_to_its_end(driver):
    run, url = start("run", "hello", "--system", "builtin", "--duration", "4s")
    driver.get(url)
    wait(driver, lambda _: shows(driver, ".tile .name", "Delivered messages"), "the tiles")
    # The token is not left in the address, where a bookmark or a picture would show it.
    assert "#" not in driver.current_url, driver.current_url
    became_the_report(driver)
    # A busy machine may make any run invalid.
    assert run.wait(LIMIT_S) in (0, 5), run.returncode


def keeps_the_focus_and_what_is_selected(driver):
    """What is drawn once a second leaves the focus at its link, and a selection as it is."""
    script = driver.execute_script
    focus = "var link = document.querySelector('.small-charts h3 a'); if (!link) return null; link.focus(); return link.getAttribute('href')"
    link = wait(driver, lambda _: script(focus), "a chart")
    script(MARK)
    wait(driver, lambda _: not script(IS_OLD), "the next drawing")
    assert script("return document.activeElement.getAttribute('href')") == link, "it took the focus"
    script(COUNT + MARK + "getSelection().selectAllChildren(document.querySelector('.log h2'))")
    wait(driver, lambda _: script("return window.messages") >= 2, "two messages")
    assert script(IS_OLD) and script("return getSelection().toString()").lower() == "events", "it took the selection"
    script("getSelection().removeAllRanges()")
    wait(driver, lambda _: not script(IS_OLD), "the next drawing")


def is_stopped_from_its_page(driver):
    run, url = start("run", "hello", "--system", "builtin", "--duration", "120s")
    driver.get(url)
    # One that is stopped while its system starts has measured nothing, and has no report.
    wait(driver, lambda _: shows(driver, ".tile .name", "Delivered messages"), "the tiles")
    button = wait(driver, lambda _: [one for one in driver.find_elements(By.ID, "stop") if one.is_displayed()], "the button")[0]
    keeps_nobody_out(driver)
    keeps_the_focus_and_what_is_selected(driver)
    button.click()
    driver.switch_to.alert.accept()
    became_the_report(driver)
    assert run.wait(LIMIT_S) == 130, run.returncode


def a_comparison_is_watched(driver):
    run, url = start("compare", "hello", "--systems", "builtin", "--protocol", "mqtt5", "--qos", "0,1", "--repeat", "1", "--wait", "0s",
                     "--duration", "3s")
    driver.get(url)
    for number in (1, 2):
        wait(driver, lambda _: shows(driver, ".among", f"run {number} of 2"), f"run {number}")
        wide = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"run {number} is {wide} pixels wider than a telephone"
    became_the_report(driver, "PUBMARK EXPERIMENT")
    assert run.wait(LIMIT_S) in (0, 5), run.returncode


driver = browser()
try:
    for step in (is_watched_to_its_end, is_stopped_from_its_page, a_comparison_is_watched):
        step(driver)
        faults = driver.get_log("browser")
        assert not faults, f"{step.__name__}: the console: {faults}"
finally:
    driver.quit()
