"""Debian's Chromium, driven by Playwright, on a console in its own process."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from memoryvault.tests.support import forked
from memoryvault.tests.support.programs import required

SIZES: Mapping[str, dict[str, int]] = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
STOP_SECONDS = 15
PATIENCE_MS = 20_000

expect.set_options(timeout=PATIENCE_MS)  # 5 s by default: beside other tests a page took longer


def let_settle(page: Page) -> None:
    """Wait until console.js takes keys and clicks: for 350 ms after a change it does not.

    A timer of the page itself runs late where the page does.
    """
    page.evaluate("() => new Promise((done) => setTimeout(done, 400))")


def chromium_path() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return required(found, "no Chromium: install Debian's package `chromium`")


@contextmanager
def chromium() -> Iterator[Browser]:
    path = chromium_path()
    with sync_playwright() as playwright:
        # As root, in CI, Chromium's own sandbox cannot be made.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


class ConsoleProcess:
    """`memory console --no-browser` of one vault."""

    def __init__(self, env: Mapping[str, str], *arguments: str) -> None:
        ours, its = os.pipe()
        self._said = os.fdopen(ours, encoding="utf-8")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
        with open(os.devnull, "rb") as null:
            command = ["console", "--no-browser", *arguments]
            streams = [null.fileno(), its, self._errors.fileno()]
            self.process = forked.start(forked.COMMAND, command, env=env, streams=streams)
        os.close(its)
        self.link = self._said.readline().strip()
        assert "/enter?token=" in self.link, self._complaint()
        self.base = self.link.split("enter?")[0]
        """Its address, with a slash at the end."""

    def _complaint(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8")

    def stop(self) -> int:
        """As Ctrl-C does; its exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self._said.close()
            self._errors.close()
        assert self.process.returncode is not None
        return self.process.returncode


class Windows:
    """The windows of one browser profile. What none of them may do is collected: see `check`."""

    def __init__(self, browser: Browser, console: ConsoleProcess) -> None:
        self.console = console
        self.complaints: list[str] = []
        self._browser = browser
        self._context: BrowserContext | None = None

    def sign_in(
        self, size: Literal["desktop", "phone"] = "desktop", *, dark: bool = False, script: bool = True
    ) -> Page:
        """The first window, by the link."""
        self._context = self._browser.new_context(
            viewport=SIZES[size],  # type: ignore[arg-type]  # a typed dict, of which ours is one
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            java_script_enabled=script,
            has_touch=size == "phone",
        )
        page = self.another()
        page.goto(self.console.link)
        # Past the page that takes the token, which goes on by itself; and loaded, so with its style sheet.
        page.wait_for_url(lambda url: url.startswith(self.console.base) and "enter?" not in url)
        page.wait_for_selector("h1")
        return page

    @property
    def context(self) -> BrowserContext:
        assert self._context is not None
        return self._context

    def another(self) -> Page:
        """One more window of the same profile, empty."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self._complain(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._look_at(request.url))
        return page

    def open(self, address: str) -> Page:
        """One more window, at a page (`review?item=…`)."""
        page = self.another()
        page.goto(self.console.base + address)
        return page

    def close(self) -> None:
        if self._context is not None:
            self._context.close()

    def check(self) -> None:
        """No script failed, nothing offended the policy, and nothing was asked of anybody else."""
        assert not self.complaints, "\n".join(self.complaints)

    def _complain(self, kind: str, text: str) -> None:
        # A refused change is answered with its status, which the browser writes down by itself.
        if kind in ("error", "warning") and "the server responded with a status of 4" not in text:
            self.complaints.append(f"console: {text}")

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _look_at(self, url: str) -> None:
        if not url.startswith(self.console.base):
            self.complaints.append(f"asked of somebody else: {url}")


@contextmanager
def windows_on(browser: Browser, env: Mapping[str, str]) -> Iterator[Windows]:
    """Windows of `memory console`, a process of its own: see `Windows.check`."""
    console = ConsoleProcess(env)
    windows = Windows(browser, console)
    try:
        yield windows
        windows.close()
        windows.check()
    finally:
        assert console.stop() == 0


# The page has the answer when htmx says so, some time after the network has; it settles 20 ms later, by a timer that
# was set before this one.
NOTE_ANSWER = """() => {
  window.answered = false;
  const look = (event) => {
    if (event.detail.elt.matches("[data-live]")) return;
    document.removeEventListener("htmx:afterRequest", look);
    setTimeout(() => { window.answered = true; }, 20);
  };
  document.addEventListener("htmx:afterRequest", look);
}"""


def press(page: Page, key: str) -> None:
    """One key, once the page has come to rest, and its answer, which the page shows then."""
    let_settle(page)
    page.evaluate(NOTE_ANSWER)
    page.keyboard.press(key)
    page.wait_for_function("() => window.answered")


def said(page: Page) -> str:
    return page.inner_text("#said").strip()
