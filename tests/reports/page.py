#!/usr/bin/env python3
"""The page of glgemm report in a browser: no console errors, nothing from the network, nothing cut off or too small at 400 and 1600
pixels, tables that sort.

  page.py GLGEMM [--screenshots FOLDER]

Needs Chromium (package chromium); without it the test is skipped and says so, or fails where the variable CI is set.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROBE = """
<script>
window.addEventListener("load", () => {
  const faults = [], wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) faults.push(`the page is ${wide} wide in a window of ${innerWidth}`);
  for (const svg of document.querySelectorAll("svg.picture")) {
    const box = svg.viewBox.baseVal, scale = svg.getBoundingClientRect().width / box.width, title = svg.querySelector("title").textContent;
    if (scale * 12 < 10.5) faults.push(`${title}: text of ${scale * 12} pixels`);
    for (const text of svg.querySelectorAll("text")) {
      const r = text.getBoundingClientRect(), s = svg.getBoundingClientRect();
      if (r.left < s.left - 1 || r.right > s.right + 1 || r.top < s.top - 1 || r.bottom > s.bottom + 1)
        faults.push(`${title}: '${text.textContent}' is cut off`);
    }
  }
  for (const part of document.querySelectorAll("td, th, p, li, figcaption"))
    if (parseFloat(getComputedStyle(part).fontSize) < 12) faults.push(`small text: ${part.textContent.slice(0, 40)}`);
  const head = [...document.querySelectorAll("th button")].find(x => /GFLOP/.test(x.textContent));
  const column = () => [...head.closest("table").tBodies[0].rows].map(row => parseFloat(row.cells[head.parentElement.cellIndex].textContent));
  for (const sign of [1, -1]) {
    head.click();
    if (column().some((x, i, all) => i > 0 && sign * (x - all[i - 1]) < 0)) faults.push(`not sorted: ${column()}`);
  }
  const found = { faults, width: innerWidth, figures: document.querySelectorAll("figure").length, rows: column().length };
  parent.document.documentElement.setAttribute(`data-found-${innerWidth}`, JSON.stringify(found));
});
</script>
"""


def report(renderer, factor):
    def result(n, kernel, rate):
        return {"m": n, "n": n, "k": n, "type": "f32", "op_a": "n", "op_b": "n", "batch": 1, "requested": kernel, "kernel": kernel, "tile": [64, 64],
                "kernel_ms": 2e-6 * n**3 / rate, "gflops": rate, "baseline": {"ms": n**3 * 1e-6, "gflops": 2, "rows_measured": n},
                "check": {"method": "bound", "worst_ratio": 0.03 / n * factor, "median_ratio": 0.002 / n * factor, "row": n - 1, "column": 7,
                          "passed": True}}

    results = [result(n, kernel, rate * n / 128 * factor) for n in (128, 256, 512) for kernel, rate in (("auto", 30), ("tiled", 3), ("naive", 2))]
    found = {"ratios": [], "results": results}
    roof = {"gflops": 400 * factor, "storage_gb_per_s": 20, "image_gb_per_s": 30, "flops_program": "a", "storage_program": "b", "image_program": "c"}
    tune = {"results": [{"m": 9, "n": n, "k": 9, "type": "f32", "space": 90, "measured": 30, "gflops": 8, "planner": {"gflops": 8 - n / 4}}
                        for n in range(1, 9)]}
    command = "glgemm bench --size 128 --kernel auto,tiled,naive --cpu-seconds 5 " + "--a-long-option " * 9
    return {"format": "glgemm report 1", "date": "2026-01-31", "glgemm": "0.1.0", "command": "tools/report", "quick": False,
            "device": {"renderer": renderer, "vendor": "A & <b>B</b>", "version": "4.6", "software": False},
            "steps": [{"name": "tune", "state": "failed", "why": "a | b", "seconds": 3, "command": command}],
            "goals": [{"what": "a goal", "value": 1, "must": 2, "aim": 3, "at_most": False, "met": False}], "devices": [],
            "bench": [{"section": "roofline", "command": command, "found": {"ratios": [], "results": results[:1], "roofline": roof}},
                      {"section": "table", "command": command, "found": found}], "cublas": None, "tuning": None, "tune": tune, "tests_say": ["a line"]}


def run(browser, url, width, *options):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                               f"--user-data-dir={profile}", f"--window-size={width},1700", "--enable-logging=stderr", "--log-level=0", *options, url],
                              capture_output=True, text=True, timeout=180)


def look(browser, page, file, widths):
    """What the probe finds in frames of these widths, a browser's own window not being as narrow as a phone's; and the console."""
    frames = [f'<iframe style="width:{width}px;height:3000px;border:0" srcdoc="{html.escape(page.replace("</body>", PROBE + "</body>"))}"></iframe>'
              for width in widths]
    file.write_text("<!DOCTYPE html>" + "".join(frames))
    process = run(browser, file.as_uri(), max(widths) + 500, "--dump-dom")
    found = {int(width): json.loads(html.unescape(text)) for width, text in re.findall(r'data-found-(\d+)="([^"]*)"', process.stdout)}
    return found, [line for line in process.stderr.splitlines() if "CONSOLE" in line]


def main():
    glgemm = os.path.realpath(sys.argv[1])
    shots = pathlib.Path(sys.argv[sys.argv.index("--screenshots") + 1]).resolve() if "--screenshots" in sys.argv else None
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "a.json").write_text(json.dumps(report("a GPU (of a kind)", 1)))
        (work / "b.json").write_text(json.dumps(report("another <GPU>", 1.7)))
        for name, files in (("one", ["a.json"]), ("two", ["a.json", "b.json"])):
            subprocess.run([glgemm, "report", "--output", work / name, "--html", *files], cwd=work, check=True, stdout=subprocess.DEVNULL)
        pages = {name: (work / name / "report.html").read_text() for name in ("one", "two")}
        for name, page in pages.items():
            if re.search(r"https?:|src=|@import|url\(", page):
                failures.append(f"{name}: the page needs something else")
            if "<b>B</b>" in page or "<GPU>" in page:
                failures.append(f"{name}: text of a driver is taken for HTML")
        for text in ("the medians of 10 results", "<td>(511, 7)</td>"):
            if text not in pages["one"]:
                failures.append(f"one: '{text}' is missing")
        if 'B over A, geometric mean of 9: 1.7' not in pages["two"]:
            failures.append("two: they are not compared")
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if not browser:
            print("LEFT OUT: the page in a browser, since Chromium (chromium) is not here")
            return 1 if failures or os.environ.get("CI") else 77
        planted = pages["one"].replace("<body>", '<body><div style="width:3000px">wide</div><script>missing()</script>')
        for name, page in pages.items():
            found, console = look(browser, page, work / "frames.html", (400, 1600))
            good = all(found.get(width, {}).get("figures") == 5 and not found[width]["faults"] for width in (400, 1600))
            if not good or console:
                failures.append(f"{name}: {found}, {console}")
            for width in (400, 1600) if shots else ():
                shots.mkdir(parents=True, exist_ok=True)
                for theme, options in (("", []), ("-dark", ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"])):
                    run(browser, (work / name / "report.html").as_uri(), width, f"--screenshot={shots / f'{name}-{width}{theme}.png'}", *options)
        # The test sees what it is there for.
        found, console = look(browser, planted, work / "frames.html", (400,))
        if "the page is 3" not in str(found) or not console:
            failures.append(f"planted faults were not found: {found}, {console}")
    for failure in failures:
        print("FAILED:", failure)
    print("failed" if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
