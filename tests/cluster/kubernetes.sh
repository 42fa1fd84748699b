#!/usr/bin/env bash
# tests/cluster/kubernetes.sh [--slow | NAME… | -- COMMAND…]: a real Kubernetes of two nodes on this machine: etcd, API server,
# controller manager, scheduler, and for each node a containerd and a kubelet in a network namespace of its own; in a scratch
# directory, up in about 15 s, taken down whole at the end. Certificates and RBAC are as in a cluster; DNS is kube_dns.py; there
# is no kube-proxy. Without a command it runs the contract of engines and tests/cluster/kubernetes_test.py.
#
# The command runs in the control plane's network namespace, and finds KUBECONFIG (an administrator's), SHOAL_TEST_KUBE (the
# scratch directory), SHOAL_TEST_KUBE_USER (the kubeconfig of a user who may do what deploy/kubernetes/rbac.yaml says; the API
# server writes down all that this user asks, in $SHOAL_TEST_KUBE/log/audit.log), SHOAL_KUBE_LAUNCHER_IMAGE, SHOAL_TEST_IMAGE and, for faults:
#   $SHOAL_TEST_KUBE/cluster node N cut | join | stop | start       its link, its kubelet
#   $SHOAL_TEST_KUBE/cluster apiserver stop | start
# With SHOAL_TEST_KUBE_DISK=SIZE the disk of each node is that small, and can be filled ($SHOAL_TEST_KUBE/nodeN/root) or made to
# fail (tests/e2e/faults/faulty_fs.c).
# Ends with 77 where it cannot be done here, and says why. The binaries: SHOAL_KUBE_BIN, or ~/.cache/shoal/kubebin/bin, which
# tests/cluster/kubernetes_binaries.sh builds. With SHOAL_TEST_CONTAINERD, a directory of containerd 2.1 or later (Debian 12 has 1.6), nodes mount
# images as volumes: the feature ImageVolume, which clusters have by default from 1.35 on. Built like the others, by the Go module proxy.
set -euo pipefail
. "$(dirname "$0")/begin.bash"

bin=${SHOAL_KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/shoal/kubebin/bin}
need_root kubelets
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  [ -x "$bin/$program" ] || skip "there is no $program in $bin; tests/cluster/kubernetes_binaries.sh builds it (about 15 minutes)"
done
need "script/bootstrap cluster installs etcd-server, containerd, runc, kubernetes-client, busybox-static" \
  etcd containerd runc ctr kubectl busybox openssl ip nsenter cc
[ -x /usr/lib/cni/ptp ] || skip "there is no /usr/lib/cni/ptp; script/bootstrap cluster installs containernetworking-plugins"
ip netns add "shk-probe-$$" 2>/dev/null && ip netns del "shk-probe-$$" || skip "network namespaces cannot be made here"

gates=
if [ -n "${SHOAL_TEST_CONTAINERD:-}" ]; then
  [ -x "$SHOAL_TEST_CONTAINERD/containerd" ] || skip "there is no containerd in SHOAL_TEST_CONTAINERD ($SHOAL_TEST_CONTAINERD)"
  export PATH=$SHOAL_TEST_CONTAINERD:$PATH
  gates=ImageVolume=true
fi

