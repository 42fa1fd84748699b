"""Read by every Python of a job under test: ends the one task that TEST_EXIT names with code 3 when the file
TEST_EXIT_FILE appears, in the middle of whatever it does."""
import os
import threading
import time

_FILE = os.environ.get("TEST_EXIT_FILE", "")


def _wait():
    while not os.path.exists(_FILE):
        time.sleep(0.02)  # poll
    os.write(2, b"told to exit with 3\n")
    os._exit(3)


if _FILE and os.environ.get("TEST_EXIT") == f"{os.environ.get('SHOAL_ROLE')}-{os.environ.get('SHOAL_INDEX')}":
    threading.Thread(target=_wait, daemon=True).start()
