#include "import/slurm/slurm_prelude.h"

#include <algorithm>

namespace shoal::importer {
namespace {

// Slurm's variables as numbers, because scripts compute ports and seeds from them. They are not
// exported to MPI launchers, which would take them as a sign of a Slurm allocation.
constexpr const char* kJob = R"(# In place of Slurm: its variables, srun and scontrol.
SLURM_JOB_ID=$(printf %s "$SHOAL_JOB_ID" | cksum | cut -d' ' -f1)
SLURM_JOBID=$SLURM_JOB_ID
SLURM_SUBMIT_DIR=$PWD
SLURMD_NODENAME=$(hostname 2>/dev/null || echo localhost)
SLURM_TMPDIR=$SHOAL_SCRATCH
)";

constexpr const char* kOnce = R"(SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
SLURM_NNODES=${SLURM_NNODES:-1} SLURM_NTASKS=${SLURM_NTASKS:-1}
)";

constexpr const char* kRanks = R"(SLURM_NODEID=$SHOAL_INDEX
SLURM_LOCALID=${SHOAL_LOCAL_RANK:-0}
SLURM_PROCID=$((SHOAL_INDEX * ${SHOAL_LOCAL_SIZE:-1} + SLURM_LOCALID))
SLURM_NNODES=$SHOAL_REPLICAS
SLURM_NTASKS=$((SHOAL_REPLICAS * ${SHOAL_LOCAL_SIZE:-1}))
RANDOM=$((SLURM_JOB_ID % 32768))  # the same in all tasks, as where the script runs once
)";

constexpr const char* kAll = R"(SLURM_JOB_NUM_NODES=$SLURM_NNODES
SLURM_NPROCS=$SLURM_NTASKS
SLURM_JOB_NODELIST=${SLURM_HOSTS:-$SLURMD_NODENAME}
SLURM_NODELIST=$SLURM_JOB_NODELIST
[ "${SHOAL_ATTEMPT:-0}" = 0 ] || export SLURM_RESTART_COUNT=$SHOAL_ATTEMPT
)";

// The script stands for one that runs on the first node, so that node's name is the answer.
// Programs that the script starts get their own.
constexpr const char* kHostname = R"(hostname() {
  case "$SLURM_NNODES $*" in
    1' '*) command hostname "$@" ;;
    *' '|*' -'[fsiI]|*' --'fqdn|*' --'short|*' --'ip-address|*' --'all-ip-addresses) echo "${SLURM_JOB_NODELIST%%,*}" ;;
    *) command hostname "$@" ;;
  esac
}
)";

constexpr const char* kExport =
    R"(export SLURM_JOB_ID SLURM_JOBID SLURM_SUBMIT_DIR SLURMD_NODENAME SLURM_TMPDIR SLURM_NODEID SLURM_LOCALID
export SLURM_PROCID SLURM_NNODES SLURM_NTASKS SLURM_JOB_NUM_NODES SLURM_NPROCS SLURM_JOB_NODELIST SLURM_NODELIST
)";

constexpr const char* kScontrol = R"(scontrol() {
  case "$1 $2" in
    'show hostname'|'show hostnames') echo "${3:-$SLURM_JOB_NODELIST}" | tr , '\n' ;;
    requeue' '*|requeuehold' '*|hold' '*|release' '*|suspend' '*|resume' '*|update' '*)
      echo "scontrol $1: not done: SLURM_JOB_ID is no job of Slurm here" >&2
      return 1 ;;
    *) command scontrol "$@" ;;
  esac
}
)";

// srun as a file, for programs that start it (timeout, env, exec); the functions are exported.
constexpr const char* kSrunFile = R"(slurm_bin=$SHOAL_SCRATCH/slurm-$SLURM_PROCID
mkdir -p "$slurm_bin" && cat > "$slurm_bin/srun" <<END && chmod +x "$slurm_bin/srun" && PATH=$slurm_bin:$PATH
#!$BASH
declare -F srun > /dev/null || { echo "srun: it needs the environment of the job's script" >&2; exit 1; }
srun "\$@"
END
export slurm_ntasks=$SLURM_NTASKS
)";