build=${SHOAL_BUILD:-$root/build/dev}
export SHOAL_BIN=${SHOAL_BIN:-$build/shoal} SHOAL_SOURCE=$root SHOAL_KUBE_BIN=$bin
scratch=$(mktemp -d "${TMPDIR:-/tmp}/shoal-kube.XXXXXX")
chmod 755 "$scratch"
name=shk-${scratch##*.}
export SHOAL_TEST_KUBE=$scratch KUBECONFIG=$scratch/kubeconfig SHOAL_TEST_IMAGE=shoal.test/busybox:1
export SHOAL_KUBE_LAUNCHER_IMAGE=shoal.test/launcher:1 SHOAL_TEST_KUBE_USER=$scratch/user
api=10.99.0.1
mkdir -p "$scratch"/{etcd,certs,log,run}

cat >"$scratch/settings" <<SETTINGS
scratch=$scratch bin=$bin name=$name api=$api here=$here gates=$gates
SETTINGS
cat >"$scratch/cluster" <<'CLUSTER'
#!/usr/bin/env bash
# cluster node N cut|join|stop|start, cluster apiserver stop|start: of this directory's cluster.
set -eu
. "$(cd "$(dirname "$0")" && pwd)/settings"
begin() { # NAMESPACE NAME COMMAND…
  local space=$1 what=$2
  shift 2
  nohup setsid nsenter --net="/run/netns/$name-$space" nice -n 2 "$@" >>"$scratch/log/$what.log" 2>&1 </dev/null &
  echo $! >"$scratch/run/$what.pid"
}
end() { # NAME SIGNAL
  local pid
  [ -f "$scratch/run/$1.pid" ] || return 0
  pid=$(cat "$scratch/run/$1.pid")
  rm -f "$scratch/run/$1.pid"
  kill "-$2" "$pid" 2>/dev/null || return 0
  for _ in $(seq 100); do [ -d "/proc/$pid" ] || return 0; sleep 0.05; done
  kill -KILL "$pid" 2>/dev/null || true
}
case $1-$2-${3:-} in
  apiserver-start-)
    begin cp apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:12379 --bind-address="$api" --secure-port=6443 \
      --advertise-address="$api" --endpoint-reconciler-type=none --cert-dir="$scratch/certs" \
      --tls-cert-file="$scratch/certs/server.crt" --tls-private-key-file="$scratch/certs/server.key" \
      --client-ca-file="$scratch/certs/ca.crt" --service-account-key-file="$scratch/certs/sa.key" \
      --service-account-signing-key-file="$scratch/certs/sa.key" --service-account-issuer=https://kubernetes.default.svc \
      --api-audiences=api --authorization-mode=RBAC --service-cluster-ip-range=10.0.0.0/24 --allow-privileged=true \
      --audit-policy-file="$scratch/audit.yaml" --audit-log-path="$scratch/log/audit.log" \
      --feature-gates="$gates" \
      --kubelet-preferred-address-types=InternalIP --kubelet-client-certificate="$scratch/certs/admin.crt" \
      --kubelet-client-key="$scratch/certs/admin.key" ;;
  apiserver-stop-) end apiserver KILL ;;
  node-*-cut) ip -n "$name-cp" link set "vk$2" down ;;
  node-*-join) ip -n "$name-cp" link set "vk$2" up ;;
  node-*-stop) end "kubelet-$2" KILL ;;
  node-*-start)
    begin "n$2" "kubelet-$2" "$bin/kubelet" --config="$scratch/node$2/kubelet.yaml" --kubeconfig="$scratch/kubeconfig" \
      --hostname-override="node$2" --node-ip="10.99.0.1$2" --root-dir="$scratch/node$2/root" --cert-dir="$scratch/node$2/certs" \
      --feature-gates="$gates" ;;
  begin-*) shift; begin "$@" ;;
  end-*) end "$2" "${3:-TERM}" ;;
esac
CLUSTER
chmod 755 "$scratch/cluster"

