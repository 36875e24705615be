/** What the bundled program has in place of the proto files says the same as they do. */
import { expect, test } from 'vitest'
import { readNamespace } from './schema-reader.ts'
import { restored, stored } from './stored-schema.ts'

test.each(['servicegrpc', 'penstock.link', 'penstock.cluster'])('%s, through JSON and back', (namespace) => {
  const read = readNamespace(namespace)
  const again = restored(JSON.parse(JSON.stringify(stored(read))))
  expect(again.messages.size).toBeGreaterThan(4)
  expect(again).toStrictEqual(read)
  expect([...again.messages.keys()]).toEqual([...read.messages.keys()])
  // Types are the same objects as those by name: codecs keep what they made of one.
  for (const { fields } of again.messages.values()) {
    for (const { type } of fields) {
      if (type.kind === 'message') expect(type.message).toBe(again.messages.get(type.message.name))
      if (type.kind === 'enum') expect(type.enum).toBe(again.enums.get(type.enum.name))
    }
  }
})
