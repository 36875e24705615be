/** What `penstock components` shows: the catalogue, and one component's fields and metrics. */
import { join } from 'node:path'
import { components } from '../dataplane/components/registry.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { COMPONENT_KEYS } from '../dataplane/engine/component-keys.ts'
import { packageRoot } from '../package-root.ts'
import { hasWords, suggestion } from '../text/names.ts'
import { exampleOf } from './component-example.ts'
import { Failure, UsageFailure } from './failure.ts'
import type { Format } from './options.ts'
import { type Field, fieldsOf, metricsOf } from './reference.ts'
import { type Column, fitted, paint, print, printJson, table, terminalWidth } from './terminal.ts'

/** Every component with what it does, by its key. */
function catalogue(): { key: string; family: string; summary: string }[] {
  return [...components.values()]
    .map(({ key, family, summary }) => ({ key, family, summary }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}

function printCatalogue(): void {
  const columns: Column[] = [{ title: 'KEY' }, { title: 'FAMILY' }, { title: 'WHAT IT DOES', wrap: true }]
  print(
    table(
      columns,
      catalogue().map(({ key, family, summary }) => [key, family, summary]),
    ),
  )
}

/** Columns that the table of fields needs to be readable; a narrower terminal gets a list. */
const WIDE = 110

function fieldTable(fields: readonly Field[]): string {
  const columns: Column[] = ['FIELD', 'TYPE', 'UNIT', 'RANGE', 'DEFAULT', 'LIVE'].map((title) => ({ title }))
  return table(
    [...columns, { title: 'DESCRIPTION', wrap: true }],
    fields.map((field) => [
      field.name,
      field.type,
      field.unit,
      field.range,
      field.required ? 'required' : field.default,
      field.live ? 'yes' : '',
      field.description,
    ]),
  )
}

function fieldList(fields: readonly Field[]): string {
  return table(
    [{ title: '' }, { title: '', wrap: true }],
    fields.map(({ name, type, unit, range, required, default: value, live, description }) => {
      const facts = [type, unit, range, required ? 'required' : value && `default ${value}`, live ? 'live' : '']
      return [paint(name, 'cyan'), `${facts.filter((fact) => fact).join(', ')}\n${description}`]
    }),
  )
}

function printComponent(definition: AnyComponent): void {
  print(`${paint(definition.key, 'bold')} (${definition.family})`)
  print(fitted(definition.summary))
  if (definition.details) print(`\n${fitted(definition.details)}`)
  print(`\n${paint('Fields', 'bold')}`)
  print(terminalWidth() < WIDE ? fieldList(fieldsOf(definition)) : fieldTable(fieldsOf(definition)))
  const metrics = metricsOf(definition)
  if (metrics.length === 0) return
  print(`\n${paint('Metrics', 'bold')} (beside packets and bytes of every port)`)
  print(
    table(
      [{ title: 'METRIC' }, { title: 'KIND' }, { title: 'UNIT' }, { title: 'DESCRIPTION', wrap: true }],
      metrics.map(({ name, kind, unit, help }) => [name, kind, unit, help]),
    ),
  )
}

/** What somebody who asks for a component by a word that is no key may have meant: those that have it in their key or family, or else in what they do. */
function cureOf(word: string): string {
  const having = (textOf: (component: AnyComponent) => string) =>
    [...components.values()].filter((component) => hasWords(textOf(component), word)).map(({ key }) => key)
  const named = having(({ key, family }) => `${key} ${family}`)
  const meant = named.length > 0 ? named : having(({ summary }) => summary)
  if (meant.length > 0) return ` Of that kind there are ${meant.sort().join(', ')}.`
  return suggestion(word, COMPONENT_KEYS) || ' `penstock components` lists those there are.'
}

/** A recording that comes with the package, for the component that replays one. */
const TRACE = 'examples/trace-replay.csv'

export interface ComponentsOptions {
  output: Format
  example?: boolean
}

export function showComponents(key: string | undefined, { output, example }: ComponentsOptions): void {
  if (key === undefined) {
    if (example) throw new UsageFailure('name the component that the example is to show')
    if (output === 'json') printJson(catalogue())
    else printCatalogue()
    return
  }
  const definition = components.get(key)
  if (!definition) {
    throw new Failure(`unknown component "${key}".${cureOf(key)}`)
  }
  if (example) {
    printJson(exampleOf(definition, { trace_file: join(packageRoot(), TRACE) }))
    return
  }
  if (output !== 'json') printComponent(definition)
  else {
    const { summary, family, details } = definition
    const schema = definition.config
    printJson({
      key,
      family,
      summary,
      details,
      fields: fieldsOf(definition),
      metrics: metricsOf(definition),
      schema,
    })
  }
}
