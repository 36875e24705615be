/**
 * Asking the resolver of the system, getaddrinfo(3), which waits for as long as the name servers say nothing and cannot be called off: on a thread
 * of its own for each name, which shares nothing with the loop that waits for the answer but a pipe. Either of them may be gone first.
 */
#include "host_names.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <memory>

namespace penstock {

namespace {

/** Bytes of a name: as long as DNS has them (RFC 1035, section 2.3.4), in text. */
constexpr size_t kMaxHost = 255;
/** Bytes of the stack: what modules of the resolver (nsswitch.conf(5)) may take of it is not known. */
constexpr size_t kStackBytes = 1 << 20;

struct Question {
  std::string host;
  int answer;
};

/** As Node.js has it of its own lookups. */
const char* codeOf(int error, int system) {
  switch (error) {
    case EAI_NONAME:
#if defined(EAI_NODATA) && EAI_NODATA != EAI_NONAME
    case EAI_NODATA:
#endif
      return "ENOTFOUND";
    case EAI_SYSTEM:
      return uv_err_name(uv_translate_sys_error(system));
    case EAI_AGAIN:
      return "EAI_AGAIN";
    case EAI_MEMORY:
      return "EAI_MEMORY";
    default:
      return "EAI_FAIL";
  }
}

/** JSON: the addresses, the best first, or the code of what there is against them. */
std::string answerTo(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return std::string("\"") + codeOf(error, errno) + '"';
  std::string answer = "[";
  for (const addrinfo* each = found; each; each = each->ai_next) {
    const bool isSix = each->ai_family == AF_INET6;
    if (!isSix && each->ai_family != AF_INET) continue;
    char text[INET6_ADDRSTRLEN];
    const void* address = isSix ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr)
                                : &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    if (uv_inet_ntop(each->ai_family, address, text, sizeof text) != 0) continue;
    if (answer.size() > 1) answer += ',';
    answer += std::string("{\"address\":\"") + text + "\",\"family\":" + (isSix ? '6' : '4') + '}';
  }
  freeaddrinfo(found);
  return answer + ']';
}

void* ask(void* argument) {
  const std::unique_ptr<Question> question(static_cast<Question*>(argument));
  const std::string answer = answerTo(question->host);
  for (size_t at = 0; at < answer.size();) {
    const ssize_t written = write(question->answer, answer.data() + at, answer.size() - at);
    if (written < 0 && errno == EINTR) continue;
    // Nobody waits for it any more.
    if (written < 0) break;
    at += static_cast<size_t>(written);
  }
  close(question->answer);
  return nullptr;
}

/** Starts a thread that nobody waits for and that takes no signals; gives what the system says against it. */
int begin(Question* question) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, ask, question);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

napi_value hostAsk(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "hostAsk", 1);
  const std::string host = arguments.string(0, "host", kMaxHost);
  if (arguments.failed()) return nullptr;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) {
    throwSystem(env, errno, "pipe2", host);
    return nullptr;
  }
  auto question = std::make_unique<Question>(Question{host, ends[1]});
  const int error = begin(question.get());
  if (error != 0) {
    close(ends[0]);
    close(ends[1]);
    throwSystem(env, error, "pthread_create", host);
    return nullptr;
  }
  question.release();
  return toInteger(env, ends[0]);
}

}  // namespace penstock
