/** Everything of a configuration around its components, as a schema. */
import { Type } from '@sinclair/typebox'
import { KpisSchema } from './kpis.ts'
import { LifecycleHandler } from './lifecycle.ts'
import { LogFilters } from './log-filters.ts'
import { ShmConfig } from './shm-config.ts'

const Coordinates = Type.Object({ x: Type.Optional(Type.Integer()), y: Type.Optional(Type.Integer()) })

export const Shell = Type.Object({
  $schema: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: 'Where editors find the JSON Schema of configurations; of no meaning to the node.',
    }),
  ),
  version: Type.Optional(Type.Integer({ minimum: 0, maximum: 4294967295 })),
  engine_config: Type.Object({
    pipeline: Type.Record(Type.String(), Type.Unknown()),
    shm_config: Type.Optional(ShmConfig),
    log_filters: Type.Optional(LogFilters),
    lifecycle_handler: Type.Optional(LifecycleHandler),
  }),
  meta: Type.Optional(
    Type.Object({
      component_display_coordinates: Type.Optional(Type.Record(Type.String(), Coordinates)),
      component_display_order: Type.Optional(Type.Record(Type.String(), Type.Integer())),
    }),
  ),
  kpis: Type.Optional(KpisSchema),
  variables: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String({ minLength: 1 }),
        label: Type.String({ default: '' }),
        description: Type.String({ default: '' }),
        paths: Type.Array(Type.String(), { default: [] }),
      }),
    ),
  ),
})
