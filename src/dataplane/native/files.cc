/** What Node.js has no call for: a kernel lock on a file, room for a file on its disk, whether it can be shared, and descriptors that no child gets. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptors.h"

namespace penstock {

namespace {

constexpr size_t kMaxPath = 4096;

struct Lock : Descriptor {
  explicit Lock(int fd) : Descriptor(Kind::lock, fd) {}
};

/** Opens for reading and writing, which NFS asks for before it gives an exclusive lock; no child inherits it. */
int openFile(const std::string& path) { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); }

/** close_range(2), of Linux 5.9, and its flag, of 5.11: the headers may be older than the kernel. */
#ifdef SYS_close_range
constexpr long kCloseRange = SYS_close_range;
#else
constexpr long kCloseRange = 436;
#endif
constexpr unsigned kCloseRangeCloexec = 4;

/** The same on a kernel without it. */
void closeEachOnExec() {
  DIR* directory = opendir("/proc/self/fd");
  if (!directory) return;
  while (const dirent* entry = readdir(directory)) {
    const int fd = atoi(entry->d_name);
    if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  closedir(directory);
}

}  // namespace

napi_value closeOnExec(napi_env, napi_callback_info) {
  if (syscall(kCloseRange, STDERR_FILENO + 1, ~0u, kCloseRangeCloexec) < 0) closeEachOnExec();
  return nullptr;
}

napi_value lockOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "lockOpen", 2);
  const uint32_t owner = ownerArgument(arguments, 0);
  if (!owner) return nullptr;
  const std::string path = arguments.string(1, "path", kMaxPath);
  if (arguments.failed()) return nullptr;
  const int fd = openFile(path);
  if (fd < 0) {
    throwSystem(env, errno, "open", path);
    return nullptr;
  }
  auto lock = std::make_unique<Lock>(fd);
  int result;
  do result = flock(fd, LOCK_EX | LOCK_NB);
  while (result < 0 && errno == EINTR);
  if (result < 0) {
    throwSystem(env, errno, "flock", path);
    return nullptr;
  }
  return adopt(arguments, owner, std::move(lock));
}

napi_value fileReserve(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "fileReserve", 2);
  const std::string path = arguments.string(0, "path", kMaxPath);
  const int64_t bytes = arguments.integer(1, "bytes", 1, 1ll << 40);
  if (arguments.failed()) return nullptr;
  const int fd = openFile(path);
  if (fd < 0) {
    throwSystem(env, errno, "open", path);
    return nullptr;
  }
  // Room that this process may not use is none (setrlimit(2)).
  rlimit limit{};
  // A seccomp filter may refuse to say it.
  if (getrlimit(RLIMIT_FSIZE, &limit) < 0) limit.rlim_cur = RLIM_INFINITY;
  int result = -1;
  if (limit.rlim_cur != RLIM_INFINITY && static_cast<rlim_t>(bytes) > limit.rlim_cur)
    errno = EFBIG;
  else
    do result = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes);
    while (result < 0 && errno == EINTR);
  const int error = result < 0 ? errno : 0;
  const bool can = error != EOPNOTSUPP && error != ENOSYS;
  close(fd);
  if (error && can) {
    throwSystem(env, error, "fallocate", path);
    return nullptr;
  }
  return toBoolean(env, can);
}

napi_value fileRequireShared(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "fileRequireShared", 1);
  const std::string path = arguments.string(0, "path", kMaxPath);
  if (arguments.failed()) return nullptr;
  const int fd = openFile(path);
  if (fd < 0) {
    throwSystem(env, errno, "open", path);
    return nullptr;
  }
  const char* refused = nullptr;
  int error = 0;
  struct flock first{};
  first.l_type = F_WRLCK;
  first.l_whence = SEEK_SET;
  first.l_len = 1;
  // That another process has it says that there are locks.
  if (fcntl(fd, F_SETLK, &first) < 0 && errno != EAGAIN && errno != EACCES) {
    refused = "fcntl";
    error = errno;
  } else {
    void* mapped = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      refused = "mmap";
      error = errno;
    } else {
      munmap(mapped, 1);
    }
  }
  close(fd);
  if (refused) throwSystem(env, error, refused, path);
  return nullptr;
}

}  // namespace penstock
