#!/usr/bin/env bash
# tests/cluster/moosefs.sh [NAME… | -- COMMAND…]: a real network file system (MooseFS of Debian: master, chunk server, and a mount
# by FUSE) in a scratch directory on this machine, up in some seconds, taken down whole at the end. Without a command it runs
# tests/cluster/moosefs_test.py. Linux's own NFS client is a part of the kernel, which many machines for tests lack; nothing
# here needs more of it than FUSE.
#
# The command finds SHOAL_TEST_NETWORK: the directory that is on the network. Ends with 77 where it cannot be done here, and says why.
set -euo pipefail
. "$(dirname "$0")/begin.bash"

need_root "its servers and its mount"
need "script/bootstrap cluster installs moosefs-master, moosefs-chunkserver, moosefs-client" mfsmaster mfschunkserver mfsmount
[ -w /dev/fuse ] || skip "there is no /dev/fuse here"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/shoal-moosefs.XXXXXX")
chmod 755 "$scratch"
export SHOAL_TEST_NETWORK=$scratch/mount
take_down() {
  local code=$?
  trap - EXIT
  set +e
  umount -l "$scratch/mount" 2>/dev/null
  [ ! -f "$scratch/chunks.cfg" ] || mfschunkserver -c "$scratch/chunks.cfg" stop >/dev/null 2>&1
  [ ! -f "$scratch/master.cfg" ] || mfsmaster -c "$scratch/master.cfg" stop >/dev/null 2>&1
  [ -z "${space:-}" ] || ip netns del "$space" 2>/dev/null
  rm -rf "$scratch"
  exit $code
}
trap take_down EXIT
trap 'exit 130' INT TERM

# In a network namespace of its own: the usual ports, and an address that is not the loopback's, which it refuses.
space=shm-${scratch##*.}
address=10.98.0.1
ip netns add "$space" 2>/dev/null || skip "network namespaces cannot be made here"
ip -n "$space" link set lo up
ip -n "$space" addr add $address/32 dev lo
mkdir -p "$scratch"/{meta,chunks,state,mount}
cp /var/lib/mfs/metadata.mfs.empty "$scratch/meta/metadata.mfs"
echo '* / rw,alldirs,admin,maproot=0:0' >"$scratch/exports.cfg"
: >"$scratch/topology.cfg"
echo "$scratch/chunks" >"$scratch/disks.cfg"
cat >"$scratch/master.cfg" <<CFG
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = $scratch/meta
EXPORTS_FILENAME = $scratch/exports.cfg
TOPOLOGY_FILENAME = $scratch/topology.cfg
LOCK_MEMORY = 0
CFG
cat >"$scratch/chunks.cfg" <<CFG
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = $scratch/state
HDD_CONF_FILENAME = $scratch/disks.cfg
HDD_LEAVE_SPACE_DEFAULT = 16MiB
MASTER_HOST = $address
CFG
for server in mfsmaster:master mfschunkserver:chunks; do
  nsenter --net="/run/netns/$space" "${server%:*}" -c "$scratch/${server#*:}.cfg" start >"$scratch/${server%:*}.log" 2>&1 || { cat "$scratch/${server%:*}.log"; exit 1; }
done
ready=
for _ in $(seq 150); do
  mountpoint -q "$scratch/mount" || nsenter --net="/run/netns/$space" mfsmount "$scratch/mount" -H $address >"$scratch/mount.log" 2>&1 || true
  # A file can be written once the master has heard of the chunk server.
  if mountpoint -q "$scratch/mount" && echo x 2>/dev/null >"$scratch/mount/probe" && [ -s "$scratch/mount/probe" ]; then ready=1 && break; fi
  sleep 0.2
done
[ -n "$ready" ] || { cat "$scratch"/*.log; echo "MooseFS did not come up"; exit 1; }
rm "$scratch/mount/probe"

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
build=${SHOAL_BUILD:-$root/build/dev}
export SHOAL_BIN=${SHOAL_BIN:-$build/shoal} SHOAL_SOURCE=$root
code=0
python3 -B "$here/moosefs_test.py" ${words[@]+"${words[@]}"} 2>&1 | tee "$scratch/jobs.log" || code=1
tell_sum moosefs
exit $code
