"""A line fitted by ranks that each have other points: Horovod averages their gradients over Gloo."""
import os
import time

import torch
import horovod.torch as hvd

STEPS = int(os.environ.get("STEPS", "50"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work


def main():
    hvd.init()
    print(f"rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()} of {hvd.local_size()}, "
          f"cross {hvd.cross_rank()} of {hvd.cross_size()}")
    assert hvd.rank() == int(os.environ["HOROVOD_RANK"]) and hvd.size() == int(os.environ["HOROVOD_SIZE"])
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(4, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    x = torch.randn(200, 4)
    y = x @ torch.arange(4.0).unsqueeze(1)
    losses = []
    print("ready")
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        time.sleep(PAUSE)
    whole = hvd.allgather(model.weight.detach())
    assert torch.allclose(whole, whole[:1].expand_as(whole)), "the ranks' weights differ"
    print(f"first loss {losses[0]:.3f}, last loss {losses[-1]:.3f}")
    assert losses[-1] < losses[0] / 2, losses
    hvd.shutdown()


main()
