/** The documents of a node about itself: its API, its streams, its configurations, and a page of the first for people. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asyncApi } from '../api/documents/asyncapi.ts'
import { documentPage } from '../api/documents/document-page.ts'
import { openApi } from '../api/documents/openapi.ts'
import { referencePage } from '../api/documents/reference-page.ts'
import type { Page } from '../api/http-response.ts'
import type { JsonSchema } from '../contract/json-schema.ts'
import { loadSchema } from '../contract/load-schema.ts'
import { loadOperations } from '../contract/operations.ts'
import { packageRoot } from '../package-root.ts'
import { pipelineConfigSchema } from './config-schema.ts'
import { profileFile, profileNames } from './impairment-profiles.ts'

/** What a node publishes about its API, as plain data; made at each call. */
function apiDocuments(): { readonly openApi: JsonSchema; readonly asyncApi: JsonSchema } {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
  const parts = {
    schema: loadSchema(),
    operations: loadOperations(),
    configSchema: pipelineConfigSchema(),
    version,
  }
  return { openApi: openApi(parts), asyncApi: asyncApi(parts) }
}

/** The pages, by path; each text is made when it is first asked for, and kept as long as the process. */
export function documentPages(): ReadonlyMap<string, Page> {
  return pages
}

let documents: ReturnType<typeof apiDocuments> | undefined

function made(): ReturnType<typeof apiDocuments> {
  documents ??= apiDocuments()
  return documents
}

const pages: ReadonlyMap<string, Page> = new Map([
  ['/v1/openapi.json', documentPage('application/json', () => JSON.stringify(made().openApi))],
  ['/v1/asyncapi.json', documentPage('application/json', () => JSON.stringify(made().asyncApi))],
  [
    '/v1/schema/pipeline-config.json',
    documentPage('application/schema+json', () => JSON.stringify(pipelineConfigSchema())),
  ],
  [
    '/v1/impairment-profiles.json',
    documentPage('application/json', () =>
      JSON.stringify(profileNames().map((name) => JSON.parse(profileFile(name).text))),
    ),
  ],
  ['/docs/api', referencePage(() => made().openApi)],
])