// Starts a step's program in srun's directory, with its variables, GPUs and signals.
std::string SrunIn(const SlurmPreludeOptions& options) {
  std::string text = "slurm_in() {\n  local dir=$1 exports=$2 one=\n  shift 2\n";
  if (options.signal.empty()) text += "  [ -n \"$dir$exports$gpus\" ] || { \"$@\"; return; }\n";
  text += "  (\n";
  // A shell with a handler lets its programs have the signal, and waits for them.
  if (!options.signal.empty())
    text += std::string("    trap ") + (options.signals_shell ? "''" : ":") + " " + options.signal +
            "\n";
  return text + R"(    [ -z "$gpus" ] || slurm_bind
    [ -z "$dir" ] || cd "$dir" || exit
    while [ -n "$exports" ]; do
      one=${exports%%,*} exports=${exports#"${exports%%,*}"} exports=${exports#,}
      case $one in [A-Za-z_]*=*) export "$one" ;; esac
    done
    "$@"
  )
}
)";
}

// The GPUs of a task of a step: `gpus` of those that the node has, which `share` tasks see.
constexpr const char* kBind = R"(slurm_bind() {
  local IFS=, list=${CUDA_VISIBLE_DEVICES-} first=$((SLURM_LOCALID / share * gpus))
  [ -n "${CUDA_VISIBLE_DEVICES+x}" ] || list=$(seq -s, 0 $((${SLURM_GPUS_ON_NODE:-0} - 1)))
  local all=($list)
  [ $((first + gpus)) -gt ${#all[@]} ] || export CUDA_VISIBLE_DEVICES="${all[*]:first:gpus}"
}
)";

// Steps of a script that runs once share its GPUs.
constexpr const char* kBindNothing = "slurm_bind() { :; }\n";

// Options of srun that take their value from the next word.
constexpr const char* kSrunOptions =
    R"(  local n= nodes= per= at= dir= exports= i= all=${SLURM_NTASKS:-$slurm_ntasks}
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift; break ;;
      -n|--ntasks) n=$2; shift 2 ;;
      -n[0-9]*) n=${1#-n}; shift ;;
      --ntasks=*) n=${1#*=}; shift ;;
      -N|--nodes) nodes=$2; shift 2 ;;
      -N[0-9]*) nodes=${1#-N}; shift ;;
      --nodes=*) nodes=${1#*=}; shift ;;
      --ntasks-per-node|--tasks-per-node) per=$2; shift 2 ;;
      --ntasks-per-node=*|--tasks-per-node=*) per=${1#*=}; shift ;;
      -D|--chdir) dir=$2; shift 2 ;;
      --chdir=*) dir=${1#*=}; shift ;;
      --export) exports=$2; shift 2 ;;
      --export=*) exports=${1#*=}; shift ;;
      -w|--nodelist) at=$2; shift 2 ;;
      --nodelist=*) at=${1#*=}; shift ;;
      --gpus-per-task) gpus=${2##*:} share=1; shift 2 ;;
      --gpus-per-task=*) gpus=${1##*[:=]} share=1; shift ;;
      --ntasks-per-gpu) gpus=1 share=$2; shift 2 ;;
      --ntasks-per-gpu=*) gpus=1 share=${1#*=}; shift ;;
      --gpu-bind=none|--gpu-bind=*,none) gpus=; shift ;;
      -[ABCFGJLMPSTUWbcdegijmopqrtx]) shift 2 ;;
      --account|--comment|--constraint|--cpu-bind|--cpu_bind|--cpus-per-gpu|--cpus-per-task|--distribution) shift 2 ;;
      --error|--exclude|--gpu-bind|--gpus|--gpus-per-node|--gres|--gres-flags|--hint|--input) shift 2 ;;
      --job-name|--jobid|--mem|--mem-bind|--mem-per-cpu|--mem-per-gpu|--mpi|--ntasks-per-core) shift 2 ;;
      --ntasks-per-socket|--open-mode|--output|--partition|--qos|--relative|--reservation) shift 2 ;;
      --accel-bind|--acctg-freq|--bb|--bbf|--begin|--cluster-constraint|--core-spec|--cores-per-socket|--cpu-freq) shift 2 ;;
      --deadline|--dependency|--epilog|--extra-node-info|--gid|--gpu-freq|--licenses|--mail-type|--mail-user|--mcs-label) shift 2 ;;
      --mincpus|--msg-timeout|--network|--nodefile|--power|--prefer|--priority|--profile|--prolog|--slurmd-debug) shift 2 ;;
      --sockets-per-node|--switches|--task-epilog|--task-prolog|--thread-spec|--time-min|--tmp|--tres-bind) shift 2 ;;
      --tres-per-task|--uid|--wckey) shift 2 ;;
      --environment|--image|--module|--uenv|--view|--volume) shift 2 ;;
      --signal|--threads|--threads-per-core|--time|--wait|--container-[a-z]*) case $1 in *=*) shift ;; *) shift 2 ;; esac ;;
      -*) shift ;;
      *) break ;;
    esac
  done
  nodes=${nodes%%-*}
  if [ -n "$n" ]; then per=
  elif [ -n "$per" ]; then n=$((per * ${nodes:-${SLURM_NNODES:-1}}))
  elif [ -n "$nodes" ]; then n=$((nodes * all / ${SLURM_NNODES:-1}))
  else n=$all
  fi
  if ! [ "$n" -le "$all" ] 2> /dev/null; then
    echo "srun: a step of '$n' tasks in a job of $all: give their number with #SBATCH --ntasks" >&2
    return 1
  fi
  case $at in *[,[]*) at= ;; esac
  if [ "$1" = hostname ] && [ "$n" = 1 ]; then
    echo "${at:-${SLURM_JOB_NODELIST%%,*}}"
    return 0
  fi
)";

