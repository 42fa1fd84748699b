#!/usr/bin/env bash
# tests/cluster/slurm.sh [--slow | NAME… | -- COMMAND…]: a real Slurm of three nodes (n1 n2 n3, 4 processors, 4000 MB and two fake GPUs each) on
# this machine, from Debian's slurm-wlm and munge, in a scratch directory: up in about 2 s, taken down whole at the end.
# Without a command it runs the contract of engines and tests/cluster/slurm_test.py and prints what they measured.
#
# The command finds SLURM_CONF, SHOAL_TEST_SLURM (the scratch directory) and, to kill a node and bring it back:
#   $SHOAL_TEST_SLURM/node kill n2    its slurmd and all its steps, with SIGKILL, as if its power had failed
#   $SHOAL_TEST_SLURM/node start n2
# With SHOAL_TEST_SLURM_DISK=SIZE the spool directory of each node is on a disk of that size.
# SHOAL_TEST_SLURM_SUITE=trixie takes the Slurm of another release of Debian (slurm_release.sh): bullseye has 20.11, trixie 24.11.
# Ends with 77 where it cannot be done here, and says why.
set -euo pipefail
. "$(dirname "$0")/begin.bash"

need_root "slurmctld and slurmd"
need "script/bootstrap installs slurm-wlm and munge" slurmctld slurmd munged sbatch

