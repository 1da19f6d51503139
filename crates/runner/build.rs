//! Provides facts about the build as environment variables: compiler, profile, features, revision and library versions.
//! Unknown facts are omitted.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    export("RUSTC", env::var("RUSTC").ok().and_then(|rustc| stdout(Command::new(rustc).arg("--version"))));
    export("PROFILE", env::var("PROFILE").ok());
    export("FEATURES", Some(features()));
    export("REVISION", packaged_revision().or_else(revision));
    let lock = lock_file();
    for library in ["burn", "cubecl"] {
        export(&library.to_uppercase(), lock.as_deref().and_then(|lock| version(lock, library)));
    }
}

fn export(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo::rustc-env=CALORIMETER_{name}={value}");
    }
}

fn stdout(command: &mut Command) -> Option<String> {
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

/// Commit recorded by `cargo package`.
fn packaged_revision() -> Option<String> {
    let text = fs::read_to_string(manifest_dir().join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.split_once('"').map(|(revision, _)| revision.to_owned())
}

/// Commit of this checkout, followed by `+` if tracked files have changes.
fn revision() -> Option<String> {
    let dir = manifest_dir();
    let git = |arguments: &[&str]| stdout(Command::new("git").arg("-C").arg(&dir).args(arguments));
    // Ignores a repository that merely contains this checkout.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Rerun after a commit, a checkout, or a change to one of the crates.
    let history = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [dir.join(history), dir.join("..")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    Some(git(&["rev-parse", "HEAD"])? + if changed { "+" } else { "" })
}

/// Lock file of the workspace: in a parent folder of the target folder or of this package.
fn lock_file() -> Option<String> {
    let folders = [env::var_os("OUT_DIR").map(PathBuf::from)?, manifest_dir()];
    let mut candidates = folders.iter().flat_map(|folder| folder.ancestors()).map(|parent| parent.join("Cargo.lock"));
    let lock = candidates.find(|path| path.is_file())?;
    println!("cargo::rerun-if-changed={}", lock.display());
    fs::read_to_string(lock).ok()
}

/// Version of a package in a lock file.
fn version(lock: &str, package: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version.to_owned())
}
