/** The component reference is what the schemas say now, and its examples are configurations that pass. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/api/package-root.ts'
import { exampleOf, REFERENCE_DIRECTORY, referencePages } from '../../src/cli/docs.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'

describe('component reference', () => {
  const directory = join(packageRoot(), REFERENCE_DIRECTORY)

  it('is up to date: if this fails, run "npm run docs"', () => {
    const pages = referencePages()
    expect(readdirSync(directory).sort()).toEqual([...pages.keys()].sort())
    for (const [file, text] of pages) expect(readFileSync(join(directory, file), 'utf8'), file).toBe(text)
  })

  it.each([...components.keys()])('has an example of %s that passes the check', (key) => {
    const example = exampleOf(components.get(key)!)
    expect(checkPipelineConfig(JSON.stringify(example)).problems).toEqual([])
  })
})
