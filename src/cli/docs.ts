/**
 * `npm run docs`: writes the component reference, docs/components/, from the components' schemas and metrics, the reference of the commands,
 * docs/commands.md, from their help, and the JSON Schemas of their output, docs/output/.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { components } from '../dataplane/components/registry.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { packageRoot } from '../package-root.ts'
import { COMMANDS_PAGE, commandsPage, OUTPUT_DIRECTORY, outputFiles } from './command-reference.ts'
import { exampleOf } from './component-example.ts'
import { createProgram } from './program.ts'
import { fieldsOf, metricsOf } from './reference.ts'

/** Where the pages are, from the package's root. */
export const REFERENCE_DIRECTORY = 'docs/components'

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

function markdownTable(head: readonly string[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const ROLES: Record<string, string> = {
  created: 'packets that begin here',
  consumed: 'packets that end here as they should',
  drop: 'packets lost here',
  intended: 'packets lost here on purpose',
  overflow: 'packets lost here because an emulated queue was full',
  held: 'packets waiting here now',
}

function pageOf(definition: AnyComponent): string {
  const { key, family, summary, details } = definition
  const fields = fieldsOf(definition).map((field) => [
    `\`${field.name}\``,
    field.type,
    field.unit,
    field.range,
    field.required ? 'required' : field.default && `\`${field.default}\``,
    field.live ? 'yes' : '',
    field.description,
  ])
  const metrics = metricsOf(definition).map(({ name, kind, unit, help, role }) => [
    `\`${name}\``,
    kind,
    unit,
    help,
    ROLES[role] ?? '',
  ])
  const sections = [
    '<!-- Written by "npm run docs" from the component\'s schema; do not edit. -->',
    `# ${key}`,
    summary,
    ...(details ? [details] : []),
    `Family: ${family}.`,
    '## Fields',
    markdownTable(['field', 'type', 'unit', 'range', 'default', 'live', 'description'], fields),
    'A *live* field can be changed while the pipeline runs.',
    '## Metrics',
    ...(metrics.length > 0
      ? [markdownTable(['metric', 'kind', 'unit', 'description', 'says of packets'], metrics), 'Besides, every']
      : ['Every']
    ).map((text, i, all) =>
      i === all.length - 1 ? `${text} connected port counts \`<port>_packets\` and \`<port>_bytes\`.` : text,
    ),
    '## Example',
    `\`\`\`json\n${JSON.stringify(exampleOf(definition), null, 2)}\n\`\`\``,
  ]
  return `${sections.join('\n\n')}\n`
}

function indexPage(): string {
  const rows = [...components.values()]
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ key, family, summary }) => [`[\`${key}\`](${key}.md)`, family, summary])
  const sections = [
    '<!-- Written by "npm run docs" from the components\' schemas; do not edit. -->',
    '# Components',
    markdownTable(['component', 'family', 'what it does'], rows),
  ]
  return `${sections.join('\n\n')}\n`
}

/** The keys of the components of each family, both in the order of their names. */
function families(): Record<string, string[]> {
  const byFamily: Record<string, string[]> = {}
  for (const { key, family } of [...components.values()].sort((a, b) => (a.key < b.key ? -1 : 1))) {
    byFamily[family] ??= []
    byFamily[family].push(key)
  }
  return Object.fromEntries(Object.entries(byFamily).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The reference: file name in `REFERENCE_DIRECTORY` to text. Beside the pages, families.json has the components by family for programs. */
export function referencePages(): Map<string, string> {
  const pages = new Map([
    ['README.md', indexPage()],
    ['families.json', `${JSON.stringify(families(), null, 2)}\n`],
  ])
  for (const definition of components.values()) pages.set(`${definition.key}.md`, pageOf(definition))
  return pages
}

/** Writes files into `directory`, and removes from it what is none of them; gives their number. */
function writeAll(directory: string, files: ReadonlyMap<string, string>): number {
  mkdirSync(directory, { recursive: true })
  for (const file of readdirSync(directory)) if (!files.has(file)) rmSync(join(directory, file))
  for (const [file, text] of files) writeFileSync(join(directory, file), text)
  return files.size
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = packageRoot()
  const pages = writeAll(join(root, REFERENCE_DIRECTORY), referencePages())
  const schemas = writeAll(join(root, OUTPUT_DIRECTORY), outputFiles())
  writeFileSync(join(root, COMMANDS_PAGE), commandsPage(await createProgram()))
  process.stdout.write(`written: ${pages} files of components, ${schemas} schemas of output, ${COMMANDS_PAGE}\n`)
}