// One task was seen to be enough for the script's steps. Where a step turns out to have more, one
// run of its program would pass for all of them.
constexpr const char* kSrunAlone = R"(  case "$*" in hostname|'hostname -s'|'hostname --short')
    [ $# = 1 ] && at=$SLURMD_NODENAME || at=${SLURMD_NODENAME%%.*}
    for ((i = 0; i < n; ++i)); do echo "$at"; done
    return 0 ;;
  esac
  if [ "$n" -gt 1 ] && [ "$1" != nvidia-smi ]; then
    echo "srun: a step of $n tasks in a job that was imported as one task, because no such srun was seen in its script: write it there, or its number of tasks, without a variable" >&2
    return 1
  fi
  slurm_in "$dir" "$exports" "$@"
}
)";

constexpr const char* kSrunMpi = R"(  slurm_in "$dir" "$exports" command mpirun -np "$n" "$@"
}
)";

// A step smaller than the job runs on the first tasks, on those of each node, or on one node.
constexpr const char* kSrunRanked = R"(  local rank=$SLURM_PROCID
  if [ -n "$at" ]; then
    local hosts=(${SLURM_JOB_NODELIST//,/ })
    for i in "${!hosts[@]}"; do [ "${hosts[$i]}" != "$at" ] || break; done
    [ "$i" = "$SLURM_NODEID" ] && [ "$SLURM_LOCALID" -lt "$n" ] || return 0
    rank=$SLURM_LOCALID
    [ "$n" -le "${SHOAL_LOCAL_SIZE:-1}" ] || n=${SHOAL_LOCAL_SIZE:-1}
  elif [ -n "$per" ]; then
    [ "$SLURM_NODEID" -lt "${nodes:-$SLURM_NNODES}" ] && [ "$SLURM_LOCALID" -lt "$per" ] || return 0
    rank=$((SLURM_NODEID * per + SLURM_LOCALID))
  else
    [ "$SLURM_PROCID" -lt "$n" ] || return 0
  fi
  SLURM_NTASKS=$n SLURM_NPROCS=$n SLURM_PROCID=$rank SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$n \
  SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST SLURM_STEP_NUM_NODES=${nodes:-$SLURM_NNODES} \
    slurm_in "$dir" "$exports" slurm_step "$@"
}
)";

constexpr const char* kStepRanked = R"(slurm_step() { command "$@"; }
)";

