"""Stands for the image's program: says whom it would meet, and lives as long as its role did."""
import os
import signal

role = os.environ["DMLC_ROLE"]
print(f"{role}: the root is {os.environ['DMLC_PS_ROOT_URI']}:{os.environ['DMLC_PS_ROOT_PORT']}, "
      f"{os.environ['DMLC_NUM_SERVER']} servers, {os.environ['DMLC_NUM_WORKER']} workers", flush=True)
if role != "worker":
    signal.sigwait({signal.SIGTERM})
