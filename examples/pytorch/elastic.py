"""Linear regression with as many ranks as there are: at every change of members all start again, in a new generation, from
the step that rank 0 saved last."""
import os
import time

import torch
import torch.distributed as dist

STEPS = int(os.environ.get("STEPS", "100"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work
CHECKPOINT = os.path.join(os.environ["SHOAL_JOB_DIR"], "elastic.pt")


def load(model):
    """The step to go on from, the same for all ranks."""
    step = torch.zeros(1, dtype=torch.long)
    if dist.get_rank() == 0 and os.path.exists(CHECKPOINT):
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        step[0] = saved["step"]
    dist.broadcast(step, 0)
    return int(step)


def save(model, step):
    """Whole or not at all."""
    torch.save({"model": model.state_dict(), "step": step}, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def train():
    """The last loss; the model is gone when the group is destroyed, else torch 1.13 may hang at its exit."""
    plain = torch.nn.Linear(8, 1, bias=False)
    begin = load(plain)
    model = torch.nn.parallel.DistributedDataParallel(plain)  # rank 0's weights for all
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    truth = torch.arange(8.0).reshape(8, 1)
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"generation {os.environ['SHOAL_GENERATION']}: rank {rank} of {size} from step {begin}")
    print("ready")
    loss = None
    for step in range(begin, STEPS):
        torch.manual_seed(step * size + rank)
        x = torch.randn(64, 8)
        loss = ((model(x) - x @ truth) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 5 == 4:
            save(plain, step + 1)
        time.sleep(PAUSE)
    return loss.item() if loss is not None else 0.0


dist.init_process_group("gloo")
last = train()
dist.destroy_process_group()
print(f"last loss {last:.6f}")
assert last < 0.1, last