# Of this cluster alone: by its pid files, sockets, mounts, namespaces and groups.
take_down() {
  local code=$? n pid file sandbox
  trap - EXIT
  trap "" INT TERM # until all is down
  set +e
  if [ -n "${SHOAL_KEEP_LOGS:-}" ]; then mkdir -p "$SHOAL_KEEP_LOGS"; cp "$scratch"/log/* "$SHOAL_KEEP_LOGS"; fi
  for n in 1 2; do "$scratch/cluster" end "kubelet-$n" TERM; done
  for n in 1 2; do
    for sandbox in $(timeout 10 ctr -a "$scratch/node$n/containerd.sock" -n k8s.io task ls -q 2>/dev/null); do
      timeout 10 ctr -a "$scratch/node$n/containerd.sock" -n k8s.io task rm -f "$sandbox" >/dev/null 2>&1
    done
    "$scratch/cluster" end "containerd-$n" TERM
  done
  for file in dns scheduler controllers apiserver etcd; do "$scratch/cluster" end $file KILL; done
  for pid in /proc/[0-9]*; do # shims outlive their containerd
    if { tr '\0' ' ' <"$pid/cmdline"; } 2>/dev/null | grep -q "containerd-shim.*$scratch/"; then kill -9 "${pid#/proc/}" 2>/dev/null; fi
  done
  awk -v place="$scratch/" 'index($5, place) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount -l 2>/dev/null
  for n in cp n1 n2; do ip netns del "$name-$n" 2>/dev/null; done
  [ ! -f "$scratch/sysctl" ] || sysctl -q -p "$scratch/sysctl"
  for _ in $(seq 20); do
    find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null
    [ -n "$(find /sys/fs/cgroup -type d -path "*/$name*" -print -quit 2>/dev/null)" ] || break
    sleep 0.1
  done
  for n in $(ls /run/netns 2>/dev/null | grep '^cni-'); do # left by sandboxes of ours: nobody is in them
    grep -qx "$n" "$scratch/spaces-before" || { umount "/run/netns/$n" 2>/dev/null; rm -f "/run/netns/$n"; }
  done
  rm -rf "$scratch"
  exit $code
}
trap take_down EXIT
trap 'exit 130' INT TERM
ls /run/netns 2>/dev/null >"$scratch/spaces-before" || true
# kubelets change these for the whole machine.
sysctl vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes \
  >"$scratch/sysctl" 2>/dev/null || true

# --- certificates ---
c=$scratch/certs
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=shoal-test-ca -keyout "$c/ca.key" -out "$c/ca.crt" 2>/dev/null
openssl genrsa -out "$c/sa.key" 2048 2>/dev/null
sign() { # NAME SUBJECT EXTENSIONS
  openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$c/$1.key" -out "$c/$1.csr" 2>/dev/null
  openssl x509 -req -in "$c/$1.csr" -CA "$c/ca.crt" -CAkey "$c/ca.key" -CAcreateserial -days 2 -extfile <(echo "$3") -out "$c/$1.crt" 2>/dev/null
}
sign server /CN=kube-apiserver "subjectAltName=IP:$api,IP:10.0.0.1,IP:127.0.0.1,DNS:kubernetes.default.svc"
sign admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
sign user /CN=user extendedKeyUsage=clientAuth
data() { base64 -w0 <"$c/$1"; }
config() { # USER
  cat <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$api:6443", certificate-authority-data: $(data ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(data "$1.crt"), client-key-data: $(data "$1.key")}}]
contexts: [{name: test, context: {cluster: test, user: $1}}]
current-context: test
CONFIG
}
config admin >"$KUBECONFIG"
config user >"$SHOAL_TEST_KUBE_USER"
cat >"$scratch/audit.yaml" <<'POLICY'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata, users: [user]}, {level: None}]
POLICY

# --- networks ---
ip netns add "$name-cp"
ip -n "$name-cp" link set lo up
ip -n "$name-cp" link add br0 type bridge
ip -n "$name-cp" addr add $api/24 dev br0
ip -n "$name-cp" link set br0 up
for n in 1 2; do
  ip netns add "$name-n$n"
  ip -n "$name-n$n" link set lo up
  ip link add "vk$n" netns "$name-cp" type veth peer name eth0 netns "$name-n$n"
  ip -n "$name-cp" link set "vk$n" master br0 up
  ip -n "$name-n$n" addr add "10.99.0.1$n/24" dev eth0
  ip -n "$name-n$n" link set eth0 up
  ip -n "$name-n$n" route add default via $api
  ip -n "$name-cp" route add "10.88.$n.0/24" via "10.99.0.1$n"
  nsenter --net="/run/netns/$name-n$n" sysctl -qw net.ipv4.ip_forward=1
