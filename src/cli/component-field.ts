/** Fields of components as commands take them: `encoder.repair`, `delay.phases.0.delay`, `delay.phases[0].delay`. */

/** The component of `pipeline` that `target` is, or is a field of: of several, the one with the longest name; undefined when it begins with none. */
export function componentOf(target: string, pipeline: object): string | undefined {
  const [component] = Object.keys(pipeline)
    .filter((name) => target === name || target.startsWith(`${name}.`))
    .sort((a, b) => b.length - a.length)
  return component
}

/** The steps to a field, `phases[0].delay`, within its component. */
export const stepsOf = (field: string): string[] => field.split(/\.|\[|\]\.?/).filter((step) => step !== '')