constexpr const char* kStepTorch = R"(slurm_address=$MASTER_ADDR slurm_port=$MASTER_PORT
slurm_step() {
  local words=()
  case " $* " in *' --standalone '*|*' --nnodes=1 '*|*' --nnodes 1 '*) command "$@"; return ;; esac
  while [ $# -gt 0 ]; do
    case $1 in
      --nnodes=*|--num[_-]machines=*) words+=("${1%%=*}=$SLURM_NNODES") ;;
      --node[_-]rank=*|--machine[_-]rank=*) words+=("${1%%=*}=$SLURM_NODEID") ;;
      --master[_-]addr=*|--main[_-]process[_-]ip=*) words+=("${1%%=*}=$slurm_address") ;;
      --master[_-]port=*|--main[_-]process[_-]port=*) words+=("${1%%=*}=$slurm_port") ;;
      --rdzv[_-]id=*) words+=("${1%%=*}=$SLURM_JOB_ID") ;;
      --rdzv[_-]endpoint=*) words+=("${1%%=*}=$slurm_address:$slurm_port") ;;
      --nnodes|--num[_-]machines) words+=("$1" "$SLURM_NNODES"); shift ;;
      --node[_-]rank|--machine[_-]rank) words+=("$1" "$SLURM_NODEID"); shift ;;
      --master[_-]addr|--main[_-]process[_-]ip) words+=("$1" "$slurm_address"); shift ;;
      --master[_-]port|--main[_-]process[_-]port) words+=("$1" "$slurm_port"); shift ;;
      --rdzv[_-]id) words+=("$1" "$SLURM_JOB_ID"); shift ;;
      --rdzv[_-]endpoint) words+=("$1" "$slurm_address:$slurm_port"); shift ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  MASTER_ADDR=$slurm_address MASTER_PORT=$slurm_port command "${words[@]}"
}
torchrun() { slurm_step command torchrun "$@"; }
accelerate() { slurm_step command accelerate "$@"; }
python() { slurm_step command python "$@"; }
python3() { slurm_step command python3 "$@"; }
export slurm_address slurm_port
export -f torchrun accelerate python python3
)";

constexpr const char* kExportFunctions = R"(export -f srun scontrol slurm_in slurm_bind
)";

// The array index of this task, and its number: each task of an array is a job of its own, whose
// scratch directories and outputs scripts call by it.
std::string ArrayText(const std::vector<int64_t>& array, int64_t array_step) {
  if (array.empty()) return "";
  const int64_t step = array.size() > 1 ? array[1] - array[0] : 1;
  bool even = true;
  for (size_t i = 1; i < array.size(); ++i) even = even && array[i] - array[i - 1] == step;
  std::string number;
  std::string before;
  if (even) {
    number = "$((" + std::to_string(array[0]) + " + SHOAL_INDEX * " + std::to_string(step) + "))";
  } else {
    before = "slurm_array=(";
    for (size_t i = 0; i < array.size(); ++i)
      before += (i == 0 ? "" : " ") + std::to_string(array[i]);
    before += ")\n";
    number = "${slurm_array[$SHOAL_INDEX]}";
  }
  return before + "export SLURM_ARRAY_TASK_ID=" + number +
         " SLURM_ARRAY_JOB_ID=$SLURM_JOB_ID\n"
         "SLURM_JOB_ID=$((SLURM_JOB_ID + SHOAL_INDEX)) SLURM_JOBID=$SLURM_JOB_ID\n"
         "export SLURM_ARRAY_TASK_COUNT=" +
         std::to_string(array.size()) +
         " SLURM_ARRAY_TASK_MIN=" + std::to_string(*std::ranges::min_element(array)) +
         " SLURM_ARRAY_TASK_MAX=" + std::to_string(*std::ranges::max_element(array)) +
         " SLURM_ARRAY_TASK_STEP=" + std::to_string(array_step) + "\n";
}

}  // namespace

std::string SlurmPrelude(const SlurmPreludeOptions& options) {
  const SlurmStepMode steps = options.steps;
  const bool ranked = steps == SlurmStepMode::kRanked || steps == SlurmStepMode::kTorch;
  std::string text = kJob;
  text += ranked ? kRanks : kOnce;
  text += kAll;
  if (steps != SlurmStepMode::kMpi) text += kExport;
  text += ArrayText(options.array, options.array_step);
  if (ranked) text += kHostname;
  text += kScontrol;
  if (steps == SlurmStepMode::kTorch) text += kStepTorch;
  if (steps == SlurmStepMode::kRanked) text += kStepRanked;
  text += ranked ? kBind : kBindNothing;
  text += SrunIn(options);
  text += "srun() {\n  local gpus=" +
          (options.task_gpus > 0 ? std::to_string(options.task_gpus) : std::string()) +
          " share=" + std::to_string(options.gpu_tasks) + "\n";
  text += kSrunOptions;
  text += ranked ? kSrunRanked : steps == SlurmStepMode::kMpi ? kSrunMpi : kSrunAlone;
  text += kExportFunctions;
  if (ranked) text += "export -f slurm_step\n";
  text += kSrunFile;
  // Only steps get the signal; the script and what else it starts do not notice it.
  if (!options.signal.empty() && !options.signals_shell) text += "trap '' " + options.signal + "\n";
  return text + "# The script.\n";
}

}  // namespace shoal::importer
