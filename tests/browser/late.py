"""Steps about responses that arrive late, and content that is drawn late: a page shows what belongs to its newest state."""
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# Holds the response to the first request to a path, until it is released; with a refusal the request is not sent. What waits for the
# response has run when the release is over: half a second is far more than the page needs, and too short a time would only hide a fault.
HOLD = """
var wanted = arguments[0], refusal = arguments[1], original = window.fetch, response, release;
window.isHeld = false;
window.heldSignal = null;
window.fetch = function (path, options) {
  if (window.isHeld || path !== wanted) return original.call(window, path, options);
  window.isHeld = true;
  window.heldSignal = options.signal;
  response = refusal ? Promise.resolve(new Response(JSON.stringify(refusal), { status: 409 })) : original.call(window, path, options);
  // The page may end it.
  response.catch(function () {});
  return new Promise(function (done) { release = done; }).then(function () { return response; });
};
window.releaseFirst = function (done) {
  window.fetch = original;
  var go = function () { release(); setTimeout(done, 500); };
  response.then(go, go);
};
"""
# Number of times that the page has read the queue.
READ_QUEUE = "return performance.getEntriesByType('resource').filter(function (one) { return /\\/queue$/.test(one.name); }).length"
# Sends a request as the page does, and returns what the server says.
REQUEST = """
var done = arguments[arguments.length - 1];
pubmark.request(arguments[0], arguments[1]).then(function (response) { return response.json(); }).then(done);
"""
FOCUS = "var button = document.querySelector(arguments[0]); if (button) button.focus(); return button !== null && document.activeElement === button"


def hold_first(pages, path, refusal=None):
    pages.driver.execute_script(HOLD, path, refusal)


def wait_until_held(pages):
    pages.wait(lambda driver: driver.execute_script("return window.isHeld"), "a request")


def release_first(pages):
    pages.driver.execute_async_script("window.releaseFirst(arguments[0])")


def write(pages, field, text):
    """By hand: what a driver clears, the page is not told of as of a key."""
    pages.find("#" + field).send_keys(Keys.CONTROL, "a", Keys.NULL, text)


def wait_until_wrong(pages):
    write(pages, "duration", "wrong")
    pages.wait(lambda _: pages.find("#judgement").get_attribute("class") == "bad", "the error")


def judges_the_form_that_is_shown(pages):
    pages.open("/new")
    pages.wait_for_text("#judgement", "can be started")
    pages.wait_for_text("#plan", "devices")
    plan = lambda: pages.find("#plan").text
    can_start = lambda: pages.find("#run").is_enabled()
    # Beside the judgement of a text is its plan or none, and not that of another text.
    hold_first(pages, "/dry-run")
    write(pages, "duration", "61s")
    wait_until_held(pages)
    assert plan() == "…", plan()
    write(pages, "duration", "62s")
    pages.wait_for_text("#command", "--duration 62s")
    assert pages.driver.execute_script("return window.heldSignal.aborted"), "the server works on what nobody wants"
    pages.wait(lambda _: plan() not in ("…", "—"), "the plan")
    newest = plan()
    release_first(pages)
    assert plan() == newest, plan()
    # A judgement of an earlier text enables nothing.
    hold_first(pages, "/validate")
    write(pages, "duration", "63s")
    wait_until_held(pages)
    wait_until_wrong(pages)
    release_first(pages)
    assert not can_start() and pages.find("#judgement").get_attribute("class") == "bad"
    # Nor does a refusal of an earlier text.
    for is_changed in [True, False]:
        write(pages, "duration", "64s")
        pages.wait_for_text("#command", "--duration 64s")
        pages.wait(lambda _: can_start(), "Start")
        hold_first(pages, "/runs", {"error": "the queue is full", "chain": ["the queue is full"]})
        pages.find("#run").click()
        wait_until_held(pages)
        assert not can_start(), "it is sent once"
        if is_changed:
            wait_until_wrong(pages)
        release_first(pages)
        pages.wait_for_text("#problem", "The queue is full")
        assert can_start() != is_changed
    pages.no_faults("422")


def shows_the_newest_check(pages):
    pages.open("/?filter=kind=experiment")
    pages.wait(lambda _: len(pages.names()) == 2, "two experiments")
    pages.select(*pages.names())
    pages.find("button[data-action=check]").click()

    def shown():
        rows = pages.driver.find_elements(By.CSS_SELECTOR, "#check-rows tr")
        return [pages.find("#check-finding").text] + [row.text for row in rows]
    pages.wait(lambda _: len(shown()) > 1, "what comes of the first check")
    hold_first(pages, "/check")
    field = pages.find("#check-fail-on")
    for condition in ["p99>+1000%", "p99>+2000%"]:
        field.clear()
        field.send_keys(condition + Keys.ENTER)
        wait_until_held(pages)
    pages.wait(lambda _: len(shown()) > 1, "what comes of the newest check")
    newest = shown()
    release_first(pages)
    assert shown() == newest, f"{newest} became {shown()}"
    pages.find("#check button[value=no]").click()
    pages.no_faults()


def draws_the_queue_when_the_focus_has_left(pages):
    driver = pages.driver
    pages.open("/")
    first = pages.find("input[name=run]").get_attribute("value")
    pages.select(first)
    body = '{"workload": "hello", "system": "builtin", "duration": "8s", "warmup": "0s"}'
    run = driver.execute_async_script(REQUEST, "/runs", {"method": "POST", "body": body})["id"]
    pages.wait(lambda _: driver.execute_script(FOCUS, f".queue button[data-cancel='{run}']"), "a button in the queue")
    state = lambda: driver.execute_async_script(REQUEST, "/runs/" + run, {})["state"]
    pages.wait(lambda _: state() not in ("queued", "running"), "the end of the run")
    known = driver.execute_script(READ_QUEUE)
    pages.wait(lambda _: driver.execute_script(READ_QUEUE) >= known + 2, "the page to read the queue")
    assert driver.find_elements(By.CSS_SELECTOR, ".queue li"), "what has the focus stays"
    driver.execute_script("document.activeElement.blur()")
    pages.wait(lambda _: not driver.find_elements(By.CSS_SELECTOR, ".queue li"), "the queue without the run")
    # The list is as old as the selection, and no older.
    assert run not in pages.names(), "a list with a selection stays"
    pages.select(first)
    pages.wait(lambda _: run in pages.names(), "the run in the list")
    pages.no_faults()
