"""Boosted trees over rows that lie on several workers. XGBoost's collective forms its group through the tracker that
DMLC_TRACKER_URI and DMLC_TRACKER_PORT name, in any version: by XGBoost 2.1 its protocol became another."""
import os
import time

import numpy as np
import xgboost as xgb
from xgboost import collective

STEPS = int(os.environ.get("STEPS", "50"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every round, to watch it at work


class Pause(xgb.callback.TrainingCallback):
    """Waits after every round."""

    def after_iteration(self, model, epoch, evals_log):
        """False: go on."""
        time.sleep(PAUSE)
        return False


def main():
    tracker = {"dmlc_tracker_uri": os.environ["DMLC_TRACKER_URI"], "dmlc_tracker_port": int(os.environ["DMLC_TRACKER_PORT"]),
               "dmlc_task_id": os.environ["DMLC_TASK_ID"]}
    if int(xgb.__version__.split(".")[0]) < 2:  # text only
        tracker = {name.upper(): str(value) for name, value in tracker.items()}
    with collective.CommunicatorContext(**tracker):
        rank, size = collective.get_rank(), collective.get_world_size()
        print(f"rank {rank} of {size}, task {os.environ['DMLC_TASK_ID']}, XGBoost {xgb.__version__}")
        assert (rank, size) == (int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"]))
        random = np.random.default_rng(rank)
        x = random.normal(size=(400, 8)).astype(np.float32)
        data = xgb.DMatrix(x, label=np.abs(x @ np.arange(8)))
        history = {}
        print("ready")
        model = xgb.train({"max_depth": 4, "tree_method": "hist", "nthread": 1}, data, STEPS, evals=[(data, "train")],
                          evals_result=history, verbose_eval=False, callbacks=[Pause()])
        trees = "".join(model.get_dump())
        assert collective.broadcast(trees, 0) == trees, "the workers' trees differ"
        losses = history["train"]["rmse"]
        collective.communicator_print(f"worker {rank}: first loss {losses[0]:.3f}, last loss {losses[-1]:.3f}")
        assert losses[-1] < losses[0] / 2, losses


main()
