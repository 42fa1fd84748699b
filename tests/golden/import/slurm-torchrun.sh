#!/bin/bash -l
#SBATCH --job-name=train
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gres=gpu:a100:4,nvme:1
#SBATCH --mem=200G
#SBATCH -t 1-12
#SBATCH -p gpu
#SBATCH -A vision
#SBATCH --exclusive
#SBATCH --signal=B:USR1@300
#SBATCH --dependency=afterok:4711
#SBATCH --mail-type=END --mail-user=someone@example.com
#SBATCH --output=logs/%x-%j.out
##SBATCH --qos=high

module purge
module load cuda/12.1
source venv/bin/activate
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address)

srun torchrun --nnodes "$SLURM_NNODES" --nproc_per_node 4 --rdzv_id "$SLURM_JOB_ID" \
  --rdzv_backend c10d --rdzv_endpoint "$head:29500" train.py --data "$DATA_DIR"
