//! Completion script, tested in bash.

use crate::scene::Scene;
use std::process::Command;

/// Completions of the last word in bash.
fn completions_in_bash(scene: &Scene, line: &str) -> Vec<String> {
    // As in readline, `=` is a word.
    let words: Vec<String> = line.replace('=', " = ").split(' ').map(str::to_owned).collect();
    let (current, before) = (&words[words.len() - 1], words.get(words.len() - 2).cloned().unwrap_or_default());
    let script = format!(
        "source script.bash; COMP_WORDS=({}); COMP_CWORD={}
$(complete -p calorimeter | sed 's/.*-F \\([^ ]*\\).*/\\1/') calorimeter '{current}' '{before}' && printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
        words.len() - 1,
    );
    let mut bash = Command::new("bash");
    scene.prepare(bash.args(["--norc", "-c", &script]));
    let output = bash.output().unwrap();
    assert!(output.stderr.is_empty(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_registered_names() {
    let scene = Scene::new();
    scene.write("script.bash", &scene.run("completions bash").expect_code(0).stdout);
    for (line, expected) in [
        ("calorimeter wat", &["watch"][..]),
        ("calorimeter run --recipes int8w", &["int8wo"]),
        ("calorimeter run --recipes baseline,int8w", &["baseline,int8wo"]),
        (
            "calorimeter run --recipes baseline,int8wo,float8dq-t",
            &["baseline,int8wo,float8dq-tensor", "baseline,int8wo,float8dq-tensor-fast"],
        ),
        ("calorimeter run --device vul", &["vulkan"]),
        ("calorimeter run --device=vul", &["vulkan"]),
        ("calorimeter ops --implementations eager,na", &["eager,native"]),
        ("calorimeter ops --ops soft", &["softmax"]),
        ("calorimeter gemm --ops=stream_a", &["stream_add"]),
        ("calorimeter ci --shapes lla", &["llama", "llama4"]),
        ("calorimeter run --filter layer_n", &["layer_norm"]),
        ("calorimeter run --regimes host", &["host-e2e", "host-enqueue"]),
        ("calorimeter calibrate --fusion-patterns linear,conv2d_bn_", &["linear,conv2d_bn_relu"]),
        ("calorimeter man accu", &["accuracy"]),
        ("calorimeter run --recipes nothing", &[]),
    ] {
        let offered = completions_in_bash(&scene, line);
        let offered: Vec<&str> = offered.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        assert_eq!(offered, expected, "{line}");
    }
    let devices = completions_in_bash(&scene, "calorimeter accuracy --device ");
    for device in ["auto", "cpu", "cuda", "vulkan", "metal", "mock", "wgpu"] {
        assert!(devices.iter().any(|offered| offered == device), "{devices:?}");
    }
    // A comma may be part of a folder name.
    std::fs::create_dir(scene.path("a,b")).unwrap();
    assert_eq!(completions_in_bash(&scene, "calorimeter run --out a,"), ["a,b"]);
}
