#!/usr/bin/env bash
# tests/cluster/slurm_release.sh SUITE: the Slurm of another release of Debian (bullseye: 20.11, bookworm: 22.05, trixie: 24.11)
# beside this one's. Unpacks its packages into ~/.cache/shoal/slurm-SUITE, once, with the programs under their usual names in programs/, made to
# run by that release's loader and libraries. Prints that directory; plugins lie in its usr/lib/x86_64-linux-gnu/slurm-wlm.
set -euo pipefail
suite=$1
place=${XDG_CACHE_HOME:-$HOME/.cache}/shoal/slurm-$suite
for tool in mmdebstrap patchelf; do
  command -v $tool >/dev/null || { echo "there is no $tool here; script/bootstrap cluster installs it" >&2; exit 77; }
done
if [ -e "$place/.ready" ]; then
  echo "$place"
  exit
fi
rm -rf "$place"
mkdir -p "$(dirname "$place")"
# From the mirror that this machine's own packages come from; security's has no old releases.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
mmdebstrap --quiet --aptopt='Acquire::Retries "3"' --variant=extract --include=slurmd,slurmctld,slurm-client "$suite" "$place" "$mirror" >&2
mkdir "$place/programs"

# Releases before trixie have /lib apart from /usr/lib until they are configured.
loader=$place/usr/lib64/ld-linux-x86-64.so.2
[ -e "$loader" ] || loader=$place/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
libraries=$place/lib/x86_64-linux-gnu:$place/usr/lib/x86_64-linux-gnu:$place/usr/lib/x86_64-linux-gnu/slurm-wlm
for program in salloc sbatch scancel scontrol sinfo squeue srun sacct slurmctld slurmd slurmstepd; do
  file=$place/usr/bin/$program
  [ -e "$file" ] || file=$place/usr/sbin/$program-wlm
  # A daemon starts itself again by /proc/self/exe, so the loader has to be in the file. An rpath, unlike a runpath, holds for plugins too.
  cp "$file" "$place/programs/$program"
  patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$place/programs/$program"
done
mv "$place/programs/slurmd" "$place/programs/.slurmd"
printf '#!/bin/bash\nexec -a slurmd %s -d %s "$@"\n' "$place/programs/.slurmd" "$place/programs/slurmstepd" >"$place/programs/slurmd"
chmod 755 "$place/programs/slurmd"
touch "$place/.ready"
echo "$place"
