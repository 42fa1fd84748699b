"""counter.py N: a worker of the fault suite. It adds 1 to its own row, again and again, until the row says N. The row is what it
knows of its work, so that a worker that is started again goes on where the servers are.

It prints "begins VALUE RESTARTS", "count VALUE RESTARTS" after each acknowledged push, "restored VALUE RESTARTS" after a server has
come back with an older row, and "done N RESTARTS". A row with another value than it must have ends it with 3.
"""
import os
import sys
import threading

import numpy as np
import shoal.ps

KEYS = np.array([int(os.environ["SHOAL_INDEX"])])
ONE = np.ones((1, 1), np.float32)


def main(amount):
    client = shoal.ps.connect()
    table = client.table("counts", dim=1, rows=16)
    row = lambda: round(float(table.pull(KEYS)[0, 0]))
    known = lambda: sum(1 for _ in client.server_restarts)
    value, restarts, pace = row(), known(), threading.Event()
    print("begins", value, restarts)
    while value < amount:
        table.push(KEYS, ONE)
        got, now = row(), known()
        if now != restarts and got <= value:
            print("restored", got, now)
        elif got != value + 1:
            print(f"WRONG: the row is {got} after a push to {value}")
            return 3
        else:
            print("count", got, now)
        value, restarts = got, now
        pace.wait(0.1)
    print("done", value, restarts)
    client.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
