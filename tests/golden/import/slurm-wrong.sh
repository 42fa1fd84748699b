#!/bin/bash
#SBATCH --ntask-per-node=2
#SBATCH --time=1:2:3:4
#SBATCH --mem=lots
#SBATCH hetjob
srun --multi-prog programs.conf
