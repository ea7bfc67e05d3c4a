# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium without a window, by the WebDriver protocol. Standard library, and Debian's chromium-driver."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
AVAILABLE = CHROMIUM is not None and DRIVER is not None
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

# No window, and nothing that asks the network by itself.
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900"]

KEYS = {"escape": "\ue00c", "tab": "\ue004", "backspace": "\ue003"}


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="vlm-browser-")
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            port = None
            while port is None:
                line = self.driver.stdout.readline()
                if not line:
                    raise AssertionError("chromedriver ended with %r" % self.driver.wait())
                port = re.search(r"successfully on port (\d+)", line)
            self.address = "http://127.0.0.1:%s/session" % port.group(1)
            options = {"binary": CHROMIUM, "args": ARGUMENTS + ["--user-data-dir=" + self.profile]}
            answer = self.call("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
            self.session = answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def call(self, method, path, content=None):
        address = self.address + ("/" + self.session if self.session else "") + path
        data = json.dumps(content if content is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        # No proxy may stand between.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError("%s %s: %s" % (method, path, error.read().decode("utf-8", "replace")))

    def open(self, path):
        self.call("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def script(self, text, *arguments):
        """The value of a function's body."""
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def press(self, *keys):
        """Each is a character, or a name of KEYS; they go to whatever has the focus."""
        actions = []
        for key in keys:
            key = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)