scratch=$(mktemp -d "${TMPDIR:-/tmp}/shoal-slurm.XXXXXX")
chmod 755 "$scratch"
export SHOAL_TEST_SLURM=$scratch SLURM_CONF=$scratch/slurm.conf
host=$(hostname -s)
# Four ports in a row that nobody uses: two clusters may run side by side.
port=$(python3 -c '
import random, socket
while True:
    first = random.randrange(16000, 30000)
    try:
        for port in range(first, first + 4):
            with socket.socket() as probe: probe.bind(("127.0.0.1", port))
    except OSError: continue
    print(first); break')

# Of this cluster alone: its daemons by their pid files, all that it started by its configuration in the environment.
take_down() {
  local code=$? file
  trap - EXIT
  trap "" INT TERM # until all is down
  scancel --quiet --user=root 2>/dev/null || true
  [ ! -x "$scratch/node" ] || "$scratch/node" kill all || true
  for file in "$scratch"/run/*.pid "$scratch"/munge/pid; do
    if [ -f "$file" ]; then kill -9 "$(cat "$file")" 2>/dev/null || true; fi
  done
  awk -v place="$scratch/" 'index($5, place) == 1 { print $5 }' /proc/self/mountinfo | xargs -r umount -l 2>/dev/null || true
  rm -rf "$scratch"
  exit $code
}
trap take_down EXIT
trap 'exit 130' INT TERM

plugins=
if [ -n "${SHOAL_TEST_SLURM_SUITE:-}" ]; then
  release=$("$here/slurm_release.sh" "$SHOAL_TEST_SLURM_SUITE")
  export PATH=$release/programs:$PATH
  plugins=PluginDir=$release/usr/lib/x86_64-linux-gnu/slurm-wlm
fi

mkdir -p "$scratch"/{state,log,run,munge,dev,spool-n1,spool-n2,spool-n3}
if [ -n "${SHOAL_TEST_SLURM_DISK:-}" ]; then
  for node in 1 2 3; do mount -t tmpfs -o "size=$SHOAL_TEST_SLURM_DISK,mode=0755" none "$scratch/spool-n$node"; done
fi
chmod 755 "$scratch/munge"
dd if=/dev/urandom of="$scratch/munge.key" bs=128 count=1 status=none
chmod 400 "$scratch/munge.key"
munged --force --key-file="$scratch/munge.key" --socket="$scratch/munge/sock" --pid-file="$scratch/munge/pid" \
  --seed-file="$scratch/munge/seed" --log-file="$scratch/munge/log" --num-threads=2
# GPUs are character devices to Slurm; these are /dev/null.
gpus="Gres=gpu:2"
for gpu in 0 1; do mknod "$scratch/dev/gpu$gpu" c 1 3 2>/dev/null || gpus=; done
[ -z "$gpus" ] || echo "NodeName=n[1-3] Name=gpu File=$scratch/dev/gpu[0-1]" >"$scratch/gres.conf"
cat >"$scratch/slurm.conf" <<CONF
ClusterName=shoaltest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool-%n
SlurmctldPidFile=$scratch/run/slurmctld.pid
SlurmdPidFile=$scratch/run/slurmd-%n.pid
SlurmctldLogFile=$scratch/log/slurmctld.log
SlurmdLogFile=$scratch/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
InactiveLimit=0
KillWait=3
MinJobAge=300
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n[1-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + 3)) CPUs=4 RealMemory=4000 $gpus State=UNKNOWN
PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=small Nodes=n1 MaxTime=60 State=UP
PartitionName=big Nodes=n[2-3] MaxTime=INFINITE State=UP
$plugins
CONF
printf 'CgroupAutomount=no\n' >"$scratch/cgroup.conf"
cat >"$scratch/node" <<'NODE'
#!/usr/bin/env python3
"""node kill NAME|all, node start NAME: a node of the cluster beside this file, as if its power failed and came back."""
import os, signal, subprocess, sys

scratch = os.path.dirname(os.path.realpath(sys.argv[0]))
conf = scratch + "/slurm.conf"


def processes():
    """pid -> (parent, name and state, environment)"""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                stat = file.read()
            with open(f"/proc/{name}/environ", "rb") as file:
                env = set(file.read().split(b"\0"))
        except OSError:
            continue
        found[int(name)] = (int(stat.rsplit(")", 1)[1].split()[1]), stat, env)
    return found


def of_node(node, spared):
    """What runs in its steps, and their slurmstepds, whose environment says nothing."""
    everyone = processes()
    marks = {f"SLURM_CONF={conf}".encode()} | ({f"SLURMD_NODENAME={node}".encode()} if node != "all" else set())
    doomed = {pid for pid, (_, _, env) in everyone.items() if marks <= env}
    doomed |= {parent for pid in doomed for parent in [everyone[pid][0]] if "slurmstepd" in everyone.get(parent, (0, "", 0))[1]}
    while True:
        children = {pid for pid, (parent, _, _) in everyone.items() if parent in doomed} - doomed
        doomed |= children
        if not children:
            return doomed - spared


def kill(node):
    spared, pid = {1}, os.getpid()
    while pid > 1:
        spared.add(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])
    if node != "all":
        with open(f"{scratch}/run/slurmd-{node}.pid") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    for _ in range(5):
        doomed = of_node(node, spared)
        # Held first: a slurmstepd that saw its program die would tell slurmctld before it dies itself.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in doomed:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass


if sys.argv[1] == "kill":
    kill(sys.argv[2])
else:
    subprocess.run(["slurmd", "-f", conf, "-N", sys.argv[2]], check=True)
NODE
chmod 755 "$scratch/node"

slurmctld -f "$SLURM_CONF" -i -c
for node in n1 n2 n3; do "$scratch/node" start $node; done
for _ in $(seq 100); do
  [ "$(sinfo --noheader --Node --format=%T -p main 2>/dev/null | grep -c '^idle$')" = 3 ] && break
  sleep 0.1
done
[ "$(sinfo --noheader --Node --format=%T -p main | grep -c '^idle$')" = 3 ] || {
  tail -n 20 "$scratch"/log/*.log
  echo "Slurm did not come up"
  exit 1
}

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
build=${SHOAL_BUILD:-$root/build/dev}
export SHOAL_BIN=${SHOAL_BIN:-$build/shoal} SHOAL_SOURCE=$root
if [ ${#words[@]} = 0 ] || [ "${words[0]}" = --slow ]; then "$build/tests/contract/contract_slurm_test" --gtest_brief=1; fi
code=0
python3 -B "$here/slurm_test.py" ${words[@]+"${words[@]}"} || code=1
run_faults slurm 5 27 || code=1
exit $code
