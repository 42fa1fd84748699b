"""Linear regression with tf.distribute.ParameterServerStrategy, as TensorFlow's own guide writes it. TF_CONFIG says who
this process is; nothing here knows of Shoal."""
import os
import time

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", "60"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work


def lead(resolver):
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([8, 1]))
        optimizer = tf.keras.optimizers.SGD(0.1)

    truth = tf.reshape(tf.range(8, dtype=tf.float32), [8, 1])

    @tf.function
    def step():
        def replica():
            x = tf.random.normal([64, 8])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ tf.convert_to_tensor(weights) - x @ truth) ** 2)
            gradient = tape.gradient(loss, list(weights.variables))
            optimizer.apply_gradients(zip(gradient, weights.variables))
            return loss
        return strategy.run(replica)

    with strategy.scope():
        optimizer.build(weights.variables)
    losses = []
    for _ in range(STEPS):
        losses.append(coordinator.schedule(step))
        time.sleep(PAUSE)
    coordinator.join()
    values = [float(loss.fetch()) for loss in losses]
    print(f"first loss {values[0]:.3f}, last loss {values[-1]:.6f}")
    assert values[-1] < values[0] / 100, values


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    print(f"{resolver.task_type} {resolver.task_id} of {resolver.cluster_spec().as_dict()}")
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                                      protocol=resolver.rpc_layer or "grpc", start=True)
        print("ready")
        server.join()  # for ever: who started it must stop it
    else:
        print("ready")
        lead(resolver)


main()
