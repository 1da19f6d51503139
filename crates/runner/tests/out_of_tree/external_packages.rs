//! Packages built outside the tree, with a target folder shared between test runs.

use crate::scene::{ProgramOutput, Scene};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Copies a file or folder with modification times, so that Cargo only recompiles changed files.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
        return;
    }
    fs::copy(from, to).unwrap();
    set_newest_time(to, &[from]);
}

/// Sets the modification time of a file to the newest one of other files.
pub(crate) fn set_newest_time(file: &Path, like: &[&Path]) {
    let modified = like.iter().map(|path| fs::metadata(path).unwrap().modified().unwrap()).max().unwrap();
    File::options().write(true).open(file).unwrap().set_modified(modified).unwrap();
}

fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("outside")
}

/// Builds a program for the CPU and returns its path. Unoptimized, since optimizing takes longer than the tests. All
/// such programs share compiled dependencies, because versions and profile are equal.
pub(crate) fn build(dir: &Path, program: &str, arguments: &[&str]) -> PathBuf {
    let target = target_dir();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--release", "--bin", program, "--target-dir"])
        .arg(&target)
        .args(arguments)
        .current_dir(dir)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        // A dependency's folder may select another toolchain.
        .envs(option_env!("RUSTUP_TOOLCHAIN").map(|toolchain| ("RUSTUP_TOOLCHAIN", toolchain)))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("release").join(program)
}

/// Runs such a program. The CPU peaks of unoptimized code are shared between tests.
pub(crate) fn run(program: &Path, scene: &Scene, arguments: &str) -> ProgramOutput {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace());
    scene.prepare(&mut command);
    ProgramOutput::from_command(command.env("XDG_CACHE_HOME", target_dir().join("cache")))
}
