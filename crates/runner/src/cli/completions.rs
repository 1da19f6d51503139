//! `calorimeter completions`: completion scripts by clap, extended by the names in the registries and by completion of
//! comma-separated lists.

use super::command::Cli;
use calorimeter_case::{DeviceKind, Element, Implementation, Regime, expand_pattern};
use calorimeter_probe::calibration::{Operations, Patterns};
use calorimeter_recipes::{Dtype, Recipe};
use calorimeter_shapes::ShapeSource;
use calorimeter_zoo::operators::presets::Preset;
use calorimeter_zoo::{Model, Operator, Suite};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use regex::Regex;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Generates the completion script of a shell. Does not look for devices; their names are fixed.
pub(super) fn completion_script(shell: Shell) -> String {
    let mut program = with_completion_values(Cli::command());
    let lists = list_options(&program);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "calorimeter", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => script.into_owned() + BASH_LIST_WRAPPER,
        Shell::Zsh => complete_lists_in_zsh(&script),
        Shell::Fish => complete_lists_in_fish(&script, &lists),
        _ => script.into_owned(),
    }
}

/// Gives each option the names that it accepts as possible values. Only for completion scripts: as a parser the result
/// would reject alternative spellings.
fn with_completion_values(program: Command) -> Command {
    let commands: Vec<String> = visible_subcommands(&program).map(|command| command.get_name().to_owned()).collect();
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| match completion_values(&name, arg.get_id().as_str(), &commands) {
            // clap requires `'static` names. The program ends after printing the script, so leaking them is harmless.
            Some(names) => arg.value_parser(PossibleValuesParser::new(names.into_iter().map(|name| &*name.leak()))),
            None => arg,
        })
    })
}

/// Group sizes that are completed in names of recipes.
const GROUP_SIZES: [&str; 3] = ["32", "64", "128"];

/// Returns the names that an option of a command accepts, if it accepts names.
fn completion_values(command: &str, option: &str, commands: &[String]) -> Option<Vec<String>> {
    let suite = Suite::ALL.into_iter().find(|suite| suite.name() == command);
    let listed = |operator: &Operator| suite.is_none_or(|suite| operator.is_listed_in(suite));
    let operators = || Operator::all().into_iter().filter(listed).map(|operator| operator.info().name);
    Some(match option {
        "device" => to_strings(device_names()),
        "implementations" => to_strings(Implementation::all()),
        "regimes" => to_strings(Regime::ALL.map(Regime::name)),
        "dtype" => to_strings(Dtype::ALL),
        "dtypes" if suite.is_some() => to_strings(Element::all()),
        "dtypes" => to_strings(Dtype::ALL),
        "recipes" => {
            let groups = GROUP_SIZES.map(str::to_owned);
            let names = Recipe::all().into_iter().flat_map(|recipe| expand_pattern(&recipe.name, &groups));
            names.filter(|name| name.parse::<Recipe>().is_ok()).collect()
        }
        "shapes" => {
            // Some generators have required parameters.
            let has_defaults = |name: &&str| name.parse::<ShapeSource>().is_ok();
            to_strings(calorimeter_shapes::all_generators().map(|generator| generator.name).filter(has_defaults))
        }
        "ops" if suite == Some(Suite::Fusion) => to_strings(Patterns::words()),
        "ops" => to_strings(operators()),
        "preset" => to_strings(Preset::all()),
        "operations" => to_strings(Operations::words()),
        "fusion_patterns" => to_strings(Patterns::words()),
        // A part of an id is a regular expression that matches the id.
        "filter" if suite.is_some() => to_strings(operators()),
        "filter" => to_strings(Model::infos().iter().map(|model| &model.name))
            .into_iter()
            .chain(to_strings(operators()))
            .collect(),
        "command" if command == "man" => commands.to_vec(),
        _ => return None,
    })
}

fn to_strings(names: impl IntoIterator<Item = impl Display>) -> Vec<String> {
    names.into_iter().map(|name| name.to_string()).collect()
}

/// Names accepted by `--device`. Kinds with several devices also accept an index, such as `cuda:1`.
fn device_names() -> Vec<String> {
    let kinds = DeviceKind::all().into_iter().map(|kind| kind.name().to_string());
    ["auto".to_owned()].into_iter().chain(kinds).chain(["wgpu".to_owned()]).collect()
}

fn visible_subcommands(program: &Command) -> impl Iterator<Item = &Command> {
    program.get_subcommands().filter(|command| !command.is_hide_set())
}

/// Names of the options that accept comma-separated lists of names.
fn list_options(program: &Command) -> BTreeSet<String> {
    let is_list = |arg: &&Arg| arg.get_value_delimiter() == Some(',') && !arg.get_possible_values().is_empty();
    let options = visible_subcommands(program).flat_map(Command::get_opts).filter(is_list);
    options.filter_map(Arg::get_long_and_visible_aliases).flatten().map(str::to_owned).collect()
}

