"""A Keras model under tf.distribute.MultiWorkerMirroredStrategy. TF_CONFIG says who this process is."""
import os
import time

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", "40"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work

options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
print(f"worker {strategy.cluster_resolver.task_id} of {strategy.num_replicas_in_sync}")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", input_shape=(8,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
x = tf.random.stateless_normal([1024, 8], seed=(1, 2))
y = x @ tf.reshape(tf.range(8, dtype=tf.float32), [8, 1])
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(64)
print("ready")
pause = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: time.sleep(PAUSE))
history = model.fit(data, epochs=1 + STEPS // 20, steps_per_epoch=20, verbose=2, callbacks=[pause]).history["loss"]
print(f"first loss {history[0]:.3f}, last loss {history[-1]:.6f}")
assert history[-1] < history[0] / 100, history
