#!/usr/bin/env bash
# tests/cluster/docker.sh [NAME… | -- COMMAND…]: a real Docker daemon (Debian's docker.io) of its own, in a scratch directory, without
# bridge or firewall rules, with one image made of busybox and no registry: up in about a second, taken down whole at the end.
# Without a command it runs the contract of engines over it and tests/cluster/docker_test.py, and prints a table.
#
# The command finds DOCKER_HOST, SHOAL_TEST_IMAGE, SHOAL_TEST_DOCKER (the scratch directory) and, to take the daemon away:
#   $SHOAL_TEST_DOCKER/daemon stop | kill | start      stop: as a service is stopped; kill: SIGKILL
# Ends with 77 where it cannot be done here, and says why.
set -euo pipefail
. "$(dirname "$0")/begin.bash"

need_root "dockerd and its containers"
need "script/bootstrap cluster installs docker.io and busybox-static" dockerd containerd runc busybox

scratch=$(mktemp -d "${TMPDIR:-/tmp}/shoal-docker.XXXXXX")
export SHOAL_TEST_DOCKER=$scratch DOCKER_HOST=unix://$scratch/docker.sock SHOAL_TEST_IMAGE=shoal-test/busybox:1
unset DOCKER_CONTEXT DOCKER_TLS_VERIFY

cat >"$scratch/daemon" <<'DAEMON'
#!/usr/bin/env bash
# daemon start|stop|kill: the daemon of this directory, and no other.
set -eu
scratch=$(cd "$(dirname "$0")" && pwd)
ask() { curl --silent --fail --max-time 5 --unix-socket "$scratch/docker.sock" "http://docker$1"; }
end() {
  local pid
  [ -f "$scratch/dockerd.pid" ] || return 0
  pid=$(cat "$scratch/dockerd.pid")
  kill "-$1" "$pid" 2>/dev/null || return 0
  for _ in $(seq 300); do [ -d "/proc/$pid" ] || return 0; sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || true
}
case $1 in
  start)
    rm -f "$scratch/dockerd.pid"
    mkdir -p "$scratch/data" "$scratch/exec"
    setsid dockerd --data-root "$scratch/data" --exec-root "$scratch/exec" --pidfile "$scratch/dockerd.pid" \
      -H "unix://$scratch/docker.sock" --iptables=false --ip6tables=false --bridge=none --ip-forward=false --ip-masq=false \
      --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent="/${scratch##*/}" --shutdown-timeout 3 --log-level warn \
      >>"$scratch/dockerd.log" 2>&1 </dev/null &
    for _ in $(seq 300); do ask /_ping >/dev/null && exit 0; sleep 0.1; done
    tail -n 20 "$scratch/dockerd.log"
    exit 1
    ;;
  stop) end TERM ;;
  kill) end KILL ;;
esac
DAEMON
chmod 755 "$scratch/daemon"

# Of this daemon alone: by its directory's pid files, its mounts by their places, its groups by their name.
take_down() {
  local code=$? pid file
  trap - EXIT
  trap "" INT TERM # until all is down
  set +e
  [ -S "$scratch/docker.sock" ] && python3 -B "$here/docker_test.py" --remove-all >/dev/null 2>&1 || true
  "$scratch/daemon" stop || true
  for file in "$scratch"/exec/containerd/containerd.pid; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    grep -qz containerd "/proc/$pid/cmdline" 2>/dev/null && kill -9 "$pid" 2>/dev/null || true
  done
  for pid in /proc/[0-9]*; do # shims outlive both when these are killed
    if { tr '\0' ' ' <"$pid/cmdline"; } 2>/dev/null | grep -q "containerd-shim.*$scratch/"; then kill -9 "${pid#/proc/}" 2>/dev/null || true; fi
  done
  awk -v place="$scratch/" 'index($5, place) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount -l 2>/dev/null || true
  rm -rf "$scratch"
  for _ in $(seq 20); do # a group is busy for a moment after its last process
    find /sys/fs/cgroup -depth -type d -path "*/${scratch##*/}*" -exec rmdir {} + 2>/dev/null || true
    [ -n "$(find /sys/fs/cgroup -type d -path "*/${scratch##*/}*" -print -quit 2>/dev/null)" ] || break
    sleep 0.1
  done
  exit $code
}
trap take_down EXIT
trap 'exit 130' INT TERM

"$scratch/daemon" start || { echo "dockerd did not come up"; exit 1; }
tree=$scratch/image
mkdir -p "$tree"/{bin,tmp,etc,proc,sys,dev,work}
ln -s usr/lib "$tree/lib" # for who mounts a /usr with programs that need them
ln -s usr/lib64 "$tree/lib64"
chmod 1777 "$tree/tmp"
cp "$(command -v busybox)" "$tree/bin/busybox"
for applet in sh ls sleep cat echo env ps kill dd id true false date seq head tail yes mkdir tr wc nc test touch stty sed; do
  ln -s busybox "$tree/bin/$applet"
done
echo 'root:x:0:0:root:/:/bin/sh' >"$tree/etc/passwd"
tar -C "$tree" -c . | curl --silent --fail --unix-socket "$scratch/docker.sock" -X POST --data-binary @- -H 'Content-Type: application/x-tar' \
  'http://docker/v1.40/images/create?fromSrc=-&repo=shoal-test/busybox&tag=1&changes=ENV%20PATH%3D/bin&changes=WORKDIR%20/work' >/dev/null

if [ $# -gt 0 ]; then
  "$@"
  exit
fi
build=${SHOAL_BUILD:-$root/build/dev}
export SHOAL_BIN=${SHOAL_BIN:-$build/shoal} SHOAL_SOURCE=$root
code=0
[ ${#words[@]} -gt 0 ] || "$build/tests/contract/contract_docker_test" --gtest_brief=1 | tee "$scratch/contract.log" || code=1
python3 -B "$here/docker_test.py" ${words[@]+"${words[@]}"} 2>&1 | tee "$scratch/jobs.log" || code=1
run_faults docker 5 27 || code=1
tell_sum docker
exit $code
