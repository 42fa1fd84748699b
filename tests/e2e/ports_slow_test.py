"""1,000 jobs start among processes that grab every port they can: ports_test.py, for minutes."""
import ports_test

ports_test.PortsTest.starts = 1000

if __name__ == "__main__":
    ports_test.main()
