/** The OpenAPI document as a page for people: plain HTML with one style sheet in it, no script, nothing fetched. */
import { createHash } from 'node:crypto'
import type { JsonSchema } from '../../contract/json-schema.ts'
import type { Page } from '../http-response.ts'
import { documentPage } from './document-page.ts'

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.5rem;border:1px solid #8886;border-radius:4px}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid #8886}
h2{margin-top:3rem}h3{margin-top:2rem;border-top:1px solid #8886;padding-top:1rem}.verb{font-weight:bold}`

/** Nothing but the style sheet in the page: no script, no request, no frame around it. */
const SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The page of an OpenAPI document that `openApi` made. */
export function referencePage(document: () => JsonSchema): Page {
  return documentPage('text/html; charset=utf-8', () => html(document() as unknown as Document), {
    'content-security-policy': SECURITY_POLICY,
    'referrer-policy': 'no-referrer',
  })
}

interface Media {
  readonly schema: JsonSchema
  readonly example?: unknown
}
interface Answer {
  readonly $ref?: string
  readonly description?: string
  readonly content?: Readonly<Record<string, Media>>
}
interface OperationObject {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly description?: string
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly description?: string
    readonly schema: JsonSchema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Answer>>
}
/** What is read here of a document. */
interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly responses: Readonly<Record<string, Answer>>
  }
}

function html(document: Document): string {
  const { info, tags, paths, components } = document
  const operations = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
  )
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name))
    return `<section><h2 id="${text(name)}">${text(name)}</h2><p>${text(description)}</p>${own
      .map(({ path, verb, operation }) => operationHtml(path, verb, operation, components.responses))
      .join('')}</section>`
  })
  const contents = operations.map(
    ({ path, verb, operation: { operationId } }) =>
      `<tr><td><a href="#${text(operationId)}">${text(operationId)}</a></td><td><code><span class="verb">${verb}</span> ${text(path)}</code></td></tr>`,
  )
  const schemas = Object.entries(components.schemas).map(([name, schema]) => schemaHtml(name, schema))
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${text(info.title)}</title><style>${STYLE}</style></head>
<body><h1>${text(info.title)} ${text(info.version)}</h1><p>${text(info.description)}</p>
<p>For programs: <a href="/v1/openapi.json">OpenAPI</a>, <a href="/v1/asyncapi.json">AsyncAPI</a>, <a href="/v1/schema/pipeline-config.json">JSON Schema of configurations</a>.</p>
<table>${contents.join('')}</table>
${sections.join('\n')}
<section><h2 id="schemas">Schemas</h2>${schemas.join('\n')}</section></body></html>
`
}

function operationHtml(
  path: string,
  verb: string,
  { operationId, description = '', parameters = [], requestBody, responses }: OperationObject,
  named: Readonly<Record<string, Answer>>,
): string {
  const rows = parameters.map(
    (each) =>
      `<tr><td><code>${text(each.name)}</code></td><td>${each.in}</td><td>${typeHtml(each.schema)}</td><td>${text(each.description ?? '')}</td></tr>`,
  )
  const body = Object.values(requestBody?.content ?? {})[0]
  const answers = Object.entries(responses).map(([status, answer]) => {
    const known = answer.$ref === undefined ? answer : (named[answer.$ref.split('/').at(-1) as string] ?? answer)
    const media = Object.values(known.content ?? {})[0]
    return `<tr><td>${status}</td><td>${text(known.description ?? '')}</td><td>${media === undefined ? '' : typeHtml(media.schema)}</td></tr>`
  })
  const example = Object.values(responses['200']?.content ?? {})[0]?.example
  return `<h3 id="${text(operationId)}">${text(operationId)}</h3><p><code><span class="verb">${verb}</span> ${text(path)}</code></p><p>${text(description)}</p>
${rows.length === 0 ? '' : `<table><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>${rows.join('')}</table>`}
${body === undefined ? '' : `<h4>Body</h4>${memberTable(body.schema)}${exampleHtml(body.example)}`}
<h4>Answers</h4><table>${answers.join('')}</table>${exampleHtml(example)}`
}

function schemaHtml(name: string, schema: JsonSchema): string {
  return `<h3 id="schema-${text(name)}">${text(name)}</h3><p>${text(String(schema.description ?? ''))}</p>${
    schema.properties === undefined ? `<p>${typeHtml(schema)}</p>` : memberTable(schema)
  }`
}

function memberTable(schema: JsonSchema): string {
  if (schema.properties === undefined) return `<p>${typeHtml(schema)}</p>`
  const required = (schema.required ?? []) as readonly string[]
  const rows = Object.entries(schema.properties as Record<string, JsonSchema>).map(
    ([key, value]) =>
      `<tr><td><code>${text(key)}</code>${required.includes(key) ? '' : '?'}</td><td>${typeHtml(value)}</td><td>${text(String(value.description ?? ''))}</td></tr>`,
  )
  return `<table>${rows.join('')}</table>`
}

function typeHtml(schema: JsonSchema): string {
  const { $ref, type, items, additionalProperties, contentSchema, oneOf } = schema
  const values = schema.enum as readonly unknown[] | undefined
  if (typeof $ref === 'string') {
    const name = text($ref.split('/').at(-1) as string)
    return `<a href="#schema-${name}">${name}</a>`
  }
  if (contentSchema !== undefined) return `${text(String(type))} of ${typeHtml(contentSchema as JsonSchema)}`
  if (items !== undefined) return `list of ${typeHtml(items as JsonSchema)}`
  if (typeof additionalProperties === 'object') return `map to ${typeHtml(additionalProperties as JsonSchema)}`
  if (values !== undefined) return values.map((value) => `<code>${text(String(value))}</code>`).join(', ')
  if (Array.isArray(oneOf) && type === undefined) return oneOf.map(typeHtml).join(' or ')
  const { minimum, maximum } = schema
  const range = minimum === undefined && maximum === undefined ? '' : ` ${minimum ?? ''}…${maximum ?? ''}`
  return text(`${String(schema.format ?? schema.contentEncoding ?? type ?? 'any')}${range}`)
}

function exampleHtml(example: unknown): string {
  if (example === undefined) return ''
  return `<pre>${text(typeof example === 'string' ? example : JSON.stringify(example, null, 2))}</pre>`
}

/** Text as it stands between tags and in attributes. */
function text(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
