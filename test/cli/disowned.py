"""Runs a command in the background of a terminal, closes the terminal once a text was shown, ends the command with SIGTERM; prints how it ended."""
import os
import pty
import signal
import sys

log, shown, *command = sys.argv[1:]
heard, told = os.pipe()
shell, terminal = pty.fork()
if shell == 0:
    # The kernel says SIGHUP to the leader of the session, as a shell is, and to what is in the foreground.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.execvp(command[0], command)
    os.write(told, b"%d\n" % child)
    os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)
seen = b""
while shown.encode() not in seen:
    seen += os.read(terminal, 65536)
os.close(terminal)
with os.fdopen(heard) as lines:
    os.kill(int(lines.readline()), signal.SIGTERM)
    print(lines.readline().strip())
