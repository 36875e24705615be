/**
 * Has bundles of ECMAScript modules require packages of CommonJS in place of importing them: for an import Node.js first looks through the text
 * of the package, and of all that it exports again, for the names of what it exports. Here they are looked up when the bundle is made.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { dirname, extname, join } from 'node:path'

const require = createRequire(import.meta.url)
const PREFIX = '\0commonjs:'
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/
/** What every function has of its own, where a package is one. */
const OF_FUNCTIONS = new Set(['length', 'name', 'prototype', 'arguments', 'caller', 'default'])

/** Whether a file is one of ECMAScript's by its name or its package.json. */
function isEcmaScript(file) {
  if (extname(file) !== '.js') return extname(file) === '.mjs'
  let directory = dirname(file)
  while (!existsSync(join(directory, 'package.json'))) directory = dirname(directory)
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')).type === 'module'
}

/** Whether `id` is a package of CommonJS, or has one for who requires it. */
export function isCommonJs(id) {
  if (isBuiltin(id) || !/^[^./\0]/.test(id)) return false
  let file
  try {
    file = require.resolve(id)
  } catch {
    // It can only be imported.
    return false
  }
  return !isEcmaScript(file)
}

/** For rolldown; what it makes of a package has no effect but to load it, and goes where nothing of it is used. */
export const commonJs = {
  name: 'required-packages',
  resolveId: (id) => (isCommonJs(id) ? { id: PREFIX + id, moduleSideEffects: false } : null),
  load(id) {
    if (!id.startsWith(PREFIX)) return null
    const name = id.slice(PREFIX.length)
    const names = Object.getOwnPropertyNames(require(name)).filter(
      (key) => IDENTIFIER.test(key) && !OF_FUNCTIONS.has(key),
    )
    return [
      "import { createRequire } from 'node:module'",
      `const required = createRequire(import.meta.url)(${JSON.stringify(name)})`,
      // As Node.js has it, whatever the package has under that name.
      'export default required',
      ...names.map((key) => `const own_${key} = required.${key}\nexport { own_${key} as ${key} }`),
    ].join('\n')
  },
}
