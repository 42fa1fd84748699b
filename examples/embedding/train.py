"""One worker of examples/embedding: who clicks on what, from 8 feature ids an example.

The embedding (one row an id) is a sparse table on the parameter servers, updated there by AdaGrad. A batch pulls the
rows it needs, computes, and pushes their gradients; the next batch's rows are on their way meanwhile. The dense part is
this worker's own: PyTorch's, or with --numpy one layer by hand. Every 50 steps the workers' dense parts are averaged
over a second table. The data are made up: ids by Zipf's law, clicks from hidden weights of the ids.
"""
import argparse
import json
import os
import resource
import time

import numpy as np

import shoal.ps

FEATURES = 8
AVERAGE_EVERY = 50


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000, help="ids there are")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--fill", action="store_true", help="bring all rows into being before (memory at full size)")
    parser.add_argument("--numpy", action="store_true", help="without PyTorch")
    return parser.parse_args()


class Clicks:
    """Examples without end: ids [batch, FEATURES] and labels [batch]."""

    def __init__(self, rows, batch, seed):
        self.rows, self.batch, self.random = rows, batch, np.random.default_rng(seed)

    def hidden(self, ids):
        """The weight of an id, in [-1, 1): a hash of it."""
        mixed = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        return ((mixed >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)

    def next(self):
        # Continuous Zipf: every magnitude of id is equally likely.
        uniform = self.random.random((self.batch, FEATURES))
        ids = np.minimum(self.rows - 1, np.floor(self.rows**uniform) - 1).astype(np.int64)
        chance = 1 / (1 + np.exp(-2 * self.hidden(ids).sum(1)))
        return ids, (self.random.random(self.batch) < chance).astype(np.float32)


class NumpyDense:
    """score = sum of the ids' rows · w + b."""

    def __init__(self, dim):
        self.flat = np.full(dim + 1, 0.5, np.float32)
        self.flat[-1] = 0

    def step(self, rows, inverse, labels):
        """Loss and the gradient of `rows`; moves its own weights."""
        looked_up = rows[inverse]                                  # [batch, FEATURES, dim]
        hidden = looked_up.sum(1)
        score = hidden @ self.flat[:-1] + self.flat[-1]
        chance = 1 / (1 + np.exp(-score))
        loss = -np.mean(np.log(np.where(labels > 0, chance, 1 - chance) + 1e-7))
        wrong = (chance - labels) / len(labels)
        gradient = np.zeros_like(rows)
        np.add.at(gradient, inverse, np.broadcast_to((wrong[:, None] * self.flat[:-1])[:, None, :], looked_up.shape))
        self.flat[:-1] -= 0.1 * hidden.T @ wrong
        self.flat[-1] -= 0.1 * wrong.sum()
        return float(loss), gradient


class TorchDense:
    """Two layers over the ids' rows side by side."""

    def __init__(self, dim):
        import torch

        self.torch = torch
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(FEATURES * dim, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        # One memory for all parameters, which numpy and the parameter server see as it is.
        flat = torch.cat([p.data.reshape(-1) for p in self.model.parameters()])
        at = 0
        for parameter in self.model.parameters():
            parameter.data = flat[at:at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
        self.flat = flat.numpy()

    def step(self, rows, inverse, labels):
        torch = self.torch
        table = torch.from_numpy(rows).requires_grad_()
        looked_up = torch.nn.functional.embedding(torch.from_numpy(inverse), table)
        score = self.model(looked_up.flatten(1)).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, torch.from_numpy(labels))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach()), table.grad


class Average:
    """Adds what this worker has learnt since the last time, divided by the workers, and takes the sum."""

    def __init__(self, client, dense, workers):
        self.table = client.table("dense", dim=len(dense.flat), rows=1)
        self.dense, self.workers = dense, workers
        self.start = dense.flat.copy()  # all workers begin with the same
        self.last = self.start.copy()

    def meet(self):
        moved = (self.dense.flat - self.last) / self.workers
        sum_of_moves = self.table.push_pull([0], moved)
        self.dense.flat[:] = self.start + sum_of_moves[0]
        self.last[:] = self.dense.flat


def report(kind, **fields):
    """To `shoal run`'s display."""
    fd = os.environ.get("SHOAL_REPORT_FD")
    if fd:
        os.write(int(fd), (json.dumps({kind: fields}) + "\n").encode())


def fill(table, rows, index, workers, dim):
    nothing = np.zeros((8192, dim), np.float32)
    for first in range(index * 8192, rows, workers * 8192):
        keys = np.arange(first, min(rows, first + 8192))
        table.push(keys, nothing[:len(keys)])


def train(options, client, index, workers):
    table = client.table("emb", dim=options.dim, optimizer="adagrad", lr=0.3, uniform=(-0.1, 0.1), seed=1)
    dense = NumpyDense(options.dim) if options.numpy else TorchDense(options.dim)
    average = Average(client, dense, workers)
    clicks = Clicks(options.rows, options.batch, seed=index)
    if options.fill:
        fill(table, options.rows, index, workers, options.dim)
    client.barrier("start")
    began, recent = time.monotonic(), []

    def prefetch():
        ids, labels = clicks.next()
        keys, inverse = np.unique(ids, return_inverse=True)
        return keys, inverse.reshape(ids.shape), labels, table.pull(keys, wait=False)

    coming, pushed = prefetch(), None
    for step in range(1, options.steps + 1):
        keys, inverse, labels, pulled = coming
        coming = prefetch()
        loss, gradient = dense.step(pulled.wait(), inverse, labels)
        if pushed is not None:
            pushed.wait()
        pushed = table.push(keys, gradient, wait=False)
        recent = (recent + [loss])[-100:]
        if step % AVERAGE_EVERY == 0:
            average.meet()
            report("progress", step=step, total=options.steps, loss=round(float(np.mean(recent)), 4),
                   rate=round(step * options.batch / (time.monotonic() - began)), unit="examples")
    pushed.wait()
    return time.monotonic() - began, float(np.mean(recent))


def main():
    options = arguments()
    index, workers = int(os.environ.get("SHOAL_INDEX", "0")), int(os.environ.get("SHOAL_REPLICAS", "1"))
    with shoal.ps.connect() as client:
        seconds, loss = train(options, client, index, workers)
        client.barrier("end")
        counters = client.counters
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"worker {index}: {options.steps / seconds:.0f} steps/s, {options.steps * options.batch / seconds:.0f} "
          f"examples/s, {(counters['rows_pushed'] + counters['rows_pulled']) / seconds:.0f} rows/s, "
          f"loss {loss:.4f}, {memory} MiB", flush=True)
    if index == 0:
        report("result", loss=round(loss, 4), steps_per_second=round(options.steps / seconds, 1))


if __name__ == "__main__":
    main()
