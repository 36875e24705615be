"""Runs a command in a pseudo-terminal of 100 x 30, or TERMINAL_SIZE: standard input is typed there, what the terminal shows is written out."""
import fcntl
import os
import pty
import select
import struct
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
columns, rows = map(int, os.environ.get("TERMINAL_SIZE", "100x30").split("x"))
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
sources = [terminal, 0]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:  # Linux tells the end of a terminal as EIO.
            data = b""
        if not data:
            sources.remove(source)
        elif source == terminal:
            os.write(1, data)
        else:
            os.write(terminal, data)
status = os.waitpid(child, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
