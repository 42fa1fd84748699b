"""Linear regression over MXNet's `dist_sync` key-value store. `import mxnet` itself turns into a server or the scheduler
where DMLC_ROLE says so, and never returns there."""
import os
import time

print("ready" if os.environ.get("DMLC_ROLE") != "worker" else "importing")
import mxnet as mx  # noqa: E402

STEPS = int(os.environ.get("STEPS", "60"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work


def main():
    store = mx.kv.create("dist_sync")
    print(f"worker {store.rank} of {store.num_workers}")
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.05, rescale_grad=1.0 / store.num_workers))
    weights = mx.nd.zeros((8, 1))
    store.init(0, weights)
    truth = mx.nd.arange(8).reshape((8, 1))
    print("ready")
    losses = []
    for _ in range(STEPS):
        store.pull(0, out=weights)
        x = mx.nd.random.normal(shape=(64, 8))
        error = mx.nd.dot(x, weights) - mx.nd.dot(x, truth)
        losses.append(float((error ** 2).mean().asscalar()))
        store.push(0, 2 * mx.nd.dot(x.T, error) / 64)
        time.sleep(PAUSE)
    print(f"first loss {losses[0]:.3f}, last loss {losses[-1]:.6f}")
    assert losses[-1] < losses[0] / 100, losses


main()
