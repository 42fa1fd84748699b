"""Evaluates the five fields of a crontab line in a time zone; for the double of Metronome."""

import datetime
import re

NAMES = {name: i + 1 for i, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split())}
DAYS = {name: i for i, name in enumerate("sun mon tue wed thu fri sat".split())}
FIELDS = ((0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, NAMES), (0, 7, DAYS))


def numbers(text, least, most, names):
    found = set()
    for entry in text.split(","):
        match = re.fullmatch(r"(\*|(\w+)(?:-(\w+))?)(?:/(\d+))?", entry)
        if match is None:
            raise ValueError(f"{entry!r} is no part of a cron expression")
        word = lambda text: names.get(text.lower(), -1) if text.isalpha() else int(text)
        first = least if match[1] == "*" else word(match[2])
        last = most if match[1] == "*" else word(match[3] or match[2])
        if not least <= first <= last <= most or match[4] == "0":
            raise ValueError(f"{entry!r} is out of range")
        found.update(range(first, last + 1, int(match[4] or 1)))
    return found


class Cron:
    """ValueError for what is none."""

    def __init__(self, text):
        fields = text.split()
        if len(fields) != len(FIELDS):
            raise ValueError(f"Cron expression contains {len(fields)} parts but we expect one of [5]")
        self.sets = [numbers(field, *spec) for field, spec in zip(fields, FIELDS)]
        self.sets[4] = {day % 7 for day in self.sets[4]}
        self.any_day, self.any_weekday = fields[2] == "*", fields[4] == "*"

    def is_time(self, moment):
        day, weekday = moment.day in self.sets[2], moment.isoweekday() % 7 in self.sets[4]
        days = day and weekday if self.any_day or self.any_weekday else day or weekday
        return moment.minute in self.sets[0] and moment.hour in self.sets[1] and days and moment.month in self.sets[3]

    def next(self, after, zone):
        """The first time after `after` (which knows its zone), within five years; else None."""
        minute = datetime.timedelta(minutes=1)
        at = after.astimezone(datetime.timezone.utc).replace(second=0, microsecond=0) + minute
        end = after + datetime.timedelta(days=5 * 366)
        while at < end:
            here = at.astimezone(zone)
            if self.is_time(here):
                return at
            if here.month not in self.sets[3]:
                at += datetime.timedelta(days=1) if here.day < 27 and here.hour < 22 else minute
            else:
                at += minute
        return None
