/** Where a configuration speaks of a component by its name outside the pipeline: variables, KPIs, log filters. */
import { fieldOf, isList, isObject, type Json, type JsonObject, pointerOf, withValueAt } from '../../data/json.ts'

/** `config` with everything that meant the component `from` meaning `to`. */
export function withReferences(config: JsonObject, from: string, to: string): JsonObject {
  const kpis = fieldOf(config, 'kpis')
  const variables = fieldOf(config, 'variables')
  const filters = fieldOf(fieldOf(config, 'engine_config'), 'log_filters')
  let changed: Json = config
  const put = (path: readonly string[], before: Json | undefined, after: Json): void => {
    if (JSON.stringify(before) !== JSON.stringify(after)) changed = withValueAt(changed, path, after) as Json
  }
  if (kpis !== undefined) put(['kpis'], kpis, inExpressions(kpis, from, to))
  if (isList(variables)) put(['variables'], variables, inPaths(variables, from, to))
  if (isList(filters)) put(['engine_config', 'log_filters'], filters, inFilters(filters, from, to))
  return changed as JsonObject
}

/** Metrics are written `{component/metric}` in expressions, which are the values of `variables` and of fields named for what they are. */
function inExpressions(kpis: Json, from: string, to: string): Json {
  const text = (value: string): string => value.replaceAll(`{${from}/`, `{${to}/`)
  const walk = (value: Json, isExpression: boolean): Json => {
    if (typeof value === 'string') return isExpression ? text(value) : value
    if (isList(value)) return value.map((item) => walk(item, isExpression))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        key,
        walk(inner, isExpression || key === 'variables' || /expression$/i.test(key)),
      ]),
    )
  }
  return walk(kpis, false)
}

/** Variables lead to places in components by JSON pointers. */
function inPaths(variables: readonly Json[], from: string, to: string): Json {
  const olds = ['engine_config', 'engineConfig'].map((engine) => pointerOf([engine, 'pipeline', from]))
  const own = pointerOf([to])
  const moved = (path: Json): Json => {
    if (typeof path !== 'string') return path
    const old = olds.find((pointer) => path === pointer || path.startsWith(`${pointer}/`))
    if (old === undefined) return path
    return old.slice(0, -pointerOf([from]).length) + own + path.slice(old.length)
  }
  return variables.map((variable) => {
    const paths = fieldOf(variable, 'paths')
    return isList(paths) && isObject(variable) ? { ...variable, paths: paths.map(moved) } : variable
  })
}

function inFilters(filters: readonly Json[], from: string, to: string): Json {
  return filters.map((filter) =>
    fieldOf(filter, 'path_filter') === from ? (withValueAt(filter, ['path_filter'], to) as Json) : filter,
  )
}
