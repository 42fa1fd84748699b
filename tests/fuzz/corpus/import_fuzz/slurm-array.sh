#!/bin/sh
#SBATCH -J sweep
#SBATCH --array=1,5,7%2
#SBATCH -c 4
#SBATCH --gpus=1
#SBATCH --export=NONE
python3 train.py --seed "$SLURM_ARRAY_TASK_ID"
