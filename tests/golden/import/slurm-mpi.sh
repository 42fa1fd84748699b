#!/usr/bin/env bash
#SBATCH --ntasks=8
#SBATCH --nodes 2-4
#SBATCH --mem-per-cpu=2G
#SBATCH --constraint="avx512&ib"
#SBATCH --no-requeue
#SBATCH --export=ALL,OMP_NUM_THREADS=1
module load openmpi/4.1
srun ./solver --steps 100
