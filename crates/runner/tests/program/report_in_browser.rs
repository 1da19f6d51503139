//! Report page in a browser: rendering, sorting, filtering, and no network access.

use crate::report_command::with_sensors;
use crate::scene::{Scene, TIMING};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Operates the page like a user, and returns the visible state.
const READER: &str = r##"(() => {
const seen = { sections: [...document.querySelectorAll("main section")].map(({ id }) => id) };
const cells = (name) => {
  const heads = [...document.querySelectorAll("#cases-table thead th")];
  const at = heads.findIndex((head) => head.querySelector(`[data-sort="${name}"]`));
  return [...document.querySelectorAll("#cases-table tbody tr")].map((row) => row.children[at].textContent);
};
const sortBy = (name) => document.querySelector(`[data-sort="${name}"]`).click();
sortBy("recipe");
seen.recipes_up = cells("recipe");
sortBy("recipe");
seen.recipes_down = cells("recipe");
sortBy("time_ns");
seen.shapes_by_time = cells("shape");
sortBy("time_ns");
seen.shapes_by_time_down = cells("shape");
sortBy("speedup");
seen.speedups = cells("speedup");
seen.verdict_classes = [...document.querySelectorAll("#cases-table tbody td.faster, #cases-table tbody td.slower")].map(({ textContent }) => textContent);
const forest = () => [...document.querySelectorAll("#forest .forest text.name")].map(({ textContent }) => textContent);
seen.forest = forest();
const list = document.getElementById("filter-recipe");
list.value = "int8wo";
list.dispatchEvent(new Event("change"));
seen.filtered = cells("recipe");
seen.forest_filtered = forest();
seen.chosen = document.getElementById("chosen").textContent;
list.value = "";
list.dispatchEvent(new Event("change"));
const words = document.getElementById("filter-id");
words.value = "M8- int8wo";
words.dispatchEvent(new Event("input"));
seen.by_words = cells("recipe").concat(cells("shape"));
words.value = "";
words.dispatchEvent(new Event("input"));
const axis = document.getElementById("heat-rows");
axis.value = "shape";
axis.dispatchEvent(new Event("change"));
seen.heat = [...document.querySelectorAll("table.heat tbody th")].map((head) => head.textContent);
const press = (on, key) => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const roof = document.querySelector("#roofline svg.chart");
roof.focus();
press(roof, "ArrowRight");
seen.tip = document.getElementById("tip").textContent;
press(roof, "Enter");
const record = document.getElementById("record");
seen.opened = [record.open, document.getElementById("record-title").textContent];
seen.histogram = record.querySelectorAll(".histogram .bin").length;
record.close();
const texts = (selector) => [...document.querySelectorAll(selector)].map(({ textContent }) => textContent);
seen.clocks = texts("#clocks thead th");
seen.held = texts("#clocks tbody tr td:last-child");
seen.profiles = texts("#calibration-peaks thead th");
seen.operators = texts("#calibration-operators tbody tr td:last-child");
seen.linked = [...document.querySelectorAll("#sections a")].every((link) => document.querySelector(link.getAttribute("href")) !== null);
const before = document.documentElement.dataset.theme;
document.getElementById("theme").click();
seen.themes = [before, document.documentElement.dataset.theme];
seen.fetched = performance.getEntriesByType("resource").map(({ name }) => name);
return seen;
})()"##;

/// Installed browser.
fn browser() -> &'static str {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|answer| answer.status.success())
    });
    found.expect("this test needs Chromium")
}

/// Page in a browser. The browser reads commands from descriptor 3, writes answers to 4, and separates messages by NUL.
struct BrowserPage {
    browser: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
    session: Value,
    log: PathBuf,
}

