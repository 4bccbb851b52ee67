"""Writes docs/images/serve.png: the page of results of a running `pubmark serve`, as the README shows it.

    target/clients/browser/bin/python3 tests/browser/picture.py http://127.0.0.1:7780 runs/.serve/token
"""
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

url, token_file = sys.argv[1:3]
options = webdriver.ChromeOptions()
for word in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900"]:
    options.add_argument(word)
options.binary_location = "/usr/bin/chromium"
driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
try:
    driver.get(url)
    token = pathlib.Path(token_file).read_text().strip()
    driver.execute_script("sessionStorage.setItem('pubmark-token', arguments[0])", token)
    driver.get(url + "/?limit=8")
    def look(height):
        size = {"width": 1180, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    look(900)
    table = WebDriverWait(driver, 30).until(lambda one: one.find_elements(By.CSS_SELECTOR, ".results"))[0]
    WebDriverWait(driver, 30).until(lambda one: one.find_elements(By.CSS_SELECTOR, ".queue"))
    look(int(driver.execute_script("return arguments[0].getBoundingClientRect().bottom", table)) + 16)
    driver.save_screenshot("docs/images/serve.png")
finally:
    driver.quit()
