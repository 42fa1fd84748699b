#!/bin/sh
# replace_output.sh COMPILER ARGUMENTS…: runs the compiler after removing the file that it is to write (after -o).
# g++ reads an existing precompiled header while it makes that header anew, and the result then depends on the old one:
# two checkouts with the same sources get different headers, and share nothing in the compiler cache.
previous=
for argument; do
  [ "$previous" = -o ] && rm -f -- "$argument"
  previous=$argument
done
exec "$@"
