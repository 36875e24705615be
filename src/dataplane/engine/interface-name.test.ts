/** What is said of an interface that is not found by its name. */
import { afterEach, expect, test, vi } from 'vitest'
import { native } from '../native/native.ts'
import { InterfaceName } from './interface-name.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

test('one that was renamed is not taken for gone while there is no descriptor to find out its name with', () => {
  const told: string[] = []
  const log = (_level: string, message: string) => told.push(message)
  const index = native.interfaceIndex('lo')
  const name = new InterfaceName('before')
  const found = vi.spyOn(native, 'interfaceName').mockImplementationOnce(() => {
    throw Object.assign(new Error('if_indextoname EMFILE'), { code: 'EMFILE' })
  })
  expect([name.isOther(index, 0, log), told]).toEqual([undefined, []])
  expect(name.isOther(index, 0, log)).toBe(true)
  expect(told).toEqual([expect.stringMatching(/^interface before is called lo now/)])
  found.mockReturnValueOnce('')
  expect(name.isOther(index, 0, log)).toBe(false)
})