impl BrowserPage {
    fn open(browser: &str, page: &Path, profile: &Path, log: PathBuf) -> Self {
        let mut browser = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#, "sh", browser])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1280,9000"])
            .args(["--remote-debugging-pipe".to_owned(), format!("--user-data-dir={}", profile.display())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let commands = browser.stdin.take().unwrap();
        let answers = BufReader::new(browser.stdout.take().unwrap());
        let mut opened = Self { browser, commands, answers, asked: 0, session: Value::Null, log };
        let target = opened.ask("Target.createTarget", json!({"url": format!("file://{}", page.display())}));
        let attached = opened.ask("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        opened.session = attached["sessionId"].clone();
        opened
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut command = json!({"id": self.asked, "method": method, "params": params});
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        write!(self.commands, "{command}\0").unwrap();
        loop {
            let mut answer = Vec::new();
            self.answers.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "the browser is gone");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            // Events have no id.
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let mut answer = self.ask("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].take()
    }

    fn wait_for(&mut self, condition: &str) {
        let start = Instant::now();
        while self.evaluate(condition) != true {
            assert!(start.elapsed() < Duration::from_secs(120), "{condition} did not come true");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Closes the browser and returns its log.
    fn close(mut self) -> String {
        self.session = Value::Null;
        self.ask("Browser.close", json!({}));
        assert!(self.browser.wait().unwrap().success());
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for BrowserPage {
    fn drop(&mut self) {
        // Fails if the browser has already ended.
        drop(self.browser.kill());
        if thread::panicking() {
            println!("browser log:\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

#[test]
#[ignore = "needs Chromium"]
fn report_sorts_and_filters_without_network() {
    let browser = browser();
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}
mock: [{{match: baseline, nanos: 9000}}, {{match: m8-, nanos: 2000}}, {{nanos: 5000}}]
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").expect_code(0);
    with_sensors(&scene, "out", "told");
    for name in ["one", "other"] {
        let calibrate = "calibrate --device mock --quick --max-time 20ms --operations stream,dot";
        scene.run(&format!("{calibrate} --hardware {name} --out cal-{name}")).expect_code(0);
    }
    scene.run("report told cal-one/profile.json cal-other/profile.json").expect_code(0);
    let (page, profile) = (scene.path("told/report.html"), scene.path("profile"));
    let mut page = BrowserPage::open(browser, &page, &profile, scene.path("browser.log"));
    // Figures are drawn when they become visible.
    page.wait_for("(all => all.length > 0 && all.every(place => place.hasChildNodes()))([...document.querySelectorAll('.place')])");
    let seen = page.evaluate(READER);
    let log = page.close();
    assert!(!log.contains("CONSOLE"), "{log}");
    let words = |name: &str| -> Vec<String> {
        seen[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };

    let sections = words("sections");
    assert_eq!(sections[0], "forest");
    for section in ["summary", "heat-map", "roofline", "sizes", "clocks", "calibration", "cases", "reasons", "machine"]
    {
        assert!(sections.iter().any(|one| one == section), "{sections:?}");
    }
    assert_eq!(words("recipes_up"), ["baseline", "baseline", "int8wo", "int8wo", "marlin", "marlin"]);
    assert_eq!(words("recipes_down"), ["marlin", "marlin", "int8wo", "int8wo", "baseline", "baseline"]);
    // The speed-up of a reference is 1.
    assert_eq!(words("speedups"), ["1.00×", "1.00×", "1.80×", "4.50×", "", ""]);
    assert_eq!(words("verdict_classes"), ["FASTER", "FASTER"]);
    assert_eq!((words("forest").len(), words("forest_filtered").len()), (2, 2));
    assert!(seen["histogram"].as_u64() >= Some(1), "{seen}");
    // Cases without a time come last in both directions.
    let (up, down) = (words("shapes_by_time"), words("shapes_by_time_down"));
    assert_eq!((up[0].as_str(), down[3].as_str()), ("m8-k8-n8", "m8-k8-n8"), "{up:?} {down:?}");
    assert_eq!((words("filtered"), &seen["chosen"]), (vec!["int8wo".to_owned(); 2], &"2 of 6 cases".into()));
    assert_eq!(words("by_words"), ["int8wo", "m8-k8-n8"]);
    assert_eq!(words("heat"), ["m8-k8-n8", "m16-k16-n16"]);
    assert_eq!((&seen["opened"][0], seen["linked"].as_bool()), (&true.into(), Some(true)));
    let opened = seen["opened"][1].as_str().unwrap();
    assert!(seen["tip"].as_str().unwrap().starts_with(opened) && opened.starts_with("inference/linear/"), "{seen}");
    let clocks = words("clocks");
    assert!(["clock", "power", "temperature"].iter().all(|head| clocks.iter().any(|one| one == head)), "{clocks:?}");
    assert_eq!(words("held"), vec!["power-cap in 2 cases"; 2]);
    assert_eq!(words("profiles"), ["peak", "one", "other", "other over one"]);
    assert!(words("operators").iter().any(|ratio| ratio.starts_with("1.00×")), "{seen}");
    assert_eq!(words("themes"), ["light", "dark"]);
    assert!(words("fetched").is_empty(), "{seen}");
}
