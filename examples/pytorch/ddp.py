"""Linear regression with DistributedDataParallel. The group forms from MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE."""
import os
import time

import torch
import torch.distributed as dist

STEPS = int(os.environ.get("STEPS", "100"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work


def train(rank, size):
    """The losses; the model is gone when the group is destroyed, else torch 1.13 may hang at its exit."""
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    truth = torch.arange(8.0).reshape(8, 1)
    print("ready")
    losses = []
    for _ in range(STEPS):
        x = torch.randn(64, 8)
        loss = ((model(x) - x @ truth) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        time.sleep(PAUSE)
    weights = [torch.empty(1, 8) for _ in range(size)]
    dist.all_gather(weights, model.module.weight.data)
    assert all(torch.equal(weights[0], other) for other in weights), "the replicas differ"
    return losses


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {size}, local rank {os.environ['LOCAL_RANK']}")
    losses = train(rank, size)
    dist.destroy_process_group()
    print(f"first loss {losses[0]:.3f}, last loss {losses[-1]:.6f}")
    assert losses[-1] < losses[0] / 100, losses


main()
