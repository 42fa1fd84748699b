#!/bin/bash
#SBATCH --job-name=ranks
#SBATCH --nodes=2 --ntasks-per-node=2   # four tasks
#SBATCH --cpus-per-task=1
#SBATCH --mem=512M
#SBATCH --time=00:10:00
#SBATCH --output=ranks-%j.out

export GREETING="hello from"
srun --label bash -c 'echo "$GREETING rank $SLURM_PROCID of $SLURM_NTASKS, $SLURM_LOCALID on node $SLURM_NODEID"'
