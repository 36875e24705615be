/** A Python client that OpenAPI Generator makes of what a node publishes: it compiles, and talks to the node. */
import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Converter } from '@apiture/openapi-down-convert'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import '../harness/slow.ts'

const run = promisify(execFile)
const GENERATOR = createRequire(import.meta.url).resolve(
  '@openapitools/openapi-generator-cli/bin/openapi-generator.jar',
)

/** The first Python that has the libraries which the client imports. */
const python = ['python3', '/usr/bin/python3'].find(
  (program) => spawnSync(program, ['-c', 'import certifi, dateutil, six, urllib3']).status === 0,
)
const lacks = [
  ...(spawnSync('java', ['-version']).status === 0 ? [] : ['java (default-jre-headless)']),
  ...(python === undefined ? ['the libraries python3-urllib3, python3-dateutil, python3-six and python3-certifi'] : []),
]

describe.skipIf(lacks.length > 0)(
  `a generated Python client${lacks.length > 0 ? `: needs ${lacks.join(', ')}` : ''}`,
  () => {
    const directory = temporaryDirectory()
    let node: RunningNode

    beforeAll(async () => {
      node = await runNode(temporaryDirectory())
      const published = await (await fetch(`http://${node.node.http}/v1/openapi.json`)).json()
      const converted = join(directory, 'openapi-3.0.json')
      writeFileSync(converted, JSON.stringify(new Converter(published as object).convert()))
      // contentSchema is in no version 3.0, and the converter leaves it in.
      const generate = ['generate', '--skip-validate-spec', '-i', converted, '-g', 'python', '-o', directory]
      const only = 'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false'
      const flags = ['--package-name', 'penstock_client', '--global-property', only]
      // It runs for seconds: what the JVM's second compiler makes better costs more than it gives.
      await run('java', ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-jar', GENERATOR, ...generate, ...flags], {
        maxBuffer: 16 * 1024 * 1024,
      })
    })
    afterAll(() => node?.node.close())

    test('compiles', async () => {
      const { stdout } = await run(python as string, ['-m', 'compileall', '-q', join(directory, 'penstock_client')])
      expect(stdout).toBe('')
    })

    test('lists pipelines, makes one, and sees failures as the error that is documented', async () => {
      const script = fileURLToPath(new URL('python_client.py', import.meta.url))
      const env = { ...process.env, PYTHONPATH: directory }
      const { stdout } = await run(python as string, [script, `http://${node.node.http}`, node.node.id], { env })
      expect(JSON.parse(stdout)).toEqual({
        before: [],
        after: ['from-python'],
        created: { type: 'Pipeline', id: expect.stringMatching(/./), restartPolicy: 'RestartPolicy' },
        missing: { status: 404, type: 'Error', code: 5, message: expect.stringContaining('none') },
        wrong: { status: 400, code: 3, fields: ['/name'] },
      })
    })
  },
)