done
nsenter --net="/run/netns/$name-cp" sysctl -qw net.ipv4.ip_forward=1
inside() { nsenter --net="/run/netns/$name-cp" "$@"; }

# --- the control plane, and images meanwhile ---
run() { "$scratch/cluster" begin "$@"; }
run cp etcd etcd --data-dir "$scratch/etcd" --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 \
  --listen-peer-urls http://127.0.0.1:12380 --initial-advertise-peer-urls http://127.0.0.1:12380 \
  --initial-cluster default=http://127.0.0.1:12380 --unsafe-no-fsync
"$scratch/cluster" apiserver start
cc -O1 -static -o "$scratch/observe" "$here/observe.c"
python3 -B "$here/make_image.py" "$scratch/pause.tar" shoal.test/pause:1 pause
python3 -B "$here/make_image.py" "$scratch/busybox.tar" "$SHOAL_TEST_IMAGE" busybox "$scratch/observe=/bin/observe"
launcher=${SHOAL_LAUNCHER:-$SHOAL_BIN-task}
[ ! -x "$launcher" ] || python3 -B "$here/make_image.py" "$scratch/launcher.tar" "$SHOAL_KUBE_LAUNCHER_IMAGE" "$launcher=/shoal-task"
# make_disk NODE: what its kubelet keeps is on a disk that is as small as asked, and the directories of its pods behind a filesystem that
# fails by order of NODE/faults/switch. The kubelet itself takes no FUSE for its own directory.
make_disk() {
  mkdir "$1/faults"
  mount -t tmpfs -o "size=$SHOAL_TEST_KUBE_DISK,mode=0755" none "$1/root"
  mount --make-shared "$1/root" # else a kubelet mounts it over itself, and hides what is mounted in it
  mkdir "$1"/root/{lower,pods}
  nohup setsid "$scratch/faulty_fs" "$1/root/lower" "$1/root/pods" "$1/faults" >>"$scratch/log/disks.log" 2>&1 </dev/null &
  for _ in $(seq 100); do ! mountpoint -q "$1/root/pods" || return 0; sleep 0.05; done
  echo "there is no filesystem at $1/root/pods"
  exit 1
}
if [ -n "${SHOAL_TEST_KUBE_DISK:-}" ]; then
  need "script/bootstrap cluster installs libfuse3-dev" pkg-config
  cc -O1 -o "$scratch/faulty_fs" "$root/tests/e2e/faults/faulty_fs.c" $(pkg-config --cflags --libs fuse3)
fi
for n in 1 2; do
  node=$scratch/node$n
  mkdir -p "$node"/{root,containerd,run,cni,pods}
  [ -z "${SHOAL_TEST_KUBE_DISK:-}" ] || make_disk "$node"
  cat >"$node/cni/10-ptp.conflist" <<CNI
{"cniVersion":"0.4.0","name":"ptp","plugins":[{"type":"ptp","ipMasq":false,"ipam":{"type":"host-local","subnet":"10.88.$n.0/24","routes":[{"dst":"0.0.0.0/0"}],"dataDir":"$node/cni-ipam"}}]}
CNI
  cat >"$node/containerd.toml" <<TOML
version = 2
root = "$node/containerd"
state = "$node/run"
[grpc]
  address = "$node/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "shoal.test/pause:1"
  disable_tcp_service = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$node/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
