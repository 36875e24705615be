/** Which component and which of its fields a problem is about. */
import type { SettingsProblem } from '@penstock/client'
import { camelCase, type Path, stepsOf } from '../../data/json.ts'

/** Name of the component that a problem is about; undefined: it is about something else. */
export function componentAt(pointer: string): string | undefined {
  const [engine = '', pipeline, name] = stepsOf(pointer)
  return camelCase(engine) === 'engineConfig' && pipeline === 'pipeline' ? name : undefined
}

/** Problems of each component, by name. */
export function byComponent(problems: readonly SettingsProblem[]): ReadonlyMap<string, readonly SettingsProblem[]> {
  const found = new Map<string, SettingsProblem[]>()
  for (const problem of problems) {
    const name = componentAt(problem.pointer)
    if (name !== undefined) found.set(name, [...(found.get(name) ?? []), problem])
  }
  return found
}

/** Those of a component's problems that are about the field at `path` itself. */
export function problemsAt(problems: readonly SettingsProblem[], path: Path): readonly SettingsProblem[] {
  const wanted = path.map((step) => camelCase(String(step))).join('/')
  return problems.filter(({ pointer }) => stepsOf(pointer).slice(4).map(camelCase).join('/') === wanted)
}
