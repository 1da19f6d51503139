#!/usr/bin/env bash
# Tests the array job of docs/src/how-to/many-gpus.md on a temporary single-node Slurm: kills one task, restarts it, and
# merges the shards. Needs root, slurm-wlm and munge. Usage: fleet_on_slurm.sh CALORIMETER
set -euo pipefail
binary=$(realpath "$1")
page=$(realpath "$(dirname "$0")/../docs/src/how-to/many-gpus.md")
temp=$(mktemp -d)
node=$(hostname -s)
export SLURM_CONF=$temp/slurm.conf PATH="$temp/bin:$PATH" CALORIMETER_DEVICE=cpu

cleanup() {
    local status=$?
    if [[ $status != 0 ]]; then
        tail -n 30 "$temp"/*.log "$temp"/work/*.out >&2 || true
    fi
    for pid in "$temp"/*.pid; do
        if [[ -e $pid ]]; then kill "$(<"$pid")" || true; fi
    done
    for _ in {1..50}; do
        compgen -G "$temp/*.pid" >/dev/null || break
        sleep 0.1
    done
    rm -rf "$temp"
}
trap cleanup EXIT

# Repeats a command until it succeeds. Fails after a number of seconds.
wait_for() {
    local seconds=$1
    shift
    for ((tries = 0; tries < 10 * seconds; tries++)); do
        if "$@"; then return; fi
        sleep 0.1
    done
    echo "timed out after $seconds s: $*" >&2
    return 1
}

mkdir -p "$temp"/{bin,state,spool,work}
ln -s "$binary" "$temp/bin/calorimeter"
chmod 755 "$temp"
install -d -o munge -m 755 "$temp/munge"
head -c 1024 /dev/urandom >"$temp/munge/key"
chown munge "$temp/munge/key"
chmod 400 "$temp/munge/key"
runuser -u munge -- munged --key-file "$temp/munge/key" --socket "$temp/munge/socket" --log-file "$temp/munge/log" \
    --pid-file "$temp/munge/pid" --seed-file "$temp/munge/seed"
ln -s munge/pid "$temp/munge.pid"

cat >"$SLURM_CONF" <<END
ClusterName=fleet
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$temp/munge/socket
StateSaveLocation=$temp/state
SlurmdSpoolDir=$temp/spool
SlurmctldPidFile=$temp/slurmctld.pid
SlurmdPidFile=$temp/slurmd.pid
SlurmctldLogFile=$temp/slurmctld.log
SlurmdLogFile=$temp/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1
KillWait=1
NodeName=$node NodeAddr=127.0.0.1 CPUs=1
PartitionName=fleet Nodes=ALL Default=YES State=UP
END
slurmctld
slurmd
node_is_idle() { [[ $(sinfo --noheader --format %t 2>/dev/null) == idle ]]; }
wait_for 30 node_is_idle

# The job script of the page, without a GPU and with two shards.
cd "$temp/work"
sed -n '/^#!\/bin\/bash/,/^```/{/^```/d;p}' "$page" | grep -v -- '--gres' | sed 's,1-8$,1-2,; s,/8",/2",' >job.sh
grep -q -- --array=1-2 job.sh
cat >sweep.yml <<'END'
dtype: f32
recipes: [int8wo]
implementations: [eager]
timing: {min_time: 100ms, max_time: 300ms, warm_up: 0s}
models: [{shapes: [{name: pow2, min_power: 4, max_power: 7}, {name: pow2_extended, min_power: 4, max_power: 6}]}]
END
has_records() { [[ -e $1 ]] && (($(grep -c '^{"record"' "$1") >= $2)); }
queue_is_empty() { [[ -z $(squeue --noheader --format %i 2>/dev/null) ]]; }

job=$(sbatch --parsable job.sh)
wait_for 120 has_records parts/2/journal.jsonl 2
scancel "${job}_2"
wait_for 60 queue_is_empty
if calorimeter merge parts/* --out incomplete; then
    echo 'merge accepted an incomplete shard' >&2
    exit 1
fi
sbatch --array=2 job.sh
wait_for 120 queue_is_empty
grep -q '^{"resumed"' parts/2/journal.jsonl
calorimeter merge parts/* --out merged
[[ $(grep -c '^{"record"' merged/journal.jsonl) == $(calorimeter run sweep.yml --dry-run --format jsonl | wc -l) ]]
calorimeter report merged --markdown >/dev/null
echo 'ok: the shards of an array job with a killed and restarted task were merged'
