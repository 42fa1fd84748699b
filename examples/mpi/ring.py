"""A number goes round a ring of ranks, and every rank learns the sum; as ring.c, by mpi4py and any MPI that it knows."""
import os
import time

from mpi4py import MPI

STEPS = int(os.environ.get("STEPS", "50"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
task = f"{os.environ.get('SHOAL_ROLE', '?')}-{os.environ.get('SHOAL_INDEX', '?')}"
if rank == 0:
    print(MPI.Get_library_version().splitlines()[0].strip("\0 "), flush=True)
print(f"rank {rank} of {size} in {task}\nready", flush=True)
total = 0
for _ in range(STEPS):
    token = world.sendrecv(rank, dest=(rank + 1) % size, source=(rank + size - 1) % size)
    total += world.allreduce(token)
    time.sleep(PAUSE)
if total != STEPS * size * (size - 1) // 2:
    world.Abort(4)
if rank == 0:
    print(f"{STEPS} steps, sum {total}", flush=True)
