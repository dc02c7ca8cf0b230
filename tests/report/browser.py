"""A page in a real browser, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)

PROBE = """<script>
document.title = [document.documentElement.scrollWidth, innerWidth,
                  performance.getEntriesByType("resource").length].join(" ");
</script></body>"""


def check_in_browser(path, folder, width):
    """The page logs nothing, asks for nothing, never scrolls sideways, and its script runs."""
    probe, text = folder / "probe.html", path.read_text("utf-8")
    probe.write_text(text.replace("</body>", PROBE), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += [f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    command = [BROWSER, *options, "--dump-dom", probe.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in ran.stderr
    wide, inner, n_asked = map(int, re.search(r"<title>(\d+) (\d+) (\d+)</title>", ran.stdout).groups())
    assert wide <= inner
    assert n_asked == 0
    assert "data-tip=" in ran.stdout
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text.replace("http://www.w3.org", ""))
