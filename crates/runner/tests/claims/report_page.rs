//! The page of a report in a browser: it is drawn, sorted and filtered, and fetches nothing.

use crate::reports::with_sensors;
use crate::scene::{Scene, TIMING};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Uses the page as a reader would, and leaves what it saw in the document.
const READER: &str = r##"<script>
// Figures are drawn when they come into sight.
const read = () => {
if (!document.getElementById("cases-table")) return void setTimeout(read, 20);
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
const list = document.getElementById("filter-recipe");
list.value = "int8wo";
list.dispatchEvent(new Event("change"));
seen.filtered = cells("recipe");
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
const left = document.createElement("pre");
left.id = "seen";
left.textContent = JSON.stringify(seen);
document.body.append(left);
};
read();
</script>"##;

/// The browser, where there is one.
fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|answer| answer.status.success())
    });
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "CI installs Chromium; none was found");
    found
}

#[test]
fn a_reader_sorts_and_filters_the_page_and_nothing_is_fetched() {
    let Some(browser) = browser() else {
        println!("no Chromium here: nothing was checked");
        return;
    };
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}
mock: [{{match: baseline, nanos: 9000}}, {{match: m8-, nanos: 2000}}, {{nanos: 5000}}]
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").ended_with(0);
    with_sensors(&scene, "out", "told");
    for name in ["one", "other"] {
        let calibrate = "calibrate --device mock --quick --max-time 20ms --operations stream,dot";
        scene.run(&format!("{calibrate} --hardware {name} --out cal-{name}")).ended_with(0);
    }
    scene.run("report told cal-one/profile.json cal-other/profile.json").ended_with(0);
    let page = fs::read_to_string(scene.path("told/report.html")).unwrap();
    scene.write("told/read.html", page.replace("</body>", &format!("{READER}</body>")));

    let (profile, address) = (scene.path("profile"), format!("file://{}", scene.path("told/read.html").display()));
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]);
    command.args(["--window-size=1280,9000", "--virtual-time-budget=10000"]);
    let ran = command.arg(format!("--user-data-dir={}", profile.display())).arg(address).output().unwrap();
    let (document, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(!log.contains("CONSOLE"), "{log}");
    let seen = document.split_once("<pre id=\"seen\">").unwrap_or_else(|| panic!("{document}\n{log}")).1;
    let seen: Value = serde_json::from_str(seen.split_once("</pre>").unwrap().0).unwrap();
    let words = |name: &str| -> Vec<String> {
        seen[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };

    let sections = words("sections");
    for section in ["summary", "heat-map", "roofline", "sizes", "clocks", "calibration", "cases", "reasons", "machine"]
    {
        assert!(sections.iter().any(|one| one == section), "{sections:?}");
    }
    assert_eq!(words("recipes_up"), ["baseline", "baseline", "int8wo", "int8wo", "marlin", "marlin"]);
    assert_eq!(words("recipes_down"), ["marlin", "marlin", "int8wo", "int8wo", "baseline", "baseline"]);
    // What was not measured comes last, whichever way round.
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
    assert_eq!(words("profiles"), ["of", "one", "other", "other over one"]);
    assert!(words("operators").iter().any(|ratio| ratio.starts_with("1.00×")), "{seen}");
    assert_eq!(words("themes"), ["light", "dark"]);
    assert!(words("fetched").is_empty(), "{seen}");
}
