"""Asynchronous between-graph replication as TensorFlow 1 programs are written, with a monitored session: worker 0 is the
chief. Only TF_CONFIG is read."""
import json
import os
import time

import tensorflow as tf

tf = tf.compat.v1
tf.disable_v2_behavior()
STEPS = int(os.environ.get("STEPS", "200"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=job, task_index=index)
print("ready")
if job == "ps":
    server.join()  # for ever: who started it must stop it

with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", [8, 1], initializer=tf.zeros_initializer())
    x = tf.random.normal([64, 8])
    truth = tf.reshape(tf.range(8, dtype=tf.float32), [8, 1])
    loss = tf.reduce_mean((tf.matmul(x, weights) - tf.matmul(x, truth)) ** 2)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)

with tf.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0,
                                       hooks=[tf.train.StopAtStepHook(last_step=STEPS)]) as session:
    first = last = None
    while not session.should_stop():
        last, at = session.run([loss, step, train])[:2]
        first = last if first is None else first
        time.sleep(PAUSE)
print(f"worker {index}: first loss {first:.3f}, last loss {last:.6f} at step {at}")
assert last < 1, last
