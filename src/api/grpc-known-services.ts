/**
 * The services that every gRPC server has, health and reflection. The package of health brings a protobufjs, and reflection reads the proto files, a
 * third of the CPU time that a node took to be ready; most nodes are never asked, so they are loaded at the first call.
 */
import type * as grpc from '@grpc/grpc-js'
import { ServiceError } from '../contract/errors.ts'
import { requirePackage } from '../require-package.ts'
import { INSTALL_AGAIN, messageOf } from '../text/error-message.ts'
import type { Warn } from './grpc-connections.ts'
import { Reflection } from './reflection.ts'

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

/**
 * Adds health, in which `services` are serving, and reflection. Gives what is to be called with the path of each call before its request is read:
 * it says whether the call is one of these services', loads what it needs then, and throws INTERNAL where that cannot be, which `warn` is told once.
 */
export function addKnownServices(
  server: AddService,
  services: readonly string[],
  warn: Warn,
): (path: string) => boolean {
  const loads = new Map<string, () => void>()
  for (const [known, load] of [
    [HEALTH, () => healthOf(services)] as const,
    [REFLECTION, () => new Reflection()] as const,
  ]) {
    const loaded = new LoadedLate(load, warn)
    for (const { name, methods } of known) {
      const own = Object.entries(methods).map(([method, streams]) => [method, `/${name}/${method}`, streams] as const)
      server.addService(
        Object.fromEntries(own.map(([method, path, streams]) => [method, loaded.definition(path, streams)])),
        Object.fromEntries(own.map(([method, path]) => [method, loaded.handler(path)])),
      )
      for (const [, path] of own) loads.set(path, () => loaded.load(path))
    }
  }
  return (path) => {
    const load = loads.get(path)
    load?.()
    return load !== undefined
  }
}

/** What `services` serve, as the package says it. */
export function healthOf(services: readonly string[]): { addToServer(server: grpc.Server): void } {
  const { HealthImplementation } = requirePackage('grpc-health-check') as typeof import('grpc-health-check')
  return new HealthImplementation(Object.fromEntries(['', ...services].map((name) => [name, 'SERVING' as const])))
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

/** The methods of a package, known by their paths before it is loaded. */
export class LoadedLate {
  readonly #make: () => { addToServer(server: grpc.Server): void }
  readonly #warn: Warn
  #methods: Map<string, Method> | undefined
  #isTold = false

  constructor(make: () => { addToServer(server: grpc.Server): void }, warn: Warn) {
    this.#make = make
    this.#warn = warn
  }

  /** Throws INTERNAL. */
  load(path: string): void {
    try {
      this.#methods ??= methodsOf(this.#make())
    } catch (error) {
      const message = `${path} could not be loaded: ${messageOf(error)}; ${INSTALL_AGAIN}`
      if (!this.#isTold) this.#warn(message, { path })
      this.#isTold = true
      throw new ServiceError('INTERNAL', message)
    }
  }

  definition(path: string, [requestStream, responseStream]: readonly [boolean, boolean]): AnyMethod {
    return {
      path,
      requestStream,
      responseStream,
      requestSerialize: (value) => this.#method(path).definition.requestSerialize(value),
      requestDeserialize: (bytes) => this.#method(path).definition.requestDeserialize(bytes),
      responseSerialize: (value) => this.#method(path).definition.responseSerialize(value),
      responseDeserialize: (bytes) => this.#method(path).definition.responseDeserialize(bytes),
    }
  }

  handler(path: string): grpc.UntypedHandleCall {
    return ((call: never, callback: never) => this.#method(path).handle(call, callback)) as grpc.UntypedHandleCall
  }

  #method(path: string): Method {
    return this.#methods?.get(path) as Method
  }
}
