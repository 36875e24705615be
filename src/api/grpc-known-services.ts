/**
 * The services that every gRPC server has, health and reflection. Their packages bring a protobufjs each, a third of the CPU time that a node took to
 * be ready; most nodes are never asked, so they are loaded at the first call.
 */
import type * as grpc from '@grpc/grpc-js'
import { requirePackage } from '../require-package.ts'
import { messageOf } from '../text/error-message.ts'
import { descriptorPackage } from './descriptors.ts'

type AnyMethod = grpc.MethodDefinition<unknown, unknown>
/** What a package adds its services to: a server takes the same. */
type AddService = Pick<grpc.Server, 'addService'>

/** The calls of a service, by name: whether requests and responses are streams. */
export interface KnownService {
  readonly name: string
  readonly methods: Readonly<Record<string, readonly [requestStream: boolean, responseStream: boolean]>>
}

export const HEALTH: readonly KnownService[] = [
  { name: 'grpc.health.v1.Health', methods: { Check: [false, false], List: [false, false], Watch: [false, true] } },
]
export const REFLECTION: readonly KnownService[] = ['v1', 'v1alpha'].map((version) => ({
  name: `grpc.reflection.${version}.ServerReflection`,
  methods: { ServerReflectionInfo: [true, true] },
}))

/** Health, in which `services` are serving, and reflection. */
export function addKnownServices(server: AddService, services: readonly string[]): void {
  addLoaded(server, HEALTH, () => healthOf(services))
  addLoaded(server, REFLECTION, reflectionOf)
}

/** What `services` serve, as the package says it. */
export function healthOf(services: readonly string[]): { addToServer(server: grpc.Server): void } {
  const { HealthImplementation } = requirePackage('grpc-health-check') as typeof import('grpc-health-check')
  return new HealthImplementation(Object.fromEntries(['', ...services].map((name) => [name, 'SERVING' as const])))
}

/** Of the proto files, which are read for it. */
export function reflectionOf(): { addToServer(server: grpc.Server): void } {
  const { ReflectionService } = requirePackage('@grpc/reflection') as typeof import('@grpc/reflection')
  return new ReflectionService(descriptorPackage())
}

interface Method {
  readonly definition: AnyMethod
  readonly handle: (call: never, callback: never) => void
}

/** The methods that a package would add to a server, by path. */
export function methodsOf(implementation: { addToServer(server: grpc.Server): void }): Map<string, Method> {
  const methods = new Map<string, Method>()
  const addService: AddService['addService'] = (definitions, handlers) => {
    for (const [name, definition] of Object.entries(definitions)) {
      const handle = handlers[name] ?? handlers[definition.originalName ?? '']
      if (handle !== undefined)
        methods.set(definition.path, { definition, handle: (handle as Method['handle']).bind(handlers) })
    }
  }
  implementation.addToServer({ addService } as grpc.Server)
  return methods
}

/** Adds `services` to `server`, of which `load` gives the implementation at their first call. */
function addLoaded(
  server: AddService,
  services: readonly KnownService[],
  load: () => { addToServer(server: grpc.Server): void },
): void {
  let loaded: Map<string, Method> | undefined
  const methodOf = (path: string): Method => {
    try {
      loaded ??= methodsOf(load())
    } catch (error) {
      const advice =
        'restart the node if it was upgraded meanwhile; otherwise the installation is damaged: install it again'
      throw new Error(`${path} could not be loaded: ${messageOf(error)}; ${advice}`)
    }
    return loaded.get(path) as Method
  }
  for (const { name: service, methods } of services) {
    const definitions: Record<string, AnyMethod> = {}
    const handlers: Record<string, grpc.UntypedHandleCall> = {}
    for (const [name, [requestStream, responseStream]] of Object.entries(methods)) {
      const path = `/${service}/${name}`
      definitions[name] = {
        path,
        requestStream,
        responseStream,
        requestSerialize: (value) => methodOf(path).definition.requestSerialize(value),
        requestDeserialize: (bytes) => methodOf(path).definition.requestDeserialize(bytes),
        responseSerialize: (value) => methodOf(path).definition.responseSerialize(value),
        responseDeserialize: (bytes) => methodOf(path).definition.responseDeserialize(bytes),
      }
      handlers[name] = ((call: never, callback: never) =>
        methodOf(path).handle(call, callback)) as grpc.UntypedHandleCall
    }
    server.addService(definitions, handlers)
  }
}
