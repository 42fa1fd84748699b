"""The slow lane's real programs of other frameworks, each with every fault. script/test --matrix makes the table of it."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
os.execv(sys.executable, [sys.executable, "-B", os.path.join(here, "matrix.py")])
