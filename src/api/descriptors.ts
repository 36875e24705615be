/** The proto files as descriptors (google/protobuf/descriptor.proto), for gRPC reflection. */
import protobuf from 'protobufjs'
import { type ProtoFile, readProtoFiles } from '../contract/proto-files.ts'

/** A file as reflection serves it. */
export interface DescribedFile {
  readonly name: string
  /** The FileDescriptorProto. */
  readonly bytes: Uint8Array
  /** Names of the files it imports. */
  readonly imports: readonly string[]
  /** Full names of its services. */
  readonly services: readonly string[]
  /** Full names of all that it declares: services with their methods, messages with their fields, enums with their values. */
  readonly symbols: readonly string[]
  /** Full names of its messages. */
  readonly messages: readonly string[]
  /** What it adds to messages of other files: full name and field number. */
  readonly extensions: readonly (readonly [message: string, number: number])[]
}

/** The members of a descriptor, as its file names them. */
type Descriptor = Record<string, unknown>

/** The operations, health, reflection and what these import. Reads the proto files. */
export function describedFiles(): DescribedFile[] {
  const { root, files } = readProtoFiles('servicegrpc', 'grpc')
  // This type knows of google.api.http, since the files that declare and extend it are read too.
  const type = root.lookupType('google.protobuf.FileDescriptorProto')
  return files.map((file) => ({
    name: file.name,
    bytes: type.encode(type.fromObject(fileDescriptor(file))).finish(),
    imports: file.imports,
    services: file.declared.filter((object) => object instanceof protobuf.Service).map(nameOf),
    symbols: file.declared.flatMap(symbolsOf),
    messages: file.declared.flatMap(messagesOf),
    extensions: extensionsOf(file).map((field) => [nameOf(extendee(field)), field.id]),
  }))
}

function fileDescriptor(file: ProtoFile): Descriptor {
  const { name, syntax, imports, declared } = file
  return {
    name,
    package: file.package,
    syntax,
    dependency: imports,
    message_type: declared.filter((object) => object instanceof protobuf.Type).map((type) => message(type, syntax)),
    enum_type: declared.filter((object) => object instanceof protobuf.Enum).map(enumeration),
    service: declared.filter((object) => object instanceof protobuf.Service).map(service),
    extension: extensionsOf(file).map((field) => ({
      ...fieldOf(field, syntax),
      extendee: extendee(field).fullName,
    })),
  }
}

function message(type: protobuf.Type, syntax: ProtoFile['syntax']): Descriptor {
  const own = type.fieldsArray.filter((field) => field.declaringField === null)
  // Those that the keyword `optional` makes come last, as protobuf's runtimes demand.
  const oneofs = type.oneofsArray.toSorted((a, b) => Number(a.isProto3Optional) - Number(b.isProto3Optional))
  const { ranges, names } = reserved(type.reserved)
  return {
    name: type.name,
    field: own.map((field) => ({
      ...fieldOf(field, syntax),
      ...(field.partOf === null ? {} : { oneof_index: oneofs.indexOf(field.partOf) }),
    })),
    nested_type: [
      ...type.nestedArray.filter((nested) => nested instanceof protobuf.Type).map((nested) => message(nested, syntax)),
      ...own.filter((field) => field instanceof protobuf.MapField).map(mapEntry),
    ],
    enum_type: type.nestedArray.filter((nested) => nested instanceof protobuf.Enum).map(enumeration),
    oneof_decl: oneofs.map(({ name }) => ({ name })),
    // Ends are exclusive here, unlike in an enum.
    extension_range: (type.extensions ?? []).map(([start, end]) => ({ start, end: (end as number) + 1 })),
    reserved_range: ranges.map(([start, end]) => ({ start, end: end + 1 })),
    reserved_name: names,
  }
}

function fieldOf(field: protobuf.Field, syntax: ProtoFile['syntax']): Descriptor {
  const fallback: unknown = field.options?.default
  const isPacked: unknown = field.options?.packed
  return {
    name: field.name,
    number: field.id,
    label: field.repeated || field.map ? 'LABEL_REPEATED' : field.required ? 'LABEL_REQUIRED' : 'LABEL_OPTIONAL',
    json_name: protobuf.util.camelCase(field.name),
    ...(field instanceof protobuf.MapField
      ? { type: 'TYPE_MESSAGE', type_name: `${field.parent?.fullName}.${entryName(field)}` }
      : typeOf(field)),
    ...(field.partOf?.isProto3Optional === true ? { proto3_optional: true } : {}),
    ...(syntax === 'proto2' && fallback !== undefined ? { default_value: String(fallback) } : {}),
    ...(typeof isPacked === 'boolean' ? { options: { packed: isPacked } } : {}),
  }
}

