/** What Node.js has no call for: a kernel lock on a file, and room for a file on its disk. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
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

}  // namespace

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
  getrlimit(RLIMIT_FSIZE, &limit);
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
  napi_value reserved = nullptr;
  napi_get_boolean(env, can, &reserved);
  return reserved;
}

}  // namespace penstock
