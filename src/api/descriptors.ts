/** The protos as descriptors, for gRPC reflection. */
import type { ReflectionService } from '@grpc/reflection'
import { readProtos } from '../contract/schema-reader.ts'
import { requirePackage } from '../require-package.ts'

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0]

/** What the reflection service reads: one file descriptor per package. Reads the proto files. */
export function descriptorPackage(): PackageDefinition {
  // It gives every root of protobufjs the method below.
  const { FileDescriptorProto } = requirePackage(
    'protobufjs/ext/descriptor.js',
  ) as typeof import('protobufjs/ext/descriptor.js')
  const { file } = readProtos('servicegrpc').toDescriptor('proto3')
  const encoded = (file ?? []).map((proto) => Buffer.from(FileDescriptorProto.encode(proto).finish()))
  const definition = { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos: encoded }
  return { penstock: definition } as PackageDefinition
}
