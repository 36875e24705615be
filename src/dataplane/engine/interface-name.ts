/** The name by which a network interface is followed: one that is renamed is still there, and the kernel keeps on it what is there. */
import { native } from '../native/native.ts'
import type { Log } from './log.ts'

/** The kernel's number of the interface of that name, 0 where there is none; undefined where that cannot be found out now, for want of a descriptor. */
export function indexNow(name: string): number | undefined {
  try {
    return native.interfaceIndex(name)
  } catch {
    return undefined
  }
}

/** What the interface of that number is called, '' where there is none; undefined as for `indexNow`. */
function nameNow(index: number): string | undefined {
  try {
    return native.interfaceName(index)
  } catch {
    return undefined
  }
}

export class InterfaceName {
  private readonly name: string
  /** The number of the interface that was looked at last, and what it was called. */
  private index = 0
  private called = ''

  constructor(name: string) {
    this.name = name
  }

  /**
   * Whether the interface `index` is there under another name, where `present` is the number of the one that has the name now, 0 if none has; undefined as for
   * `indexNow`. The log says when it is renamed, and when it has its name again.
   */
  isOther(index: number, present: number, log: Log): boolean | undefined {
    const { name } = this
    if (index !== this.index) this.called = name
    this.index = index
    // Of another that has the name the log says more.
    if (present !== 0 && present !== index) return false
    // An interface may have several names (ip-link(8), altname); the kernel tells the first.
    const now = present === index ? name : nameNow(index)
    if (now === undefined) return undefined
    if (now === '') return false
    if (now !== this.called) {
      const renamed = `interface ${this.called} is called ${now}`
      if (now === name) log('INFO', `${renamed} again`, { interface: now })
      else
        log(
          'WARN',
          `${renamed} now: it is used as before until another is called ${name}, which a run that starts anew needs`,
          { interface: now },
        )
    }
    this.called = now
    return now !== name
  }
}
