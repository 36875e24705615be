/** What to do about a start that the system had no means for. */
import { wordsOf } from '../../text/error-message.ts'

const CURES: ReadonlyMap<string | undefined, string> = new Map([
  ['EMFILE', "stop other runs, or raise the process's limit of open files (ulimit -n, LimitNOFILE=)"],
  ['ENFILE', 'stop other runs, or raise the number of files that this machine opens (sysctl fs.file-max)'],
  [
    'ENOMEM',
    'stop other runs, or raise the limits of memory of the process (ulimit -v and -d, LimitAS= and LimitDATA= of a systemd unit) or, where vm.overcommit_memory is 2, of the machine',
  ],
  [
    'ERR_WORKER_INIT_FAILED',
    'stop other runs, or raise the limits of threads (ulimit -u, TasksMax= of a systemd unit, --pids-limit of a container) and of open files (ulimit -n, LimitNOFILE=)',
  ],
])

/** Of epoll the kernel says by ENOSPC, as of a full disk, that it watches no more for this user. */
const MORE_WATCHES =
  'stop other runs, or raise the number of descriptors that this machine watches for a user (sysctl fs.epoll.max_user_watches)'

/** By the code of the error, or of what caused it; undefined for any other. */
export function cureOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code, syscall } = at as NodeJS.ErrnoException
    const cure = code === 'ENOSPC' && syscall === 'epoll_ctl' ? MORE_WATCHES : CURES.get(code)
    if (cure !== undefined) return cure
  }
  return undefined
}

/** The message of `error`, with what to do where there is something. */
export function withCure(error: Error): string {
  const cure = cureOf(error)
  const message = wordsOf(error)
  return cure === undefined ? message : `${message}; ${cure}`
}
