"""The slow lane's fault suite: 200 seeded runs. script/faults runs any other number of them."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.execv(sys.executable, [sys.executable, "-B", os.path.join(here, "fault_suite.py"), "--runs", "200"])
