#!/usr/bin/env bash
# tests/cluster/kubernetes_binaries.sh: builds Kubernetes' own programs as dependencies of a small Go module, by the Go module
# proxy, into ~/.cache/shoal/kubebin/bin (SHOAL_KUBE_BIN's default). Needs Go 1.24 and about 15 minutes on 2 cores, once.
# `go install …@version` is refused for them: their go.mod replaces staging modules by folders that no module archive has.
set -euo pipefail
version=${KUBERNETES_VERSION:-1.33.13}
work=${XDG_CACHE_HOME:-$HOME/.cache}/shoal/kubebin
programs="kube-apiserver kube-controller-manager kube-scheduler kubelet"
command -v go >/dev/null || { echo "skipped: there is no go here; Go 1.24 or later builds Kubernetes"; exit 77; }
mkdir -p "$work/bin"
cd "$work"
[ -f go.mod ] || go mod init kubebin
description=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
for module in $(awk '/=> \.\/staging\//{print $1}' "$description"); do go mod edit -replace "$module=$module@v0.${version#*.}"; done
go mod edit -require "k8s.io/kubernetes@v$version"
for program in $programs; do go mod edit -tool "k8s.io/kubernetes/cmd/$program"; done
go mod tidy
place=k8s.io/component-base/version
paths=()
for program in $programs; do paths+=("k8s.io/kubernetes/cmd/$program"); done
CGO_ENABLED=0 nice go build -p 2 -ldflags "-s -w -X $place.gitVersion=v$version -X $place.gitMajor=1 -X $place.gitMinor=$(echo "$version" | cut -d. -f2)" \
  -o bin/ "${paths[@]}"
ls -l bin
