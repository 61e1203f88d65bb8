"""What the supervisor knows of the call that is under way."""

import time

from .output import Output


class Run:
    def __init__(self, request, kind, timeout, output_bytes):
        self.request = request
        self.kind = kind
        #: whether the server hears of output while it is written
        self.streams = False
        #: output is not looked for before
        self.listens_from = 0.0
        self.deadline = time.monotonic() + timeout
        self.timeout = timeout
        self.stdout = Output(output_bytes)
        self.stderr = Output(output_bytes)
        #: the shell, if that is what runs, and what it was given
        self.text = None
        self.command = None
        #: pipes that every writer has closed
        self.silent = set()
        #: why it is being ended
        self.ending = None
        self.interrupts_until = 0.0
