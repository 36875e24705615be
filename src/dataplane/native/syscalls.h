/**
 * System calls of the hot path by themselves: glibc's functions are points of cancellation, which costs two atomic exchanges a call in a process of
 * several threads, and nobody cancels the threads of a run (pthread_cancel(3)).
 */
#pragma once
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock {

/** recvmsg(2). */
inline ssize_t receiveMessage(int fd, msghdr* message, int flags) { return syscall(SYS_recvmsg, fd, message, flags); }
/** recvmmsg(2) without a time limit. */
inline int receiveMessages(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(syscall(SYS_recvmmsg, fd, messages, count, flags, nullptr));
}
/** sendmmsg(2). */
inline int sendMessages(int fd, mmsghdr* messages, unsigned count, int flags) {
  return static_cast<int>(syscall(SYS_sendmmsg, fd, messages, count, flags));
}

}  // namespace penstock
