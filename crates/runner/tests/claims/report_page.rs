//! The page of a report in a browser: it is drawn, sorted and filtered, and fetches nothing.

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
    scene.run("report out").ended_with(0);
    let page = fs::read_to_string(scene.path("out/report.html")).unwrap();
    scene.write("out/read.html", page.replace("</body>", &format!("{READER}</body>")));

    let (profile, address) = (scene.path("profile"), format!("file://{}", scene.path("out/read.html").display()));
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
    for section in ["summary", "heat-map", "roofline", "sizes", "cases", "reasons"] {
        assert!(sections.iter().any(|one| one == section), "{sections:?}");
    }
    assert_eq!(words("recipes_up"), ["baseline", "baseline", "int8wo", "int8wo", "marlin", "marlin"]);
    assert_eq!(words("recipes_down"), ["marlin", "marlin", "int8wo", "int8wo", "baseline", "baseline"]);
    // What was not measured comes last, whichever way round.
    let (up, down) = (words("shapes_by_time"), words("shapes_by_time_down"));
    assert_eq!((up[0].as_str(), down[3].as_str()), ("m8-k8-n8", "m8-k8-n8"), "{up:?} {down:?}");
    assert_eq!((words("filtered"), &seen["chosen"]), (vec!["int8wo".to_owned(); 2], &"2 of 6 cases".into()));
    assert_eq!(words("themes"), ["light", "dark"]);
    assert!(words("fetched").is_empty(), "{seen}");
}
