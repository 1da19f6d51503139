//! What the environment of a run says of the build: read here, where it is known. What cannot be read is left out.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    tell("RUSTC", env::var("RUSTC").ok().and_then(|rustc| answer(Command::new(rustc).arg("--version"))));
    tell("PROFILE", env::var("PROFILE").ok());
    tell("FEATURES", Some(features()));
    tell("REVISION", packaged_revision().or_else(revision));
    let lock = lock_file();
    for library in ["burn", "cubecl"] {
        tell(&library.to_uppercase(), lock.as_deref().and_then(|lock| version(lock, library)));
    }
}

fn tell(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo::rustc-env=CALORIMETER_{name}={value}");
    }
}

fn answer(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}

fn features() -> String {
    let mut names: Vec<String> =
        env::vars().filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase())).collect();
    names.retain(|name| name != "default");
    names.sort_unstable();
    names.join(" ")
}

fn manifest_dir() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}

/// The commit that `cargo package` wrote down.
fn packaged_revision() -> Option<String> {
    let text = fs::read_to_string(manifest_dir().join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.split_once('"').map(|(revision, _)| revision.to_owned())
}

/// The commit of this checkout, with a plus if tracked files differ from it.
fn revision() -> Option<String> {
    let dir = manifest_dir();
    let git = |arguments: &[&str]| answer(Command::new("git").arg("-C").arg(&dir).args(arguments));
    // Not that of a repository which this one only lies in.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // A commit, a checkout, and a change of any of our crates.
    let history = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [dir.join(history), dir.join("..")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    Some(git(&["rev-parse", "HEAD"])? + if changed { "+" } else { "" })
}

/// The lock file of the workspace that builds this: above its target folder, or above this package.
fn lock_file() -> Option<String> {
    let folders = [env::var_os("OUT_DIR").map(PathBuf::from)?, manifest_dir()];
    let mut places = folders.iter().flat_map(|folder| folder.ancestors()).map(|above| above.join("Cargo.lock"));
    let lock = places.find(|path| path.is_file())?;
    println!("cargo::rerun-if-changed={}", lock.display());
    fs::read_to_string(lock).ok()
}

/// The version of a package in a lock file.
fn version(lock: &str, package: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version.to_owned())
}
