"""Pi by throwing darts. Which cluster it runs on is said by MASTER, which Spark reads itself."""
import os
import random
import time

from pyspark.sql import SparkSession

STEPS = int(os.environ.get("STEPS", "20"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds after every step, to watch it at work
DARTS = 20_000

builder = SparkSession.builder.appName("pi").config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
# The bar, which PySpark draws even into a log, would stand in the same lines as what is printed.
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
print("on", spark.sparkContext.master)


def hits(seed):
    dart = random.Random(seed)
    return sum(dart.random() ** 2 + dart.random() ** 2 < 1 for _ in range(DARTS))


total = 0
for step in range(STEPS):
    total += spark.sparkContext.parallelize(range(4 * step, 4 * step + 4), 4).map(hits).sum()
    if step == 0:
        print("ready")
    time.sleep(PAUSE)
pi = 4 * total / (STEPS * 4 * DARTS)
print(f"pi is about {pi:.3f}")
assert abs(pi - 3.1416) < 0.02, pi
spark.stop()
