/** The proto files as protobufjs parses them, each with its name and what it imports. */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import protobuf from 'protobufjs'
import { packageRoot } from '../package-root.ts'

export interface ProtoFile {
  /** As others import it: servicegrpc/hub/node.proto. */
  readonly name: string
  readonly package: string
  readonly syntax: 'proto2' | 'proto3'
  /** Names of the files it imports. */
  readonly imports: readonly string[]
  /** What it declares outside of messages: messages, enums, services and extension fields. */
  readonly declared: readonly protobuf.ReflectionObject[]
}

/**
 * The files in the folders of `namespaces` below the package's `proto` and what they import, in an order in which none comes before its imports, and
 * the tree of what they declare. Throws when one does not parse.
 */
export function readProtoFiles(...namespaces: string[]): { root: protobuf.Root; files: readonly ProtoFile[] } {
  const directory = join(packageRoot(), 'proto')
  const root = new protobuf.Root()
  const files = new Map<string, ProtoFile>()
  const asked = new Set<string>()
  const load = (name: string): void => {
    if (asked.has(name)) return
    asked.add(name)
    const { package: package_ = '', syntax, imports } = read(name)
    for (const imported of imports) load(imported)
    files.set(name, { name, package: package_, syntax, imports, declared: declaredIn(root, name) })
  }
  const read = (name: string): { package?: string | undefined; syntax: ProtoFile['syntax']; imports: string[] } => {
    const known = protobuf.common.get(name)
    if (known !== null) {
      root.addJSON(known.nested ?? {})
      // Files that protobufjs brings along as JSON: what they declare does not know of its file.
      for (const object of declaredIn(root, null)) object.filename = name
      return { package: 'google.protobuf', syntax: 'proto3', imports: [] }
    }
    const source = readFileSync(join(name.startsWith('google/') ? bundled() : directory, name), 'utf8')
    // Its errors name it, and what is parsed knows of it; not declared.
    Object.assign(protobuf.parse, { filename: name })
    const { package: package_, imports = [] } = protobuf.parse(source, root, {
      keepCase: true,
      alternateCommentMode: true,
      preferTrailingComment: false,
    })
    return { package: package_, syntax: /^syntax = "proto3";/m.test(source) ? 'proto3' : 'proto2', imports }
  }
  for (const namespace of namespaces) {
    const folder = namespace.replaceAll('.', '/')
    const names = readdirSync(join(directory, folder), { recursive: true, encoding: 'utf8' })
    for (const name of names.filter((file) => file.endsWith('.proto')).sort()) load(join(folder, name))
  }
  root.resolveAll()
  return { root, files: [...files.values()] }
}

/** Where protobufjs has the files of google/api and google/protobuf. */
function bundled(): string {
  return dirname(createRequire(import.meta.url).resolve('protobufjs/package.json'))
}

/** What the file `name` declares outside of messages. */
function declaredIn(namespace: protobuf.NamespaceBase, name: string | null): protobuf.ReflectionObject[] {
  return namespace.nestedArray.flatMap((object) => {
    const isPackage = object.constructor === protobuf.Namespace
    if (isPackage) return declaredIn(object as protobuf.Namespace, name)
    return object.filename === name ? [object] : []
  })
}
