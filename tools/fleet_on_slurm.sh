#!/usr/bin/env bash
# The array job of docs/src/fleet.md on a Slurm of one node, made for this: one of its tasks is killed and started again, and
# the parts are merged. Runs as root, with slurm-wlm and munge installed. Usage: fleet_on_slurm.sh CALORIMETER
set -euo pipefail
program=$(realpath "$1")
page=$(realpath "$(dirname "$0")/../docs/src/fleet.md")
scene=$(mktemp -d)
node=$(hostname -s)
export SLURM_CONF=$scene/slurm.conf PATH="$scene/bin:$PATH" CALORIMETER_DEVICE=cpu

end() {
    local status=$?
    if [[ $status != 0 ]]; then
        tail -n 30 "$scene"/*.log "$scene"/work/*.out >&2 || true
    fi
    for pid in "$scene"/*.pid; do
        if [[ -e $pid ]]; then kill "$(<"$pid")" || true; fi
    done
    for _ in {1..50}; do
        compgen -G "$scene/*.pid" >/dev/null || break
        sleep 0.1
    done
    rm -rf "$scene"
}
trap end EXIT

# What must hold within so many seconds.
within() {
    local seconds=$1
    shift
    for ((tries = 0; tries < 10 * seconds; tries++)); do
        if "$@"; then return; fi
        sleep 0.1
    done
    echo "not within $seconds s: $*" >&2
    return 1
}

mkdir -p "$scene"/{bin,state,spool,work}
ln -s "$program" "$scene/bin/calorimeter"
chmod 755 "$scene"
install -d -o munge -m 755 "$scene/munge"
head -c 1024 /dev/urandom >"$scene/munge/key"
chown munge "$scene/munge/key"
chmod 400 "$scene/munge/key"
runuser -u munge -- munged --key-file "$scene/munge/key" --socket "$scene/munge/socket" --log-file "$scene/munge/log" \
    --pid-file "$scene/munge/pid" --seed-file "$scene/munge/seed"
ln -s munge/pid "$scene/munge.pid"

cat >"$SLURM_CONF" <<END
ClusterName=fleet
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$scene/munge/socket
StateSaveLocation=$scene/state
SlurmdSpoolDir=$scene/spool
SlurmctldPidFile=$scene/slurmctld.pid
SlurmdPidFile=$scene/slurmd.pid
SlurmctldLogFile=$scene/slurmctld.log
SlurmdLogFile=$scene/slurmd.log
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
is_idle() { [[ $(sinfo --noheader --format %t 2>/dev/null) == idle ]]; }
within 30 is_idle

# The job as the page has it, but without a GPU and in two parts.
cd "$scene/work"
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
is_over() { [[ -z $(squeue --noheader --format %i 2>/dev/null) ]]; }

job=$(sbatch --parsable job.sh)
within 120 has_records parts/2/journal.jsonl 2
scancel "${job}_2"
within 60 is_over
if calorimeter merge parts/* --out early; then
    echo 'a part that was cut short is merged as if it were whole' >&2
    exit 1
fi
sbatch --array=2 job.sh
within 120 is_over
grep -q '^{"resumed"' parts/2/journal.jsonl
calorimeter merge parts/* --out whole
[[ $(grep -c '^{"record"' whole/journal.jsonl) == $(calorimeter run sweep.yml --dry-run --format jsonl | wc -l) ]]
calorimeter report whole --markdown >/dev/null
echo 'an array job whose second task was killed and started again is one run'
