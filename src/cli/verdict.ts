/** What is printed of a configuration that was checked, here or by a node. */
import type { Problem } from '../text/pointer.ts'
import { SilentFailure } from './failure.ts'
import type { Format } from './options.ts'
import { countOf, nameOf, placed, placedLines, type Source } from './problems.ts'
import { harmless, paint, print, printJson } from './terminal.ts'

/** Prints what was found about a configuration; throws SilentFailure when it cannot be used. `found` follows the name of one that can. */
export function printVerdict(
  { problems, warnings }: { problems: readonly Problem[]; warnings: readonly Problem[] },
  source: Source,
  { output, found = '' }: { output: Format; found?: string },
): void {
  const valid = problems.length === 0
  const { file, text } = source
  const tell = (line: string) => process.stderr.write(harmless(`${line}\n`))
  if (output === 'json') {
    printJson({ valid, problems: placed(problems, text), warnings: placed(warnings, text) })
  } else if (valid) {
    print(`${paint('valid', 'green')}: ${nameOf(file)}${found}`)
    if (warnings.length > 0) {
      const some = warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`
      tell(`${paint(some, 'yellow', process.stderr)}:\n${placedLines(warnings, source)}`)
    }
  } else {
    const head = `${paint('invalid', 'red', process.stderr)}: ${nameOf(file)}, ${countOf(problems)}`
    tell(`${head}\n${placedLines(problems, source)}`)
  }
  if (!valid) throw new SilentFailure()
}