function typeOf({ type, resolvedType }: Pick<protobuf.Field, 'type' | 'resolvedType'>): Descriptor {
  if (resolvedType === null) return { type: `TYPE_${type.toUpperCase()}` }
  return {
    type: resolvedType instanceof protobuf.Enum ? 'TYPE_ENUM' : 'TYPE_MESSAGE',
    type_name: resolvedType.fullName,
  }
}

/** The message that each entry of a map is on the wire. */
function mapEntry(field: protobuf.MapField): Descriptor {
  const member = { label: 'LABEL_OPTIONAL' }
  return {
    name: entryName(field),
    field: [
      { ...member, name: 'key', json_name: 'key', number: 1, type: `TYPE_${field.keyType.toUpperCase()}` },
      { ...member, name: 'value', json_name: 'value', number: 2, ...typeOf(field) },
    ],
    options: { map_entry: true },
  }
}

/** As protoc names it, which runtimes check. */
function entryName({ name }: Pick<protobuf.Field, 'name'>): string {
  return `${protobuf.util.ucFirst(protobuf.util.camelCase(name))}Entry`
}

function enumeration(type: protobuf.Enum): Descriptor {
  const { ranges, names } = reserved(type.reserved)
  return {
    name: type.name,
    value: Object.entries(type.values).map(([name, number]) => ({ name, number })),
    reserved_range: ranges.map(([start, end]) => ({ start, end })),
    reserved_name: names,
  }
}

function service({ name, methodsArray }: protobuf.Service): Descriptor {
  return {
    name,
    method: methodsArray.map((method) => {
      const http = httpRule(method)
      return {
        name: method.name,
        input_type: method.resolvedRequestType?.fullName,
        output_type: method.resolvedResponseType?.fullName,
        client_streaming: method.requestStream === true,
        server_streaming: method.responseStream === true,
        ...(http === undefined ? {} : { options: { '.google.api.http': http } }),
      }
    }),
  }
}

function httpRule(method: protobuf.Method): Descriptor | undefined {
  const options = (method.parsedOptions ?? []) as Record<string, Descriptor>[]
  const rule = options.find((option) => '(google.api.http)' in option)?.['(google.api.http)']
  if (rule === undefined) return undefined
  const { additional_bindings: more = [] } = rule
  return { ...rule, additional_bindings: Array.isArray(more) ? more : [more] }
}

function reserved(entries: readonly (number[] | string)[] | undefined): {
  ranges: [number, number][]
  names: string[]
} {
  return {
    ranges: (entries ?? []).filter((entry) => typeof entry !== 'string') as [number, number][],
    names: (entries ?? []).filter((entry) => typeof entry === 'string'),
  }
}

function extensionsOf({ declared }: ProtoFile): protobuf.Field[] {
  return declared.filter((object) => object instanceof protobuf.Field)
}

/** The message that an extension field adds to. */
function extendee(field: protobuf.Field): protobuf.Type {
  return field.extensionField?.parent as protobuf.Type
}

function messagesOf(object: protobuf.ReflectionObject): string[] {
  return object instanceof protobuf.Type ? [nameOf(object), ...object.nestedArray.flatMap(messagesOf)] : []
}

function symbolsOf(object: protobuf.ReflectionObject): string[] {
  if (object instanceof protobuf.Service) return [object, ...object.methodsArray].map(nameOf)
  if (object instanceof protobuf.Enum) {
    // A value stands beside its enum, not in it.
    const scope = nameOf(object).slice(0, -object.name.length)
    return [nameOf(object), ...Object.keys(object.values).map((value) => scope + value)]
  }
  if (!(object instanceof protobuf.Type)) return [nameOf(object)]
  const fields = object.fieldsArray.filter((field) => field.declaringField === null)
  return [
    ...[object, ...fields, ...object.oneofsArray.filter((oneof) => !oneof.isProto3Optional)].map(nameOf),
    ...object.nestedArray.flatMap(symbolsOf),
  ]
}

/** Full name without a leading dot. */
function nameOf({ fullName }: protobuf.ReflectionObject): string {
  return fullName.slice(1)
}
