"""200 statements are stopped at random moments: sql_cancel_test.py, for minutes."""
import unittest

import sql_cancel_test

sql_cancel_test.Cancels.statements = 200
Cancels = sql_cancel_test.Cancels

if __name__ == "__main__":
    unittest.main()
