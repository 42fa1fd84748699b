"""The slow lane's fault suite, by the documented command: 200 seeded runs of a release. script/faults runs any other number of them."""
import os

COMMAND = "script/faults --seed 40000 --build release"

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
os.chdir(root)
os.execv(COMMAND.split()[0], COMMAND.split())
