/** What a start that the system had no means for is told to do. */
import { expect, test } from 'vitest'
import { cureOf } from './scarcity.ts'

const failed = (syscall: string, code: string) => Object.assign(new Error(`${syscall} ${code}`), { syscall, code })

test('of epoll ENOSPC is no disk that is full', () => {
  expect(cureOf(new Error('component', { cause: failed('epoll_ctl', 'ENOSPC') }))).toMatch('fs.epoll.max_user_watches')
  expect(cureOf(failed('epoll_ctl', 'ENOMEM'))).toMatch('ulimit -v')
  expect(cureOf(failed('write', 'ENOSPC'))).toBeUndefined()
})
