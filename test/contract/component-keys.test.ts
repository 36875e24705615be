/** The keys of components are the same wherever they stand: specification, proto files, registry, reference pages, contract suite. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { REFERENCE_DIRECTORY } from '../../src/cli/docs.ts'
import { loadSchema } from '../../src/contract/load-schema.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/engine/component-keys.ts'
import { packageRoot } from '../../src/package-root.ts'
import { examples } from '../contract-suite/examples.ts'
import { componentKeys } from './configuration.ts'

const directory = join(packageRoot(), REFERENCE_DIRECTORY)
const pages = readdirSync(directory).filter((file) => file.endsWith('.md') && file !== 'README.md')
const index = readFileSync(join(directory, 'README.md'), 'utf8')
const registered = [...components.keys()].sort()

test('the specification, the members of Component and the list of the data plane name the same keys', () => {
  const members = loadSchema()
    .messages.get('servicegrpc.pipeline.Component')
    ?.fields.map(({ name }) => name)
  expect([...COMPONENT_KEYS].sort()).toEqual([...componentKeys].sort())
  expect(members?.sort()).toEqual([...componentKeys].sort())
})

test('the registry, the reference pages and the contract suite have the same keys, all of them specified', () => {
  expect(pages.map((file) => file.replace(/\.md$/, '')).sort()).toEqual(registered)
  expect(Object.keys(examples).sort()).toEqual(registered)
  expect(registered.filter((key) => !(componentKeys as readonly string[]).includes(key))).toEqual([])
})

test('every key of the specification has a component and its page', () => {
  const specified = [...componentKeys].sort()
  expect(specified.filter((key) => !components.has(key))).toEqual([])
  for (const key of registered) expect(index).toContain(`[\`${key}\`](${key}.md)`)
})