TOML
  cat >"$node/kubelet.yaml" <<KUBELET
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 10.99.0.1$n
port: 10250
healthzPort: 0
readOnlyPort: 0
containerRuntimeEndpoint: unix://$node/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $c/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$name-node$n
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: $scratch/resolv.conf
clusterDNS: [$api]
clusterDomain: cluster.local
podLogsDir: $node/pods
nodeStatusUpdateFrequency: 4s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "1Mi", nodefs.available: "1%", imagefs.available: "1%"}
KUBELET
  # A root of its own: two kubelets that share /kubepods delete each other's pods.
  for group in /sys/fs/cgroup/*/; do mkdir -p "$group/$name-node$n" 2>/dev/null || true; done
  for kind in cpus mems; do cat "/sys/fs/cgroup/cpuset/cpuset.$kind" >"/sys/fs/cgroup/cpuset/$name-node$n/cpuset.$kind" 2>/dev/null || true; done
  run "n$n" "containerd-$n" containerd -c "$node/containerd.toml"
done
: >"$scratch/resolv.conf"
ready=
for _ in $(seq 300); do inside kubectl get --raw /readyz >/dev/null 2>&1 && ready=1 && break; sleep 0.2; done
[ -n "$ready" ] || { tail -n 20 "$scratch/log/apiserver.log"; echo "the API server did not come up"; exit 1; }
# In all namespaces: tests make some.
sed 's/^kind: Role$/kind: ClusterRole/' "$root/deploy/kubernetes/rbac.yaml" | inside kubectl create -f - >/dev/null
sed 's/^kind: Role$/kind: ClusterRole/' "$root/deploy/kubernetes/operator.yaml" | inside kubectl create -f - >/dev/null
for role in shoal shoal-nodes shoal-operator; do inside kubectl create clusterrolebinding $role --clusterrole=$role --user=user >/dev/null; done
run cp controllers "$bin/kube-controller-manager" --kubeconfig="$KUBECONFIG" --leader-elect=false --bind-address=127.0.0.1 \
  --service-account-private-key-file="$c/sa.key" --root-ca-file="$c/ca.crt" --use-service-account-credentials=true \
  --node-monitor-grace-period=16s --terminated-pod-gc-threshold=1000
run cp scheduler "$bin/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false --bind-address=127.0.0.1
run cp dns python3 -B "$here/kube_dns.py" $api "$KUBECONFIG"
for n in 1 2; do
  for image in "$scratch"/*.tar; do
    for _ in $(seq 50); do ctr -a "$scratch/node$n/containerd.sock" -n k8s.io images import "$image" >>"$scratch/log/images.log" 2>&1 && break; sleep 0.2; done
  done
  "$scratch/cluster" node $n start
done
rm -f "$scratch"/*.tar
for _ in $(seq 300); do
  [ "$(inside kubectl get nodes --no-headers 2>/dev/null | grep -cw Ready)" = 2 ] && inside kubectl get sa default >/dev/null 2>&1 && break
  sleep 0.2
done
[ "$(inside kubectl get nodes --no-headers 2>/dev/null | grep -cw Ready)" = 2 ] || { tail -n 20 "$scratch"/log/kubelet-*.log; echo "the nodes did not come up"; exit 1; }

if [ $# -gt 0 ]; then
  inside "$@"
  exit
fi
code=0
if [ ${#words[@]} = 0 ] || [ "${words[0]}" = --slow ]; then
  KUBECONFIG=$SHOAL_TEST_KUBE_USER inside "$build/tests/contract/contract_kubernetes_test" --gtest_brief=1 | tee "$scratch/contract.log" || code=1
fi
inside python3 -B "$here/kubernetes_test.py" ${words[@]+"${words[@]}"} 2>&1 | tee "$scratch/jobs.log" || code=1
if [ ${#words[@]} = 0 ] || [ "${words[0]}" = --slow ]; then
  inside python3 -B "$here/operator_test.py" 2>&1 | tee -a "$scratch/jobs.log" || code=1
fi
inside=(nsenter --net="/run/netns/$name-cp")
run_faults kubernetes 6 36 || code=1
tell_sum kubernetes
exit $code