/// Wraps clap's bash function: completes the part after the last comma, and supports `--option=value`.
const BASH_LIST_WRAPPER: &str = r#"
_calorimeter_words() {
    local cur="$2" prev="$3" begun="" words at
    if [[ "$prev" == "=" && $COMP_CWORD -ge 2 ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    elif [[ "$cur" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-1]}" cur=""
    fi
    _calorimeter "$1" "$cur" "$prev"
    if [[ "$cur" == *,* && "$prev" == --* && ${#COMPREPLY[@]} -eq 0 ]]; then
        begun="${cur%,*},"
        _calorimeter "$1" "${cur##*,}" "$prev"
        for at in "${!COMPREPLY[@]}"; do
            COMPREPLY[at]="$begun${COMPREPLY[at]}"
        done
    fi
}
complete -F _calorimeter_words -o bashdefault -o default calorimeter
"#;

/// Replaces the value lists of zsh by `_sequence`, which completes after commas. The leading blank in the replacement
/// keeps other arguments out.
fn complete_lists_in_zsh(script: &str) -> String {
    let list = Regex::new(r":([^':]*,…):\(([^()]*)\)'").expect("valid regular expression");
    list.replace_all(script, ":$1: _sequence compadd - $2'").into_owned()
}

/// Fish function that prefixes each name with the text up to the last comma.
const FISH_LIST_FUNCTION: &str = r#"
function __calorimeter_list
    set -l token (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    set -l begun (string match -r '^.*,' -- $token; or echo '')
    printf '%s\t\n' $begun$argv
end
"#;

fn complete_lists_in_fish(script: &str, lists: &BTreeSet<String>) -> String {
    let option = Regex::new(r#"(?s) -l (\S+) -d .*? -a "(.*?)""#).expect("valid regular expression");
    let mut text = String::from(FISH_LIST_FUNCTION.trim_start());
    let mut at = 0;
    for found in option.captures_iter(script) {
        let (Some(name), Some(values)) = (found.get(1), found.get(2)) else { continue };
        // The regular expression may start at an option without values and end at the values of a later option.
        let name = script[..values.start()].rfind(" -l ").map_or(name.as_str(), |start| {
            script[start + 4..values.start()].split_whitespace().next().unwrap_or_default()
        });
        if lists.contains(name) {
            let words: Vec<&str> = values.as_str().lines().filter_map(|line| line.split("\\t").next()).collect();
            text += &script[at..values.start()];
            text += &format!("(__calorimeter_list {})", words.join(" "));
            at = values.end();
        }
    }
    text + &script[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::DeviceSelection;

    /// Names that complete an option of a command.
    fn values_for(command: &str, option: &str) -> Vec<String> {
        completion_values(command, option, &[]).unwrap()
    }

    #[test]
    fn completed_names_parse() {
        let recipes = values_for("run", "recipes");
        for name in ["baseline", "int8wo", "int4wo-64-hqq", "float8dq", "float8dq-row", "mxfp4"] {
            assert!(recipes.iter().any(|recipe| recipe == name), "{recipes:?} without {name}");
        }
        assert!(recipes.iter().all(|name| name.parse::<Recipe>().is_ok()), "{recipes:?}");
        for (option, is_known) in [
            ("device", (|name| name.parse::<DeviceSelection>().is_ok()) as fn(&str) -> bool),
            ("implementations", |name| name.parse::<Implementation>().is_ok()),
            ("fusion_patterns", |name| name.parse::<Patterns>().is_ok()),
            ("operations", |name| name.parse::<Operations>().is_ok()),
            ("dtype", |name| name.parse::<Dtype>().is_ok()),
        ] {
            let names = values_for("run", option);
            assert!(!names.is_empty() && names.iter().all(|name| is_known(name)), "{option}: {names:?}");
        }
        assert!(values_for("gemm", "dtypes").iter().all(|name| name.parse::<Element>().is_ok()));
        assert!(values_for("ops", "ops").iter().all(|name| name.parse::<Operator>().is_ok()));
    }

    #[test]
    fn suites_complete_their_operators_and_filters_complete_models() {
        let (ops, gemm) = (values_for("ops", "ops"), values_for("gemm", "ops"));
        assert!(ops.contains(&"softmax".to_owned()) && !ops.contains(&"stream_add".to_owned()), "{ops:?}");
        assert!(gemm.contains(&"stream_add".to_owned()) && !gemm.contains(&"softmax".to_owned()), "{gemm:?}");
        assert!(values_for("run", "filter").contains(&"transformer_block".to_owned()));
        assert_eq!(completion_values("run", "out", &[]), None);
    }

    #[test]
    fn bash_zsh_and_fish_complete_names() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = completion_script(shell);
            // clap's generators for Elvish and PowerShell complete option names only.
            let names = matches!(shell, Shell::Bash | Shell::Zsh | Shell::Fish);
            assert_eq!(script.contains("int4wo-64"), names, "{shell}");
        }
    }
}
