/** What requests and answers are made of, and what that is called in what is written from the protos. */
import { type EnumSchema, type FieldSchema, type MessageSchema, type Schema, TIMESTAMP } from './schema.ts'

/** Messages and enums that operations reach; a message that both a request and an answer hold is in both sets. */
export interface Reached {
  readonly requests: ReadonlySet<MessageSchema>
  readonly answers: ReadonlySet<MessageSchema>
  readonly enums: ReadonlySet<EnumSchema>
}

export function reachedBy(schema: Schema): Reached {
  const requests = new Set<MessageSchema>()
  const answers = new Set<MessageSchema>()
  const enums = new Set<EnumSchema>()
  for (const { methods } of schema.services) {
    for (const { request, response } of methods) {
      reach(request, requests, enums)
      reach(response, answers, enums)
    }
  }
  return { requests, answers, enums }
}

function reach(message: MessageSchema, into: Set<MessageSchema>, enums: Set<EnumSchema>): void {
  if (into.has(message) || message.name === TIMESTAMP) return
  into.add(message)
  for (const { type } of message.fields) {
    if (type.kind === 'message') reach(type.message, into, enums)
    else if (type.kind === 'enum') enums.add(type.enum)
  }
}

/** The one-ofs of a message with more than one member, by name. */
export function oneofsOf({ fields }: MessageSchema): ReadonlyMap<string, readonly FieldSchema[]> {
  const oneofs = new Map<string, FieldSchema[]>()
  for (const field of fields) {
    if (field.oneof === undefined) continue
    const members = oneofs.get(field.oneof)
    if (members === undefined) oneofs.set(field.oneof, [field])
    else members.push(field)
  }
  return new Map([...oneofs].filter(([, members]) => members.length > 1))
}

/** Short name of a message or enum: `Kpi.Value` is KpiValue; log lines and their options say what they are of. */
export function typeName(fullName: string): string {
  const short = fullName.split('.').slice(2).join('')
  return fullName.startsWith('servicegrpc.logging.') && short !== 'Level' ? `Log${short}` : short
}

/** Short name of a message in a request: NodeMetadataInput where answers hold it too, since requests may leave fields out. */
export function requestName(message: MessageSchema, answers: ReadonlySet<MessageSchema>): string {
  const name = typeName(message.name)
  return answers.has(message) ? `${name}Input` : name
}

/** A comment of a proto file on one line. */
export function words(comment: string): string {
  return comment.replace(/\s*\n\s*/g, ' ').trim()
}
