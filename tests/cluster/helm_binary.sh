#!/usr/bin/env bash
# tests/cluster/helm_binary.sh: builds helm, with which the tests look at deploy/helm, by the Go module proxy into
# ~/.cache/shoal/kubebin/bin (SHOAL_KUBE_BIN's default). Needs Go 1.24 and some minutes, once.
set -euo pipefail
version=${HELM_VERSION:-3.18.6}
command -v go >/dev/null || { echo "skipped: there is no go here; Go 1.24 or later builds helm"; exit 77; }
export GOBIN=${SHOAL_KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/shoal/kubebin/bin}
mkdir -p "$GOBIN"
[ -x "$GOBIN/helm" ] || go install -p 2 -ldflags "-s -w" "helm.sh/helm/v3/cmd/helm@v$version"
"$GOBIN/helm" version --short
