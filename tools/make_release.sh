#!/usr/bin/env bash
# Builds a release archive and its checksum, then tests the archive: unpacks it and runs the quick start in an empty folder
# with an empty home directory.
#
#     tools/make_release.sh [--out DIR] [--profile dist|release] [--features LIST]
#
# The environment variable TARGET names the Rust target [default: the target of this machine]. The program is only tested if
# it runs on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

out=target/archives profile=dist features=cpu,native,tables
while (($#)); do
    case $1 in
        --out) out=${2:?--out needs a folder} ;;
        --profile) profile=${2:?--profile needs dist or release} ;;
        --features) features=${2:?--features needs a list} ;;
        *) echo "unknown option $1; see the first lines of $0" >&2; exit 2 ;;
    esac
    shift 2
done

host=$(rustc -vV | sed -n 's/^host: //p')
target=${TARGET:-$host}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=calorimeter-$version-$target
mkdir -p "$out"
out=$(cd "$out" && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

cargo build --locked --profile "$profile" --target "$target" -p calorimeter-runner --bin calorimeter \
    --no-default-features --features "$features"

stage=$temp/$name
mkdir -p "$stage"
# -s: without symbols, which are most of the size.
install -s -m 755 "${CARGO_TARGET_DIR:-target}/$target/$profile/calorimeter" "$stage/calorimeter"
cp -R README.md CHANGELOG.md CITATION.cff LICENSE-MIT LICENSE-APACHE configs "$stage/"
tar -C "$temp" -czf "$out/$name.tar.gz" "$name"
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
(cd "$out" && "${sum[@]}" "$name.tar.gz" >"$name.tar.gz.sha256" && "${sum[@]}" -c "$name.tar.gz.sha256")

if [[ $target != "$host" ]]; then
    echo "not tested: $target does not run on $host"
    exit
fi

mkdir "$temp/unpacked" "$temp/home" "$temp/work"
tar -C "$temp/unpacked" -xzf "$out/$name.tar.gz"
binary=$temp/unpacked/$name/calorimeter
# Neither the environment of the build nor caches of the user reach the program.
run() { (cd "$temp/work" && env -i PATH=/usr/bin:/bin HOME="$temp/home" TMPDIR="$temp" "$binary" "$@"); }

run --version
run doctor
run run quickstart --device cpu --out quickstart
for file in journal.jsonl results.csv results.parquet index.html; do
    test -s "$temp/work/quickstart/$file" || { echo "quickstart/$file is missing" >&2; exit 1; }
done
grep -q '"status":"ok"' "$temp/work/quickstart/journal.jsonl" || { echo 'no case was measured' >&2; exit 1; }
run report quickstart
test -s "$temp/work/quickstart/report.html"
echo "$out/$name.tar.gz: $(du -h "$out/$name.tar.gz" | cut -f1)"
