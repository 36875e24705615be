/** The protos as descriptors, for gRPC reflection. */
import type { ReflectionService } from '@grpc/reflection'
import descriptor from 'protobufjs/ext/descriptor.js'
import type { Schema } from '../contract/schema.ts'

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0]

/** What the reflection service reads: one file descriptor per package. */
export function descriptorPackage(schema: Schema): PackageDefinition {
  const { file } = schema.root.toDescriptor('proto3')
  const encoded = (file ?? []).map((proto) => Buffer.from(descriptor.FileDescriptorProto.encode(proto).finish()))
  const definition = { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos: encoded }
  return { penstock: definition } as PackageDefinition
}
